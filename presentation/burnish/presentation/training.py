"""`burnish train` and `burnish eval`: from a task file to a run folder, or to a score."""

from __future__ import annotations

import getpass
import json
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from burnish.application.evaluate_skill import EvaluateSkill
from burnish.application.events import Event, RunStarted
from burnish.application.log import get_logger
from burnish.application.ports import EventSink, PortError
from burnish.application.result import ErrorCode, ErrorKind, Failure, Result
from burnish.application.runs import GetRun
from burnish.application.train_skill import TrainSkill
from burnish.domain.rollouts import BatchScore
from burnish.domain.runs import TrainingRun, is_run_id
from burnish.infrastructure.observability import console_logging, console_tracing
from burnish.infrastructure.persistence.audit import verify
from burnish.infrastructure.persistence.recording import Recording, RecordingError, ReplayJournal, read_recording
from burnish.infrastructure.persistence.stores import SqlStores, open_stores
from burnish.infrastructure.tasks.chat_runner import ChatTaskRunner
from burnish.presentation.app import open_app
from burnish.presentation.bounded_caps import refuse_unbounded_caps
from burnish.presentation.container import utc_now
from burnish.presentation.forecasting import forecast_of
from burnish.presentation.run_database import POSTGRESQL, SQLITE, database_secrets, place_of
from burnish.presentation.run_folder import LOG, RunFolder, Timing
from burnish.presentation.settings.environment import Environment, read_environment
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask, load_task
from burnish.presentation.settings.mapping import effective_yaml
from burnish.presentation.settings.models import fill_models
from burnish.presentation.skill_folders import read_initial_skill
from burnish.presentation.task import Task, open_task
from burnish.presentation.watched_runner import RolloutWatch, WatchedRunner

_log = get_logger(__name__)

RUNS = Path("runs")
"""Where run folders go when nobody says otherwise."""

_DIGEST_DIGITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """What the command line says beside the task file."""

    task: Path
    overrides: Sequence[str] = ()
    out_root: Path | None = None
    run_id: str | None = None
    fresh: bool = False
    traces: Path | None = None
    replay: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """How a run ended and where it is; `run` is None when nothing of it was kept."""

    folder: Path
    task: Task
    run: TrainingRun | None
    failure: Failure | None


async def train_task(
    options: TrainOptions,
    environ: Mapping[str, str],
    sinks: Sequence[EventSink],
    watch: RolloutWatch | None = None,
) -> Trained:
    """Train the task's skill into its run folder. Raises SettingsError or DataError for bad input."""
    loaded, environment = _load(options.task, options.overrides, environ)
    recording = None if options.replay is None else recorded(options.replay)
    async with open_task(loaded, environment, offline=recording is not None) as task:
        _refuse_odd(options.run_id)
        refuse_unbounded_caps(loaded.settings, offline=recording is not None)
        folder = RunFolder(options.out_root or _default_folder(task, fresh=options.fresh))
        place = place_of(folder, environ)
        folder.prepare()
        secrets = (*environment.known_secrets(), *database_secrets(environ))
        with ExitStack() as stack:
            _observe(stack, folder, secrets, options.traces)
            return await _train(
                *(task, loaded, folder, options, sinks), secrets=secrets, place=place, recording=recording, watch=watch
            )


async def evaluate_task(
    task_file: Path,
    overrides: Sequence[str],
    environ: Mapping[str, str],
    *,
    split: str,
    skill: Path | None,
    watch: RolloutWatch | None = None,
) -> Result[BatchScore]:
    """Score a skill (the task's own when none is named) on a split. Raises SettingsError or DataError for bad input."""
    loaded, environment = _load(task_file, overrides, environ)
    async with open_task(loaded, environment, trains=False) as task:
        text = task.initial_skill if skill is None else read_initial_skill(skill, "--skill").text
        if watch is not None:
            watch.expect(task.items[split])
        async with open_app(rollouts=_watched(task, watch), workers=task.workers, actor=user_name()) as app:
            return await app.send(EvaluateSkill(skill=text, split=split))


def _watched(task: Task, watch: RolloutWatch | None) -> ChatTaskRunner | WatchedRunner:
    return task.runner if watch is None else WatchedRunner(task.runner, watch)


def _load(task_file: Path, overrides: Sequence[str], environ: Mapping[str, str]) -> tuple[LoadedTask, Environment]:
    loaded = load_task(task_file, overrides)
    environment = read_environment(loaded.base_dir, environ)
    return fill_models(loaded, environment), environment


async def verify_audit(path: Path, environ: Mapping[str, str]) -> tuple[str | None, int]:
    """What is wrong with the audit log of a run's database (None: nothing), and how many records it has."""
    folder = RunFolder(path)
    anchor = folder.audit_anchor()
    place = place_of(folder, environ)
    if isinstance(place, Path) and not place.exists():
        raise SettingsError((f"{place}: does not exist: is this a run folder?",))
    async with open_stores(place) as stores:
        records = await stores.audit_log.records()
    return verify(records, anchor), len(records)


def recorded(path: Path) -> Recording:
    """The recording in a file. Raises SettingsError when there is none."""
    try:
        return read_recording(path)
    except RecordingError as error:
        raise SettingsError((str(error),)) from error


