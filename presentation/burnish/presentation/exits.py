"""How commands end: one line a problem on standard error, and an exit code by its kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import typer

from burnish.application.ports import PortError
from burnish.application.result import ErrorCode, ErrorKind, Failure
from burnish.infrastructure.tasks.refusals import DataError
from burnish.presentation.interruption import TerminatedError, run_until_told_to_stop
from burnish.presentation.output import failure_line
from burnish.presentation.settings.errors import SettingsError

T = TypeVar("T")

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

TERMINATED = 143
"""Exit code after SIGTERM."""


def answer(work: Coroutine[Any, Any, T], *, interrupted: str = "") -> T:
    """Run to the end; bad input, Ctrl-C and SIGTERM end the command with their exit codes."""
    advice = f"; {interrupted}" if interrupted else ""
    try:
        return checked(lambda: run_until_told_to_stop(work))
    except KeyboardInterrupt:
        typer.echo(f"burnish: interrupted{advice}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except TerminatedError:
        typer.echo(f"burnish: terminated{advice}", err=True)
        raise typer.Exit(TERMINATED) from None


def checked(work: Callable[[], T]) -> T:
    """What the work returns; bad input and failures with a code end the command."""
    try:
        return work()
    except SettingsError as error:
        for line in error.lines:
            typer.echo(f"burnish: {line}", err=True)
    except DataError as error:
        typer.echo(f"burnish: {error}", err=True)
    except PortError as error:
        exit_for(Failure(error.code, error.fields))
    raise typer.Exit(ErrorCode.INVALID_REQUEST.kind.exit_code)


def refuse(line: str, kind: ErrorKind = ErrorKind.INVALID) -> NoReturn:
    """End the command with a line that says what is wrong."""
    typer.echo(f"burnish: {line}", err=True)
    raise typer.Exit(kind.exit_code)


def exit_for(failure: Failure | None) -> None:
    """End the command with a failure, if there is one."""
    if failure is not None:
        typer.echo(failure_line(failure), err=True)
        raise typer.Exit(failure.code.kind.exit_code)


def warn(lines: Sequence[str]) -> None:
    """Say what may be wrong, and go on."""
    for line in lines:
        typer.echo(f"burnish: warning: {line}", err=True)


@contextmanager
def without_log() -> Generator[None]:
    """Keep burnish's log off the terminal, for commands that have no log file: the answer is one line."""
    logger, handler = logging.getLogger("burnish"), logging.NullHandler()
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
