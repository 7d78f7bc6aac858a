"""Run folders as they lie on disk: finding and reading them, and deleting what burnish wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.domain.runs import StepRecord, TrainingRun
from burnish.infrastructure.persistence.locks import FileLocks, lock_files
from burnish.infrastructure.persistence.stores import open_stores
from burnish.infrastructure.tasks.refusals import DataError, shown_path
from burnish.presentation.container import utc_now
from burnish.presentation.run_database import place_of
from burnish.presentation.run_folder import DATABASE, HISTORY, LOG, SKILL_FOLDER, SUMMARY, TIMING, WRITTEN, RunFolder
from burnish.presentation.skill_folders import skill_files
from burnish.presentation.training import user_name

UNFINISHED = "unfinished"
"""How a run ended that is being trained, or whose process was killed."""

UNREADABLE = "unreadable"
"""How a run ended whose summary cannot be read."""

_TEMPORARY = re.compile(rf"\.(?:{'|'.join(map(re.escape, WRITTEN))})\.[a-z0-9_]{{8}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """What a run folder says about its run; None is what it does not say."""

    folder: Path
    run_id: str | None
    task: str | None
    ended: str
    baseline_score: float | None
    selected_score: float | None
    steps: int | None
    started_at: datetime | None
    code: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """How many files were deleted, and what of the folder is left (the names of other files)."""

    files: int
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summary:
    run_id: str
    task: str
    stop_reason: str | None
    baseline_score: float | None
    selected_score: float | None
    steps_executed: int
    code: str | None
    warnings: tuple[str, ...]


_SUMMARY = TypeAdapter(_Summary)
_RECORD = TypeAdapter(StepRecord)


def kept_run(path: Path) -> KeptRun | None:
    """What lies in a folder; None when it is no run folder."""
    folder = RunFolder(path)
    timing, summary_file = folder.timing(), path / SUMMARY
    summary = _read_summary(summary_file)
    if timing is None and summary is None and not folder.database.is_file():
        return None
    ended = UNFINISHED
    if summary is None and summary_file.exists():
        ended = UNREADABLE
    elif summary is not None and summary.stop_reason and (timing is None or timing.ended_at is not None):
        ended = summary.stop_reason
    return KeptRun(
        folder=path,
        run_id=summary.run_id if summary is not None else timing.run_id if timing is not None else None,
        task=summary.task if summary is not None else timing.task if timing is not None else None,
        ended=ended,
        baseline_score=None if summary is None else summary.baseline_score,
        selected_score=None if summary is None else summary.selected_score,
        steps=None if summary is None else summary.steps_executed,
        started_at=None if timing is None else timing.started_at,
        code=None if summary is None else summary.code,
        warnings=() if summary is None else summary.warnings,
    )


def kept_runs(directory: Path) -> tuple[KeptRun, ...]:
    """The run folders in a directory, the first started first. Raises DataError when it cannot be read."""
    try:
        folders = sorted(path for path in directory.iterdir() if path.is_dir())
    except OSError as error:
        raise _failed(directory, "read", error) from error
    found = [run for run in map(kept_run, folders) if run is not None]
    return tuple(sorted(found, key=lambda run: run.started_at or datetime.max.replace(tzinfo=UTC)))


def read_history(path: Path) -> tuple[StepRecord, ...]:
    """The records of a run folder; none when it has no history. Raises DataError for one that cannot be read."""
    file = path / HISTORY
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{shown_path(file)}: cannot be read as UTF-8 text") from error
    records: list[StepRecord] = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_RECORD.validate_json(line))
        except ValidationError as error:
            raise DataError(f"{shown_path(file)}: line {number}: is not the record of a step") from error
    return tuple(records)


async def run_so_far(path: Path, environ: Mapping[str, str]) -> TrainingRun | None:
    """What the database knows of an unfinished run. Raises SettingsError as `place_of`, PortError as `open_stores`."""
    folder = RunFolder(path)
    place, timing = place_of(folder, environ), folder.timing()
    if isinstance(place, Path) and not place.exists():
        return None
    async with open_stores(place) as stores:
        run_id = timing.run_id if timing is not None else next(iter((await stores.runs.ids())[::-1]), None)
        return None if run_id is None else await stores.runs.get(run_id)


async def delete_run(path: Path, environ: Mapping[str, str]) -> Deleted:
    """Delete what burnish wrote into a run folder, and the folder if that leaves it empty.

    A run on PostgreSQL is dropped there too, all but its audit entries, which get one more. Raises PortError with
    `skill_training.run.already_active` while the run is being trained, and DataError when the system refuses.
    """
    folder = RunFolder(path)
    place, timing = place_of(folder, environ), folder.timing()
    if isinstance(place, Path):
        locks = FileLocks(place)
        try:
            _refuse_active(is_free=locks.acquire_every())
            return _delete_files(path)
        finally:
            await locks.release_all()
    async with open_stores(place) as stores:
        if timing is not None:
            _refuse_active(is_free=await stores.locks.acquire(timing.run_id))
            await stores.forget(timing.run_id, actor=user_name(), at=utc_now())
        return _delete_files(path)


def _refuse_active(*, is_free: bool) -> None:
    if not is_free:
        raise PortError(ErrorCode.RUN_ALREADY_ACTIVE)


def _delete_files(path: Path) -> Deleted:
    """Delete last what tells that this is a run folder, so that an interrupted deletion can be repeated, and the locks."""
    files = 0
    try:
        for file in sorted(_own_files(path), key=_turn):
            file.unlink()
            files += 1
        _remove_empty(path / SKILL_FOLDER)
        left = tuple(sorted(entry.name for entry in path.iterdir()))
        if not left:
            path.rmdir()
    except OSError as error:
        raise _failed(path, "deleted", error) from error
    return Deleted(files=files, left=left)


def _own_files(path: Path) -> Iterator[Path]:
    """The files in a folder that have the names burnish gives."""
    database = path / DATABASE
    own = {*WRITTEN, LOG, *(f"{DATABASE}{suffix}" for suffix in ("", "-journal", "-shm", "-wal"))}
    own |= {file.name for file in lock_files(database)}
    for entry in path.iterdir():
        is_own = entry.name in own or _TEMPORARY.fullmatch(entry.name) is not None
        if is_own and (entry.is_symlink() or entry.is_file()):
            yield entry
    yield from skill_files(path / SKILL_FOLDER)


def _remove_empty(folder: Path) -> None:
    """Remove the folder with its inner ones, as far as they are empty."""
    if folder.is_symlink() or not folder.is_dir():
        return
    inner = [entry for entry in folder.rglob("*") if entry.is_dir() and not entry.is_symlink()]
    for each in (*sorted(inner, key=lambda entry: len(entry.parts), reverse=True), folder):
        if not any(each.iterdir()):
            each.rmdir()


def _turn(file: Path) -> int:
    return 2 if file.suffix == ".lock" else 1 if file.name in {DATABASE, TIMING} else 0


def _read_summary(file: Path) -> _Summary | None:
    try:
        return _SUMMARY.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _failed(path: Path, what: str, error: OSError) -> DataError:
    return DataError(f"{shown_path(path)}: cannot be {what}: {(error.strerror or 'the system refuses').lower()}")
