"""Fields of a model's answer, read as leniently as their meaning allows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ValidationError

LARGEST_NUMBER: Final = 1_000_000
"""Whole numbers beyond this are read as this: no count in an answer means more."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?")

Element = TypeVar("Element", bound=BaseModel)


def text_of(value: object) -> object:
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


def remark_of(value: object) -> str:
    """A remark that is no text is left out: nothing depends on it. A list of texts becomes lines."""
    if isinstance(value, list | tuple):
        lines = [remark_of(element) for element in cast("list[object]", value)]
        return "\n".join(f"- {line}" for line in lines if line)
    text = text_of(value)
    return text.strip() if isinstance(text, str) else ""


def number_of(value: object) -> float | None:
    """The finite number a value is, or the only one a text names; None for anything else, truth values included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = _NUMBER.findall(value[:200])
        value = float(found[0]) if len(found) == 1 else None
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def count_of(value: object) -> int | None:
    """A number cut to a whole one, 0 for a negative one; None when the value names no number."""
    number = number_of(value)
    return None if number is None else int(min(max(number, 0.0), LARGEST_NUMBER))


def readable(value: object, element: type[Element]) -> object:
    """The elements of a list that are such elements; ValueError when it has some and none is."""
    if not isinstance(value, list | tuple):
        return value
    given = cast("list[object]", value)
    found = [each for each in (_read(one, element) for one in given) if each is not None]
    if given and not found:
        raise ValueError("not one element is readable")
    return found


def strict_object(properties: Mapping[str, object]) -> dict[str, object]:
    """A JSON schema for the strict mode of OpenAI-style servers: every key required, and none beside them."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT: Final[Mapping[str, object]] = {"type": "string"}
NUMBER: Final[Mapping[str, object]] = {"type": "number"}
WHOLE_NUMBER: Final[Mapping[str, object]] = {"type": "integer"}


def list_of(items: Mapping[str, object]) -> dict[str, object]:
    """The JSON schema of a list."""
    return {"type": "array", "items": dict(items)}


def _read(value: object, element: type[Element]) -> Element | None:
    try:
        return element.model_validate(value)
    except ValidationError:
        return None


LenientText: TypeAlias = Annotated[str, BeforeValidator(text_of)]
Remark: TypeAlias = Annotated[str, BeforeValidator(remark_of)]
Count: TypeAlias = Annotated[int | None, BeforeValidator(count_of)]
