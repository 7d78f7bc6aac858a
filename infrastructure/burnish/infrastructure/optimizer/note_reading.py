"""Notes in a model's answer: the forms they are written in, and answers that hold nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final, cast

from pydantic import AliasChoices, BeforeValidator, Field

from burnish.domain.appendix import fit_notes
from burnish.domain.edits import Patch
from burnish.infrastructure.optimizer.answer_fields import TEXT, list_of, strict_object, text_of
from burnish.infrastructure.optimizer.asking import AnswerForm
from burnish.infrastructure.optimizer.json_finding import UnreadableAnswerError, Wanted, find_object
from burnish.infrastructure.optimizer.literal_text import TargetDocument

NOTE_KEYS: Final = ("notes", "appendix_notes")
"""The key of notes, and system B's."""

_BESIDE: Final = ("edits", "suggestions", "skill", "changes")
_TEXT_KEYS: Final = ("note", "content")
_BULLETS: Final = ("- ", "* ")


def notes_of(value: object) -> tuple[str, ...]:
    """A text, a list of texts, or a list of objects with a note or content, as notes; whatever else is there is left out.

    A text whose lines are all bullets holds a note a line.
    """
    elements = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    return fit_notes(note for element in elements for note in _texts(element))


Notes = Annotated[tuple[str, ...], BeforeValidator(notes_of), Field(validation_alias=AliasChoices(*NOTE_KEYS))]


def with_notes(form: AnswerForm) -> AnswerForm:
    """The form of an answer that has notes, too."""
    properties = cast("Mapping[str, object]", form.schema["properties"])
    return AnswerForm(f"noted_{form.name}", strict_object({**properties, "notes": list_of(TEXT)}))


CONSOLIDATION_FORM: Final = AnswerForm("notes", strict_object({"reasoning": TEXT, "notes": list_of(TEXT)}))


_PLACES: Final = tuple(
    Wanted(
        key=key,
        described="a list of notes under the key notes",
        keys=frozenset({"reasoning", *NOTE_KEYS, *_BESIDE}),
        holds=lambda value: isinstance(value, list | str),
    )
    for key in NOTE_KEYS
)


def read_notes(text: str) -> tuple[str, ...]:
    """The notes of an answer that is made of notes. Raises UnreadableAnswerError when it has none, or a blank one."""
    found = next(_objects(text), None)
    if found is None:
        raise UnreadableAnswerError(_PLACES[0].nothing)
    value = next(found[key] for key in NOTE_KEYS if key in found)
    elements = cast("list[object]", value) if isinstance(value, list) else [value]
    if not elements or not all(map(notes_of, elements)):
        raise UnreadableAnswerError("it has no note, or one without any text")
    return notes_of(elements)


def notes_beside(text: str) -> tuple[str, ...]:
    """The notes of an answer, whatever else it holds; none when there are none to be read."""
    return next((notes_of(found[key]) for found in _objects(text) for key in NOTE_KEYS if key in found), ())


def notes_alone(text: str, payload: str) -> Patch | None:
    """The notes of an answer without anything under the key `payload`; None when there is something, or no note."""
    for found in _objects(text):
        notes = next((notes_of(found[key]) for key in NOTE_KEYS if found.get(key)), ())
        if notes and not found.get(payload):
            reasoning = found.get("reasoning")
            return Patch((), reasoning if isinstance(reasoning, str) else "", notes)
    return None


def _objects(text: str) -> Iterator[Mapping[str, object]]:
    """The objects in an answer that have notes."""
    for wanted in _PLACES:
        try:
            yield find_object(text, wanted)
        except UnreadableAnswerError:
            continue


def _texts(element: object) -> list[str]:
    if isinstance(element, dict):
        fields = cast("dict[str, object]", element)
        element = next((fields[key] for key in _TEXT_KEYS if fields.get(key)), None)
    text = text_of(element) if isinstance(element, str) else None
    if not isinstance(text, str):
        return []
    lines = [line.strip() for line in TargetDocument(None).with_line_breaks(text).splitlines() if line.strip()]
    are_bullets = all(line.startswith(_BULLETS) for line in lines)
    return [line[2:] for line in lines] if are_bullets else [" ".join(lines)]
