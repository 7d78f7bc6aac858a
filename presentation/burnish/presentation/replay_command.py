"""`burnish replay`: a run's answers again, under other settings or its own."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from burnish.domain.runs import StepReason, StepRecord
from burnish.presentation.exits import answer, without_log
from burnish.presentation.plain_table import DECISIONS, NOTHING, print_table, score_text
from burnish.presentation.redecision import Outcome, Redecision, StepPair, UnknownCall, redecide
from burnish.presentation.run_commands import known_folder
from burnish.presentation.settings.errors import listed
from burnish.presentation.settings.yaml_text import write_value

_HASH_DIGITS = 12

_HEADS = (
    *("", "step", "epoch"),
    *("recorded", "candidate", "against", "rate"),
    *("re-decided", "candidate", "against", "rate"),
)

_PLAIN_REASONS = frozenset({StepReason.ACCEPTED, StepReason.GATE})
"""Reasons that the decision itself tells."""


def replay(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The run folder.", show_default=False)],
    *,
    cfg_options: Annotated[
        list[str] | None,
        typer.Option("--cfg-options", metavar="SECTION.KEY=VALUE …", help="Settings over the run's own."),
    ] = None,
    task: Annotated[
        Path | None,
        typer.Option("--task", metavar="TASK.yaml", help="The task file, when the run or the task was moved."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, for machines.")] = False,
) -> None:
    """Decide a kept run again, from its answers alone: what other settings would have made of them.

    Nothing is asked, and the folder stays as it is. Without --cfg-options it checks that the run repeats itself.

    Example: burnish replay runs/demo --cfg-options evaluation.gate_mode=two_split
    """
    known_folder(folder)
    with without_log():
        redecision = answer(redecide(folder, cfg_options or (), os.environ, task_file=task))
    if as_json:
        typer.echo(json.dumps(_as_json(folder, redecision), ensure_ascii=False))
    else:
        _print(redecision)


def _print(redecision: Redecision) -> None:
    changes = ", ".join(
        f"{change.key} {write_value(change.recorded)} -> {write_value(change.now)}" for change in redecision.changes
    )
    typer.echo(f"run {redecision.run_id} again, with {changes or 'its own settings'}")
    if redecision.steps:
        typer.echo("")
        first = redecision.first_parting
        print_table(_HEADS, [_row(pair, mark=">" if pair is first else "") for pair in redecision.steps])
        typer.echo("")
    typer.echo(_verdict(redecision))
    if redecision.unknown is not None:
        for line in _missing(redecision.unknown, has_changes=bool(redecision.changes)):
            typer.echo(line)
    if redecision.code is not None:
        typer.echo(f"re-decided, the run fails: {redecision.code}")
    for name, outcome in (("recorded", redecision.recorded), ("re-decided", redecision.redecided)):
        if outcome is not None:
            typer.echo(f"{name + ':':<12}{_outcome(outcome)}")


def _row(pair: StepPair, *, mark: str) -> tuple[str, ...]:
    record = pair.known
    return (mark, str(record.step), str(record.epoch), *_decision(pair.recorded), *_decision(pair.redecided))


def _decision(record: StepRecord | None) -> tuple[str, ...]:
    if record is None:
        return (NOTHING,) * 4
    decision = DECISIONS[record.action]
    if record.reason not in _PLAIN_REASONS:
        decision = f"{decision}: {record.code or record.reason.value}"
    candidate = score_text(record.candidate_score)
    if record.candidate_score is None and record.ceiling is not None:
        candidate = f"≤ {record.ceiling:.4f}"  # stopped early
    rate = str(record.learning_rate) if record.learning_rate else NOTHING
    return decision, candidate, score_text(record.compared_with), rate


def _verdict(redecision: Redecision) -> str:
    """Where the decisions part, in one line."""
    again = sum(1 for pair in redecision.steps if pair.redecided is not None)
    both = sum(1 for pair in redecision.steps if pair.redecided is not None and pair.recorded is not None)
    first = redecision.first_parting
    if first is not None:
        return f"the decisions part at step {first.known.step} (marked >)"
    if redecision.recorded is None:
        return f"{_count(again)} decided; there are no recorded decisions to compare them with"
    if not both:
        return "nothing was decided again"
    more = f", and {_count(again - both)} more" if again > both else ""
    return f"the same decisions, {_count(both)}{more}"


def _missing(unknown: UnknownCall, *, has_changes: bool) -> list[str]:
    """How far the answers went."""
    place = unknown.place
    at = f"step {place.step} (epoch {place.epoch}), stage {place.stage}" if place.step else f"stage {place.stage}"
    about = "; ".join(text for text in unknown.about if "\n" not in text)
    lines = [f"no answer is kept to a call of {at}: {about}"]
    lines += [text for text in unknown.about if "\n" in text]  # a comparison of texts
    if unknown.is_first and unknown.settings:
        lines.append(f"that is the first call: it is another one because of {listed(unknown.settings, 'and')}")
    elif unknown.is_first and not has_changes:
        lines.append("that is the first call, and the settings are the run's own: the task's files have changed since")
    return lines


def _outcome(outcome: Outcome) -> str:
    best = f"step {outcome.best_step}" if outcome.best_step else "the initial skill"
    return (
        f"{outcome.ended or 'not ended'}, selected {score_text(outcome.selected_score)} ({outcome.metric}) of {best}, "
        f"skill {outcome.skill_hash[:_HASH_DIGITS]}"
    )


def _count(records: int) -> str:
    return f"{records} record{'' if records == 1 else 's'}"


def _as_json(folder: Path, redecision: Redecision) -> dict[str, object]:
    first = redecision.first_parting
    return {
        "folder": str(folder),
        "run_id": redecision.run_id,
        "changes": [asdict(change) for change in redecision.changes],
        "parts_at": None if first is None else first.known.step,
        "steps": [asdict(pair) for pair in redecision.steps],
        "unknown": None if redecision.unknown is None else asdict(redecision.unknown),
        "code": redecision.code,
        "recorded": None if redecision.recorded is None else asdict(redecision.recorded),
        "redecided": None if redecision.redecided is None else asdict(redecision.redecided),
    }
