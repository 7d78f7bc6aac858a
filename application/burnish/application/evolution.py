"""Training inside somebody else's loop: one step a call, from rollouts that were made elsewhere, and the last call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from burnish.application.candidate import NO_ANSWERS, is_inconclusive, with_baseline
from burnish.application.epoch_boundary import end_epoch
from burnish.application.events import Stage
from burnish.application.final_scores import promote_final
from burnish.application.journaling import RunJournal
from burnish.application.passes import Pass
from burnish.application.run_passes import RunPasses
from burnish.application.run_rules import UNDECIDED
from burnish.application.telling import pass_scored
from burnish.application.train_skill import TrainingPorts
from burnish.application.training_state import ScoredSkill, TrainingState
from burnish.application.training_step import training_step
from burnish.domain.config import TrainSkillConfig
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """Where training stands between two calls.

    `state.step` counts the steps so far, also those that failed and were passed over; `state.records` are those of the
    latest step alone. `prior_skill` is the skill as the last epoch left it (None: none has ended yet), `ended_at` the step
    that ended it.
    """

    state: TrainingState
    prior_skill: str | None = None
    ended_at: int = 0

    @property
    def record(self) -> StepRecord | None:
        """The latest step's own record; a slow update's follows it."""
        return next(iter(self.state.records), None)

    @property
    def has_failed(self) -> bool:
        """Whether the world outside did not answer in the latest step, so that it may be asked again."""
        return self.record is not None and self.record.reason in UNDECIDED

    def ends_epoch(self, steps_per_epoch: int | None) -> bool:
        """Whether the step after these ends an epoch; one whose last step failed is ended by the next that does not."""
        if steps_per_epoch is None:
            return False
        return (self.state.step + 1) // steps_per_epoch > self.ended_at // steps_per_epoch


def begin(initial_skill: str, config: TrainSkillConfig, *, run_id: str, seed: int, total_steps: int) -> Evolution:
    """The start: nothing is measured yet. `total_steps` is the length of the schedule, 1 for a constant one."""
    initial = ScoredSkill(initial_skill)
    state = TrainingState(
        run_id=run_id,
        skill_id=run_id,
        config=config,
        seed=seed,
        current=initial,
        best=initial,
        total_steps=total_steps,
        epoch=1,
    )
    return Evolution(state=state)


async def evolve(
    evolution: Evolution,
    rollouts: Sequence[Rollout],
    ports: TrainingPorts,
    passes: RunPasses,
    journal: RunJournal,
    *,
    steps_per_epoch: int | None,
) -> Evolution:
    """One step from rollouts of the current skill, and the epoch's end if it is due.

    Before the first candidate the initial skill is scored. The schedule advances when patches reached selection. A step in
    which nobody answered ends no epoch. Raises PortError for a runner that breaks its contract, and for a call that was
    not made or not kept.
    """
    state = replace(evolution.state, step=evolution.state.step + 1, records=())
    journal.epoch, journal.step = state.epoch, state.step
    await passes.prepare()
    trained = Pass(keys=tuple((rollout.item_id, str(state.step)) for rollout in rollouts), rollouts=tuple(rollouts))
    if state.baseline is None:
        with ports.telemetry.stage(Stage.BASELINE):
            scored = (await passes.validate(state.current.text)).scored
        await _tell(state, Stage.BASELINE, scored, ports)
        if is_inconclusive(scored, state.config):
            record = NO_ANSWERS.record(step=state.step, epoch=state.epoch, kept=state.current.text)
            return replace(evolution, state=state.after_step(record))
        state = with_baseline(state, scored, trained)
    await _tell(state, Stage.ROLLOUT, trained, ports)
    state = await training_step(state, trained, ports.of_step(passes))
    if state.records[0].merged:
        state = replace(state, schedule_step=state.schedule_step + 1)
    stepped = replace(evolution, state=state)
    if stepped.has_failed or not evolution.ends_epoch(steps_per_epoch):
        return stepped
    async with aclosing(end_epoch(state, evolution.prior_skill, trained, ports.of_boundary(passes, journal))) as states:
        async for reached in states:
            state = reached
    return Evolution(
        state=replace(state, epoch=state.epoch + 1, tried=()), prior_skill=state.current.text, ended_at=state.step
    )


async def conclude(evolution: Evolution, ports: TrainingPorts, passes: RunPasses, journal: RunJournal) -> Evolution:
    """The last call: the final skill becomes the best one if fresh scores of both say so."""
    state = replace(evolution.state, records=())
    if state.current.text == state.best.text:
        return replace(evolution, state=state)
    journal.epoch, journal.step = state.epoch, state.step + 1
    await passes.prepare()
    return replace(evolution, state=await promote_final(state, passes, ports.publisher, ports.telemetry))


async def _tell(state: TrainingState, stage: Stage, done: Pass, ports: TrainingPorts) -> None:
    ports.telemetry.count_pass(stage, done)
    await ports.publisher.publish(pass_scored(state, stage, done, text=state.current.text))
