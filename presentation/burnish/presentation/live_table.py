"""A table of the run's steps that grows on a terminal."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from burnish.application.events import Applied, Event, PassScored, Reflected, RunStarted, Stage, StepFinished
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason, StepRecord

_COLOURS = {
    GateAction.ACCEPT_NEW_BEST: "bold green",
    GateAction.ACCEPT: "green",
    GateAction.REJECT: "red",
    None: "yellow",
}


class StepTable:
    """An event sink: one row a step, and a line that tells what is going on now."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._rows: list[tuple[Text | str, ...]] = []
        self._title = ""
        self._train = ""

    async def emit(self, event: Event) -> None:
        """Bring the table up to date."""
        match event:
            case RunStarted():
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
                self._show(f"step {event.step} done")
            case _:
                pass

    def _show(self, now: str) -> None:
        table = Table(title=self._title, caption=now, title_justify="left", caption_justify="left")
        for column in ("epoch", "step", "train", "edits", "candidate", "against", "decision"):
            table.add_column(column, justify="left" if column == "decision" else "right")
        for row in self._rows:
            table.add_row(*row)
        self._live.update(table, refresh=True)


@contextmanager
def live_table() -> Generator[StepTable]:
    """A table on standard output while the block runs; it stays when the block ends."""
    with Live(console=Console(), auto_refresh=False) as live:
        yield StepTable(live)


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
