"""`burnish adopt`: the best skill of a run takes the place of the file it was trained from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from burnish.application.result import ErrorKind
from burnish.domain.runs import skill_hash
from burnish.infrastructure.tasks.refusals import DataError, shown_path
from burnish.presentation.asking import confirmed
from burnish.presentation.completion import complete_runs
from burnish.presentation.exits import answer, checked, refuse, without_log
from burnish.presentation.kept_skills import KeptSkills, kept_skills, skill_file_of
from burnish.presentation.offline_run import load_kept_task
from burnish.presentation.plain_table import score_text
from burnish.presentation.run_commands import known_folder
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.terminal import can_ask
from burnish.presentation.text_files import read_text_file, replace_text_file

_BACKUPS = 999


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What is to be written where. `current` is the file's text, None when there is no file."""

    kept: KeptSkills
    file: Path
    current: str | None

    @property
    def is_done(self) -> bool:
        """Whether the file is the best skill already."""
        return self.current == self.kept.run.best_skill

    @property
    def obstacle(self) -> tuple[str, ErrorKind] | None:
        """Why it should not be done without being told so twice."""
        run, name = self.kept.run, shown_path(self.file)
        if run.stop_reason is None:
            return "its run has not ended: let the command that trains it finish", ErrorKind.CONFLICT
        if self.current is None:
            return f"{name} is not there any more", ErrorKind.NOT_FOUND
        if skill_hash(self.current) != self.kept.initial_hash:
            return f"{name} was changed since the run began: compare them with burnish diff", ErrorKind.CONFLICT
        return None


async def adoption_of(path: Path, environ: Mapping[str, str], task_file: Path | None) -> Adoption:
    """What adopting a folder's best skill comes to. Raises SettingsError or DataError when there is nothing to adopt."""
    kept = await kept_skills(path, environ)
    loaded = load_kept_task(RunFolder(path), (), task_file)
    name = shown_path(path)
    file = skill_file_of(loaded)
    if file is None:
        raise SettingsError((f"{name}: its task began without a skill: copy {name}/best_skill.md to where it belongs",))
    current = read_text_file(file, "env.skill_init") if file.exists() else None
    return Adoption(kept=kept, file=file, current=current)


def adopt(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="The run folder.", show_default=False, autocompletion=complete_runs),
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also when the file was changed, or is gone, or the run has not ended.")
    ] = False,
    task: Annotated[
        Path | None,
        typer.Option("--task", metavar="TASK.yaml", help="The task file, when it or the run was moved."),
    ] = None,
) -> None:
    """Put a run's best skill in the place of the skill file its task began with; the old one is kept beside it.

    Example: burnish adopt runs/demo
    """
    known_folder(run)
    with without_log():
        adoption = answer(adoption_of(run, os.environ, task))
    trained, name = adoption.kept.run, shown_path(adoption.file)
    if not trained.has_accepted_any:
        refuse(f"{shown_path(run)}: nothing was accepted in it: there is no better skill to adopt", ErrorKind.NOT_FOUND)
    if adoption.is_done:
        typer.echo(f"{name} is the best skill already")
        return
    if adoption.obstacle is not None and not force:
        why, kind = adoption.obstacle
        refuse(f"{shown_path(run)}: {why}; --force adopts it all the same", kind)
    if not yes:
        if not can_ask():
            refuse(f"{name}: nobody can be asked here whether to replace it: say --yes")
        scores = f"{score_text(trained.selected_score)}, {score_text(trained.baseline_score)} at the start"
        if not confirmed(f"Replace {name} by the best skill, of step {trained.best_step} ({scores})?"):
            typer.echo("nothing was changed")
            return
    backup = checked(lambda: adopted(adoption))
    where = "" if backup is None else f"; what was there is {shown_path(backup)}"
    typer.echo(f"{name}: the best skill of run {trained.run_id}, of step {trained.best_step}{where}")


def adopted(adoption: Adoption) -> Path | None:
    """Write the file, whole or not at all; the backup that was made, None when there was nothing to keep.

    Raises DataError when the file was changed since it was looked at, and when the system refuses.
    """
    file = adoption.file
    try:
        backup = None
        if adoption.current is not None:
            if file.read_bytes() != adoption.current.encode():
                raise DataError(f"{shown_path(file)}: was changed just now: look at it and try again")
            backup = _kept_beside(file)
        replace_text_file(file, adoption.kept.run.best_skill)
    except OSError as error:
        reason = (error.strerror or "cannot be written to").lower()
        raise DataError(f"{shown_path(file)}: {reason}: nothing was replaced") from error
    return backup


def _kept_beside(file: Path) -> Path:
    """Copy the file under a name that is free, never over another file."""
    for number in range(1, _BACKUPS + 1):
        backup = file.with_name(f"{file.name}.bak" if number == 1 else f"{file.name}.bak{number}")
        try:
            with backup.open("xb") as copy:
                copy.write(file.read_bytes())
        except FileExistsError:
            continue
        shutil.copystat(file, backup)
        return backup
    raise DataError(f"{shown_path(file)}: has {_BACKUPS} backups beside it: remove some")
