"""The console: commands, what they print, and their exit codes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from burnish.application.result import ErrorKind
from burnish.domain.rollouts import SPLITS
from burnish.presentation.adoption import adopt
from burnish.presentation.config_commands import CfgOptions, ConfigFile, TaskFile, config_app, task_file
from burnish.presentation.data_command import show_data
from burnish.presentation.doctor_command import doctor
from burnish.presentation.estimate import estimate_task
from burnish.presentation.estimate_output import print_estimate
from burnish.presentation.exits import answer, checked, exit_for, refuse, warn, without_log
from burnish.presentation.flat_flags import without_flat_flags
from burnish.presentation.help_texts import example as help_example
from burnish.presentation.help_texts import set_examples_last
from burnish.presentation.init_command import init
from burnish.presentation.output import Output, onlookers_for, print_score, print_trained, watch_for
from burnish.presentation.replay_command import replay
from burnish.presentation.run_commands import runs_app
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.settings.errors import shown
from burnish.presentation.settings.layers import OPTIONS
from burnish.presentation.settings.mapping import named_as_settings
from burnish.presentation.skill_diff import diff
from burnish.presentation.skill_show import show as skill_show
from burnish.presentation.training import TrainOptions, evaluate_task, train_task, verify_audit

EXAMPLE = "skill-training"

app = typer.Typer(
    name="burnish",
    help="Trains a skill: a Markdown document of instructions that a frozen language-model agent works from.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=help_example("burnish init --data tickets.csv"),
)
app.add_typer(config_app, name="config")
audit_app = typer.Typer(
    help="Look at the audit log of a run.", rich_markup_mode=None, epilog=help_example("burnish audit verify runs/demo")
)
app.add_typer(audit_app, name="audit")
app.add_typer(runs_app, name="runs")
app.command()(replay)
app.command(name="show")(skill_show)
app.command()(diff)
app.command()(adopt)
app.command()(doctor)
app.command()(init)
app.command(name="data")(show_data)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Tell nothing but what came of it.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")]


def run(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit status. Bad input is told in one line a problem, never with a traceback."""
    try:
        app(args=_spread(checked(lambda: without_flat_flags(arguments))), prog_name="burnish")
    except typer.Exit as exit_:  # before there was a command
        return exit_.exit_code
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except OSError as error:  # standard output is full or closed: what is left to say has no place
        if error.filename is None:
            return ErrorKind.UNAVAILABLE.exit_code
        raise
    return 0


def _spread(arguments: Sequence[str]) -> list[str]:
    """Let one `--cfg-options` take several settings, as system B's does."""
    spread: list[str] = []
    taking = False
    for argument in arguments:
        if argument == OPTIONS:
            taking = True
        elif taking and "=" in argument and not argument.startswith("-"):
            spread += [OPTIONS, argument]
        else:
            if taking and spread[-2:-1] != [OPTIONS]:
                spread.append(OPTIONS)
            taking = False
            spread.append(argument)
    return [*spread, OPTIONS] if taking and spread[-2:-1] != [OPTIONS] else spread


