"""Train a skill: the message, the loop, and the step it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from typing import Annotated, TypedDict

from annotated_types import MaxLen

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.candidate import NO_ANSWERS, CandidatePasses, Verdict, is_inconclusive, judge_candidate
from burnish.application.epoch_boundary import BoundaryPorts, extend_memory, slow_update
from burnish.application.events import (
    Aggregated,
    Applied,
    Reflected,
    RunFinished,
    RunStarted,
    Selected,
    Stage,
)
from burnish.application.final_scores import promote_final, score_test_split
from burnish.application.journaling import RunJournal, journaling
from burnish.application.log import get_logger
from burnish.application.mediator import Command, Publisher, Sender
from burnish.application.meta_skill_update import memory_key
from burnish.application.optimizer_ports import EditSelector, PatchAggregator, PatchProposer, ReflectionInput
from burnish.application.passes import Pass, PassRunner, side_by_side
from burnish.application.ports import ClaimOutcome, Journal, KnowledgeMemory, NotConfiguredError, PortError
from burnish.application.record_keeping import KeepingPorts, keep
from burnish.application.reflect_on_failures import ask_proposer, checked_patch
from burnish.application.result import ErrorCode, Failure, Result
from burnish.application.run_passes import RunPasses
from burnish.application.run_rules import (
    MarkingPublisher,
    drawn_seed,
    ending_of,
    first_undecided_step,
    recalled_memory,
    run_identity,
)
from burnish.application.store_calls import ask_store
from burnish.application.telemetry import StageTelemetry
from burnish.application.telling import pass_scored
from burnish.application.training_state import ScoredSkill, TrainingState
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import ApplyReport, Patch, apply_patch
from burnish.domain.gate import GateAction
from burnish.domain.regions import MAX_SKILL_CHARACTERS, markers_are_balanced
from burnish.domain.rollouts import batch_seed
from burnish.domain.runs import StepReason, StopReason, TrainingRun, is_run_id
from burnish.domain.schedule import learning_rate

_log = get_logger(__name__)

INCONCLUSIVE_STEPS = 3
"""Inconclusive steps in a row that end a run."""


@dataclass(frozen=True, slots=True)
class TrainSkill(Command[TrainingRun]):
    """Train a skill; a finished run id returns its stored result, one being trained is refused.

    An empty initial skill trains from scratch.
    """

    run_id: str
    skill_id: str
    initial_skill: Annotated[str, MaxLen(MAX_SKILL_CHARACTERS)]
    config: TrainSkillConfig

    def violations(self) -> tuple[str, ...]:
        """Ids have a form, the markers of the initial skill pair up, and the settings fit together."""
        broken = [name for name in ("run_id", "skill_id") if not is_run_id(getattr(self, name))]
        if not markers_are_balanced(self.initial_skill):
            broken.append("initial_skill")
        return (*broken, *(f"config.{name}" for name in self.config.violations()))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPorts:
    """What a step needs after its rollout."""

    proposer: PatchProposer
    aggregator: PatchAggregator
    selector: EditSelector
    passes: CandidatePasses
    publisher: Publisher
    telemetry: StageTelemetry


async def training_step(state: TrainingState, rollouts: Pass, ports: StepPorts) -> TrainingState:
    """Stages 2 to 6 of a step: from the rollouts of the current skill to the next state, with its record.

    Raises NotConfiguredError, or PortError for a runner that breaks its contract; everything else is a recorded reject.
    """
    config, tell = state.config, ports.publisher.publish
    if is_inconclusive(rollouts, config):
        return _decided(state, NO_ANSWERS)
    at = _At(run_id=state.run_id, step=state.step, epoch=state.epoch)
    budget = learning_rate(config.lr_scheduler, state.schedule_step, state.total_steps, config.lr_start, config.lr_min)
    # 2 reflect
    with ports.telemetry.stage(Stage.REFLECT):
        proposed, code = await _or_code(_reflect(state, rollouts, budget, ports.proposer))
    await tell(Reflected(**at, proposed=len(proposed.edits), code=code, patches=(proposed,)))
    # 3 aggregate
    with ports.telemetry.stage(Stage.AGGREGATE):
        merged, code = await _or_code(ports.aggregator.aggregate((proposed,)), code)
    await tell(Aggregated(**at, edits=len(merged.edits), patch=merged))
    # 4 select
    with ports.telemetry.stage(Stage.SELECT):
        ranked, code = await _or_code(ports.selector.select(merged, budget), code)
        selected = replace(ranked, edits=ranked.edits[:budget])
    await tell(Selected(**at, learning_rate=budget, edits=selected.edits, reasoning=ranked.reasoning))
    # 5 apply
    with ports.telemetry.stage(Stage.APPLY):
        report = apply_patch(state.current.text, selected)
    await tell(Applied(**at, applied=report.applied, failed=report.failed, candidate=report.content))
    # 6 gate
    with ports.telemetry.stage(Stage.GATE):
        reason = _why_no_candidate(code, proposed, selected, report)
        if reason is None:
            verdict = await judge_candidate(state, report.content, rollouts, ports.passes)
            await tell(pass_scored(state, Stage.GATE, verdict.tried, text=report.content))
        else:
            verdict = Verdict(action=GateAction.REJECT, reason=reason, code=code)
    counts = _Counts(budget, len(proposed.edits), len(selected.edits), len(report.applied), len(report.failed))
    return _decided(state, verdict, counts)


class _At(TypedDict):
    """Where in a run an event belongs."""

    run_id: str
    step: int
    epoch: int


@dataclass(frozen=True, slots=True)
class _Counts:
    """Numbers of a step's edits for its record."""

    learning_rate: int = 0
    proposed: int = 0
    selected: int = 0
    applied: int = 0
    failed: int = 0


