"""A run's journal as one file, and a journal that answers from such a file and from nowhere else."""

from __future__ import annotations

import difflib
import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter, ValidationError

from burnish.application.ports import JournalEntry, PortError
from burnish.application.result import ErrorCode

FORMAT = "burnish-recording"
VERSION = 1

_ENTRY = TypeAdapter(JournalEntry)
_MOST_BYTES = 1 << 32


class RecordingError(Exception):
    """A file that is no recording; its text is one line: the file, what is wrong, the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a run was answered; `about` tells which run it was."""

    about: Mapping[str, str]
    entries: tuple[JournalEntry, ...]


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
        """The recorded answer. Raises PortError with `skill_training.replay.unknown_call` when there is none."""
        entry = self._entries.get(key)
        if entry is None:
            self.missed = self.missed or key
            raise PortError(ErrorCode.REPLAY_UNKNOWN_CALL, *explain_miss(key, self._entries))
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


_PARTS = {
    "rollout": ("split", "item", "repeat", "skill", "contents of the item", "model, parameters, prompt or scorer"),
    "batch": ("split", "size", "seed", "repeat", "skill", "items"),
    "reflect": ("epoch", "step", "optimizer (model, parameters or instructions)", "request (skill, rollouts, memory)"),
}
"""What the parts of a key are, behind its kind."""


def explain_miss(key: str, known: Iterable[str]) -> tuple[str, ...]:
    """The call that is missing, the nearest recorded one, and the parts in which they differ, as short texts."""
    asked = _read_key(key)
    same_kind = [parts for parts in map(_read_key, known) if parts[:1] == asked[:1]]
    if not same_kind:
        return (_shown(asked), "no call of this kind was recorded")
    equal = [_equal_parts(asked, parts) for parts in same_kind]
    most = max(equal)
    nearest = [parts for parts, count in zip(same_kind, equal, strict=True) if count == most]
    found = nearest[0] if len(nearest) == 1 else max(nearest, key=lambda parts: _likeness(asked, parts))
    names = _PARTS.get(str(asked[0]), ())
    differing = [
        names[place] if place < len(names) else f"part {place + 1}"
        for place, (one, other) in enumerate(zip(asked[1:], found[1:], strict=False))
        if one != other
    ]
    return (_shown(asked), f"nearest recorded: {_shown(found)}", f"differs in: {', '.join(differing) or 'length'}")


def _equal_parts(one: list[object], other: list[object]) -> int:
    return sum(1 for left, right in zip(one, other, strict=False) if left == right)


def _likeness(one: list[object], other: list[object]) -> float:
    """Of the parts in which they differ: what is equal tells keys of equally many equal parts not apart."""
    differing = [(str(left), str(right)) for left, right in zip(one, other, strict=False) if left != right]
    return sum(difflib.SequenceMatcher(None, left, right).ratio() for left, right in differing)


@lru_cache(maxsize=1 << 14)  # every call that is missing is compared with all that were recorded
def _read_key(key: str) -> list[object]:
    try:
        parts = json.loads(key)
    except ValueError:
        return [key]
    return cast("list[object]", parts) if isinstance(parts, list) else [key]


def _shown(parts: list[object]) -> str:
    """A key for people: long digests cut."""
    return " ".join(f"{text[:8]}…" if len(text := str(part)) > 40 else text for part in parts)
