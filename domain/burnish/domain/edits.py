"""Edits of a skill document, and the pure function that applies them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from burnish.domain.regions import (
    APPENDED_BEFORE,
    Protection,
    begins_like_front_matter,
    front_matter_span,
    protection,
    splice_keeps_markers,
)

EMPTY_CONTENT = "empty content; use delete to remove text"
TARGET_REQUIRED = "target required for this edit op"
TARGET_NOT_FOUND = "target not found in current skill document"
TARGET_PROTECTED = "target inside a protected region"
UNKNOWN_OP = "unknown edit op"
NOT_APPLICABLE = "a suggestion is for a rewriter, it cannot be applied"
PROTECTION_CHANGED = "edit would change a protected region or its markers"


class EditOp(StrEnum):
    """The four bounded operations (system A); and, for system B's other update modes, a whole new text and a suggestion.

    REWRITE's content takes the place of the document, whose protected parts stay. SUGGEST is for somebody who rewrites:
    `target` is its title, `content` what to do and why; applying it fails.
    """

    APPEND = "append"
    INSERT_AFTER = "insert_after"
    REPLACE = "replace"
    DELETE = "delete"
    REWRITE = "rewrite"
    SUGGEST = "suggest"


BOUNDED_OPS = (EditOp.APPEND, EditOp.INSERT_AFTER, EditOp.REPLACE, EditOp.DELETE)
"""The operations of update mode `patch`."""

_OPS = frozenset(EditOp)


class EditSource(StrEnum):
    """The class of rollouts an edit was proposed from."""

    FAILURE = "failure"
    SUCCESS = "success"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to a skill document; text is literal, nothing is trimmed or added.

    `target` is the anchor text (ignored by append), `content` the text to put in (ignored by delete).
    `support_count` is the number of trajectories behind the edit, `merge_level` how often it was merged (0: never),
    `origin` the rollout it came from and `skill_version` the hash of the skill it was written for.
    """

    op: EditOp
    content: str = ""
    target: str = ""
    support_count: int | None = None
    source: EditSource | None = None
    merge_level: int | None = None
    origin: str = ""
    skill_version: str = ""


@dataclass(frozen=True, slots=True)
class Patch:
    """Edits in the order they are to be applied, with the proposer's reasons.

    `notes` remind the agent of rules that the skill has and that were not followed: execution lapses, no edits.
    """

    edits: tuple[Edit, ...] = ()
    reasoning: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedEdit:
    """An edit that left the document as it was, and why."""

    edit: Edit
    reason: str


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """The document after a patch; `has_changes` compares texts, it does not count edits (system A)."""

    content: str
    applied: tuple[Edit, ...]
    failed: tuple[FailedEdit, ...]
    has_changes: bool


@dataclass(frozen=True, slots=True)
class _Splice:
    """Replace `pieces[piece][start:end]` by `text`."""

    piece: int
    start: int
    end: int
    text: str


def apply_patch(document: str, patch: Patch) -> ApplyReport:
    """Apply the edits one after another, each to the text the earlier ones left (design, section 5, decisions 1 and 2).

    An edit that cannot be applied, or that would change a protected region, the front matter or the sequence of marker
    strings, is reported in `failed` and leaves the text alone. Never raises for any text.
    """
    guard = protection(document)
    pieces = _split(document, guard)
    applied: list[Edit] = []
    failed: list[FailedEdit] = []
    for edit in patch.edits:
        if edit.op == EditOp.REWRITE:
            rewritten = _rewrite("".join(pieces), guard, edit.content)
            if isinstance(rewritten, str):
                failed.append(FailedEdit(edit, rewritten))
            else:
                pieces = rewritten
                applied.append(edit)
            continue
        splice = _locate(pieces, guard, edit)
        if isinstance(splice, str):
            failed.append(FailedEdit(edit, splice))
            continue
        piece = pieces[splice.piece]
        changed = piece[: splice.start] + splice.text + piece[splice.end :]
        if not (
            splice_keeps_markers(piece, splice.start, splice.end, splice.text)
            and _keeps_front_matter(pieces, guard, splice.piece, changed)
        ):
            failed.append(FailedEdit(edit, PROTECTION_CHANGED))
            continue
        pieces[splice.piece] = changed
        applied.append(edit)
    content = "".join(pieces)
    return ApplyReport(content, tuple(applied), tuple(failed), content != document)


