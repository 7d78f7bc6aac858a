"""The folders a host hands over for a step: what is read there, and what is written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from burnish.application.result import ErrorCode
from burnish.domain.regions import markers_are_balanced
from burnish.infrastructure.tasks.refusals import RefusalError, shown, shown_path
from burnish.infrastructure.tasks.strict_json import check, decode, parse
from burnish.presentation.evolver.attempts import Attempt, read_attempt
from burnish.presentation.evolver.files import write_whole
from burnish.presentation.evolver.refusal import EvolverError
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.text_files import read_text_file

MAX_ATTEMPT_BYTES = 16 * 1024 * 1024
"""The longest file of an attempt, or of a trace summary."""

_CURRENT = Path("learning_material", "current")
_TRACE = "codex_trace_summary.txt"
_REMEDY = "write one JSON object a file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a step learns from: the host's number of it, its attempts, and a digest of all that was read."""

    number: int
    attempts: tuple[Attempt, ...]
    digest: str


class Workspace:
    """The folders. Raises EvolverError about whatever is not as the contract has it."""

    def __init__(self, folder: Path, file: str) -> None:
        self.folder = folder
        self._file = file

    @property
    def state(self) -> Path:
        """Where the method remembers; made when it is missing."""
        return self._made("state")

    def prepare(self) -> None:
        """Make the folders that are written to, before anybody is asked anything."""
        self._made("state")
        self._made("output")

    def read_document(self) -> str:
        """The learnable document, newlines and byte-order mark as they are."""
        path = self._document_path()
        try:
            text = read_text_file(path, "adapter")
        except SettingsError as error:
            raise EvolverError(error.lines[0]) from None
        if not markers_are_balanced(text):
            raise EvolverError(f"adapter: {shown_path(path)}: markers of protected regions do not pair up: repair them")
        return text

    def write_document(self, text: str) -> None:
        """Put the document in its place."""
        self._write(self._document_path(), text)

    def write_report(self, text: str) -> None:
        """Leave the report of the step."""
        self._write(self._made("output") / "report.md", text)

    def material(self, *, reads_traces: bool) -> Material:
        """The step's batch: every `tasks/*.json`, in the order of the names."""
        summary = self.folder / _CURRENT / "summary.json"
        number = _step_of(_read_json(summary), summary)
        folder = self.folder / _CURRENT / "tasks"
        if not folder.is_dir():
            raise EvolverError(f"{shown_path(folder)}: there is no such folder: write one attempt a file into it")
        digest = hashlib.sha256()
        attempts: dict[str, tuple[Attempt, Path]] = {}
        paths = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
        for path in paths:
            data = _read(path)
            with_trace = _trace_beside(path) if reads_traces else b""
            for part in (path.name.encode("utf-8", "surrogateescape"), data, with_trace):
                digest.update(hashlib.sha256(part).digest())
            attempt = _attempt(data, path)
            if with_trace and not attempt.trace:
                attempt = replace(attempt, trace=with_trace.decode("utf-8", "replace"))
            known = attempts.get(attempt.task.task_id)
            if known is not None:
                twice = f"the task {shown(attempt.task.task_id)} is attempted in {shown_path(known[1])} already"
                raise EvolverError(f"{shown_path(path)}: {twice}; keep one attempt a task")
            attempts[attempt.task.task_id] = (attempt, path)
        if not attempts:
            raise EvolverError(f"{shown_path(folder)}: holds no .json file: write one attempt a file into it")
        return Material(
            number=number, attempts=tuple(attempt for attempt, _ in attempts.values()), digest=digest.hexdigest()
        )

    def _document_path(self) -> Path:
        adapter = self.folder / "adapter"
        if not adapter.is_dir():
            raise EvolverError(f"{shown_path(adapter)}: there is no such folder: put {self._file} into it")
        path = (adapter / self._file).resolve()
        if not path.is_relative_to(adapter.resolve()):
            raise EvolverError(f"{shown_path(adapter / self._file)}: leads out of adapter/: name a file inside it")
        return path

    def _made(self, name: str) -> Path:
        path = self.folder / name
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            reason = (error.strerror or "cannot be made").lower()
            raise EvolverError(f"{shown_path(path)}: {reason}: is the workspace there, and writable?") from error
        return path

    def _write(self, path: Path, text: str) -> None:
        try:
            write_whole(path, text, by_way_of=self.state)
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            line = f"{shown_path(path)}: {reason}: make room or give permission, and make the same call again"
            raise EvolverError(line, ErrorCode.STORE_UNAVAILABLE) from error


def _step_of(summary: object, path: Path) -> int:
    record: Mapping[str, object] = cast("Mapping[str, object]", summary) if isinstance(summary, Mapping) else {}
    step = record.get("step")
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise EvolverError(f'{shown_path(path)}: "step" is not a whole number from 0 on: write the number of the step')
    return step


def _attempt(data: bytes, path: Path) -> Attempt:
    try:
        return read_attempt(_parsed(data))
    except RefusalError as refusal:
        raise EvolverError(_line(path, refusal)) from None


def _read_json(path: Path) -> object:
    data = _read(path)
    try:
        return _parsed(data)
    except RefusalError as refusal:
        raise EvolverError(_line(path, refusal)) from None


def _parsed(data: bytes) -> object:
    value = parse(decode(data), _REMEDY)
    check(value)
    return value


def _line(path: Path, refusal: RefusalError) -> str:
    return f"{' '.join(filter(None, (shown_path(path), refusal.place)))}: {refusal.what}"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ATTEMPT_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise EvolverError(f"{shown_path(path)}: {reason}: the host writes it before it calls step") from error
    if len(data) > MAX_ATTEMPT_BYTES:
        raise EvolverError(f"{shown_path(path)}: longer than 16 MiB: shorten the trajectory")
    return data


def _trace_beside(path: Path) -> bytes:
    """The trace summary that belongs to an attempt's file `name.json`; empty when there is none."""
    places: Sequence[Path] = (path.with_name(f"{path.stem}.{_TRACE}"), path.with_suffix("") / _TRACE)
    return next((_read(place) for place in places if place.is_file()), b"")
