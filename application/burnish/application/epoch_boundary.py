"""The end of an epoch: the slow update against forgetting, and the optimizer's memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from burnish.application.candidate import CandidatePasses, adopted, force_candidate, judge_candidate
from burnish.application.events import MemoryUpdated, SlowUpdated, Stage
from burnish.application.log import get_logger
from burnish.application.mediator import Publisher, Sender
from burnish.application.meta_skill_update import MetaSkillUpdate
from burnish.application.passes import Pass
from burnish.application.ports import PortError
from burnish.application.result import ENDING_CODES, Result
from burnish.application.slow_update import SlowUpdate
from burnish.application.telemetry import StageTelemetry
from burnish.application.telling import pass_scored
from burnish.application.training_state import TrainingState
from burnish.domain.epochs import SlowUpdateAnalysis
from burnish.domain.regions import MAX_SKILL_CHARACTERS, RegionKind, read_region, replace_region
from burnish.domain.runs import StepReason

_log = get_logger(__name__)


class BoundaryPasses(CandidatePasses, Protocol):
    """A run's passes, with the one that compares two epochs."""

    async def slow_pair(self, prior_skill: str, current_skill: str, *, epoch: int) -> tuple[Pass, Pass]:
        """Both skills on the same train items."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryPorts:
    """What the end of an epoch needs."""

    passes: BoundaryPasses
    sender: Sender
    publisher: Publisher
    telemetry: StageTelemetry
    is_replaying: Callable[[], bool]


async def end_epoch(
    state: TrainingState, prior_skill: str | None, trained: Pass, ports: BoundaryPorts
) -> AsyncGenerator[TrainingState, None]:
    """The slow update (there is none without a prior epoch's skill), then the memory: yields the state after each."""
    analysis = None
    if state.config.use_slow_update and prior_skill is not None:
        state, analysis = await slow_update(state, prior_skill, trained, ports)
        yield state
    if state.config.use_meta_skill:
        yield await extend_memory(state, analysis, ports)


async def slow_update(
    state: TrainingState, prior_skill: str, trained: Pass, ports: BoundaryPorts
) -> tuple[TrainingState, SlowUpdateAnalysis | None]:
    """Compare with the prior epoch's skill and write the guidance into the current one; a failure is passed by."""
    analysis = await _compare(state, prior_skill, ports)
    if analysis is not None and analysis.total and analysis.guidance.strip():
        state = await _apply_guidance(state, analysis.guidance, trained, ports)
    return state, analysis


async def _compare(state: TrainingState, prior_skill: str, ports: BoundaryPorts) -> SlowUpdateAnalysis | None:
    with ports.telemetry.stage(Stage.SLOW_UPDATE):
        pair = await ports.passes.slow_pair(prior_skill, state.current.text, epoch=state.epoch)
        for name, done in zip(("prior", "current"), pair, strict=True):
            ports.telemetry.count_pass(Stage.SLOW_UPDATE, done)
            text = prior_skill if name == "prior" else state.current.text
            await ports.publisher.publish(pass_scored(state, Stage.SLOW_UPDATE, done, text=text, skill=name))
        prior, current = pair
        result = await ports.sender.send(
            SlowUpdate(
                run_id=state.run_id,
                epoch=state.epoch,
                replayed=ports.is_replaying(),
                prior_rollouts=prior.rollouts,
                current_rollouts=current.rollouts,
                prior_skill=prior_skill,
                current_skill=state.current.text,
                previous_guidance=read_region(state.current.text, RegionKind.SLOW_UPDATE) or "",
            )
        )
    code = _code_of(result)
    analysis = result.value if result.is_ok else None
    if code is not None:
        _log.warning("slow_update.failed", run_id=state.run_id, epoch=state.epoch, code=code)
    await ports.publisher.publish(
        SlowUpdated(run_id=state.run_id, step=state.step, epoch=state.epoch, analysis=analysis, code=code)
    )
    return analysis


async def _apply_guidance(state: TrainingState, guidance: str, trained: Pass, ports: BoundaryPorts) -> TrainingState:
    """Write the guidance into the current skill, and measure the result before anybody may call it the best."""
    candidate = replace_region(state.current.text, RegionKind.SLOW_UPDATE, guidance)
    if candidate == state.current.text:
        return state
    if len(candidate) > MAX_SKILL_CHARACTERS:
        _log.warning("slow_update.too_long", run_id=state.run_id, epoch=state.epoch)
        return state
    with ports.telemetry.stage(Stage.GATE):
        if state.config.slow_update_gate:
            changed = any(record.step == state.step and record.is_accepted for record in state.records)
            verdict = await judge_candidate(state, candidate, trained, ports.passes, of_current=not changed)
        else:
            verdict = await force_candidate(state, candidate, ports.passes, reason=StepReason.FORCED)
    await ports.publisher.publish(pass_scored(state, Stage.GATE, verdict.tried, text=candidate))
    state = adopted(state, verdict)
    record = verdict.record(step=state.step, epoch=state.epoch, kept=state.current.text)
    return replace(state, records=(*state.records, record))


async def extend_memory(
    state: TrainingState, analysis: SlowUpdateAnalysis | None, ports: BoundaryPorts
) -> TrainingState:
    """Let the memory grow by this epoch; a failure is passed by, the old memory stays."""
    with ports.telemetry.stage(Stage.META_SKILL):
        result = await ports.sender.send(
            MetaSkillUpdate(
                run_id=state.run_id,
                skill_id=state.skill_id,
                epoch=state.epoch,
                current_skill=state.current.text,
                current_score=state.current.score(state.config) or 0.0,
                prior_memory=state.memory,
                analysis=analysis,
                is_in_run=True,
                replayed=ports.is_replaying(),
            )
        )
    code = _code_of(result)
    memory = result.value if result.is_ok else state.memory
    if code is not None:
        _log.warning("meta_skill.failed", run_id=state.run_id, epoch=state.epoch, code=code)
    await ports.publisher.publish(
        MemoryUpdated(
            run_id=state.run_id,
            step=state.step,
            epoch=state.epoch,
            characters=len(memory),
            code=code,
            memory=memory,
        )
    )
    return replace(state, memory=memory)


def _code_of(result: Result[object]) -> str | None:
    """The code of a failure that is passed by. Raises PortError, which ends the run, for a call not made or not kept."""
    if result.failure is None:
        return None
    if result.failure.code in ENDING_CODES:
        raise PortError(result.failure.code, *result.failure.fields)
    return result.failure.code.value
