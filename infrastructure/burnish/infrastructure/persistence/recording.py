"""A run's journal as one file, and a journal that answers from such a file and from nowhere else."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from burnish.application.journal_keys import TEXT, kind_of
from burnish.application.ports import JournalEntry, UnknownCallError
from burnish.application.unknown_calls import nearest_call

FORMAT = "burnish-recording"
VERSION = 1

_ENTRY = TypeAdapter(JournalEntry)
_MOST_BYTES = 1 << 32


class RecordingError(Exception):
    """A file that is no recording; its text is one line: the file, what is wrong, the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a run was answered, and texts that make its calls readable; `about` tells which run it was."""

    about: Mapping[str, str]
    entries: tuple[JournalEntry, ...]

    @property
    def answers(self) -> int:
        """How many calls are answered in it."""
        return sum(kind_of(entry.key) != TEXT for entry in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The first line."""

    format: str
    version: int
    answers: int
    about: dict[str, str]


_HEAD = TypeAdapter(_Head)


def write_recording(path: Path, recording: Recording) -> None:
    """Write one compressed file: a line that says what it is, then a line an answer, the same bytes for the same answers.

    Raises OSError when it cannot be written; what was there before stays then.
    """
    head = _Head(format=FORMAT, version=VERSION, answers=len(recording.entries), about=dict(recording.about))
    lines = [_HEAD.dump_json(head).decode(), *(_ENTRY.dump_json(entry).decode() for entry in recording.entries)]
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            packed.write("".join(f"{line}\n" for line in lines).encode())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_recording(path: Path) -> Recording:
    """The recording in a file. Raises RecordingError."""
    try:
        with gzip.open(path, "rb") as packed:
            content = packed.read(_MOST_BYTES).decode("utf-8")
    except FileNotFoundError as error:
        raise RecordingError(f"{path}: there is no such file: make one with burnish runs export") from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: is no recording, or a damaged one: export the run again") from error
    first, *lines = content.removesuffix("\n").split("\n")  # an answer may hold what else ends a line, such as U+2028
    try:
        head = _HEAD.validate_json(first)
    except ValidationError as error:
        raise RecordingError(f"{path}: is no recording of burnish") from error
    if head.format != FORMAT or head.version != VERSION:
        raise RecordingError(f"{path}: is no recording this version of burnish reads (version {VERSION})")
    try:
        entries = tuple(_ENTRY.validate_json(line) for line in lines)
    except ValidationError as error:
        raise RecordingError(f"{path}: holds an answer that cannot be read: export the run again") from error
    if len(entries) != head.answers:
        raise RecordingError(f"{path}: holds {len(entries)} answers where it says {head.answers}: export the run again")
    return Recording(about=head.about, entries=entries)


class ReplayJournal:
    """Answers from a recording; a call that is not in it is refused, naming the nearest one that is."""

    def __init__(self, recording: Recording) -> None:
        self._entries = {entry.key: entry for entry in recording.entries}
        self.missed: str | None = None
        """The key of the first call that was not in it."""

    async def find(self, run_id: str, key: str) -> JournalEntry | None:
        """The recorded answer. Raises UnknownCallError when there is none."""
        entry = self._entries.get(key)
        if entry is None:
            self.missed = self.missed or key
            raise UnknownCallError(nearest_call(key, self._entries))
        return entry

    async def append(self, run_id: str, entry: JournalEntry) -> None:
        """Nothing new can come, see `find`."""

    async def forget_errors(self, run_id: str, *, from_step: int) -> int:
        """What was recorded stays."""
        return 0

    async def count(self, run_id: str) -> int:
        """None of the answers is this attempt's, so that nothing counts as told already."""
        return 0

    async def entries(self, run_id: str) -> Sequence[JournalEntry]:
        """All that was recorded."""
        return [self._entries[key] for key in sorted(self._entries)]

    async def delete(self, run_id: str) -> None:
        """What was recorded stays."""
