"""Finding the JSON object that a model was asked for in what it answered: tolerant of form, never guessing content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

MAX_ANSWER_CHARACTERS = 1_048_576
"""Longer answers are refused unread."""

MAX_REPAIR_CHARACTERS = 16_384
"""Longer broken JSON is not repaired: on a tangle of quotation marks that takes time with the square of the length."""

MAX_DEPTH = 32
"""How many objects and arrays may stand inside each other; a patch has three."""

_SCAN_CHARACTERS = 4 * MAX_ANSWER_CHARACTERS  # what trying opener after opener may cost in all
_OPENER_CHARACTERS = 256  # the fixed cost of trying one, in characters

_OPENER = re.compile(r"[{\[]")
_BROKEN_OPENER = re.compile(r"""(?:\[\s*)?\{\s*["'“‘]?\w+["'”’]?\s*:""")  # an object's first key, or a list of objects
_PIECE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)  # a whole string, a bracket, a lone quote
_FENCE = re.compile(r"^[ \t]*+`{3,}+[ \t]*+([\w-]*+)[ \t]*+\r?$", re.MULTILINE)
_THOUGHTS_END = "</think>"
# Raw line breaks may stand in strings; numbers stay as they are written.
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)


class UnreadableAnswerError(Exception):
    """An answer does not hold what was asked for; the text says why, and holds nothing of the answer."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to look for: an object with `key`, whose value `holds` accepts; `described` is it in words.

    With `element_keys` the value is a list of objects with these keys, and such a list alone is taken for the object when
    an element has the key `marked_by`; another list only where it is all there is. `keys` are those the object may have
    once it had to be repaired; without any, nothing is repaired.
    """

    key: str
    described: str
    keys: frozenset[str] = frozenset()
    holds: Callable[[object], bool] = _is_text
    element_keys: frozenset[str] = frozenset()
    marked_by: str = ""

    @property
    def nothing(self) -> str:
        """The complaint about an answer that holds no such object."""
        return f"it holds no JSON object with {self.described}"


def find_object(text: str, wanted: Wanted) -> Mapping[str, object]:
    """The object: the whole text, else a fenced block, else inside prose, else repaired.

    The last one that fits wins: drafts come before the answer. What a model thinks aloud is left out. Raises
    UnreadableAnswerError, and nothing else, when there is none.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise UnreadableAnswerError(f"it is longer than {MAX_ANSWER_CHARACTERS} characters")
    whole = _shape(_parsed(text), wanted)
    if whole is not None:
        return whole
    answer = text.rpartition(_THOUGHTS_END)[2]
    if not answer.strip():
        answer = text
    blocks = _fenced(answer)
    for block in reversed(blocks):
        fenced = _shape(_parsed(block), wanted)
        if fenced is not None:
            return fenced
    inside = _last_inside(answer, wanted)
    if inside is not None:
        return inside
    return _repaired(next((block for block in reversed(blocks) if _BROKEN_OPENER.search(block)), answer), wanted)


def _shape(value: object, wanted: Wanted, *, is_whole: bool = True) -> Mapping[str, object] | None:
    """The object, a list that stands for it, or either under the key "patch"; None for anything else."""
    if isinstance(value, list):
        elements = cast("list[object]", value)
        return {wanted.key: elements} if _stands_alone(elements, wanted, is_whole=is_whole) else None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    if wanted.key in fields and wanted.holds(fields[wanted.key]):
        return fields
    inner = _shape(fields.get("patch"), wanted)
    return None if inner is None else {"reasoning": None, **fields, **inner}


def _stands_alone(elements: list[object], wanted: Wanted, *, is_whole: bool) -> bool:
    if wanted.element_keys and elements:
        return any(isinstance(element, dict) and wanted.marked_by in element for element in elements)
    return is_whole and wanted.holds(elements)


def _parsed(text: str) -> object:
    """The JSON object or list the whole text is; None when it is none, or too deep. Raw line breaks may stand in strings."""
    text = text.strip(" \t\r\n\ufeff")
    if not text.startswith(("{", "[")) or _end(text, 0) != len(text):
        return None
    try:
        return cast("object", _DECODER.decode(text))
    except ValueError:
        return None


def _end(text: str, start: int) -> int | None:
    """Where the object or list that opens at `start` ends; None when it never does, or is too deep."""
    depth = 0
    for piece in _PIECE.finditer(text, start):
        mark = text[piece.start()]
        if mark == '"':
            if piece.end() == piece.start() + 1:
                return None  # a string that never ends
            continue
        depth += 1 if mark in "{[" else -1
        if depth == 0:
            return piece.end()
        if depth > MAX_DEPTH:
            return None
    return None


def _fenced(text: str) -> list[str]:
    """The contents of the blocks between lines of three backticks."""
    blocks: list[str] = []
    start: int | None = None
    for fence in _FENCE.finditer(text):
        if start is None or fence[1]:
            start = fence.end()
        else:
            blocks.append(text[start : fence.start()])
            start = None
    return blocks


def _last_inside(text: str, wanted: Wanted) -> Mapping[str, object] | None:
    """The last object or list somewhere in the text that fits, trying each opener that is in none that did."""
    found: Mapping[str, object] | None = None
    cost = at = 0
    while (opener := _OPENER.search(text, at)) is not None:
        start = opener.start()
        end = _end(text, start)
        cost += _OPENER_CHARACTERS + (len(text) if end is None else end) - start
        if cost > _SCAN_CHARACTERS:
            raise UnreadableAnswerError("it has too many brackets outside of one JSON object")
        shape = None if end is None else _shape(_parsed(text[start:end]), wanted, is_whole=False)
        at = start + 1
        if end is not None and shape is not None:
            found, at = shape, end
    return found


def _repaired(text: str, wanted: Wanted) -> Mapping[str, object]:
    """What the broken object in the text was meant to be, from its opener to the last closer.

    Refused rather than completed or guessed: an object that ends inside a string (it was cut off), a list that holds
    something else than the objects it should, an object in which a quotation mark made a key of its text.
    """
    opener = _BROKEN_OPENER.search(text)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if opener is None or end < opener.end():
        raise UnreadableAnswerError(wanted.nothing)
    start = opener.start()
    if any(piece.group() == '"' for piece in _PIECE.finditer(text, start)):
        raise UnreadableAnswerError("its JSON ends inside a string: it is cut off, or a quotation mark is not escaped")
    if not wanted.keys:
        raise UnreadableAnswerError("its JSON is broken: perhaps a quotation mark or a line break is not escaped")
    listed = re.compile(rf"""{wanted.key}["'”’]?\s*:\s*\[\s*(?P<first>[{{\]])""").search(text, start, end)
    if wanted.element_keys and listed is None and text[start] != "[":
        raise UnreadableAnswerError(wanted.nothing)
    shape = _shape(_mended(text[start:end]), wanted, is_whole=False)
    if shape is None:
        raise UnreadableAnswerError(wanted.nothing)
    if not _is_clear(shape, wanted, is_said_to_be_empty=listed is not None and listed["first"] == "]"):
        raise UnreadableAnswerError("its JSON is broken, and what was meant is not clear")
    return shape


def _is_clear(shape: Mapping[str, object], wanted: Wanted, *, is_said_to_be_empty: bool) -> bool:
    if not wanted.element_keys:
        return wanted.keys.issuperset(shape)
    elements = cast("Sequence[object]", shape[wanted.key])
    return bool(elements) is not is_said_to_be_empty and all(
        isinstance(element, dict) and wanted.element_keys.issuperset(cast("dict[str, object]", element))
        for element in elements
    )


def _mended(text: str) -> object:
    """Broken JSON as json_repair reads it; None when that is not tried or does not work."""
    if len(text) > MAX_REPAIR_CHARACTERS or _deepest(text) > MAX_DEPTH:
        return None
    import json_repair  # noqa: PLC0415 - only for the rare answer that needs it

    try:
        return cast("object", json_repair.loads(text, skip_json_loads=True))
    except (ValueError, RecursionError):
        return None


def _deepest(text: str) -> int:
    """How many brackets are open at most, strings not looked at."""
    depth = deepest = 0
    for character in text:
        depth += (character in "{[") - (character in "}]")
        deepest = max(deepest, depth)
    return deepest
