"""Keeping what a run has reached: records, checkpoints, the run itself, and telling listeners."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.events import StepFinished
from burnish.application.mediator import Publisher
from burnish.application.ports import CheckpointStore, Clock, PortError, RunStore
from burnish.application.result import ErrorCode
from burnish.application.store_calls import ask_store
from burnish.application.telemetry import StageTelemetry
from burnish.application.training_state import TrainingState
from burnish.domain.gate import GateAction
from burnish.domain.runs import Checkpoint, StepReason, StepRecord

_GATED = frozenset({StepReason.ACCEPTED, StepReason.GATE, StepReason.FORCED, StepReason.NOTES})
"""Reasons of records whose candidate was put to the gate, or forced past it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingPorts:
    """Where progress is kept and told."""

    runs: RunStore
    checkpoints: CheckpointStore
    publisher: Publisher
    telemetry: StageTelemetry
    clock: Clock


async def keep(kept: TrainingState, state: TrainingState, ports: KeepingPorts) -> None:
    """Store and tell what `state` has over `kept`; raises PortError when progress cannot be kept."""
    for place in range(len(kept.records), len(state.records)):
        record, before = state.records[place], state.records[max(place - 2, 0) : place]
        await ask_store(ports.runs.append(state.run_id, place, record))
        if record.action is not None and record.reason in _GATED and not _would_hide(before, record):
            await _save_checkpoint(state, record, record.action, ports)
        ports.telemetry.count_step(record)
        await ports.publisher.publish(
            StepFinished(
                run_id=state.run_id,
                step=record.step,
                epoch=record.epoch,
                record=record,
                current_score=state.current.score(state.config),
                best_score=state.best.score(state.config),
                skill=state.current.text,
            )
        )
    await ask_store(ports.runs.save(state.as_run(None)))


def _would_hide(before: tuple[StepRecord, ...], record: StepRecord) -> bool:
    """Whether the snapshot would take the place of one of the same step, perhaps the best one, without being better.

    `before` are the two records before it: a step has its own, one of its notes, and one of a slow update at most.
    """
    of_same_step = any(other.step == record.step and other.reason in _GATED for other in before)
    return of_same_step and record.action is not GateAction.ACCEPT_NEW_BEST


async def _save_checkpoint(state: TrainingState, record: StepRecord, action: GateAction, ports: KeepingPorts) -> None:
    checkpoint = Checkpoint(
        run_id=state.run_id,
        skill_id=state.skill_id,
        step=record.step,
        epoch=record.epoch,
        skill=state.current.text,
        skill_hash=record.skill_hash,
        score=state.current.score(state.config) or 0.0,
        action=action,
        created_at=ports.clock(),
        memory=state.memory,
    )
    try:
        await ports.checkpoints.save(checkpoint)
    except (Exception, asyncio.CancelledError) as error:
        pass_on_cancellation(error)
        raise PortError(ErrorCode.CHECKPOINT_SAVE_FAILED) from error
