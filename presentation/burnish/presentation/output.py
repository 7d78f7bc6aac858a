"""What commands print: plain lines, a live table on a terminal, or JSON lines for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import typer
from pydantic_core import to_json

from burnish.application.detectors import RunWarning
from burnish.application.events import Event
from burnish.application.ports import EventSink
from burnish.application.prices import cost_of
from burnish.application.result import Failure
from burnish.domain.rollouts import BatchScore
from burnish.domain.runs import ScoresOnTest, UsageTotal
from burnish.presentation.summary import summary_of
from burnish.presentation.terminal import is_terminal
from burnish.presentation.trail import Trail
from burnish.presentation.training import Trained
from burnish.presentation.watched_runner import RolloutWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """How a command talks; `quiet`: of what it does nothing, of what came of it only what a script needs."""

    as_json: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Onlookers:
    """Who is told of a run while it goes on."""

    sinks: Sequence[EventSink] = ()
    watch: RolloutWatch | None = None


class JsonLines:
    """An event sink that writes every event as one JSON object a line, without its details."""

    async def emit(self, event: Event) -> None:
        """Write it."""
        typer.echo(to_json({"event": type(event).__name__, **event.summary()}).decode())


@contextmanager
def onlookers_for(output: Output) -> Generator[Onlookers]:
    """Those who show a run while it goes on: on a terminal a table and a bar, else lines."""
    if output.as_json:
        yield Onlookers(sinks=(JsonLines(),))
    elif output.quiet:
        yield Onlookers()
    elif is_terminal():
        from burnish.presentation.live_table import live_table  # noqa: PLC0415 - rich is for terminals only

        with live_table() as table:
            yield Onlookers(sinks=(table,), watch=table)
    else:
        yield Onlookers(sinks=(Trail(typer.echo),))


@contextmanager
def watch_for(output: Output) -> Generator[RolloutWatch | None]:
    """Who shows how far a pass over items has come: a bar on a terminal, else nobody."""
    if output.quiet or output.as_json or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from burnish.presentation.live_table import live_bar  # noqa: PLC0415 - rich is for terminals only

    with live_bar() as bar:
        yield bar


def print_trained(trained: Trained, output: Output) -> None:
    """Say how a run ended, and where its folder is."""
    run = trained.run
    if run is None:
        return
    if output.as_json:
        typer.echo(json.dumps({"event": "Summary", "folder": str(trained.folder), **summary_of(run, trained.task)}))
        return
    if output.quiet:
        typer.echo(str(trained.folder / "best_skill.md"))
        return
    typer.echo("")
    if trained.task.is_simulated:
        typer.echo("simulated models: these scores say nothing about any real model")
    cap = f" ({run.cap}: raise it, and the same command goes on)" if run.cap is not None else ""
    typer.echo(f"stopped: {run.stop_reason}{cap}, {run.steps_executed} steps, seed {run.seed}")
    typer.echo(f"has_accepted_any: {str(run.has_accepted_any).lower()}")
    typer.echo(
        f"validation: {_number(run.baseline_score)} at the start, {_number(run.selected_score)} selected"
        + (f" (step {run.best_step})" if run.has_accepted_any else " (nothing was accepted)")
    )
    if run.test is not None:
        typer.echo(f"test: {_test(run.test)}")
    for role in sorted({total.role for total in run.usage}):
        typer.echo(f"{role}: {_tokens([total for total in run.usage if total.role == role])}")
    if run.lost is not None:
        typer.echo(f"lost: {run.lost.calls} calls of earlier attempts that were never answered, counted at their worst")
    if (cost := cost_of(run.usage, trained.task.prices)) is not None and cost > 0:
        typer.echo(f"cost: ${cost:.4f}")
    for warning in run.warnings:
        typer.echo(f"warning: {warning}: {RunWarning(warning).meaning}")
    typer.echo(f"best skill: {trained.folder / 'best_skill.md'}")


def print_score(score: BatchScore, split: str, output: Output) -> None:
    """Print one score."""
    if output.as_json:
        typer.echo(json.dumps({"split": split, **asdict(score)}))
        return
    missing = f", {score.missing} without an answer" if score.missing else ""
    typer.echo(f"{split}: hard {score.hard:.4f}, soft {score.soft:.4f} over {score.scored} items{missing}")


def failure_line(failure: Failure) -> str:
    """A failure in one line: code, meaning, what it is about, remedy; a comparison of texts goes below it."""
    about = ", ".join(field for field in failure.fields if "\n" not in field)
    below = "".join(f"\n{field}" for field in failure.fields if "\n" in field)
    told = f" ({about})" if about else ""
    return f"burnish: {failure.code.value}: {failure.code.meaning}{told}; {failure.code.remedy}{below}"


def _tokens(totals: Sequence[UsageTotal]) -> str:
    calls, prompt = sum(total.calls for total in totals), sum(total.prompt_tokens for total in totals)
    completion = sum(total.completion_tokens for total in totals)
    untold = sum(total.is_estimated for total in totals)
    estimated = "" if not untold else ", estimated" if untold == len(totals) else ", partly estimated"
    return f"{calls} calls, {prompt} prompt and {completion} completion tokens{estimated}"


def _number(score: float | None) -> str:
    return "not measured" if score is None else f"{score:.4f}"


def _test(test: ScoresOnTest) -> str:
    return f"{test.initial.hard:.4f} at the start, {test.best.hard:.4f} best, {test.final.hard:.4f} final (hard)"
