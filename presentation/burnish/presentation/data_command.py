"""`burnish data`: what a task's items are, and what is odd about them, asking nobody."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from burnish.domain.rollouts import SPLITS
from burnish.infrastructure.tasks.data_report import answers_in_questions, said, twins
from burnish.infrastructure.tasks.refusals import shown
from burnish.infrastructure.tasks.splits import Splits
from burnish.presentation.exits import checked
from burnish.presentation.settings.loading import LoadedTask, load_task
from burnish.presentation.task import checked_scorer, read_splits

MAX_TOLD = 20
"""Items or pairs that are named; of more, only how many there are is said."""

DEFAULT_SHARE = 0.9


def show_data(
    task: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file.", show_default=False)],
    *,
    cfg_options: Annotated[
        list[str] | None,
        typer.Option("--cfg-options", metavar="SECTION.KEY=VALUE …", help="Settings over the task file's."),
    ] = None,
    share: Annotated[
        float, typer.Option("--share", min=0.1, max=1.0, help="Near duplicates share this much of their words.")
    ] = DEFAULT_SHARE,
) -> None:
    """Check a task's items: their number, answers that stand in questions, near duplicates across splits.

    Example: burnish data examples/ticket-routing/task.yaml --share 0.8
    """
    loaded = checked(lambda: load_task(task, cfg_options or ()))
    splits = checked(lambda: _read(loaded))
    for split in SPLITS:
        items = splits.named(split)
        kinds = Counter(item.task_type for item in items if item.task_type)
        told = ", ".join(f"{shown(kind)} {count}" for kind, count in sorted(kinds.items()))
        typer.echo(f"{split}: {len(items)} items{told and f' ({told})'}")
    _tell(
        "items with their answer in their own question",
        [f"{shown(item)} of {split}" for split, item in answers_in_questions(splits)],
    )
    _tell(f"near duplicates across splits ({share:.0%} or more)", [said(pair) for pair in twins(splits, share)])


def _read(loaded: LoadedTask) -> Splits:
    splits = read_splits(loaded.settings, loaded.base_dir)
    checked_scorer(loaded.settings, loaded.base_dir, splits)
    return splits


def _tell(what: str, lines: list[str]) -> None:
    typer.echo(f"{what}: {len(lines) or 'none'}")
    for line in lines[:MAX_TOLD]:
        typer.echo(f"  {line}")
    if len(lines) > MAX_TOLD:
        typer.echo(f"  and {len(lines) - MAX_TOLD} more")
