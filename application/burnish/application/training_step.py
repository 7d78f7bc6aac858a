"""One step of training: from the rollouts of the current skill to the next state, with its record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypedDict

from burnish.application.candidate import NO_ANSWERS, CandidatePasses, Verdict, is_inconclusive, judge_candidate
from burnish.application.choosing import choose_edits
from burnish.application.events import Aggregated, Applied, Reflected, Selected, Stage
from burnish.application.mediator import Publisher
from burnish.application.merging import merge_patches
from burnish.application.noting import write_notes
from burnish.application.optimizer import Optimizer, StepNotes
from burnish.application.passes import Pass
from burnish.application.proposing import Proposals, propose_edits
from burnish.application.revising import Revision, revise
from burnish.application.telemetry import StageTelemetry
from burnish.application.telling import pass_scored
from burnish.application.training_state import TrainingState
from burnish.domain.edits import Patch
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason
from burnish.domain.step_memory import TriedStep

MOST_TRIED = 8
"""Steps of an epoch, the newest, that are remembered as tried in vain: what is shown must not grow without end."""

Judge = Callable[[TrainingState, str, Pass, CandidatePasses], Awaitable[Verdict]]
"""Scores a candidate and decides about it: state, candidate, the step's rollouts, how to try a skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPorts:
    """What a step needs after its rollout."""

    optimizer: Optimizer
    passes: CandidatePasses
    publisher: Publisher
    telemetry: StageTelemetry
    judge: Judge = field(default=judge_candidate)


async def training_step(state: TrainingState, rollouts: Pass, ports: StepPorts) -> TrainingState:
    """Stages 2 to 6 of a step, and then its notes: one more record of the step, or two. Raises as `decided_step`."""
    return await noted_step(await decided_step(state, rollouts, ports), ports)


async def noted_step(state: TrainingState, ports: StepPorts) -> TrainingState:
    """The state with a decided step's notes in the skill. Raises as `decided_step`."""
    return await write_notes(state, ports.optimizer, ports.passes, publisher=ports.publisher, telemetry=ports.telemetry)


async def decided_step(state: TrainingState, rollouts: Pass, ports: StepPorts) -> TrainingState:
    """Stages 2 to 6 of a step; what it noted waits in the state's `lapses`.

    Raises NotConfiguredError, or PortError for a runner that breaks its contract and for a call that was not made or not
    kept; everything else is a recorded reject.
    """
    config, tell, telemetry = state.config, ports.publisher.publish, ports.telemetry
    if is_inconclusive(rollouts, config):
        return _decided(state, NO_ANSWERS)
    at = _At(run_id=state.run_id, step=state.step, epoch=state.epoch)
    notes = StepNotes()
    # 2 reflect
    with telemetry.stage(Stage.REFLECT):
        proposals = await propose_edits(state, rollouts, ports.optimizer)
    await tell(
        Reflected(
            **at,
            proposed=proposals.edits,
            code=proposals.code,
            notes=proposals.notes,
            patches=proposals.patches,
        )
    )
    # 3 aggregate
    with telemetry.stage(Stage.AGGREGATE):
        merged = await merge_patches(state, proposals, ports.optimizer, notes)
    await tell(Aggregated(**at, edits=len(merged.edits), patch=merged))
    # 4 select
    with telemetry.stage(Stage.SELECT):
        chosen = await choose_edits(state, merged, rollouts.score, ports.optimizer, notes)
    await tell(
        Selected(**at, learning_rate=chosen.learning_rate, edits=chosen.patch.edits, reasoning=chosen.patch.reasoning)
    )
    # 5 apply
    with telemetry.stage(Stage.APPLY):
        revision = await revise(state, chosen.patch, ports.optimizer, notes)
    await tell(Applied(**at, applied=revision.applied, failed=revision.failed, candidate=revision.skill))
    # 6 gate
    with telemetry.stage(Stage.GATE):
        code = proposals.code or notes.code
        reason = _why_no_candidate(state, code, proposals, chosen.patch, revision)
        if reason is None:
            verdict = await ports.judge(state, revision.skill, rollouts, ports.passes)
            await tell(pass_scored(state, Stage.GATE, verdict.tried, text=revision.skill))
        else:
            verdict = Verdict(action=GateAction.REJECT, reason=reason, code=code)
    counts = _Counts(
        learning_rate=chosen.learning_rate,
        proposed=proposals.edits,
        selected=len(chosen.patch.edits),
        applied=len(revision.applied),
        failed=len(revision.failed),
        analysts=proposals.asked,
        analysts_failed=proposals.failed,
        merged=len(merged.edits),
        fallbacks=tuple(dict.fromkeys(notes.fallbacks)),
        rate_reasoning=chosen.reasoning,
        lapses=len(proposals.notes),
    )
    decided = _decided(state, verdict, counts, _tried(state, verdict, revision))
    return decided if verdict.action is None else replace(decided, lapses=proposals.notes)


class _At(TypedDict):
    """Where in a run an event belongs."""

    run_id: str
    step: int
    epoch: int


class _Counts(TypedDict, total=False):
    """What a step's record holds of its edits."""

    learning_rate: int
    proposed: int
    selected: int
    applied: int
    failed: int
    analysts: int
    analysts_failed: int
    merged: int
    fallbacks: tuple[str, ...]
    rate_reasoning: str
    lapses: int


def _decided(
    state: TrainingState, verdict: Verdict, counts: _Counts | None = None, tried: TriedStep | None = None
) -> TrainingState:
    """The state with the step's record, and what it tried in vain."""
    kept = state.current.text
    if verdict.skill is not None and verdict.action in {GateAction.ACCEPT, GateAction.ACCEPT_NEW_BEST}:
        kept = verdict.skill.text
    record = verdict.record(step=state.step, epoch=state.epoch, kept=kept)
    after = state.after_step(replace(record, **(counts or {})), verdict.skill)
    return after if tried is None else replace(after, tried=(*after.tried, tried)[-MOST_TRIED:])


def _tried(state: TrainingState, verdict: Verdict, revision: Revision) -> TriedStep | None:
    """What later steps of the epoch should not propose again; None when nothing was in vain."""
    is_rejected = verdict.action is GateAction.REJECT and verdict.reason is StepReason.GATE
    if not is_rejected and not revision.failed:
        return None
    return TriedStep(
        step=state.step,
        rejected=revision.applied if is_rejected else (),
        lost=verdict.lost if is_rejected else 0,
        gained=verdict.gained if is_rejected else 0,
        failed=revision.failed,
    )


def _why_no_candidate(
    state: TrainingState, code: str | None, proposals: Proposals, selected: Patch, revision: Revision
) -> StepReason | None:
    """Why there is nothing to put to the gate; None when there is."""
    if code is not None:
        return StepReason.OPTIMIZER_FAILED
    if not proposals.edits:
        return StepReason.NO_PATCHES
    if not selected.edits:
        return StepReason.NO_EDITS
    if revision.skill == state.current.text:
        return StepReason.NO_CHANGE
    return StepReason.TOO_LONG if revision.is_too_long else None
