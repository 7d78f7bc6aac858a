"""Reading a patch out of what a model answered: tolerant of its form, never inventing its content."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import ValidationError

from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.regions import protection, without_markers
from burnish.infrastructure.optimizer.patch_schema import EditAnswer, PatchAnswer

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
_EDITS = re.compile(r"""edits["'”’]?\s*:\s*\[\s*(?P<first>[{\]])""")  # the list, and whether it opens an object or ends
_NOTHING = "it holds no JSON object with a list of edits"
_THOUGHTS_END = "</think>"
# Raw line breaks may stand in strings; numbers stay as they are written.
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)
_EDIT_KEYS = frozenset(EditAnswer.model_fields)

_QUOTED = re.compile(r'(?<!`)`[^`]{1,40}`(?!`)|"[^"]{0,40}"')
_WRITTEN_BREAK = re.compile(_QUOTED.pattern + r"|(?<![\\:])(?:\\r)?\\n")
_CLEAR_BREAK = re.compile(
    r"(?<!\\)\\n(?=[ \t]*(?:[-*+>] |#{1,6} |\d{1,3}[.)] |\||```)|(?:\\r)?\\n)"  # before a line of Markdown or a blank one
    r"|(?:(?<=[.!?])|\A)(?:\\r)?\\n(?=[A-Z]|\s*\Z)"  # between two sentences, or after the last
)
_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")


class UnreadablePatchError(Exception):
    """An answer holds no patch; the text says why, and holds nothing of the answer."""


