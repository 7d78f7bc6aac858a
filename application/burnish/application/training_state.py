"""Where a run stands: current and best skill, counters, records. Frozen: a step returns the next one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.domain.config import TrainSkillConfig
from burnish.domain.gate import GateAction, project_score
from burnish.domain.rollouts import Outcomes, mean
from burnish.domain.runs import ScoresOnTest, StepReason, StepRecord, StopReason, TrainingRun
from burnish.domain.step_memory import TriedStep


@dataclass(frozen=True, slots=True)
class ScoredSkill:
    """A skill with its validation outcomes; None: it was not measured. Projections are made anew, never stored."""

    text: str
    outcomes: Outcomes | None = None

    def score(self, config: TrainSkillConfig) -> float | None:
        """The projected validation score; None when it was not measured."""
        if self.outcomes is None:
            return None
        hard = mean(outcome.hard for outcome in self.outcomes.values())
        soft = mean(outcome.soft for outcome in self.outcomes.values())
        return project_score(hard, soft, config.gate_metric, config.mixed_weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingState:
    """Everything the next step depends on.

    `schedule_step` (0-based) and `total_steps` set the learning rate. `consecutive_failures` counts those among the
    `consecutive_rejects` in which the optimizer failed, `answered_steps` those in which the optimizer had rollouts to
    read and gave a readable answer.
    `tried` is what steps of this epoch tried in vain, `lapses` are the step's notes that are not in the skill yet. Step
    and epoch count from 1, and are 0 before the first.
    """

    run_id: str
    skill_id: str
    config: TrainSkillConfig
    seed: int
    current: ScoredSkill
    best: ScoredSkill
    best_step: int = 0
    baseline: ScoredSkill | None = None
    total_steps: int = 1
    schedule_step: int = 0
    epoch: int = 0
    step: int = 0
    consecutive_rejects: int = 0
    consecutive_failures: int = 0
    consecutive_inconclusive: int = 0
    has_accepted_any: bool = False
    has_rollouts: bool = False
    answered_steps: int = 0
    memory: str = ""
    tried: tuple[TriedStep, ...] = ()
    lapses: tuple[str, ...] = ()
    records: tuple[StepRecord, ...] = ()
    promoted_final: bool = False
    test: ScoresOnTest | None = None

    @property
    def patience_is_over(self) -> bool:
        """Whether enough steps in a row were rejected to end the run."""
        return self.config.patience is not None and self.consecutive_rejects >= self.config.patience

    def after_step(self, record: StepRecord, candidate: ScoredSkill | None = None) -> TrainingState:
        """The state once a step is decided; `candidate` is what was measured, if anything was."""
        rejected = record.action is GateAction.REJECT
        failed = record.reason is StepReason.OPTIMIZER_FAILED
        inconclusive = record.action is None
        counted = replace(
            self,
            records=(*self.records, record),
            answered_steps=self.answered_steps + (record.selected > 0 if inconclusive else not failed),
            consecutive_rejects=self.consecutive_rejects + 1 if rejected else self.consecutive_rejects * inconclusive,
            consecutive_failures=self.consecutive_failures + failed
            if rejected
            else self.consecutive_failures * inconclusive,
            consecutive_inconclusive=self.consecutive_inconclusive + 1 if inconclusive else 0,
        )
        if candidate is None or rejected or inconclusive:
            return counted
        return counted.adopt(candidate, new_best=record.action is GateAction.ACCEPT_NEW_BEST, accepted=True)

    def adopt(self, skill: ScoredSkill, *, new_best: bool, accepted: bool) -> TrainingState:
        """The state with another current skill, and best skill if it is one; `accepted` counts as progress."""
        return replace(
            self,
            current=skill,
            best=skill if new_best else self.best,
            best_step=self.step if new_best else self.best_step,
            has_accepted_any=self.has_accepted_any or accepted,
        )

    def as_run(self, stop_reason: StopReason | None, code: str | None = None) -> TrainingRun:
        """What people see of it; without an accepted skill the best score is 0.0 (system A)."""
        best_score = (self.best.score(self.config) or 0.0) if self.has_accepted_any else 0.0
        baseline_score = None if self.baseline is None else self.baseline.score(self.config)
        return TrainingRun(
            run_id=self.run_id,
            skill_id=self.skill_id,
            best_skill=self.best.text,
            best_score=best_score,
            best_step=self.best_step,
            baseline_score=baseline_score,
            selected_score=best_score if self.has_accepted_any else baseline_score,
            final_skill=self.current.text,
            final_score=self.current.score(self.config),
            steps_executed=self.step,
            consecutive_rejects=self.consecutive_rejects,
            has_accepted_any=self.has_accepted_any,
            steps=self.records,
            stop_reason=stop_reason,
            seed=self.seed,
            promoted_final=self.promoted_final,
            test=self.test,
            memory=self.memory,
            code=code,
        )
