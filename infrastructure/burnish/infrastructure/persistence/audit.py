"""The hash-chained audit log, and the check that finds what was done to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from burnish.application.ports import AuditEntry

GENESIS = "0" * 64
"""What the first record names as its predecessor's hash."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An entry in its place: `sequence` counts from 0, `previous` is the hash of the record before."""

    entry: AuditEntry
    sequence: int
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class AuditAnchor:
    """Number of records and hash of the last one, to be kept where the log is not: it shows a cut tail."""

    count: int
    head: str


def chain(entry: AuditEntry, after: AuditAnchor) -> AuditRecord:
    """The record that follows a log with this anchor."""
    return AuditRecord(entry, after.count, after.head, _hash(entry, after.count, after.head))


def anchor_of(records: Sequence[AuditRecord]) -> AuditAnchor:
    """The anchor of a log as it is."""
    return AuditAnchor(len(records), records[-1].hash if records else GENESIS)


def verify(records: Sequence[AuditRecord], anchor: AuditAnchor | None = None) -> str | None:
    """What is wrong with a log, in one line naming the first bad record; None when nothing is.

    Finds an altered, missing or reordered record; with an anchor taken at any earlier time also a cut tail.
    """
    previous = GENESIS
    for place, record in enumerate(records):
        if record.sequence != place:
            return f"record {place} is missing or out of order: number {record.sequence} stands in its place"
        if record.previous != previous:
            return f"record {place} does not follow the one before it"
        if record.hash != _hash(record.entry, record.sequence, record.previous):
            return f"record {place} was altered"
        previous = record.hash
    if anchor is None:
        return None
    if len(records) < anchor.count:
        return f"there are {len(records)} records where the anchor counts {anchor.count}"
    if anchor_of(records[: anchor.count]).head != anchor.head:
        return f"record {anchor.count - 1} is not the one the anchor names"
    return None


class InMemoryAuditLog:
    """A chained log that lives as long as the process."""

    def __init__(self) -> None:
        self._records: list[AuditRecord] = []

    async def append(self, entry: AuditEntry) -> None:
        """Add an entry at the end; one whose place in its run is taken is there already."""
        place = (entry.subject, entry.action, entry.position)
        if entry.position and any((r.entry.subject, r.entry.action, r.entry.position) == place for r in self._records):
            return
        self._records.append(chain(entry, anchor_of(self._records)))

    @property
    def records(self) -> tuple[AuditRecord, ...]:
        """All records, oldest first."""
        return tuple(self._records)

    @property
    def anchor(self) -> AuditAnchor:
        """What to keep elsewhere."""
        return anchor_of(self._records)


def _hash(entry: AuditEntry, sequence: int, previous: str) -> str:
    fields = [
        sequence,
        previous,
        entry.at.isoformat(),
        entry.actor,
        entry.action,
        entry.subject,
        entry.outcome,
        entry.digest,
        entry.position,
    ]
    return hashlib.sha256(json.dumps(fields, ensure_ascii=True).encode()).hexdigest()
