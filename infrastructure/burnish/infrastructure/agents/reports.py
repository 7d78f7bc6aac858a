"""What an agent reports of its work: its answer, its usage, what it did, and why it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from burnish.infrastructure.models.chat import ChatErrorCode, Usage
from burnish.infrastructure.optimizer.trajectories import cut_middle

TURN_TOKENS: Final = 500
"""Of a command's output or an intermediate message, in a trace."""

Fields = Mapping[str, object]

_REASONS: Final[tuple[tuple[re.Pattern[str], ChatErrorCode], ...]] = (
    (re.compile(r"\b40[13]\b|unauthorized|authenticat|api key|log ?in\b", re.IGNORECASE), ChatErrorCode.REFUSED_KEY),
    (re.compile(r"\b(?:429|529)\b|rate.?limit|usage limit|overloaded", re.IGNORECASE), ChatErrorCode.RATE_LIMITED),
    (re.compile(r"\b404\b|model .{0,80}not (?:found|supported|exist)", re.IGNORECASE), ChatErrorCode.NOT_FOUND),
    (re.compile(r"context (?:window|length)|prompt is too long", re.IGNORECASE), ChatErrorCode.BAD_REQUEST),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`answer` None: there is none, and `failure` says why; `turns` are what the agent did before it answered."""

    answer: str | None
    turns: tuple[str, ...] = ()
    usage: Usage | None = None
    failure: ChatErrorCode | None = None


def events(output: bytes) -> Iterator[Fields]:
    """The JSON objects an agent prints, one a line; other lines are none of its reports."""
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            event: object = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield cast("Fields", event)


def code_of(complaint: str) -> ChatErrorCode:
    """The failure an agent's own words are about; they go nowhere else."""
    return next((code for pattern, code in _REASONS if pattern.search(complaint)), ChatErrorCode.SERVER_ERROR)


def turn(opener: str, text: str) -> str:
    """A turn of a trace, as trajectories have them."""
    return f"[{opener}]\n{cut_middle(text.strip(), TURN_TOKENS)}"


def inner(fields: Fields, name: str) -> Fields:
    """A field's object; empty when it is none."""
    value = fields.get(name)
    return cast("Fields", value) if isinstance(value, dict) else {}


def objects(fields: Fields, name: str) -> list[Fields]:
    """The objects in a field's list."""
    value = fields.get(name)
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Fields", one) for one in listed if isinstance(one, dict)]


def text_of(fields: Fields, name: str) -> str:
    """A field's text; empty when it is none."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def count_of(fields: Fields, name: str) -> int:
    """A field's whole number of at least 0; 0 when it is none."""
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
