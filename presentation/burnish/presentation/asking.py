"""Asking the person at the terminal; Ctrl-C and a closed input end the command, and nothing is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import typer

from burnish.presentation.exits import INTERRUPTED

T = TypeVar("T")


def confirmed(question: str) -> bool:
    """Whether they say yes; no is what an empty answer means."""
    return _asked(lambda: typer.confirm(question))


def answered(question: str, *, default: str = "", fits: Callable[[str], str | None] = lambda _: None) -> str:
    """What they write; `fits` returns what is wrong with it, which is told before the question is asked again."""
    while True:
        text = _asked(lambda: str(typer.prompt(question, default=default, show_default=bool(default)))).strip()
        complaint = fits(text)
        if complaint is None:
            return text
        typer.echo(f"  {complaint}")


def _asked(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except typer.Abort:
        typer.echo("\nburnish: interrupted; nothing was done", err=True)
        raise typer.Exit(INTERRUPTED) from None
