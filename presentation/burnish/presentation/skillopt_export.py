"""`burnish runs export --layout skillopt`: a kept run as system B's run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from burnish.application.ports import PortError
from burnish.domain.runs import TrainingRun
from burnish.infrastructure.persistence.in_memory import ENDED_WELL
from burnish.infrastructure.tasks.refusals import shown_path
from burnish.presentation.kept_answers import kept_answers
from burnish.presentation.new_folder import new_folder
from burnish.presentation.offline_run import OfflineRun, load_kept_task, open_offline, run_again
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.run_story import RunStory, story_of
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.skillopt_config import flat_config
from burnish.presentation.skillopt_layout import skillopt_files
from burnish.presentation.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written; `is_whole` is false when the run has not ended."""

    run_id: str
    steps: int
    files: int
    is_whole: bool


async def export_skillopt(
    path: Path, out: Path, environ: Mapping[str, str], *, task_file: Path | None = None
) -> Exported:
    """Run a folder's run again from its answers, and write what it did into a new folder, whole or not at all.

    Raises SettingsError or DataError when there is no such run or place, and PortError when the run cannot be run again,
    because its task was changed meanwhile.
    """
    kept = await kept_answers(path, environ)
    loaded = load_kept_task(RunFolder(path), (), task_file)
    async with open_offline(loaded, environ) as task:
        again = await run_again(task, kept.run_id, kept.entries)
    run = _faithful(path, again, kept.run)
    story = story_of(again.events)
    if not story.steps:
        raise SettingsError((f"{shown_path(path)}: its run has not finished a step yet: export it later",))
    files = _write(out, story, run, task, loaded)
    return Exported(run_id=run.run_id, steps=len(story.steps), files=files, is_whole=again.missed is None)


def _write(out: Path, story: RunStory, run: TrainingRun, task: Task, loaded: LoadedTask) -> int:
    """Write the folder; returns how many files are in it."""
    files = 0
    flat = flat_config(loaded.settings, out.resolve())
    with new_folder(out, "--output") as temporary:
        for name, text in skillopt_files(story, run, initial_skill=task.initial_skill, config=task.config, flat=flat):
            file = temporary / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
            files += 1
    return files


def _faithful(path: Path, again: OfflineRun, kept: TrainingRun | None) -> TrainingRun:
    """The run as it was run again. Raises when that is not what is kept: nothing else may be exported under its name."""
    decided = () if again.run is None else again.run.steps
    is_short = kept is not None and (kept.stop_reason in ENDED_WELL or len(decided) < len(kept.steps))
    if again.failure is not None and (again.run is None or (again.missed is not None and is_short)):
        raise PortError(again.failure.code, *again.failure.fields)
    run = again.run
    if run is None or (kept is not None and run.steps[: len(kept.steps)] != kept.steps):
        raise SettingsError((f"{shown_path(path)}: is decided otherwise when it is run again: see burnish replay",))
    return run
