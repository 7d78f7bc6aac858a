"""What a model must answer when it is asked for a patch: as pydantic models, and as a JSON schema for the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from burnish.domain.edits import BOUNDED_OPS, EditOp

SCHEMA_NAME = "patch"

PATCH_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "op": {"type": "string", "enum": [op.value for op in BOUNDED_OPS]},
                    "target": {"type": "string"},
                    "content": {"type": "string"},
                },
                "required": ["op", "target", "content"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["reasoning", "edits"],
    "additionalProperties": False,
}
"""For the strict mode of OpenAI-style servers: every key required, none beside them, nothing by reference.

`target` may be the empty string; `reasoning` comes first, so that a model thinks before it edits.
"""

_NOT_A_LETTER = re.compile(r"[^a-z]")
_OPS = {_NOT_A_LETTER.sub("", op.value): op for op in BOUNDED_OPS}
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def _op(value: object) -> object:
    """The op a model means by "Append", "insert-after" or "InsertAfter"; anything else is refused."""
    return _OPS.get(_NOT_A_LETTER.sub("", value.lower())) if isinstance(value, str) else value


def _text(value: object) -> object:
    """Null as "", numbers and truth values as JSON writes them; other values stay, and are refused.

    Halves of surrogate pairs and NUL, which neither UTF-8 nor every database can hold, become U+FFFD.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value


def _reason(value: object) -> object:
    """A reason that is no text is left out: nothing depends on it."""
    text = _text(value)
    return text if isinstance(text, str) else ""


def _readable_edits(value: object) -> object:
    """The elements of a list that are edits; ValueError when it has elements and none is."""
    if not isinstance(value, list | tuple):
        return value
    elements = cast("list[object]", value)
    edits = [edit for edit in map(_edit, elements) if edit is not None]
    if elements and not edits:
        raise ValueError("not one edit is readable")
    return edits


def _edit(value: object) -> EditAnswer | None:
    try:
        return EditAnswer.model_validate(value)
    except ValidationError:
        return None


_LenientText = Annotated[str, BeforeValidator(_text)]


class EditAnswer(BaseModel):
    """One edit as a model writes it; keys beside these are ignored."""

    model_config = ConfigDict(frozen=True)

    op: Annotated[EditOp, BeforeValidator(_op)]
    target: _LenientText = ""
    content: _LenientText = ""


class PatchAnswer(BaseModel):
    """A whole answer; `edits` must be there, empty or with at least one that is readable: others are dropped."""

    model_config = ConfigDict(frozen=True)

    reasoning: Annotated[str, BeforeValidator(_reason)] = ""
    edits: Annotated[tuple[EditAnswer, ...], BeforeValidator(_readable_edits)]
