"""What a terminal shows while a command works: a table of the run's steps that grows, and bars."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from burnish.application.events import Applied, Event, PassScored, Reflected, RunStarted, Stage, StepFinished
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason, StepRecord

_REDRAWN_A_SECOND = 4
_COLOURS = {
    GateAction.ACCEPT_NEW_BEST: "bold green",
    GateAction.ACCEPT: "green",
    GateAction.REJECT: "red",
    None: "yellow",
}


class StepTable:
    """An event sink and a `RolloutWatch`: one row a step, what is going on now, and a bar of the steps that are done."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._bar = _bar("steps")
        self._task = self._bar.add_task("", total=None, rollouts=0)
        self._rollouts = 0
        self._rows: list[tuple[Text | str, ...]] = []
        self._title = ""
        self._train = ""

    async def emit(self, event: Event) -> None:
        """Bring the table up to date."""
        match event:
            case RunStarted():
                self._bar.update(self._task, total=event.total_steps)
                self._title = f"run {event.run_id}: {event.total_steps} steps, seed {event.seed}"
                self._show("baseline and first rollout")
            case PassScored(stage=Stage.ROLLOUT):
                self._train = f"{event.score.hard:.2f}"
                self._show(f"step {event.step}: the optimizer reads {event.score.scored} rollouts")
            case Reflected():
                self._show(f"step {event.step}: {event.proposed} edits proposed")
            case Applied():
                self._show(f"step {event.step}: the candidate is tried on validation items")
            case StepFinished():
                self._rows.append(_row(event.record, self._train))
                self._bar.update(self._task, completed=event.step)
                self._show(f"step {event.step} done")
            case _:
                pass

    def _show(self, now: str) -> None:
        table = Table(title=self._title, caption=now, title_justify="left", caption_justify="left")
        for column in ("epoch", "step", "train", "edits", "candidate", "against", "decision"):
            table.add_column(column, justify="left" if column == "decision" else "right")
        for row in self._rows:
            table.add_row(*row)
        self._live.update(Group(table, self._bar), refresh=True)

    def expect(self, total: int) -> None:
        """Nobody knows how many rollouts a run takes: its steps are what is counted."""

    def count(self, rollouts: int) -> None:
        """Tell how many were made beside the bar, when it is drawn next."""
        self._rollouts += rollouts
        self._bar.update(self._task, rollouts=self._rollouts)


class RolloutBar:
    """A `RolloutWatch`: a bar of the rollouts that are done."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, rollouts=0)

    def expect(self, total: int) -> None:
        """The bar's length."""
        self._bar.update(self._task, total=total)

    def count(self, rollouts: int) -> None:
        """Some more."""
        self._bar.advance(self._task, rollouts)


@contextmanager
def live_table() -> Generator[StepTable]:
    """A table on standard output while the block runs; it stays when the block ends."""
    with Live(console=Console(), refresh_per_second=_REDRAWN_A_SECOND) as live:
        yield StepTable(live)


@contextmanager
def live_bar() -> Generator[RolloutBar]:
    """A bar on standard error while the block runs; nothing of it stays."""
    with _bar("items", Console(stderr=True)) as bar:
        yield RolloutBar(bar)


def _bar(what: str, console: Console | None = None) -> Progress:
    counted = TextColumn("{task.fields[rollouts]} rollouts asked") if what == "steps" else TextColumn("")
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeElapsedColumn(), TimeRemainingColumn(), counted)
    return Progress(*columns, console=console, transient=True, refresh_per_second=_REDRAWN_A_SECOND)


def _row(record: StepRecord, train: str) -> tuple[Text | str, ...]:
    forced = record.reason is StepReason.FORCED or record.is_of_notes
    slow = "slow" if not record.learning_rate and record.action is not None else str(record.step)
    return (
        str(record.epoch),
        "notes" if record.is_of_notes else slow,
        "" if forced else train,
        f"+{record.notes_added}" if record.is_of_notes else "" if forced else f"{record.applied}/{record.proposed}",
        _score(record.candidate_score) if record.ceiling is None else f"<= {record.ceiling:.3f}",
        _score(record.compared_with),
        Text(
            record.reason.value if record.action is None else f"{record.action.value} ({record.reason.value})",
            style=_COLOURS[record.action],
        ),
    )


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"
