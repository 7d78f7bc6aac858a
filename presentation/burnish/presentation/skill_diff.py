"""`burnish diff`: what two skills have in common, and what not."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from burnish.infrastructure.tasks.refusals import DataError, shown_path
from burnish.presentation.completion import complete_runs
from burnish.presentation.exits import answer, checked, refuse, without_log
from burnish.presentation.kept_skills import SkillPoint, kept_skills, point_of, skill_file_text
from burnish.presentation.run_commands import known_folder
from burnish.presentation.terminal import is_coloured, printable

_COLOURS = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}
_NO_NEWLINE = "\\ No newline at end of file"


def diff(
    before: Annotated[
        str,
        typer.Argument(
            metavar="A", help="RUN@STEP, RUN@initial, RUN@best, RUN@final, or a file.", autocompletion=complete_runs
        ),
    ],
    after: Annotated[
        str | None,
        typer.Argument(
            metavar="B", help="The same; left out: from the start of run A to A.", autocompletion=complete_runs
        ),
    ] = None,
) -> None:
    """Compare two skills line by line: of two steps, of two runs, or a file's. A run alone is its best skill.

    Example: burnish diff runs/demo@3 runs/demo@final
    """
    first, second = checked(lambda: _points(before, after))
    with without_log():
        old, new = checked(lambda: _text(first)), checked(lambda: _text(second))
    lines = list(unified(old, new, _label(first), _label(second)))
    if not lines:
        typer.echo(f"{_label(first)} and {_label(second)} are the same text")
    coloured = is_coloured(os.environ)
    for line in lines:
        colour = _COLOURS.get(line[:1]) if coloured else None
        is_head = line.startswith(("--- ", "+++ "))
        typer.echo(typer.style(printable(line), fg=colour, bold=is_head or None) if colour else printable(line))


def unified(old: str, new: str, old_name: str, new_name: str) -> Iterator[str]:
    """The lines of a unified diff, without line ends; a last line that has none is marked."""
    for line in difflib.unified_diff(_lines(old), _lines(new), old_name, new_name, n=3):
        text, newline, _ = line.partition("\n")
        yield text
        if not newline and not line.startswith(("---", "+++", "@@")):
            yield _NO_NEWLINE


def _lines(text: str) -> list[str]:
    """Split at line feeds alone: other characters that end lines elsewhere are part of the text."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:] * bool(parts[-1])


def _points(before: str, after: str | None) -> tuple[SkillPoint | Path, SkillPoint | Path]:
    first = _point(before)
    if after is not None:
        return first, _point(after)
    if isinstance(first, Path):
        raise DataError(f"{shown_path(first)}: is a file, and there is nothing to compare it with: name a second skill")
    return SkillPoint(folder=first.folder, place="initial"), first


def _point(text: str) -> SkillPoint | Path:
    return point_of(text) or Path(text)


def _label(point: SkillPoint | Path) -> str:
    return shown_path(point if isinstance(point, Path) else Path(point.label))


def _text(point: SkillPoint | Path) -> str:
    if isinstance(point, Path):
        if "@" in point.name and not point.exists():
            refuse(f"{shown_path(point)}: there is neither such a run folder nor such a file: see burnish runs list")
        return skill_file_text(point)
    known_folder(point.folder)
    return answer(kept_skills(point.folder, os.environ)).text_at(point.place)
