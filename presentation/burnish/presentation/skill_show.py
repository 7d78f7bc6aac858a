"""`burnish show`: the skill of a kept run at one step, and how it came about."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from burnish.application.events import Applied
from burnish.domain.runs import StepRecord, skill_hash
from burnish.infrastructure.tasks.refusals import DataError, shown_path
from burnish.presentation.completion import complete_runs
from burnish.presentation.exits import answer, checked, refuse, without_log
from burnish.presentation.kept_answers import kept_answers
from burnish.presentation.kept_skills import KeptSkills, Place, SkillPoint, kept_skills, point_of
from burnish.presentation.offline_run import load_kept_task, open_offline, run_again
from burnish.presentation.plain_table import DECISIONS, score_text
from burnish.presentation.run_commands import known_folder
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.run_story import story_of
from burnish.presentation.terminal import printable
from burnish.presentation.trail import applied_lines


def show(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="The run folder, or RUN@STEP.", autocompletion=complete_runs),
    ],
    *,
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", min=0, help="After this step; 0: at the start.")
    ] = None,
    edits: Annotated[
        bool, typer.Option("--edits", help="The edits of the step, and what became of each, instead of the text.")
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="The text alone.")] = False,
    task: Annotated[
        Path | None,
        typer.Option("--task", metavar="TASK.yaml", help="For --edits: the task file, when it or the run was moved."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, for machines.")] = False,
) -> None:
    """Show the skill a run had after a step, and the decision behind it; without a step, the best skill.

    How the run ended, and the table of its steps, is what `burnish runs show` tells.

    Example: burnish show runs/demo --step 3 --edits
    """
    if text and (edits or as_json):
        refuse(f"--text: is the text alone: leave {'--edits' if edits else '--json'} out")
    point = _point(run, step)
    known_folder(point.folder)
    with without_log():
        kept = answer(kept_skills(point.folder, os.environ))
        skill = checked(lambda: kept.text_at(point.place))
        told = () if not edits else answer(_edits(point, kept, os.environ, task))
    if text:
        typer.echo(printable(skill), nl=False)
        return
    records = kept.records_of(point.place)
    if as_json:
        typer.echo(json.dumps(_as_json(point, records, skill, told if edits else None), ensure_ascii=False))
        return
    for line in _head(point, kept, records):
        typer.echo(line)
    for line in told:
        typer.echo(printable(line))
    if not edits:
        typer.echo("")
        typer.echo(printable(skill))


def _point(run: str, step: int | None) -> SkillPoint:
    point = checked(lambda: point_of(run))
    if point is None:
        known_folder(Path(run))  # says what it is
        refuse(f"{shown_path(Path(run))}: is not a run folder: see burnish runs list")
    if step is None:
        return point
    if "@" in run and not Path(run).is_dir():
        refuse("--step: the step is given twice, behind @ and as --step: give it once")
    return SkillPoint(folder=point.folder, place=step)


def _head(point: SkillPoint, kept: KeptSkills, records: Sequence[StepRecord]) -> list[str]:
    run = kept.run
    lines = [f"run {run.run_id}: {_named(point.place, kept)}, {len(kept.text_at(point.place))} characters"]
    if not run.has_accepted_any and point.place == "best":
        lines.append("nothing was accepted: it is the initial skill")
    if point.place in {"initial", 0}:
        lines.append(f"  score {score_text(run.baseline_score)}")
    return [*lines, *(_decision(record) for record in records)]


def _named(place: Place, kept: KeptSkills) -> str:
    match place:
        case "best" if kept.run.best_step:
            return f"the best skill, of step {kept.run.best_step}"
        case "initial" | 0:
            return "the initial skill"
        case "best" | "final":
            return f"the {place} skill"
        case _:
            return f"the skill after step {place}"


def _decision(record: StepRecord) -> str:
    what = "slow update" if record.reason.value == "forced" or not record.learning_rate else f"step {record.step}"
    reason = record.code or record.reason.value
    candidate = f"at best {record.ceiling:.4f}" if record.ceiling is not None else score_text(record.candidate_score)
    counted = (
        f"; {record.applied} of {record.proposed} edits applied, {record.failed} failed" if record.proposed else ""
    )
    decided = DECISIONS[record.action]
    scores = f"{candidate} against {score_text(record.compared_with)}"
    return f"  {what} (epoch {record.epoch}): {decided} ({reason}), {scores}{counted}"


async def _edits(
    point: SkillPoint, kept: KeptSkills, environ: Mapping[str, str], task_file: Path | None
) -> tuple[str, ...]:
    """What became of each edit of the step: the run is run again from its answers, asking nobody.

    Raises DataError when the step applied none, or is not decided the same way again.
    """
    records = kept.records_of(point.place)
    name = shown_path(point.folder)
    if not records:
        raise DataError(f"{name}: --edits are those of a step, and {point.place} is none: name one, as {name}@1")
    answers = await kept_answers(point.folder, environ)
    loaded = load_kept_task(RunFolder(point.folder), (), task_file)
    async with open_offline(loaded, environ) as task:
        again = await run_again(task, answers.run_id, answers.entries)
    chapters = [chapter for chapter in story_of(again.events).decisions if chapter.step == records[0].step]
    if [chapter.record for chapter in chapters] != list(records):
        raise DataError(f"{name}: the step is decided otherwise when it is run again: see burnish replay")
    return tuple(
        line for chapter in chapters if (applied := chapter.of(Applied)) is not None for line in applied_lines(applied)
    )


def _as_json(
    point: SkillPoint, records: Sequence[StepRecord], skill: str, edits: Sequence[str] | None
) -> dict[str, object]:
    told: dict[str, object] = {
        "folder": str(point.folder),
        "place": point.place,
        "skill_hash": skill_hash(skill),
        "skill": skill,
        "records": [asdict(record) for record in records],
    }
    return told if edits is None else {**told, "edits": [line.strip() for line in edits]}
