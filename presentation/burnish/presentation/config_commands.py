"""`burnish config`: a task's settings, and the references that are printed from code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from burnish.presentation.completion import complete_tasks
from burnish.presentation.exits import checked, refuse
from burnish.presentation.flat_flags import flags_page
from burnish.presentation.help_texts import command_reference, example
from burnish.presentation.settings.keys import KEYS, value_at
from burnish.presentation.settings.layers import OPTIONS
from burnish.presentation.settings.loading import load_task
from burnish.presentation.settings.mapping import canonical
from burnish.presentation.settings.yaml_text import write_value

TaskFile = Annotated[
    Path | None,
    typer.Argument(metavar="TASK.yaml", help="The task file.", show_default=False, autocompletion=complete_tasks),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="TASK.yaml", help="The task file, as an option.", show_default=False)
]
CfgOptions = Annotated[
    list[str] | None, typer.Option(OPTIONS, metavar="SECTION.KEY=VALUE …", help="Settings over the task file's.")
]

config_app = typer.Typer(
    help="Look at the configuration of a task, and at the references.",
    rich_markup_mode=None,
    epilog=example("burnish config show examples/ticket-routing/task.yaml"),
)


def task_file(task: Path | None, config: Path | None) -> Path:
    """The task file, given once, one way or the other; ends the command when it is not."""
    if task is not None and config is not None:
        refuse("the task file is given twice, as an argument and as --config: give it once")
    path = config if task is None else task
    if path is None:
        refuse("no task file is given: name one, such as examples/ticket-routing/task.yaml")
    return path


@config_app.command()
def show(*, task: TaskFile = None, config: ConfigFile = None, cfg_options: CfgOptions = None) -> None:
    """Print every setting of a task, and where its value came from.

    Example: burnish config show examples/ticket-routing/task.yaml --cfg-options train.seed=7
    """
    path = task_file(task, config)
    loaded = checked(lambda: load_task(path, cfg_options or ()))
    for key in KEYS:
        typer.echo(f"{key}: {write_value(canonical(value_at(loaded.settings, key)))}  # {loaded.sources[key]}")


@config_app.command()
def check(*, task: TaskFile = None, config: ConfigFile = None, cfg_options: CfgOptions = None) -> None:
    """Check a task's settings, and say so when they are right.

    Example: burnish config check examples/ticket-routing/task.yaml
    """
    path = task_file(task, config)
    checked(lambda: load_task(path, cfg_options or ()))
    typer.echo(f"{path}: settings are right")


@config_app.command(name="reference")
def print_reference() -> None:
    """Print the reference of all settings, in Markdown.

    Example: burnish config reference > docs/configuration.md
    """
    from burnish.presentation.settings.reference import reference  # noqa: PLC0415 - only this command needs it

    typer.echo(reference(), nl=False)


@config_app.command(name="failures")
def print_failures() -> None:
    """Print the reference of all failure codes, in Markdown.

    Example: burnish config failures > docs/failures.md
    """
    from burnish.presentation.failure_reference import failure_reference  # noqa: PLC0415 - only this command needs it

    typer.echo(failure_reference(), nl=False)


@config_app.command(name="flags")
def print_flags() -> None:
    """Print what became of SkillOpt's keys and flags, in Markdown.

    Example: burnish config flags > docs/skillopt-flags.md
    """
    typer.echo(flags_page(), nl=False)


@config_app.command(name="commands")
def print_commands(context: typer.Context) -> None:
    """Print the reference of all commands, in Markdown.

    Example: burnish config commands > docs/console.md
    """
    typer.echo(command_reference(context.find_root().command), nl=False)
