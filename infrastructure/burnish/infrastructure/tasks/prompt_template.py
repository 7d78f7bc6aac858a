"""The user message of a task: a text with an item's fields in braces."""

from __future__ import annotations

import json
import string

from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.refusals import DataError, shown

_ANSWERS = ("answer", "answers")


class PromptTemplate:
    """A text with `{id}`, `{question}`, `{task_type}` or any extra field of the items; `{{` and `}}` are braces.

    Only plain names: nothing inside a field is reached, formatted or called. A field that is no text is shown as JSON.
    Raises DataError when the text breaks these rules, names no field, or would show the agent the right answer.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = _parse(text)

    def missing_field(self, item: Item) -> str | None:
        """The first field of the template that the item lacks; None when it has all."""
        fields = _fields(item)
        return next((name for _, name in self._parts if name is not None and name not in fields), None)

    def render(self, item: Item) -> str:
        """The text with the item's fields filled in. Raises KeyError when the item lacks one."""
        fields = _fields(item)
        return "".join(literal + ("" if name is None else _as_text(fields[name])) for literal, name in self._parts)


def _parse(text: str) -> tuple[tuple[str, str | None], ...]:
    """Each literal text with the name of the field behind it; None when there is none."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        raise DataError("the prompt template has a single brace; write {{ and }} for braces around no field") from None
    for _, name, format_spec, conversion in parts:
        if name is None:
            continue
        if format_spec or conversion or not name.isidentifier():
            raise DataError(
                f"the prompt template's field {shown(name)} is no plain name; write {{question}}, "
                "and {{ and }} for braces around no field"
            )
        if name in _ANSWERS:
            raise DataError(f"the prompt template's field {shown(name)} would show the right answer; leave it out")
    if all(name is None for _, name, _, _ in parts):
        raise DataError("the prompt template names no field; write {question} where the question goes")
    return tuple((literal, name) for literal, name, _, _ in parts)


def _fields(item: Item) -> dict[str, object]:
    return dict(item.extra) | {"id": item.item_id, "question": item.question, "task_type": item.task_type}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
