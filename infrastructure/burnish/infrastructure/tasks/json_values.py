"""Values of other libraries as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import cast

from burnish.infrastructure.tasks.refusals import RefusalError, shown
from burnish.infrastructure.tasks.strict_json import MAX_DEPTH


def json_value(value: object, depth: int = 1) -> object:
    """The value as JSON: dates become ISO texts, decimals texts, NaN null. Raises RefusalError for any other kind."""
    if depth > MAX_DEPTH:
        raise RefusalError(f"more than {MAX_DEPTH} objects and arrays stand inside each other; make the item flatter")
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if math.isinf(value):
                raise RefusalError("a number is infinite; write a finite one, or null")
            return None if math.isnan(value) else value
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case Mapping():
            fields = cast("Mapping[object, object]", value)
            return {_name(name): json_value(inner, depth + 1) for name, inner in fields.items()}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [json_value(inner, depth + 1) for inner in cast("Sequence[object]", value)]
        case _:
            kind = shown(type(value).__name__)
            raise RefusalError(f"a value of the type {kind} is none that JSON has; write it as a text, or leave it out")


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise RefusalError(f"a key of the type {shown(type(name).__name__)} is no text; write it as a text")
    return name