@app.callback(invoke_without_command=True)
def main(
    *,
    context: typer.Context,
    example: Annotated[
        str | None, typer.Option("--example", metavar="NAME", help=f"Run a built-in example: {EXAMPLE}.")
    ] = None,
    show_version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Without a command: the example, the version, or the help."""
    if context.invoked_subcommand is not None:
        return
    if show_version:
        typer.echo(f"burnish {version('burnish')}")
    elif example is None:
        typer.echo(context.get_help())
    elif example != EXAMPLE:
        refuse(f"--example: there is no example {shown(example)!r}: use {EXAMPLE}")
    else:
        from burnish.presentation.example import run_example  # noqa: PLC0415 - only the example needs it

        asyncio.run(run_example(typer.echo))


@app.command()
def train(
    *,
    task: TaskFile = None,
    config: ConfigFile = None,
    cfg_options: CfgOptions = None,
    out_root: Annotated[
        Path | None,
        typer.Option("--out-root", metavar="DIR", help="The run folder.", show_default="runs/<task>-<digest>"),
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run-id", metavar="ID", help="The run's id in its folder.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start another run beside the one there is.")] = False,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Answer from a recording, and from nowhere else.")
    ] = None,
    traces: Annotated[Path | None, typer.Option("--traces", metavar="FILE", help="Write spans as JSON lines.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nobody: print the estimate and the first prompts.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a task's skill.

    A terminal shows a table of the steps and a bar; elsewhere there are lines. Ctrl-C stops the run, and the same command
    goes on with it. --quiet prints the path of the best skill and nothing else.

    Example: burnish train examples/ticket-routing/task.yaml --cfg-options train.num_epochs=1
    """
    if dry_run:
        if replay is not None:
            refuse("--dry-run: asks nobody, so there is nothing to --replay: leave one of them out")
        _estimate(task_file(task, config), cfg_options or (), as_json=as_json, with_prompts=True)
        return
    if out_root is not None and out_root == Path() and not RunFolder(out_root).database.exists():
        refuse("--out-root: names the current folder: name one of the run's own")
    options = TrainOptions(
        task=task_file(task, config),
        overrides=cfg_options or (),
        out_root=out_root,
        run_id=run_id,
        fresh=fresh,
        traces=traces,
        replay=replay,
    )
    output = Output(as_json=as_json, quiet=quiet)
    with onlookers_for(output) as told:
        trained = answer(
            train_task(options, os.environ, told.sinks, told.watch), interrupted="run the same command to go on"
        )
    print_trained(trained, output)
    warn(trained.task.warnings)
    failure = trained.failure
    exit_for(None if failure is None else replace(failure, fields=named_as_settings(failure.fields)))


@app.command(name="eval")
def evaluate(
    *,
    task: TaskFile = None,
    config: ConfigFile = None,
    cfg_options: CfgOptions = None,
    split: Annotated[str, typer.Option("--split", metavar="SPLIT", help=f"One of {', '.join(SPLITS)}.")] = "test",
    skill: Annotated[
        Path | None, typer.Option("--skill", metavar="FILE", help="The skill to score.", show_default="the task's own")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Score a skill on a split, without training.

    Example: burnish eval examples/ticket-routing/task.yaml --skill runs/demo/best_skill.md --split test
    """
    if split not in SPLITS:
        refuse(f"--split: there is no split {shown(split)!r}: use {', '.join(SPLITS)}")
    output, path = Output(as_json=as_json, quiet=quiet), task_file(task, config)
    with watch_for(output) as watch:
        scored = evaluate_task(path, cfg_options or (), os.environ, split=split, skill=skill, watch=watch)
        result = answer(scored, interrupted="nothing of a score is kept: run the same command to begin anew")
    if result.is_ok:
        print_score(result.value, split, output)
    exit_for(result.failure)


@app.command()
def estimate(
    *, task: TaskFile = None, config: ConfigFile = None, cfg_options: CfgOptions = None, as_json: AsJson = False
) -> None:
    """Say what training a task will take, asking nobody.

    Example: burnish estimate examples/ticket-routing/task.yaml --cfg-options train.num_epochs=4
    """
    _estimate(task_file(task, config), cfg_options or (), as_json=as_json, with_prompts=False)


@audit_app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="RUN_FOLDER", help="The run folder.", show_default=False)],
) -> None:
    """Check a run's audit log against its chain and its anchor.

    Example: burnish audit verify runs/demo
    """
    with without_log():
        problem, records = answer(verify_audit(folder, os.environ))
    if problem is not None:
        refuse(f"{folder}: {problem}", ErrorKind.BUG)
    typer.echo(f"{folder}: {records} audit records, unbroken")


def _estimate(task: Path, overrides: Sequence[str], *, as_json: bool, with_prompts: bool) -> None:
    with without_log():
        estimated = answer(estimate_task(task, overrides, os.environ))
    print_estimate(estimated, as_json=as_json, with_prompts=with_prompts)
    warn(estimated.task.warnings)


set_examples_last(app)
