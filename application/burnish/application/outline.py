"""A request to the optimizer as lines that people can compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import cast

from burnish.domain.step_memory import TriedStep

_LONGEST_ELEMENT = 400


def outline(request: object) -> str:
    """The request's fields: a text with its lines as they are, a tuple with an element a line, cut when it is long."""
    if not is_dataclass(request):
        return "\n".join(_lines("", request))
    return "\n".join(line for field in fields(request) for line in _lines(field.name, getattr(request, field.name)))


def _lines(name: str, value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield f"{name}:"
        yield from value.splitlines()
    elif isinstance(value, tuple):
        for element in cast("tuple[object, ...]", value):
            yield f"{name}: {_compact(element)}"
    else:
        yield f"{name}: {_compact(value)}"


def _compact(element: object) -> str:
    if isinstance(element, TriedStep):  # there may be many, and what counts is in the digest
        rejected, failed = len(element.rejected), len(element.failed)
        return (
            f"step {element.step}: {rejected} rejected (lost {element.lost}, gained {element.gained}), {failed} failed"
        )
    text = repr(element)
    return text if len(text) <= _LONGEST_ELEMENT else f"{text[: _LONGEST_ELEMENT - 1]}…"