def _decided(state: TrainingState, verdict: Verdict, counts: _Counts = _Counts()) -> TrainingState:
    """The state with the step's record."""
    kept = state.current.text
    if verdict.skill is not None and verdict.action in {GateAction.ACCEPT, GateAction.ACCEPT_NEW_BEST}:
        kept = verdict.skill.text
    record = verdict.record(step=state.step, epoch=state.epoch, kept=kept)
    return state.after_step(replace(record, **asdict(counts)), verdict.skill)


async def _reflect(state: TrainingState, rollouts: Pass, budget: int, proposer: PatchProposer) -> Patch:
    """The optimizer's edits; nothing is asked when only failures may be shown and there are none."""
    config = state.config
    if config.failure_only and all(rollout.is_success for rollout in rollouts.answered):
        return Patch()
    reflection = ReflectionInput(
        current_skill=state.current.text,
        rollouts=rollouts.answered,
        meta_skill_memory=state.memory,
        include_successes=not config.failure_only,
        edit_budget=budget,
        seed=batch_seed(state.seed, "reflect", state.epoch, state.step),
    )
    return await ask_proposer(proposer, reflection)


async def _or_code(call: Awaitable[Patch], code: str | None = None) -> tuple[Patch, str | None]:
    """An optimizer port's answer; an empty patch and a code when it failed.

    Raises PortError, which ends the run, for a port nobody configured and for an answer that could not be journaled.
    """
    try:
        return checked_patch(await call), code
    except NotConfiguredError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        pass_on_cancellation(error)
        failed = error.code if isinstance(error, PortError) else ErrorCode.PROPOSER_CALL_FAILED
        if failed in {ErrorCode.STORE_UNAVAILABLE, ErrorCode.REPLAY_UNKNOWN_CALL}:
            raise
        _log.exception("optimizer.call_failed", code=failed.value)
        return Patch(), failed.value


