"""`burnish runs`: the runs that are kept in a directory, one of them, and deleting one."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from burnish.application.result import ErrorKind
from burnish.domain.runs import StepRecord, TrainingRun
from burnish.infrastructure.tasks.refusals import shown_path
from burnish.presentation.asking import confirmed
from burnish.presentation.completion import complete_runs
from burnish.presentation.exits import answer, checked, refuse, without_log
from burnish.presentation.help_texts import example
from burnish.presentation.kept_runs import (
    UNFINISHED,
    UNREADABLE,
    KeptRun,
    delete_run,
    kept_run,
    kept_runs,
    read_history,
    run_so_far,
)
from burnish.presentation.plain_table import DECISIONS, NOTHING, print_table, score_text
from burnish.presentation.recordings import export_run, import_run
from burnish.presentation.run_folder import SUMMARY
from burnish.presentation.skillopt_export import export_skillopt
from burnish.presentation.terminal import can_ask
from burnish.presentation.training import RUNS

runs_app = typer.Typer(
    help="Look at the runs that are kept, and delete them.", rich_markup_mode=None, epilog=example("burnish runs list")
)

Folder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="The run folder.", show_default=False, autocompletion=complete_runs),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, for machines.")]


@runs_app.command(name="list")
def list_runs(
    *,
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where run folders are.", show_default=str(RUNS))
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")] = False,
) -> None:
    """List the run folders in a directory.

    Example: burnish runs list
    """
    place = directory or RUNS
    if not place.is_dir() and (directory is not None or place.exists()):
        what = "is not a directory" if place.exists() else "does not exist"
        refuse(f"{shown_path(place)}: {what}: name one that holds run folders", ErrorKind.NOT_FOUND)
    runs = checked(lambda: kept_runs(place)) if place.is_dir() else ()
    if as_json:
        for run in runs:
            typer.echo(json.dumps(_as_json(run)))
    elif runs:
        heads = ("folder", "run", "task", "ended", "start", "selected", "steps")
        print_table(heads, [_listed(run) for run in runs])
    elif kept_run(place) is not None:
        refuse(f"{shown_path(place)}: is a run folder itself: use burnish runs show, or name the directory it is in")
    else:
        typer.echo(f"no runs in {shown_path(place)}")


@runs_app.command()
def show(folder: Folder, *, as_json: AsJson = False) -> None:
    """Show how a run ended, and its steps; of one that has not ended, how far it has come.

    Example: burnish runs show runs/demo
    """
    kept = known_folder(folder)
    records, so_far = checked(lambda: read_history(folder)), None
    if kept.ended == UNFINISHED:
        with without_log():
            so_far = answer(run_so_far(folder, os.environ))
        records = records if so_far is None else so_far.steps
    summary = _summary(folder) if kept.ended not in {UNFINISHED, UNREADABLE} else None
    if as_json:
        steps = [asdict(record) for record in records]
        typer.echo(json.dumps({**_as_json(_brought_up(kept, so_far)), "summary": summary, "records": steps}))
    else:
        _print_run(_brought_up(kept, so_far), records)


@runs_app.command()
def delete(
    folder: Folder,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a run: the files burnish wrote into its folder, and the folder if nothing else is in it.

    Example: burnish runs delete runs/demo --yes
    """
    kept = known_folder(folder)
    if folder.is_symlink():
        refuse(f"{shown_path(folder)}: is a link: name the folder it leads to")
    if not yes:
        if not can_ask():
            refuse(f"{shown_path(folder)}: nobody can be asked here whether to delete it: say --yes")
        if not confirmed(f"Delete run {kept.run_id or NOTHING} ({kept.ended}) in {shown_path(folder)}?"):
            typer.echo("nothing was deleted")
            return
    with without_log():
        deleted = answer(delete_run(folder, os.environ))
    typer.echo(f"deleted {shown_path(folder)}: {deleted.files} files")
    if deleted.left:
        names = ", ".join(shown_path(Path(name)) for name in deleted.left[:5])
        more = f" and {len(deleted.left) - 5} more" if len(deleted.left) > 5 else ""
        typer.echo(f"the folder stays, it holds other files: {names}{more}")


def known_folder(folder: Path) -> KeptRun:
    """What the folder holds; ends the command when it is no run folder."""
    if not folder.exists():
        refuse(f"{shown_path(folder)}: does not exist: see burnish runs list", ErrorKind.NOT_FOUND)
    kept = kept_run(folder) if folder.is_dir() else None
    if kept is None:
        refuse(f"{shown_path(folder)}: is not a run folder: see burnish runs list", ErrorKind.NOT_FOUND)
    return kept


