"""What a model must answer when it is asked for a patch: as pydantic models, and as a JSON schema for the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from burnish.domain.edits import BOUNDED_OPS, EditOp
from burnish.infrastructure.optimizer.answer_fields import (
    TEXT,
    WHOLE_NUMBER,
    Count,
    LenientText,
    Remark,
    list_of,
    readable,
    strict_object,
)
from burnish.infrastructure.optimizer.note_reading import Notes

SCHEMA_NAME = "patch"

PATCH_SCHEMA: Final[Mapping[str, object]] = strict_object(
    {
        "reasoning": TEXT,
        "edits": list_of(
            strict_object(
                {
                    "op": {"type": "string", "enum": [op.value for op in BOUNDED_OPS]},
                    "target": TEXT,
                    "content": TEXT,
                    "support": WHOLE_NUMBER,
                }
            )
        ),
    }
)
"""For the strict mode of OpenAI-style servers: every key required, none beside them, nothing by reference.

`target` may be the empty string; `reasoning` comes first, so that a model thinks before it edits.
"""

_NOT_A_LETTER = re.compile(r"[^a-z]")
_OPS = {_NOT_A_LETTER.sub("", op.value): op for op in BOUNDED_OPS}


def _op(value: object) -> object:
    """The op a model means by "Append", "insert-after" or "InsertAfter"; anything else is refused."""
    return _OPS.get(_NOT_A_LETTER.sub("", value.lower())) if isinstance(value, str) else value


def _edits(value: object) -> object:
    return readable(value, EditAnswer)


class EditAnswer(BaseModel):
    """One edit as a model writes it; keys beside these are ignored. `support` is how many rollouts call for it."""

    model_config = ConfigDict(frozen=True)

    op: Annotated[EditOp, BeforeValidator(_op)]
    target: LenientText = ""
    content: LenientText = ""
    support: Annotated[Count, Field(validation_alias=AliasChoices("support", "support_count"))] = None


class PatchAnswer(BaseModel):
    """A whole answer; `edits` must be there, empty or with at least one that is readable: others are dropped."""

    model_config = ConfigDict(frozen=True)

    reasoning: Remark = ""
    edits: Annotated[tuple[EditAnswer, ...], BeforeValidator(_edits)]
    notes: Notes = ()