def _why_no_candidate(code: str | None, proposed: Patch, selected: Patch, report: ApplyReport) -> StepReason | None:
    """Why there is nothing to put to the gate; None when there is."""
    if code is not None:
        return StepReason.OPTIMIZER_FAILED
    if not proposed.edits:
        return StepReason.NO_PATCHES
    if not selected.edits:
        return StepReason.NO_EDITS
    if not report.has_changes:
        return StepReason.NO_CHANGE
    return StepReason.TOO_LONG if len(report.content) > MAX_SKILL_CHARACTERS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPorts:
    """Everything a run needs of the world outside."""

    passes: PassRunner
    proposer: PatchProposer
    aggregator: PatchAggregator
    selector: EditSelector
    memory: KnowledgeMemory
    journal: Journal
    keeping: KeepingPorts
    sender: Sender
    publisher: Publisher
    telemetry: StageTelemetry
    draw_seed: Callable[[], int]


class TrainSkillHandler:
    """Trains one skill a message; holds nothing of a run, so runs may go on side by side."""

    def __init__(self, ports: TrainingPorts) -> None:
        self._ports = ports

    async def handle(self, message: TrainSkill, /) -> Result[TrainingRun]:
        """The run once it has ended, or why it could not be trained."""
        runs = self._ports.keeping.runs
        items = await self._ports.passes.items_digest()
        claim = await ask_store(
            runs.claim(message.run_id, run_identity(message, self._ports.passes.fingerprint, items))
        )
        if claim.outcome is ClaimOutcome.ACTIVE:
            return Result.fail(ErrorCode.RUN_ALREADY_ACTIVE)
        if claim.outcome is ClaimOutcome.OTHER_IDENTITY:
            return Result.fail(ErrorCode.RUN_IDENTITY_MISMATCH, *claim.differing)
        if claim.outcome is ClaimOutcome.FINISHED and claim.known is not None:
            return Result.ok(claim.known)
        try:
            if claim.known is not None and (step := first_undecided_step(claim.known)) is not None:
                await ask_store(self._ports.journal.forget_errors(message.run_id, from_step=step))
                await ask_store(runs.save(replace(claim.known, stop_reason=None, code=None)))  # they are forgotten once
            journal = RunJournal(self._ports.journal, message.run_id)
            await ask_store(journal.prepare())
            with journaling(journal):
                return await _Training(message, self._ports, journal).follow()
        finally:
            await ask_store(runs.release(message.run_id))


