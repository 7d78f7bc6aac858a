"""JSON as people should write it: no NaN, no key twice, no half characters, no endless nesting."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import cast

from burnish.infrastructure.tasks.refusals import RefusalError, shown

MAX_DEPTH = 64
"""How many objects and arrays may stand inside each other, the checked value itself included."""

MAX_ITEM_BYTES = 1024 * 1024
"""The longest item: a line of a .jsonl file, an object of a .json file, a row of a table."""

_MAX_INTEGER_CHARACTERS = 400
_TOO_LARGE = "a number is too large; write it as a text"
_TOO_DEEP = f"more than {MAX_DEPTH} objects and arrays stand inside each other; make the item flatter"


@dataclass(frozen=True, slots=True)
class _Unusable:
    """Stands for a value that is refused, until it is known where in the file it is."""

    what: str


def decode(data: bytes) -> str:
    """The text in the bytes. Raises RefusalError when they are not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RefusalError(f"not valid UTF-8 at byte {error.start + 1}; save the file as UTF-8") from None


def parse(text: str, remedy: str) -> object:
    """The JSON value in the text. Raises RefusalError, with the remedy, when the text is no JSON.

    What is JSON to Python but not to us is refused by `check`, so that the caller can say which part of a file it is in.
    """
    try:
        return cast(
            "object",
            json.loads(
                text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_integer
            ),
        )
    except json.JSONDecodeError as error:
        what = f"not valid JSON at column {error.colno}; {remedy}"
        raise RefusalError(what, place=f"line {error.lineno}") from None
    except RecursionError:
        raise RefusalError(_TOO_DEEP) from None


def check(value: object) -> None:
    """Look at everything inside a parsed value, without recursion; raise RefusalError about what cannot be used."""
    pending = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        inner: list[object] = []
        if isinstance(current, _Unusable):
            raise RefusalError(current.what)
        if isinstance(current, str):
            _refuse_surrogates(current)
        elif isinstance(current, dict):
            fields = cast("dict[str, object]", current)
            inner = [*fields.keys(), *fields.values()]
        elif isinstance(current, list):
            inner = cast("list[object]", current)
        if isinstance(current, dict | list) and depth > MAX_DEPTH:
            raise RefusalError(_TOO_DEEP)
        pending += [(each, depth + 1) for each in inner]


def _object(pairs: list[tuple[str, object]]) -> dict[str, object] | _Unusable:
    record: dict[str, object] = {}
    for key, value in pairs:
        if key in record:
            return _Unusable(f"the key {shown(key)} stands twice in an object; keep one")
        record[key] = value
    return record


def _constant(name: str) -> _Unusable:
    return _Unusable(f"{name} is not a JSON number; write a finite one, or null")


def _float(text: str) -> float | _Unusable:
    number = float(text)
    return number if math.isfinite(number) else _Unusable(_TOO_LARGE)


def _integer(text: str) -> int | _Unusable:
    return int(text) if len(text) <= _MAX_INTEGER_CHARACTERS else _Unusable(_TOO_LARGE)


def _refuse_surrogates(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RefusalError("a text holds half of a surrogate pair; write the character itself") from None
