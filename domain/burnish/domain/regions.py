"""The parts of a skill document that edits must not touch: front matter, marked regions, locked sections."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

MAX_SKILL_CHARACTERS = 262_144
"""No skill text anywhere is longer than this many characters (code points; system A)."""


class RegionKind(StrEnum):
    """What a region is for; the value is the stem of its two markers."""

    SLOW_UPDATE = "SLOW_UPDATE"
    APPENDIX = "APPENDIX"
    LOCKED = "LOCKED"

    @property
    def start_marker(self) -> str:
        """The comment that opens the region."""
        return f"<!-- {self.value}_START -->"

    @property
    def end_marker(self) -> str:
        """The comment that closes the region."""
        return f"<!-- {self.value}_END -->"


APPENDED_BEFORE = frozenset({RegionKind.SLOW_UPDATE, RegionKind.APPENDIX})
"""Regions that stay at the end of a document: an append goes before them."""

_MARKER = re.compile(rf"<!-- ({'|'.join(RegionKind)})_(START|END) -->")
_LONGEST_MARKER = max(len(kind.start_marker) for kind in RegionKind)
_FENCE = "---"
_FENCE_LINE = re.compile(rf"{_FENCE}[ \t]*(?=[\r\n]|\Z)")
_CLOSING_FENCE = re.compile(rf"{_FENCE}(?<=[\r\n]{_FENCE})[ \t]*(?=[\r\n]|\Z)")  # fast: begins with literal text
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` (inclusive) to `end` (exclusive) of a document."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Region:
    """A protected region with its markers."""

    kind: RegionKind
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Protection:
    """Everything in a document that an edit or a rewrite must leave as it is, byte for byte."""

    front_matter: str
    regions: tuple[Region, ...]
    markers: tuple[str, ...]
    spans: tuple[Span, ...]

    def same_as(self, other: Protection) -> bool:
        """Whether front matter, regions (kinds, order, bytes) and marker sequence agree; positions may differ."""
        return (
            self.front_matter == other.front_matter
            and self.markers == other.markers
            and [(region.kind, region.text) for region in self.regions]
            == [(region.kind, region.text) for region in other.regions]
        )


def protection(document: str) -> Protection:
    """What is protected in `document`; lone markers belong to no region but count in the marker sequence."""
    matter = front_matter_span(document)
    markers = list(_MARKER.finditer(document))
    regions = _pair(document, [marker for marker in markers if marker.start() >= matter.end])
    spans = ([matter] if matter.end else []) + [region.span for region in regions]
    return Protection(
        front_matter=document[matter.start : matter.end],
        regions=tuple(regions),
        markers=tuple(marker.group() for marker in markers),
        spans=tuple(spans),
    )


def front_matter_span(document: str) -> Span:
    """The YAML front matter: from the start (a byte-order mark included) to the closing fence; empty when there is none.

    The line break behind the closing fence is not part of it.
    """
    opening = _FENCE_LINE.match(document, 1 if document.startswith(_BYTE_ORDER_MARK) else 0)
    if opening is None:
        return Span(0, 0)
    closing = _CLOSING_FENCE.search(document, opening.end())
    return Span(0, 0) if closing is None else Span(0, closing.end())


def begins_like_front_matter(text: str) -> bool:
    """Whether a document that begins with `text` may have front matter: a quick look at its first characters."""
    return text.startswith((_FENCE, _BYTE_ORDER_MARK + _FENCE))


def splice_keeps_markers(text: str, start: int, end: int, inserted: str) -> bool:
    """Whether putting `inserted` in place of `text[start:end]` leaves the sequence of marker strings as it is.

    Looks no further than a marker is long, so the cost does not grow with `text`.
    """
    before = text[max(0, start - _LONGEST_MARKER) : start]
    after = text[end : end + _LONGEST_MARKER]
    return _MARKER.findall(before + text[start:end] + after) == _MARKER.findall(before + inserted + after)


def read_region(document: str, kind: RegionKind) -> str | None:
    """The text between the markers of the first region of this kind, without the line breaks around it; None: no region."""
    for region in protection(document).regions:
        if region.kind is kind:
            return region.text[len(kind.start_marker) : -len(kind.end_marker)].strip("\r\n")
    return None


def replace_region(document: str, kind: RegionKind, content: str) -> str:
    """Put `content` into the first region of this kind; without one, add the region at the end of the document.

    Obeys the post-condition of edits: a document whose front matter or other regions would change is returned as it is
    (one that begins with `---` and gets its second such line, or one with a lone marker of this kind). Raises ValueError
    when `content` holds a marker string: strip it with `without_markers` first.
    """
    if _MARKER.search(content):
        raise ValueError("region content must not hold marker strings")
    block = f"{kind.start_marker}\n{content}\n{kind.end_marker}"
    guard = protection(document)
    regions = [region.text for region in guard.regions]
    index = next((index for index, region in enumerate(guard.regions) if region.kind is kind), None)
    if index is None:
        gap = "" if not document or document.endswith("\n\n") else "\n" if document.endswith("\n") else "\n\n"
        changed = f"{document}{gap}{block}\n"
        regions.append(block)
    else:
        span = guard.regions[index].span
        changed = document[: span.start] + block + document[span.end :]
        regions[index] = block
    result = protection(changed)
    kept = result.front_matter == guard.front_matter and [region.text for region in result.regions] == regions
    return changed if kept else document


def without_markers(text: str) -> str:
    """`text` with every marker string removed, also those that appear by removing another."""
    if _MARKER.search(text) is None:
        return text
    kept: list[str] = []
    for character in text:
        kept.append(character)
        if character == ">":
            tail = "".join(kept[-_LONGEST_MARKER:])
            marker = _MARKER.search(tail)
            if marker is not None:
                del kept[-len(marker.group()) :]
    return "".join(kept)


def markers_are_balanced(document: str) -> bool:
    """Whether every marker belongs to a region, none lies inside another region or in the front matter."""
    matter = front_matter_span(document)
    opened: str | None = None
    for marker in _MARKER.finditer(document):
        kind, edge = marker.groups()
        if marker.start() < matter.end or opened != (None if edge == "START" else kind):
            return False
        opened = kind if edge == "START" else None
    return opened is None


def _pair(document: str, markers: list[re.Match[str]]) -> list[Region]:
    """Regions from a start marker to the next end marker of its kind; markers in between belong to the region."""
    partners: list[int | None] = [None] * len(markers)
    next_end: dict[str, int] = {}
    for index, marker in reversed(list(enumerate(markers))):
        kind, edge = marker.groups()
        if edge == "END":
            next_end[kind] = index
        else:
            partners[index] = next_end.get(kind)
    regions: list[Region] = []
    index = 0
    while index < len(markers):
        partner = partners[index]
        if partner is not None:
            span = Span(markers[index].start(), markers[partner].end())
            regions.append(Region(RegionKind(markers[index].group(1)), span, document[span.start : span.end]))
            index = partner
        index += 1
    return regions
