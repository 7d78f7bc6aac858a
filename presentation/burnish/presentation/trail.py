"""The trail of a run as plain lines: what every stage of every step did, and why."""

from __future__ import annotations

from collections.abc import Callable

from burnish.application.events import (
    Aggregated,
    Applied,
    Event,
    MemoryUpdated,
    PassScored,
    Reflected,
    RunStarted,
    Selected,
    SlowUpdated,
    Stage,
    StepFinished,
)
from burnish.domain.edits import Edit, EditOp
from burnish.domain.epochs import SlowUpdateAnalysis
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason, StepRecord

_LONGEST_QUOTE = 60

_WHY_NOT_GATED = {
    StepReason.NO_PATCHES: "the optimizer proposed no edits",
    StepReason.NO_EDITS: "selection left no edit",
    StepReason.NO_CHANGE: "the edits leave the text as it was",
    StepReason.TOO_LONG: "the candidate is longer than a skill may be",
    StepReason.OPTIMIZER_FAILED: "the optimizer failed",
    StepReason.INCONCLUSIVE: "too many items without an answer: no decision",
}


class Trail:
    """An event sink that writes lines; skips events that a resumed run only replays."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._at = (0, 0)

    async def emit(self, event: Event) -> None:
        """Write what there is to say about the event."""
        if event.replayed:
            return
        if event.step and (event.epoch, event.step) != self._at and not _is_baseline(event):
            self._at = (event.epoch, event.step)
            self._write("")
            self._write(f"epoch {event.epoch} step {event.step}")
        for line in self._lines(event):
            self._write(line)

    def _lines(self, event: Event) -> list[str]:
        match event:
            case RunStarted():
                return [f"run {event.run_id}: skill {event.skill_id}, {event.total_steps} steps, seed {event.seed}"]
            case PassScored(stage=Stage.GATE | Stage.NOTES):
                return []  # the decision tells its score
            case PassScored():
                return [_scored(event)]
            case Reflected(code=None):
                noted = f", {_notes(len(event.notes))}" if event.notes else ""
                return [_line("reflect", _edits(event.proposed, "proposed") + noted)]
            case Reflected():
                return [_line("reflect", f"failed: {event.code}")]
            case Aggregated():
                return [_line("aggregate", _edits(event.edits, "after merging equal ones"))]
            case Selected():
                return [
                    _line("select", f"{_edits(len(event.edits), 'kept')}, at most {event.learning_rate} in this step")
                ]
            case Applied():
                return applied_lines(event)
            case StepFinished(record=record) if record.is_of_notes:
                return [_line("notes", _noted(record))]
            case StepFinished():
                return [_line("gate" if event.record.learning_rate else "re-score", _decided(event.record))]
            case SlowUpdated(analysis=SlowUpdateAnalysis() as analysis):
                return [_line("slow update", _compared(analysis))]
            case SlowUpdated():
                return [_line("slow update", f"failed: {event.code}")]
            case MemoryUpdated(code=None):
                return [_line("memory", f"{event.characters} characters for the optimizer's next epoch")]
            case MemoryUpdated():
                return [_line("memory", f"failed: {event.code}; the old memory stays")]
            case _:
                return []


def _scored(event: PassScored) -> str:
    score = event.score
    counted = f"hard {score.hard:.2f}, soft {score.soft:.2f} over {score.scored} items"
    if score.missing:
        counted += f", {score.missing} without an answer"
    name = {Stage.SLOW_UPDATE: "slow update", Stage.PROMOTE_FINAL: "promotion"}.get(event.stage, event.stage.value)
    return _line(name, f"{event.skill} skill: {counted}" if event.skill else counted)


def _decided(record: StepRecord) -> str:
    if (why := _WHY_NOT_GATED.get(record.reason)) is not None:
        return f"not asked: {why}" + (f" ({record.code})" if record.code else "")
    measured = "not measured" if record.candidate_score is None else f"{record.candidate_score:.2f}"
    if record.ceiling is not None:
        measured = f"stopped early, at best {record.ceiling:.2f}"
    against = "" if record.compared_with is None else f" against {record.compared_with:.2f}"
    best = record.action is GateAction.ACCEPT_NEW_BEST
    if record.reason in {StepReason.FORCED, StepReason.NOTES}:
        decision = f"forced in, {'new best' if best else 'best stays'}"
    else:
        decision = "rejected" if record.action is GateAction.REJECT else f"accepted{', new best' if best else ''}"
    return f"{decision}: candidate {measured}{against}"


def _noted(record: StepRecord) -> str:
    saved = f", {record.notes_consolidated} saved by consolidation" if record.notes_consolidated else ""
    decision = _decided(record).replace("not asked", "left out")
    return f"{record.notes_added} new, {record.notes_total} in all{saved}; {decision}"


def _compared(analysis: SlowUpdateAnalysis) -> str:
    return (
        f"+{analysis.improved} improved, -{analysis.regressed} regressed, {analysis.persistent_fail} persistent failures, "
        f"{analysis.stable_success} stable successes"
    )


def _is_baseline(event: Event) -> bool:
    return isinstance(event, PassScored) and event.stage is Stage.BASELINE


def _line(stage: str, text: str) -> str:
    return f"  {stage:<12}{text}"


def _edits(count: int, what: str) -> str:
    return f"{count} edit{'' if count == 1 else 's'} {what}"


def _notes(count: int) -> str:
    return f"{count} note{'' if count == 1 else 's'}"


def applied_lines(event: Applied) -> list[str]:
    """What became of each edit: how many were applied, then one a line."""
    lines = [_line("apply", _edits(len(event.applied), "applied"))]
    lines += [_line("", f"+ {describe_edit(edit)}") for edit in event.applied]
    lines += [_line("", f"! {describe_edit(failed.edit)}: {failed.reason}") for failed in event.failed]
    return lines


def describe_edit(edit: Edit) -> str:
    """An edit in one line, long texts cut."""
    if edit.op is EditOp.APPEND:
        return f"append {_quote(edit.content)}"
    if edit.op is EditOp.DELETE:
        return f"delete {_quote(edit.target)}"
    if edit.op is EditOp.REWRITE:
        return f"rewrite the whole skill, {len(edit.content)} characters"
    if edit.op is EditOp.SUGGEST:
        return f"suggest {_quote(edit.target)}: {_quote(edit.content)}"
    word = "after" if edit.op is EditOp.INSERT_AFTER else "replace"
    return f"{word} {_quote(edit.target)}: {_quote(edit.content)}"


def _quote(text: str) -> str:
    flat = " ".join(text.split())
    return f'"{flat}"' if len(flat) <= _LONGEST_QUOTE else f'"{flat[: _LONGEST_QUOTE - 1]}…"'
