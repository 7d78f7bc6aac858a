"""Running a kept run again from its answers: in memory, without a model, and without touching its folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from burnish.application.events import Event
from burnish.application.ports import JournalEntry
from burnish.application.result import ErrorCode, Failure
from burnish.application.runs import GetRun
from burnish.application.train_skill import TrainSkill
from burnish.domain.runs import TrainingRun
from burnish.infrastructure.persistence.recording import Recording, ReplayJournal
from burnish.infrastructure.tasks.refusals import shown_path
from burnish.presentation.app import open_app
from burnish.presentation.run_folder import CONFIG, RunFolder
from burnish.presentation.settings.environment import read_environment
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask, load_task
from burnish.presentation.settings.models import fill_models
from burnish.presentation.task import Task, open_task


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRun:
    """What came of running a run again.

    `run` is how far it came (None: it could not begin), `failure` why it ended, if not well, and `missed` the key of the
    call nobody has answered, if that is why. `events` are all that it told.
    """

    events: tuple[Event, ...]
    run: TrainingRun | None
    failure: Failure | None
    missed: str | None


def load_kept_task(folder: RunFolder, overrides: Sequence[str], task_file: Path | None) -> LoadedTask:
    """The settings a folder's run was trained with, and `overrides` over them; `task_file` is for one that was moved.

    The settings are those of the folder's own configuration, or without one the task file's; relative paths in them start
    in the task file's folder. Raises SettingsError also when nobody says where that is.
    """
    base = task_file or _recorded_task_file(folder)
    if task_file is not None and not task_file.is_file():
        raise SettingsError((f"--task: {shown_path(task_file)}: there is no such file",))
    settings = folder.path / CONFIG
    loaded = load_task(settings if settings.exists() else base, overrides)
    return replace(loaded, base_dir=base.absolute().parent)


def _recorded_task_file(folder: RunFolder) -> Path:
    timing = folder.timing()
    name = shown_path(folder.path)
    if timing is None or timing.task_file is None:
        raise SettingsError((f"{name}: does not tell where its task file is: name it with --task TASK.yaml",))
    file = Path(timing.task_file)
    if not file.is_file():
        gone = f"its task file {shown_path(file)} is not there any more: name it with --task TASK.yaml"
        raise SettingsError((f"{name}: {gone}",))
    return file


@asynccontextmanager
async def open_offline(loaded: LoadedTask, environ: Mapping[str, str]) -> AsyncGenerator[Task]:
    """The task of these settings, whose models are never called. Raises SettingsError or DataError."""
    environment = read_environment(loaded.base_dir, environ)
    async with open_task(fill_models(loaded, environment), environment, offline=True) as task:
        yield task


async def run_again(task: Task, run_id: str, entries: Sequence[JournalEntry]) -> OfflineRun:
    """Follow the task's run as far as the answers go."""
    journal = ReplayJournal(Recording(about={"run_id": run_id}, entries=tuple(entries)))
    told = _Events()
    async with open_app(**task.ports, journal=journal, sinks=(told,)) as app:
        result = await app.send(TrainSkill(run_id, task.skill_id, task.initial_skill, task.config))
        kept = await app.send(GetRun(run_id))
    is_miss = result.failure is not None and result.failure.code is ErrorCode.REPLAY_UNKNOWN_CALL
    return OfflineRun(
        events=tuple(told.events),
        run=kept.value if kept.is_ok else None,
        failure=result.failure,
        missed=journal.missed if is_miss else None,
    )


class _Events:
    """An event sink that keeps everything."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def emit(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)
