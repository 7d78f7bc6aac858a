"""Train a skill: the message, the loop, and the step it is made of."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import MaxLen

from burnish.application.budget import MAX_MINUTES, UNLIMITED, Budget, BudgetReachedError
from burnish.application.candidate import judge_candidate, with_baseline
from burnish.application.epoch_boundary import BoundaryPorts, end_epoch
from burnish.application.events import (
    RunFinished,
    RunStarted,
    Stage,
)
from burnish.application.final_scores import promote_final, rewrite_once, score_test_split
from burnish.application.journaling import RunJournal, journaling
from burnish.application.log import get_logger
from burnish.application.mediator import Command, Publisher, Sender
from burnish.application.meta_skill_update import memory_key
from burnish.application.optimizer import Optimizer
from burnish.application.passes import Pass, PassRunner, side_by_side
from burnish.application.ports import ClaimOutcome, Journal, KnowledgeMemory, PortError
from burnish.application.record_keeping import KeepingPorts, keep
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
from burnish.application.training_step import Judge, StepPorts, decided_step, noted_step
from burnish.domain.config import TrainSkillConfig
from burnish.domain.regions import MAX_SKILL_CHARACTERS, markers_are_balanced
from burnish.domain.runs import StopReason, TrainingRun, is_run_id

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
    budget: Budget = UNLIMITED

    def violations(self) -> tuple[str, ...]:
        """Ids have a form, the markers of the initial skill pair up, and the settings fit together."""
        broken = [name for name in ("run_id", "skill_id") if not is_run_id(getattr(self, name))]
        if not markers_are_balanced(self.initial_skill):
            broken.append("initial_skill")
        broken += [f"config.{name}" for name in self.config.violations()]
        return (*broken, *(f"budget.{name}" for name in self.budget.violations()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPorts:
    """Everything a run needs of the world outside; `fingerprint` is the optimizer's, of all its roles."""

    passes: PassRunner
    optimizer: Optimizer
    memory: KnowledgeMemory
    journal: Journal
    keeping: KeepingPorts
    sender: Sender
    publisher: Publisher
    telemetry: StageTelemetry
    draw_seed: Callable[[], int]
    timer: Callable[[], float]
    secrets: tuple[str, ...] = ()
    fingerprint: str = ""
    judge: Judge = judge_candidate

    def of_step(self, passes: RunPasses) -> StepPorts:
        """What a step needs of them after its rollout."""
        return StepPorts(
            optimizer=self.optimizer,
            passes=passes,
            publisher=self.publisher,
            telemetry=self.telemetry,
            judge=self.judge,
        )

    def of_boundary(self, passes: RunPasses, journal: RunJournal) -> BoundaryPorts:
        """What the end of an epoch needs of them."""
        return BoundaryPorts(
            passes=passes,
            sender=self.sender,
            publisher=self.publisher,
            telemetry=self.telemetry,
            is_replaying=lambda: journal.is_replaying,
        )


class TrainSkillHandler:
    """Trains one skill a message; holds nothing of a run, so runs may go on side by side."""

    def __init__(self, ports: TrainingPorts) -> None:
        self._ports = ports

    async def handle(self, message: TrainSkill, /) -> Result[TrainingRun]:
        """The run once it has ended, or why it could not be trained."""
        if missing := self._ports.optimizer.missing_roles(message.config):
            return Result.fail(ErrorCode.OPTIMIZER_ROLE_NOT_CONFIGURED, *missing)
        runs = self._ports.keeping.runs
        items = await self._ports.passes.items_digest()
        claim = await ask_store(
            runs.claim(
                message.run_id,
                run_identity(message, items, target=self._ports.passes.fingerprint, optimizer=self._ports.fingerprint),
            )
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
            journal = RunJournal(self._ports.journal, message.run_id, message.budget, self._ports.secrets)
            await journal.prepare()
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
        self._first = Pass()

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
        stop, failure, cap = StopReason.CANCELLED, None, None
        since = ports.timer()
        try:
            async with aclosing(self._loop(state, passes)) as states:
                async for reached in states:
                    kept, state = state, reached
                    await keep(kept, state, ports.keeping)
                    since = await self._look_at_the_time(since)
            ending = ending_of(state, INCONCLUSIVE_STEPS)
            if ending[1] is None:
                state = await promote_final(state, passes, ports.publisher, ports.telemetry)
                state = await self._tested(state, passes)
            stop, failure = ending  # not before: a run that is stopped while it is scored has not ended
        except PortError as error:
            if error.code is ErrorCode.BUDGET_REACHED:
                stop, cap = StopReason.BUDGET, next(iter(error.fields), None)
            else:
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
                cap=cap,
                lost=self._journal.lost,
            )
            try:
                await ask_store(ports.keeping.runs.save(run))
            finally:
                await ports.publisher.publish(RunFinished(run_id=run.run_id, run=run))
        return Result.ok(run) if failure is None else Result.fail(failure.code, *failure.fields)

    async def _tested(self, state: TrainingState, passes: RunPasses) -> TrainingState:
        """The state with the scores on the test split, if it is to be scored."""
        config, ports, initial = state.config, self._ports, self._message.initial_skill
        if not config.eval_test:
            return state
        named = {"initial": initial, "best": state.best.text, "final": state.current.text}
        if config.one_shot_baseline:
            self._journal.epoch = self._journal.step = 0  # what is asked here does not depend on where the loop ended
            one_shot = await rewrite_once(state, initial, self._first, ports.optimizer)
            named |= {} if one_shot is None else {"one_shot": one_shot}
        return await score_test_split(state, named, passes, ports.publisher, ports.telemetry)

    async def _look_at_the_time(self, since: float) -> float:
        """Note the time since then; now. Raises BudgetReachedError when the run has been active as long as it may."""
        now = self._ports.timer()
        await self._journal.note_active(now - since)
        if self._journal.is_time_over:
            raise BudgetReachedError(MAX_MINUTES)
        return now

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
        step_ports, boundary_ports = ports.of_step(passes), ports.of_boundary(passes, self._journal)
        prior_skill: str | None = None
        for epoch in range(1, config.epochs + 1):
            state, trained = replace(state, tried=()), Pass()
            for step in range(1, config.steps_per_epoch + 1):
                # 1 rollout, with the baseline beside the first one
                state, trained = await self._rollout(state, passes, epoch=epoch, step=step)
                # 2 to 6
                state = await decided_step(state, trained, step_ports)
                yield state
                if state.lapses:
                    self._journal.step = state.step + 1  # as below
                    state = await noted_step(state, step_ports)
                    yield state
                if state.patience_is_over or state.consecutive_inconclusive == INCONCLUSIVE_STEPS:
                    return
            self._journal.step = state.step + 1  # an outage that begins here is forgotten with the next step's errors
            async with aclosing(end_epoch(state, prior_skill, trained, boundary_ports)) as states:
                async for state in states:
                    yield state
            prior_skill = state.current.text

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
                await self._tell(state, Stage.BASELINE, validated.scored)
                state = with_baseline(state, validated.scored, trained)
        await self._tell(state, Stage.ROLLOUT, trained)
        if state.step == 1:
            self._first = trained
        return replace(state, has_rollouts=state.has_rollouts or bool(trained.answered)), trained

    async def _tell(self, state: TrainingState, stage: Stage, done: Pass) -> None:
        self._ports.telemetry.count_pass(stage, done)
        await self._ports.publisher.publish(pass_scored(state, stage, done, text=state.current.text))
