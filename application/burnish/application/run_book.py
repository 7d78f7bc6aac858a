"""What a run has spent over its attempts, read from its journal: paid answers, lost reservations, active time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from burnish.application.journal_keys import (
    ACTIVE,
    RESERVATION,
    TEXT,
    parts_of,
    rollouts_of,
)
from burnish.application.ports import JournalEntry, PortError
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote
from burnish.domain.runs import LostCalls

Paid = tuple[str, tuple[UsageNote, ...]]
"""A call's key and what it used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The state of a run's spending: `reservations` counts those made of each key, `marks` the notes of active time.

    `paid` holds what every kept answer used, and every lost call at its worst.
    """

    paid: tuple[Paid, ...] = ()
    lost: LostCalls | None = None
    reservations: Mapping[str, int] = field(default_factory=dict[str, int])
    active_seconds: float = 0.0
    marks: int = 0


def read_book(entries: Iterable[JournalEntry]) -> Book:
    """The book of a run by its journal. Raises PortError when a note of active time is damaged.

    A reservation is settled by the answer to its call: the last one of a key that has one. All others are lost: their
    process ended, or the answer was an error that has been forgotten since; they count at their worst (design, section 6).
    """
    paid: list[Paid] = []
    reserved: dict[str, dict[int, JournalEntry]] = {}
    answered: set[str] = set()
    seconds: list[float] = []
    for entry in entries:
        kind, *parts = parts_of(entry.key)
        if kind == RESERVATION:
            reserved.setdefault(str(parts[0]), {})[int(str(parts[1]))] = entry
        elif kind == ACTIVE:
            seconds.append(_seconds(entry))
        elif kind != TEXT:
            answered.add(entry.key)
            paid.append((entry.key, entry.usage))
    lost = [
        (key, entry.usage)
        for key, attempts in sorted(reserved.items())
        for attempt, entry in sorted(attempts.items())
        if key not in answered or attempt != max(attempts)
    ]
    return Book(
        paid=(*paid, *lost),
        lost=_summed(lost) if lost else None,
        reservations={key: max(attempts) for key, attempts in reserved.items()},
        active_seconds=sum(seconds),
        marks=len(seconds),
    )


def _summed(lost: list[Paid]) -> LostCalls:
    notes = [note for _, usage in lost for note in usage]
    return LostCalls(
        calls=len(lost),
        rollouts=sum(rollouts_of(key) for key, _ in lost),
        prompt_tokens=sum(note.prompt_tokens for note in notes),
        completion_tokens=sum(note.completion_tokens for note in notes),
    )


def _seconds(entry: JournalEntry) -> float:
    try:
        return float(entry.answer)
    except ValueError as error:
        raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
