"""Reading a patch out of what a model answered: tolerant of its form, never inventing its content."""

from __future__ import annotations

import re

from pydantic import ValidationError

from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.regions import without_markers
from burnish.infrastructure.optimizer.json_finding import UnreadableAnswerError, Wanted, find_object
from burnish.infrastructure.optimizer.literal_text import TargetDocument
from burnish.infrastructure.optimizer.note_reading import NOTE_KEYS
from burnish.infrastructure.optimizer.patch_schema import EditAnswer, PatchAnswer

_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")
_WANTED = Wanted(
    key="edits",
    described="a list of edits",
    keys=frozenset({*PatchAnswer.model_fields, *NOTE_KEYS}),
    holds=lambda value: isinstance(value, list),
    element_keys=frozenset({*EditAnswer.model_fields, "support_count"}),
    marked_by="op",
)


def read_patch(text: str, skill: str | None = None) -> Patch:
    """The patch in a model's answer, with literal edits (design, section 5, decision 1).

    `skill` is the document the edits are meant for: with it, what is inserted fits its line breaks and its lines; without
    it, every target is taken to end a line. Edits that are no objects or have no known op are dropped; an explicit empty
    list is an empty patch. An edit's support is what the model says it is, None when it says nothing. Raises
    UnreadableAnswerError, and nothing else, when there is no patch or no edit is left.
    """
    try:
        answer = PatchAnswer.model_validate(find_object(text, _WANTED))
    except ValidationError:
        raise UnreadableAnswerError('none of its edits is an object with a known "op"') from None
    document = TargetDocument(skill)
    return Patch(tuple(_literal(edit, document) for edit in answer.edits), answer.reasoning, answer.notes)


def _literal(answer: EditAnswer, document: TargetDocument) -> Edit:
    """The edit as `apply_patch` is to take it: real line breaks, no markers, nothing in fields that its op ignores."""
    target = "" if answer.op is EditOp.APPEND else document.with_line_breaks(answer.target)
    content = "" if answer.op is EditOp.DELETE else without_markers(document.with_line_breaks(answer.content))
    if answer.op is EditOp.APPEND:
        content = _BLANK_LINES.sub("", content.rstrip(), count=1)
    if answer.op is EditOp.INSERT_AFTER and target and content.strip():
        content = _as_own_lines(content, target, document)
    return Edit(answer.op, content=content, target=target, support_count=answer.support)


def _as_own_lines(content: str, target: str, document: TargetDocument) -> str:
    """Content that neither runs on from a target that ends a line, nor into the line behind it."""
    if target.endswith("\n"):
        return content if content.endswith("\n") else content + document.line_break
    if content.startswith(("\n", "\r\n")) or not document.ends_a_line(target):
        return content
    return document.line_break + content
