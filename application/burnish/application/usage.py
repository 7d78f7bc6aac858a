"""Counting tokens: model adapters note what a call used, and whoever asked through the journal collects the notes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UsageNote:
    """Tokens of one model call by a role (`target`, `optimizer`); `is_estimated` when the server reported none."""

    role: str
    prompt_tokens: int
    completion_tokens: int
    is_estimated: bool = False


_notes: ContextVar[list[UsageNote] | None] = ContextVar("burnish_usage_notes", default=None)


def note_usage(note: UsageNote) -> None:
    """Add a call's tokens to those being collected; outside of a run nobody does."""
    notes = _notes.get()
    if notes is not None:
        notes.append(note)


@contextmanager
def collecting_usage() -> Generator[list[UsageNote]]:
    """Collect the notes of everything asked in the block."""
    notes: list[UsageNote] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