def read_patch(text: str, skill: str | None = None) -> Patch:
    """The patch in a model's answer, with literal edits (design, section 5, decision 1).

    `skill` is the document the edits are meant for: with it, what is inserted fits its line breaks and its lines; without
    it, every target is taken to end a line. Edits that are no objects or have no known op are dropped; an explicit empty
    list is an empty patch. Raises UnreadablePatchError, and nothing else, when there is no patch or no edit is left.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise UnreadablePatchError(f"it is longer than {MAX_ANSWER_CHARACTERS} characters")
    try:
        answer = PatchAnswer.model_validate(_find(text))
    except ValidationError:
        raise UnreadablePatchError('none of its edits is an object with a known "op"') from None
    document = _Document(skill)
    return Patch(tuple(_literal(edit, document) for edit in answer.edits), answer.reasoning.strip())


# --- finding the object ----------------------------------------------------------------------------------------------


def _find(text: str) -> Mapping[str, object]:
    """The object that holds the edits: the whole text, else a fenced block, else inside prose, else repaired.

    The last one that fits wins: drafts come before the answer. What a model thinks aloud is left out.
    """
    whole = _shape(_parsed(text))
    if whole is not None:
        return whole
    answer = text.rpartition(_THOUGHTS_END)[2]
    if not answer.strip():
        answer = text
    blocks = _fenced(answer)
    for block in reversed(blocks):
        fenced = _shape(_parsed(block))
        if fenced is not None:
            return fenced
    inside = _last_inside(answer)
    if inside is not None:
        return inside
    return _repaired(next((block for block in reversed(blocks) if _BROKEN_OPENER.search(block)), answer))


def _shape(value: object, *, bare_empty: bool = True) -> Mapping[str, object] | None:
    """An object with a list of edits, such a list alone, or either under the key "patch"; None for anything else."""
    if isinstance(value, list):
        elements = cast("list[object]", value)
        fits = any(isinstance(element, dict) and "op" in element for element in elements) or (
            bare_empty and not elements
        )
        return {"edits": elements} if fits else None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    if isinstance(fields.get("edits"), list):
        return fields
    inner = _shape(fields.get("patch"))
    return None if inner is None else {"reasoning": fields.get("reasoning"), **inner}


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


def _last_inside(text: str) -> Mapping[str, object] | None:
    """The last object or list somewhere in the text that fits, trying each opener that is in none that did."""
    found: Mapping[str, object] | None = None
    cost = at = 0
    while (opener := _OPENER.search(text, at)) is not None:
        start = opener.start()
        end = _end(text, start)
        cost += _OPENER_CHARACTERS + (len(text) if end is None else end) - start
        if cost > _SCAN_CHARACTERS:
            raise UnreadablePatchError("it has too many brackets outside of one JSON object")
        shape = None if end is None else _shape(_parsed(text[start:end]), bare_empty=False)
        at = start + 1
        if end is not None and shape is not None:
            found, at = shape, end
    return found


def _repaired(text: str) -> Mapping[str, object]:
    """What the broken object in the text was meant to be, from its opener to the last closer.

    Refused rather than completed or guessed: an object that ends inside a string (it was cut off), a list of edits that
    holds something else than objects, an edit in which a quotation mark made a key of its text.
    """
    opener = _BROKEN_OPENER.search(text)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if opener is None or end < opener.end():
        raise UnreadablePatchError(_NOTHING)
    start = opener.start()
    if any(piece.group() == '"' for piece in _PIECE.finditer(text, start)):
        raise UnreadablePatchError("its JSON ends inside a string: it is cut off, or a quotation mark is not escaped")
    listed = _EDITS.search(text, start, end)
    if listed is None and text[start] != "[":
        raise UnreadablePatchError(_NOTHING)
    shape = _shape(_mended(text[start:end]), bare_empty=False)
    if shape is None:
        raise UnreadablePatchError(_NOTHING)
    edits = cast("Sequence[object]", shape["edits"])
    is_said_to_be_empty = listed is not None and listed["first"] == "]"
    if bool(edits) is is_said_to_be_empty or not all(map(_has_edit_keys_only, edits)):
        raise UnreadablePatchError("its JSON is broken, and what was meant is not clear")
    return shape


def _has_edit_keys_only(value: object) -> bool:
    return isinstance(value, dict) and _EDIT_KEYS.issuperset(cast("dict[str, object]", value))


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


# --- making the edits literal ----------------------------------------------------------------------------------------


class _Document:
    """What must be known of the skill to write edits that fit it; without a skill (None), what is usual."""

    def __init__(self, skill: str | None) -> None:
        self._text = skill
        breaks, wide_breaks = (0, 0) if skill is None else (skill.count("\n"), skill.count("\r\n"))
        self.line_break = "\r\n" if wide_breaks else "\n"
        self.has_mixed_breaks = 0 < wide_breaks < breaks
        self._spans = () if skill is None else protection(skill).spans

    def ends_a_line(self, target: str) -> bool:
        """Whether an insertion behind `target` starts at the end of a line; true where nobody knows yet."""
        if self._text is None:
            return True
        at = self._text.find(target)
        while at >= 0:
            end = at + len(target)
            blocking = next((span for span in self._spans if at < span.end and span.start < end), None)
            if blocking is None:
                return end == len(self._text) or self._text.startswith(("\n", "\r\n"), end)
            at = self._text.find(target, blocking.end)
        return True


def _literal(answer: EditAnswer, document: _Document) -> Edit:
    """The edit as `apply_patch` is to take it: real line breaks, no markers, nothing in fields that its op ignores."""
    target = "" if answer.op is EditOp.APPEND else _with_line_breaks(answer.target, document)
    content = "" if answer.op is EditOp.DELETE else without_markers(_with_line_breaks(answer.content, document))
    if answer.op is EditOp.APPEND:
        content = _BLANK_LINES.sub("", content.rstrip(), count=1)
    if answer.op is EditOp.INSERT_AFTER and target and content.strip():
        content = _as_own_lines(content, target, document)
    return Edit(answer.op, content=content, target=target)


def _with_line_breaks(text: str, document: _Document) -> str:
    r"""`\n` written out becomes a line break where it is clearly meant as one; line breaks become those of the skill."""
    if "\n" not in text and _CLEAR_BREAK.search(_QUOTED.sub('"', text)):
        text = _WRITTEN_BREAK.sub(lambda found: found.group() if found.group()[0] in '`"' else "\n", text)
    return text if document.has_mixed_breaks else text.replace("\r\n", "\n").replace("\n", document.line_break)


def _as_own_lines(content: str, target: str, document: _Document) -> str:
    """Content that neither runs on from a target that ends a line, nor into the line behind it."""
    if target.endswith("\n"):
        return content if content.endswith("\n") else content + document.line_break
    if content.startswith(("\n", "\r\n")) or not document.ends_a_line(target):
        return content
    return document.line_break + content
