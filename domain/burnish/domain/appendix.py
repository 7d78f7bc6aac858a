"""The notes in a skill's appendix: reminders of rules the agent has but did not follow (system B)."""

from __future__ import annotations

from collections.abc import Iterable

from burnish.domain.regions import RegionKind, protection, replace_region, without_markers

HEADING = "## Execution Notes Appendix"

_BULLET = "- "
_TRAILING = " .;:,_-"
_START, _END = RegionKind.APPENDIX.start_marker, RegionKind.APPENDIX.end_marker


def note_key(note: str) -> str:
    """What makes two notes the same: case, white space and punctuation at the end do not count (system B)."""
    return " ".join(note.casefold().split()).rstrip(_TRAILING)


def fit_notes(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes as they can stand in an appendix: each one line without markers; blank ones and repetitions left out."""
    fit: dict[str, str] = {}
    for note in notes:
        line = _one_line(note)
        if key := note_key(line):
            fit.setdefault(key, line)
    return tuple(fit.values())


def notes_of(document: str) -> tuple[str, ...]:
    """The notes of the first appendix, in their order, as they stand there; none without an appendix."""
    return tuple(note for line in _inner(document).splitlines() if (note := _note(line)) is not None)


def new_notes(document: str, notes: Iterable[str]) -> tuple[str, ...]:
    """Those of the notes, fit to stand in an appendix, that the document's appendix does not have yet."""
    known = {note_key(note) for note in notes_of(document)}
    return tuple(note for note in fit_notes(notes) if note_key(note) not in known)


def with_notes(document: str, notes: Iterable[str]) -> str:
    """The document with those notes that are new, behind the others; an appendix is made at its end if need be.

    Nothing but what is added changes. The same text when nothing is new, and, as for edits, when a protected part would
    change otherwise.
    """
    added = new_notes(document, notes)
    if not added:
        return document
    if _appendix(document) is None:
        return replace_region(document, RegionKind.APPENDIX, f"{HEADING}\n\n{_bullets(added)}")
    inner = _inner(document)
    kept = inner.rstrip()
    lead = "\n" if kept else f"\n{HEADING}\n\n"
    rest = inner[len(kept) :] if "\n" in inner[len(kept) :] else "\n"
    return _with_inner(document, f"{kept}{lead}{_bullets(added)}{rest}")


def with_only_notes(document: str, notes: Iterable[str]) -> str:
    """The document with these notes in place of those in its appendix; what else stands in the appendix stays.

    The same text without an appendix, and, as for edits, when a protected part would change otherwise.
    """
    if _appendix(document) is None:
        return document
    lines = _inner(document).splitlines(keepends=True)
    places = [place for place, line in enumerate(lines) if _note(line) is not None]
    if not places:
        return with_notes(document, notes)
    bullets = _bullets(fit_notes(notes))
    before = "".join(lines[: places[0]])
    after = "".join(line for place, line in enumerate(lines) if place > places[0] and place not in places)
    return _with_inner(document, f"{before}{bullets}\n{after}" if bullets else before + after)


def _one_line(note: str) -> str:
    """Without markers, line breaks and a bullet; taking one out may make another, so until nothing changes."""
    while True:
        line = " ".join(without_markers(note).split()).removeprefix(_BULLET)
        if line == note:
            return line
        note = line


def _note(line: str) -> str | None:
    """The note a line of an appendix holds; None when it holds none."""
    bullet = line.strip()
    return bullet.removeprefix(_BULLET).strip() if bullet.startswith(_BULLET) else None


def _bullets(notes: Iterable[str]) -> str:
    return "\n".join(f"{_BULLET}{note}" for note in notes)


def _appendix(document: str) -> tuple[int, int] | None:
    """Where the first appendix begins and ends, its markers included."""
    for region in protection(document).regions:
        if region.kind is RegionKind.APPENDIX:
            return region.span.start, region.span.end
    return None


def _inner(document: str) -> str:
    """What stands between the markers of the first appendix."""
    place = _appendix(document)
    return "" if place is None else document[place[0] + len(_START) : place[1] - len(_END)]


def _with_inner(document: str, inner: str) -> str:
    """The document with another text between the markers of its appendix, if nothing else changes by that."""
    place = _appendix(document)
    if place is None:
        return document
    block = _START + inner + _END
    changed = document[: place[0]] + block + document[place[1] :]
    before, after = protection(document), protection(changed)
    regions = [block if region.span.start == place[0] else region.text for region in before.regions]
    kept = (before.front_matter, before.markers, regions)
    return (
        changed if kept == (after.front_matter, after.markers, [region.text for region in after.regions]) else document
    )
