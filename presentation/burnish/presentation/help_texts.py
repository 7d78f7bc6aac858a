"""The help of every command: what it does first, an example last; and the page that holds all of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from burnish.presentation.failure_reference import EXIT_CODES

EXAMPLE = "Example: "
_UNBROKEN = "\b\n"
"""Keeps the help's formatter from breaking the lines of a paragraph."""

_HEAD = """\
# The console

`burnish COMMAND --help` tells what is told here, with an example at its end. A task is a YAML file
([configuration.md](configuration.md)), a run is a folder.

**What is printed.** Results go to standard output, what is wrong to standard error, in one line a problem. While a run goes on, a
terminal shows a table of the steps and a bar; elsewhere each stage of a step is a line; `--json` prints an event a line, and a `Summary`
at the end; `--quiet` prints what came of it and nothing else. Colours are for terminals only, and not for them when `NO_COLOR` is set.

**Stopping.** Ctrl-C and SIGTERM stop a command in good order: what was answered is kept, and the command says how to go on. A run goes on
with the command that began it. At a question, Ctrl-C and the end of the input mean that nothing is done.

**Completion.** `burnish --install-completion` sets Tab up for the shell you are in (bash, zsh, fish or PowerShell); open a new one
afterwards. It completes commands and options, task files (`.yaml` files up to three folders deep) and run folders.
`burnish --show-completion` prints the script instead.

**SkillOpt's flags** (`--num_epochs 4`) are taken by every command that reads a task: [skillopt-flags.md](skillopt-flags.md).

**A skill's way.** `burnish init` makes a task folder, `doctor` looks whether all is there, `estimate` says what it will take, `train`
trains; `runs show` tells the run's steps, `show` the skill of one of them and its edits, `diff` what lies between two, and `adopt` puts
the best one in the place of the file it began with.

"""
_TAIL = "This page is printed by `burnish config commands`.\n"


def set_examples_last(app: typer.Typer) -> None:
    """Move the example in each command's docstring to the end of its help."""
    for command in app.registered_commands:
        if command.callback is None:
            continue
        text, found, example = (inspect.getdoc(command.callback) or "").partition(f"\n\n{EXAMPLE}")
        if found:
            command.help, command.epilog = text, f"{_UNBROKEN}{EXAMPLE}{example}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            set_examples_last(group.typer_instance)


def example(text: str) -> str:
    """The end of a help text, for groups, which have no docstring."""
    return f"{_UNBROKEN}{EXAMPLE}{text}"


def commands_of(root: object) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Every command and group below the console's group, with the words that call it, `burnish` first."""
    assert isinstance(root, TyperGroup), "an app with several commands is a group"
    yield from _below("burnish", root)


def command_reference(root: object) -> str:
    """The page about all commands of the console's group, in Markdown."""
    lines = [_HEAD, *_exit_codes(), ""]
    for words, command in commands_of(root):
        if isinstance(command, TyperGroup) and words != "burnish":
            continue
        lines += [f"## {words}", "", *_told(command), ""]
    return "\n".join([*lines, _TAIL])


def _exit_codes() -> list[str]:
    return ["| exit status | |", "|---|---|", *(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES)]


def _below(words: str, command: TyperCommand | TyperGroup) -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    yield words, command
    if isinstance(command, TyperGroup):
        for name, inner in sorted(command.commands.items()):
            assert isinstance(inner, (TyperCommand, TyperGroup)), "typer makes every command"
            yield from _below(f"{words} {name}", inner)


def _told(command: TyperCommand | TyperGroup) -> Iterator[str]:
    yield inspect.cleandoc(command.help or "")
    yield ""
    rows = [row for parameter in command.params if (row := _row(parameter)) is not None]
    if rows:
        yield from ("| | |", "|---|---|", *rows, "")
    if command.epilog:
        yield from ("```", command.epilog.removeprefix(_UNBROKEN).removeprefix(EXAMPLE), "```")


def _row(parameter: object) -> str | None:
    """A parameter's names and what it is for; None for those every command has, and those of the shell's completion."""
    if isinstance(parameter, TyperArgument):
        name = f"`{parameter.metavar or parameter.name}`"
    elif isinstance(parameter, TyperOption):
        value = "" if parameter.is_flag else f" {parameter.metavar or ''}"
        name = ", ".join(f"`{option}{value}`" for option in parameter.opts)
    else:
        return None
    shown = f" (default: {parameter.show_default})" if isinstance(parameter.show_default, str) else ""
    told = (parameter.help or "").replace("|", "\\|")
    return f"| {name} | {told}{shown} |"