async def _train(
    task: Task,
    loaded: LoadedTask,
    folder: RunFolder,
    options: TrainOptions,
    sinks: Sequence[EventSink],
    *,
    secrets: Sequence[str],
    place: Path | str,
    recording: Recording | None,
    watch: RolloutWatch | None,
) -> Trained:
    async with open_stores(place) as stores:
        recorded_id = None if recording is None else recording.about.get("run_id")
        _refuse_second_run(options, folder, await _known_ids(folder, stores) if isinstance(place, Path) else ())
        run_id = options.run_id or recorded_id or await _run_id(task, folder, stores, place, fresh=options.fresh)
        timing = Timing(
            run_id=run_id,
            task=task.name,
            database=SQLITE if isinstance(place, Path) else POSTGRESQL,
            started_at=utc_now(),
            task_file=str(options.task.absolute()),
            forecast_seconds=forecast_of(task).seconds,
        )
        effective = effective_yaml(loaded)
        with _kept_on_disk():
            folder.write_config(effective, replace=False)
        ports = task.ports
        ports["rollouts"] = _watched(task, watch)
        async with open_app(
            **ports,
            checkpoints=stores.checkpoints,
            runs=stores.runs,
            memory=stores.memory,
            audit_log=stores.audit_log,
            journal=stores.journal if recording is None else ReplayJournal(recording),
            secrets=secrets,
            sinks=(mark := _StartMark(folder, timing), *sinks),
            actor=user_name(),
        ) as app:
            is_ours = True
            try:
                result = await app.send(TrainSkill(run_id, task.skill_id, task.initial_skill, task.config, task.budget))
                is_ours = result.failure is None or result.failure.code.kind is not ErrorKind.CONFLICT
            finally:  # also when interrupted; but another process's run, or one with other settings, is left alone
                kept = await app.send(GetRun(run_id))
                run = kept.value if is_ours and kept.is_ok else None
                if run is not None:
                    with _kept_on_disk():
                        folder.write_config(effective)
                        folder.write_run(run, task)
                    if mark.is_set or folder.timing() is None:  # a stored result that is shown again keeps its times
                        timing = replace(
                            timing, ended_at=utc_now(), audit=await stores.audit_log.anchor(), lost=run.lost
                        )
                        with _kept_on_disk():
                            folder.write_timing(timing)
    return Trained(folder=folder.path, task=task, run=run, failure=result.failure)


def _refuse_second_run(options: TrainOptions, folder: RunFolder, known: Sequence[str]) -> None:
    """One folder, one run: raises SettingsError when another is asked for in a folder that holds one."""
    if options.out_root is None or not known:
        return
    if options.fresh:
        raise SettingsError((f"--fresh: {folder.path} holds run {known[-1]} already: name another --out-root",))
    if options.run_id is not None and options.run_id not in known:
        raise SettingsError((f"--run-id: {folder.path} holds run {known[-1]} already: name another --out-root",))


class _StartMark:
    """Notes in the folder which run is being trained in it, as soon as it is its own: what a killed process leaves."""

    def __init__(self, folder: RunFolder, timing: Timing) -> None:
        self._folder = folder
        self._timing = timing
        self.is_set = False

    async def emit(self, event: Event) -> None:
        """Write it at the start of the run."""
        if isinstance(event, RunStarted):
            self._folder.write_timing(self._timing)
            self.is_set = True


async def _run_id(task: Task, folder: RunFolder, stores: SqlStores, place: Path | str, *, fresh: bool) -> str:
    """The id of the folder's run. A server holds the runs of other folders too: there a fresh run takes the next free id."""
    if isinstance(place, Path):
        known = await _known_ids(folder, stores)
        return known[-1] if known else _named(task)
    if (timing := folder.timing()) is not None:
        return timing.run_id
    known, run_id, number = await stores.runs.ids(), _named(task), 2
    while fresh and run_id in known:
        run_id, number = f"{_named(task)}-{number}", number + 1
    return run_id


async def _known_ids(folder: RunFolder, stores: SqlStores) -> tuple[str, ...]:
    """The runs of a folder's own database; of one that was made from a recording, the recorded one."""
    known = await stores.runs.ids()
    timing = folder.timing()
    return known if known or timing is None else (timing.run_id,)


@contextmanager
def _kept_on_disk() -> Generator[None]:
    """Raise PortError when files of the run folder cannot be written in the block; the same command writes them later."""
    try:
        yield
    except OSError as error:
        _log.exception("run_folder.failed", error_type=type(error).__name__)
        raise PortError(ErrorCode.STORE_UNAVAILABLE) from error


def _observe(stack: ExitStack, folder: RunFolder, secrets: Sequence[str], traces: Path | None) -> None:
    log = _opened(stack, folder.path / LOG)
    stack.enter_context(console_logging(log, level=logging.INFO, secrets=secrets))
    if traces is not None:
        try:
            stack.enter_context(console_tracing(traces))
        except OSError as error:
            reason = (error.strerror or "cannot be written to").lower()
            raise SettingsError((f"--traces: {traces}: {reason}: choose another file",)) from error


def _opened(stack: ExitStack, path: Path) -> TextIO:
    """The log to write at the end of. Raises SettingsError when it cannot be opened; closing it never fails."""
    try:
        log = path.open("a", encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "cannot be written to").lower()
        raise SettingsError((f"--out-root: {path}: {reason}: choose another folder",)) from error

    def close() -> None:
        with suppress(OSError):  # what is not on the disk yet finds no room
            log.close()

    stack.callback(close)
    return log


def _refuse_odd(run_id: str | None) -> None:
    if run_id is not None and not is_run_id(run_id):
        raise SettingsError(
            (f"--run-id: {json.dumps(run_id)}: use letters, digits, dots, dashes and underscores, at most 128",)
        )


def _default_folder(task: Task, *, fresh: bool) -> Path:
    """The same task with the same settings has the same folder; `fresh` takes the next free one."""
    folder = RUNS / _named(task)
    number = 2
    while fresh and folder.exists():
        folder = RUNS / f"{_named(task)}-{number}"
        number += 1
    return folder


def _named(task: Task) -> str:
    return f"{task.skill_id}-{task.digest[:_DIGEST_DIGITS]}"


def user_name() -> str:
    """Who started this, for the audit log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
