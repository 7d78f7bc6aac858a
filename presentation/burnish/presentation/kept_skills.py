"""The skills a kept run had: at its start, after each step, the best and the final one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from burnish.application.journal_keys import TEXT, kind_of, parts_of
from burnish.domain.runs import StepRecord, TrainingRun, skill_hash
from burnish.infrastructure.persistence.stores import SqlStores, open_stores
from burnish.infrastructure.tasks.refusals import DataError, shown_path
from burnish.presentation.offline_run import load_kept_task
from burnish.presentation.run_database import place_of
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.skill_folders import SKILL_FILE
from burnish.presentation.text_files import read_text_file

Place = int | Literal["initial", "best", "final"]
"""Where in a run: after a step, or one of the skills with a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillPoint:
    """A run folder and a place in its run, as people write it: `runs/demo@3`."""

    folder: Path
    place: Place

    @property
    def label(self) -> str:
        """How it is written."""
        return f"{self.folder}@{self.place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSkills:
    """A folder's run as far as it has come, its initial skill's digest, and the texts of its skills by digest."""

    folder: Path
    run: TrainingRun
    initial_hash: str
    texts: Mapping[str, str]

    def records_of(self, place: Place) -> tuple[StepRecord, ...]:
        """What was decided in the step the place names, or in which the best skill came about; a slow update is last."""
        step = self.run.best_step if place == "best" else place
        return tuple(record for record in self.run.steps if record.step == step)

    def text_at(self, place: Place) -> str:
        """The skill. Raises DataError for a step the run has not reached, and for a text that is not kept."""
        if place == "best":
            return self.run.best_skill
        if place == "final":
            return self.run.final_skill
        digest = self.initial_hash
        if place not in {"initial", 0}:
            records = self.records_of(place)
            if not records:
                reached = f"its last step is {self.run.steps_executed}" if self.run.steps else "it has no step yet"
                raise DataError(f"{shown_path(self.folder)}: the run has no step {place}: {reached}")
            digest = records[-1].skill_hash
        text = self.texts.get(digest)
        if text is None:
            which = "initial skill" if place in {"initial", 0} else f"skill of step {place}"
            raise DataError(
                f"{shown_path(self.folder)}: the {which} is not kept, it is very long or held a secret: "
                "use best or final, which are files"
            )
        return text


def point_of(text: str) -> SkillPoint | None:
    """What `RUN@PLACE` means, or a run folder without a place: its best skill. None when it is neither.

    Raises DataError for a place that is none.
    """
    if Path(text).is_dir():
        return SkillPoint(folder=Path(text), place="best")
    folder, at, place = text.rpartition("@")
    if not at or not Path(folder).is_dir():
        return None
    match place:
        case "initial" | "best" | "final":
            return SkillPoint(folder=Path(folder), place=place)
        case _ if place.isascii() and place.isdecimal() and len(place) <= 9:
            return SkillPoint(folder=Path(folder), place=int(place))
        case _:
            raise DataError(f"{shown_path(Path(text))}: after @ stands a step's number, initial, best or final")


async def kept_skills(path: Path, environ: Mapping[str, str]) -> KeptSkills:
    """Read them. Raises DataError when the folder's database knows no run that has begun."""
    folder = RunFolder(path)
    place, timing = place_of(folder, environ), folder.timing()
    if isinstance(place, Path) and not place.exists():
        raise DataError(
            f"{shown_path(place)}: does not exist: only best_skill.md and final_skill.md are left of the run"
        )
    async with open_stores(place) as stores:
        known = await stores.runs.ids()
        run_id = timing.run_id if timing is not None else known[-1] if known else ""
        run = await stores.runs.get(run_id)
        if run is None:
            raise DataError(f"{shown_path(path)}: its run has not finished a step yet: look again later")
        identity = await stores.runs.identity(run_id) or {}
        initial = identity.get("initial_skill", "")
        texts = await _texts(stores, run_id)
    for text in (run.best_skill, run.final_skill, "", *_task_skill(folder)):
        texts.setdefault(skill_hash(text), text)
    return KeptSkills(folder=path, run=run, initial_hash=initial, texts=texts)


async def _texts(stores: SqlStores, run_id: str) -> dict[str, str]:
    """Those of checkpoints and of the journal whose digest is theirs: others were redacted."""
    found = {checkpoint.skill_hash: checkpoint.skill for checkpoint in await stores.checkpoints.list(run_id)}
    for entry in await stores.journal.entries(run_id):
        if kind_of(entry.key) == TEXT:
            digest, text = str(parts_of(entry.key)[-1]), str(json.loads(entry.answer))
            if skill_hash(text) == digest:
                found[digest] = text
    return found


def _task_skill(folder: RunFolder) -> Sequence[str]:
    """The skill the task has now, which may be the one the run began with."""
    with suppress(SettingsError):
        file = skill_file_of(load_kept_task(folder, (), None))
        return () if file is None else (read_text_file(file, "env.skill_init"),)
    return ()


def skill_file_of(loaded: LoadedTask) -> Path | None:
    """The file the task's initial skill is in, of a skill's folder its SKILL.md; None for a task that begins without one."""
    if not loaded.settings.env.skill_init:
        return None
    path = (loaded.base_dir / loaded.settings.env.skill_init).resolve()
    return path / SKILL_FILE if path.is_dir() else path


def skill_file_text(path: Path) -> str:
    """The text of a skill's file that was named instead of a run."""
    return read_text_file(path, "skill")
