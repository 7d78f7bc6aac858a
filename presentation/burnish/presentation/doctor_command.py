"""`burnish doctor`: what a run needs, looked at before it begins, each thing in a line with its remedy."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from burnish.application.usage import UsageNote
from burnish.presentation.checks import Check, State, exit_code
from burnish.presentation.completion import complete_tasks
from burnish.presentation.doctor import examine
from burnish.presentation.exits import answer, refuse, without_log
from burnish.presentation.terminal import is_coloured

_COLOURS = {State.OK: typer.colors.GREEN, State.WARNING: typer.colors.YELLOW, State.FAILED: typer.colors.RED}


def doctor(
    *,
    task: Annotated[
        Path | None,
        typer.Argument(metavar="TASK.yaml", help="The task file.", show_default=False, autocompletion=complete_tasks),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="TASK.yaml", help="The task file, as an option.", show_default=False),
    ] = None,
    cfg_options: Annotated[
        list[str] | None,
        typer.Option("--cfg-options", metavar="SECTION.KEY=VALUE …", help="Settings over the task file's."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no model.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only what is not well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")] = False,
) -> None:
    """Look at endpoint, key, model, JSON answers, data, scorer, disk and libraries, and name the remedies.

    The task's models are asked one short question each: a few dozen tokens, counted at the end. Without a task, only the
    machine is looked at. The exit status is 0 when nothing failed, 2 when the task has to be put right, and 69 when
    something outside of it has.

    Example: burnish doctor examples/ticket-routing/task.yaml
    """
    if task is not None and config is not None:
        refuse("the task file is given twice, as an argument and as --config: give it once")
    with without_log():
        findings = answer(
            examine(task or config, cfg_options or (), os.environ, asks=not offline),
            interrupted="run the same command to begin anew",
        )
    if as_json:
        for check in findings.checks:
            typer.echo(json.dumps({name: value for name, value in asdict(check).items() if name != "is_outside"}))
        typer.echo(json.dumps(_used(findings.usage)))
    else:
        _print(findings.checks, findings.usage, quiet=quiet)
    raise typer.Exit(exit_code(findings.checks))


def _print(checks: Sequence[Check], usage: Sequence[UsageNote], *, quiet: bool) -> None:
    told = [check for check in checks if not quiet or check.state is not State.OK]
    width = max((len(check.name) for check in told), default=0)
    for check in told:
        state = f"{check.state:<8}"
        state = typer.style(state, fg=_COLOURS[check.state]) if is_coloured(os.environ) else state
        typer.echo(f"{state}{check.name:<{width}}  {check.told}")
    if quiet:
        return
    counts = {state: sum(check.state is state for check in checks) for state in State}
    typer.echo(f"{counts[State.OK]} ok, {counts[State.WARNING]} to know, {counts[State.FAILED]} failed")
    used = _used(usage)
    if used["calls"]:
        tokens = f"{used['prompt_tokens']} prompt and {used['completion_tokens']} completion tokens"
        typer.echo(f"that took {used['calls']} calls: {tokens}")


def _used(usage: Sequence[UsageNote]) -> dict[str, int]:
    return {
        "calls": len(usage),
        "prompt_tokens": sum(note.prompt_tokens for note in usage),
        "completion_tokens": sum(note.completion_tokens for note in usage),
    }