class _Training:
    """One attempt at one run: the loop, and what is kept and told of it."""

    def __init__(self, message: TrainSkill, ports: TrainingPorts, journal: RunJournal) -> None:
        publisher = MarkingPublisher(ports.publisher, journal)
        self._message = message
        self._ports = replace(ports, publisher=publisher, keeping=replace(ports.keeping, publisher=publisher))
        self._journal = journal

    async def follow(self) -> Result[TrainingRun]:
        """Follow the loop to its end, and keep what became of the run, whatever ends it."""
        message, ports = self._message, self._ports
        initial = ScoredSkill(message.initial_skill)
        state = TrainingState(
            run_id=message.run_id,
            skill_id=message.skill_id,
            config=message.config,
            seed=message.config.seed or await drawn_seed(ports.draw_seed, self._journal),
            current=initial,
            best=initial,
            total_steps=message.config.total_steps,
        )
        passes = RunPasses(ports.passes, message.config, seed=state.seed)
        stop, failure = StopReason.CANCELLED, None
        try:
            async with aclosing(self._loop(state, passes)) as states:
                async for reached in states:
                    kept, state = state, reached
                    await keep(kept, state, ports.keeping)
            ending = ending_of(state, INCONCLUSIVE_STEPS)
            if ending[1] is None:
                state = await promote_final(state, passes, ports.publisher, ports.telemetry)
                state = await score_test_split(state, message.initial_skill, passes, ports.publisher, ports.telemetry)
            stop, failure = ending  # not before: a run that is stopped while it is scored has not ended
        except PortError as error:
            _log.exception("run.failed", run_id=message.run_id, code=error.code.value)
            stop, failure = StopReason.FAILED, Failure(error.code, error.fields)
        except Exception:
            stop, failure = StopReason.FAILED, Failure(ErrorCode.UNEXPECTED)
            raise
        finally:
            run = replace(
                state.as_run(stop, None if failure is None else failure.code.value),
                rollouts_saved=passes.rollouts_saved,
                warnings=passes.warnings,
                usage=self._journal.usage,
            )
            try:
                await ask_store(ports.keeping.runs.save(run))
            finally:
                await ports.publisher.publish(RunFinished(run_id=run.run_id, run=run))
        return Result.ok(run) if failure is None else Result.fail(failure.code, *failure.fields)

    async def _loop(self, state: TrainingState, passes: RunPasses) -> AsyncGenerator[TrainingState, None]:
        """The training loop: yields the state after every step and every end of an epoch."""
        config, ports = state.config, self._ports
        await passes.prepare()
        if config.recall_meta_skill:
            recalled = await recalled_memory(ports.memory, memory_key(state.skill_id), self._journal)
            state = replace(state, memory=recalled)
        await ports.publisher.publish(
            RunStarted(run_id=state.run_id, skill_id=state.skill_id, seed=state.seed, total_steps=config.total_steps)
        )
        step_ports = StepPorts(
            proposer=ports.proposer,
            aggregator=ports.aggregator,
            selector=ports.selector,
            passes=passes,
            publisher=ports.publisher,
            telemetry=ports.telemetry,
        )
        boundary_ports = BoundaryPorts(
            passes=passes,
            sender=ports.sender,
            publisher=ports.publisher,
            telemetry=ports.telemetry,
            is_replaying=lambda: self._journal.is_replaying,
        )
        prior_skill: str | None = None
        for epoch in range(1, config.epochs + 1):
            trained = Pass()
            for step in range(1, config.steps_per_epoch + 1):
                # 1 rollout, with the baseline beside the first one
                state, trained = await self._rollout(state, passes, epoch=epoch, step=step)
                # 2 to 6
                state = await training_step(state, trained, step_ports)
                yield state
                if state.patience_is_over or state.consecutive_inconclusive == INCONCLUSIVE_STEPS:
                    return
            analysis = None
            if config.use_slow_update and prior_skill is not None:
                state, analysis = await slow_update(state, prior_skill, trained, boundary_ports)
                yield state
            prior_skill = state.current.text
            if config.use_meta_skill:
                state = await extend_memory(state, analysis, boundary_ports)
                yield state

    async def _rollout(
        self, state: TrainingState, passes: RunPasses, *, epoch: int, step: int
    ) -> tuple[TrainingState, Pass]:
        """Stage 1 of a step; before the first one, the initial skill's validation score as well."""
        telemetry = self._ports.telemetry
        state = replace(state, epoch=epoch, step=state.step + 1, schedule_step=state.step)
        self._journal.epoch, self._journal.step = epoch, state.step
        rollout = passes.train(state.current.text, epoch=epoch, step=step)
        with telemetry.stage(Stage.ROLLOUT):
            if state.step > 1 or not state.config.evaluate_baseline:
                trained = await rollout
            else:
                validated, trained = await side_by_side(passes.validate(state.current.text), rollout)
                state = await self._with_baseline(state, validated.scored, trained)
        await self._tell(state, Stage.ROLLOUT, trained)
        return replace(state, has_rollouts=state.has_rollouts or bool(trained.answered)), trained

    async def _with_baseline(self, state: TrainingState, scored: Pass, trained: Pass) -> TrainingState:
        """The state with the initial skill's score; raises PortError when too few items were answered to have one."""
        await self._tell(state, Stage.BASELINE, scored)
        if is_inconclusive(scored, state.config):
            nothing = not scored.answered and not trained.answered
            raise PortError(ErrorCode.RUN_NOTHING_WORKED if nothing else ErrorCode.RUN_INCONCLUSIVE)
        initial = ScoredSkill(state.current.text, scored.outcomes)
        return replace(state, current=initial, best=initial, baseline=initial)

    async def _tell(self, state: TrainingState, stage: Stage, done: Pass) -> None:
        self._ports.telemetry.count_pass(stage, done)
        await self._ports.publisher.publish(pass_scored(state, stage, done, text=state.current.text))