def _rewrite(document: str, guard: Protection, content: str) -> list[str] | str:
    """The pieces of the new text, or the reason it is refused.

    Protected parts are put back where the new text leaves them out: front matter first, regions at its end. What it holds
    of them must be exactly what the document holds.
    """
    if not content.strip():
        return EMPTY_CONTENT
    matter, body = guard.front_matter, content
    if matter and front_matter_span(content).end == 0:
        body = matter + _line_break(document) + content.lstrip("\r\n")
    if guard.regions and not protection(body).markers:
        blocks = "\n\n".join(region.text for region in guard.regions)
        body = f"{body.rstrip()}\n\n{blocks}\n"
    found = protection(body)
    return _split(body, found) if found.same_as(guard) else PROTECTION_CHANGED


def _line_break(document: str) -> str:
    """The first line break of a document."""
    return "\r\n" if "\r\n" in document[: document.find("\n") + 1] else "\n"


def _split(document: str, guard: Protection) -> list[str]:
    """Free and protected pieces in turn, a free one (perhaps empty) first and last; only free ones are ever changed.

    Markers contain no line break and begin with their only `<`, so none can reach from one piece into another.
    """
    pieces: list[str] = []
    at = 0
    for span in guard.spans:
        pieces += (document[at : span.start], document[span.start : span.end])
        at = span.end
    return [*pieces, document[at:]]


def _keeps_front_matter(pieces: list[str], guard: Protection, index: int, changed: str) -> bool:
    """Whether the document has the same front matter, or none, as before when `changed` takes the place of a piece."""
    if guard.front_matter:  # it is pieces[1], and stays as long as nothing joins the line of its closing fence
        return index != 2 or changed.startswith(("\n", "\r")) or (not changed and len(pieces) == 3)
    if not begins_like_front_matter(pieces[0] if index else changed):
        return True
    return front_matter_span("".join([*pieces[:index], changed, *pieces[index + 1 :]])).end == 0


def _locate(pieces: list[str], guard: Protection, edit: Edit) -> _Splice | str:
    """Where the edit goes, or the reason it cannot be applied; content is checked before the target (system A)."""
    if edit.op not in _OPS:
        return f"{UNKNOWN_OP}: {edit.op}"
    if edit.op == EditOp.SUGGEST:
        return NOT_APPLICABLE
    if edit.op != EditOp.DELETE and not edit.content:
        return EMPTY_CONTENT
    if edit.op == EditOp.APPEND:
        return _append(pieces, guard, edit.content)
    if not edit.target:
        return TARGET_REQUIRED
    for index in range(0, len(pieces), 2):
        start = pieces[index].find(edit.target)
        if start >= 0:
            end = start + len(edit.target)
            text = "" if edit.op == EditOp.DELETE else edit.content
            return _Splice(index, end if edit.op == EditOp.INSERT_AFTER else start, end, text)
    return TARGET_PROTECTED if len(pieces) > 1 and edit.target in "".join(pieces) else TARGET_NOT_FOUND


def _append(pieces: list[str], guard: Protection, content: str) -> _Splice:
    """At the end; before the closing block of slow-update and appendix regions when the document ends in one."""
    last = len(pieces) - 1
    place = last
    for region in reversed(guard.regions):
        if region.kind not in APPENDED_BEFORE or pieces[place].strip():
            break
        place -= 2
    end = len(pieces[place])
    if place < last:
        return _Splice(place, end, end, content + "\n\n")
    return _Splice(place, end, end, content if pieces == [""] else "\n\n" + content)
