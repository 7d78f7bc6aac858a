"""Refusals of task data and settings: one line for people that says where, what, and what to do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

MAX_SHOWN_CHARACTERS = 80
"""The longest value a message shows, quotation marks included."""


class DataError(Exception):
    """Data or a task's setting that cannot be used. `line` says where, what and the remedy, in exactly one line.

    It is made for people, and shows no value longer than `MAX_SHOWN_CHARACTERS`.
    """

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.line = line


class RefusalError(Exception):
    """What is wrong and the remedy, at a place inside a file; its reader makes a DataError of it with the file's name."""

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.place = place


@contextmanager
def at(place: str) -> Generator[None, None, None]:
    """Name the place of every RefusalError raised inside."""
    try:
        yield
    except RefusalError as refusal:
        raise RefusalError(refusal.what, place) from None


def shown(value: str) -> str:
    """The value for a message: in quotation marks, on one line, cut to `MAX_SHOWN_CHARACTERS`."""
    quoted = repr(value[: MAX_SHOWN_CHARACTERS + 1])
    return quoted if len(quoted) <= MAX_SHOWN_CHARACTERS else quoted[: MAX_SHOWN_CHARACTERS - 1] + "…"


def shown_path(path: Path) -> str:
    """The path for a message: whole, and on one line whatever characters it holds."""
    text = str(path)
    return text if text.isprintable() else repr(text)[1:-1]


def unreadable(path: Path, error: OSError | ValueError) -> DataError:
    """The refusal of a path that the system would not open (ValueError: no path at all, as one with a null byte)."""
    reason = error.strerror if isinstance(error, OSError) else None
    return DataError(f"{shown_path(path)}: cannot be read ({reason or 'no such path'}); check its name and permissions")