def _brought_up(kept: KeptRun, so_far: TrainingRun | None) -> KeptRun:
    """With what the database knows beyond the files."""
    if so_far is None:
        return kept
    return replace(
        kept,
        run_id=so_far.run_id,
        baseline_score=so_far.baseline_score,
        selected_score=so_far.selected_score,
        steps=so_far.steps_executed,
    )


def _summary(folder: Path) -> dict[str, object]:
    summary: dict[str, object] = json.loads((folder / SUMMARY).read_bytes())
    return summary


def _as_json(run: KeptRun) -> dict[str, object]:
    return {
        "folder": str(run.folder),
        "run_id": run.run_id,
        "task": run.task,
        "stop_reason": run.ended,
        "baseline_score": run.baseline_score,
        "selected_score": run.selected_score,
        "steps": run.steps,
        "started_at": None if run.started_at is None else run.started_at.isoformat(),
    }


def _listed(run: KeptRun) -> tuple[str, ...]:
    return (
        shown_path(Path(run.folder.name)),
        run.run_id or NOTHING,
        run.task or NOTHING,
        run.ended,
        score_text(run.baseline_score),
        score_text(run.selected_score),
        NOTHING if run.steps is None else str(run.steps),
    )


def _print_run(run: KeptRun, records: Sequence[StepRecord]) -> None:
    typer.echo(f"run {run.run_id or NOTHING}: task {run.task or NOTHING}, {run.ended}, {run.steps or 0} steps")
    if run.code is not None:
        typer.echo(f"failure: {run.code}")
    typer.echo(f"validation: {score_text(run.baseline_score)} at the start, {score_text(run.selected_score)} selected")
    for warning in run.warnings:
        typer.echo(f"warning: {warning}")
    if not records:
        return
    typer.echo("")
    heads = ("step", "epoch", "decision", "reason", "candidate", "against", "edits", "characters")
    print_table(heads, [_row(record) for record in records])


def _row(record: StepRecord) -> tuple[str, ...]:
    candidate = score_text(record.candidate_score)
    if record.candidate_score is None and record.ceiling is not None:
        candidate = f"≤ {record.ceiling:.4f}"  # stopped early
    return (
        str(record.step),
        str(record.epoch),
        DECISIONS[record.action],
        record.code or record.reason.value,
        candidate,
        score_text(record.compared_with),
        f"{record.notes_added} noted" if record.is_of_notes else f"{record.applied} of {record.proposed}",
        str(record.skill_characters),
    )


class Layout(StrEnum):
    """What an export looks like."""

    RECORDING = "recording"
    SKILLOPT = "skillopt"


@runs_app.command()
def export(
    folder: Folder,
    *,
    out: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE or DIR", help="Where to write.", show_default=False),
    ],
    layout: Annotated[
        Layout, typer.Option("--layout", help="One file to replay or import, or SkillOpt's run folder.")
    ] = Layout.RECORDING,
    task: Annotated[
        Path | None,
        typer.Option("--task", metavar="TASK.yaml", help="For skillopt: the task file, when it or the run was moved."),
    ] = None,
) -> None:
    """Write all that a run was answered into one compressed file, for `burnish train --replay` and `burnish runs import`.

    With --layout skillopt: run it again from its answers, and write what each step did into a new folder.

    Example: burnish runs export runs/demo -o demo.recording
    """
    if layout is Layout.SKILLOPT:
        known_folder(folder)
        with without_log():
            exported = answer(export_skillopt(folder, out, os.environ, task_file=task))
        ended = "" if exported.is_whole else ", which has not ended"
        typer.echo(f"{shown_path(out)}: {exported.files} files, {exported.steps} steps of run {exported.run_id}{ended}")
        return
    if task is not None:
        refuse("--task: is for --layout skillopt only")
    with without_log():
        recording = answer(export_run(folder, out, os.environ))
    typer.echo(f"{shown_path(out)}: {recording.answers} answers of run {recording.about['run_id']}")


@runs_app.command(name="import")
def import_recording(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The recording.", show_default=False)],
    *,
    out_root: Annotated[
        Path | None, typer.Option("--out-root", metavar="DIR", help="The run folder.", show_default="runs/<run id>")
    ] = None,
) -> None:
    """Make a run folder of a recording, so that `burnish train TASK.yaml --out-root DIR` goes on from its answers.

    Example: burnish runs import demo.recording --out-root runs/again
    """
    with without_log():
        imported = answer(import_run(file, out_root, os.environ))
    typer.echo(f"{shown_path(imported.folder)}: {imported.answers} answers of run {imported.run_id}")
