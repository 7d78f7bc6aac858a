"""Judging a candidate skill (stage 6 of a step, a gated slow update), and measuring one that is forced in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from burnish.application.passes import Pass
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.application.run_passes import Validated
from burnish.application.training_state import ScoredSkill, TrainingState
from burnish.domain.config import TrainSkillConfig
from burnish.domain.gate import GateAction, GateEvaluation, GateMode, evaluate_gate, pair_scores, project_score
from burnish.domain.rollouts import Outcomes
from burnish.domain.runs import StepReason, StepRecord, skill_hash
from burnish.domain.step_memory import lost_and_gained

_NOT_TRIED = Pass()


class CandidatePasses(Protocol):
    """How a candidate is tried: by a run's own passes, or by a host's."""

    async def validate(self, skill: str, *, current: Outcomes | None = None, best: Outcomes | None = None) -> Validated:
        """Score it on the selection set; may stop early when it can no longer pass the gate."""
        ...

    async def held_in(self, skill: str, trained: Pass) -> Pass:
        """Try it on the step's train items."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the gate made of a candidate; scores are None when not measured, `score` also when the pass was stopped.

    `lost` and `gained` count validation items, of those asked, on which the candidate did worse or better than the current.
    `tried` is its validation pass, as far as it went.
    """

    action: GateAction | None
    reason: StepReason
    code: str | None = None
    hard: float | None = None
    soft: float | None = None
    score: float | None = None
    ceiling: float | None = None
    held_in_score: float | None = None
    compared_with: float | None = None
    skill: ScoredSkill | None = None
    tried: Pass = _NOT_TRIED
    lost: int = 0
    gained: int = 0

    def record(self, *, step: int, epoch: int, kept: str) -> StepRecord:
        """The record of this decision; `kept` is the current skill after it."""
        return StepRecord(
            step=step,
            epoch=epoch,
            action=self.action,
            reason=self.reason,
            code=self.code,
            candidate_hard=self.hard,
            candidate_soft=self.soft,
            candidate_score=self.score,
            ceiling=self.ceiling,
            held_in_score=self.held_in_score,
            skill_hash=skill_hash(kept),
            skill_characters=len(kept),
            compared_with=self.compared_with,
        )


def adopted(state: TrainingState, verdict: Verdict) -> TrainingState:
    """The state with the verdict's skill as the current one, if it was not refused; what was forced in is no progress."""
    if verdict.skill is None or verdict.action is GateAction.REJECT:
        return state
    new_best = verdict.action is GateAction.ACCEPT_NEW_BEST
    accepted = new_best or verdict.reason is StepReason.ACCEPTED
    return state.adopt(verdict.skill, new_best=new_best, accepted=accepted)


NO_ANSWERS = Verdict(action=None, reason=StepReason.INCONCLUSIVE, code=ErrorCode.ROLLOUT_CALL_FAILED.value)


def is_inconclusive(done: Pass, config: TrainSkillConfig) -> bool:
    """Whether too many items of a pass stayed without an answer to decide anything."""
    return not done.answered or done.error_rate > config.max_error_rate


def with_baseline(state: TrainingState, scored: Pass, trained: Pass) -> TrainingState:
    """The state with the initial skill's score.

    Raises PortError when too few items were answered to have one; `trained` tells whether anything works at all.
    """
    if is_inconclusive(scored, state.config):
        nothing = not scored.answered and not trained.answered
        raise PortError(ErrorCode.RUN_NOTHING_WORKED if nothing else ErrorCode.RUN_INCONCLUSIVE)
    initial = ScoredSkill(state.current.text, scored.outcomes)
    return replace(state, current=initial, best=initial, baseline=initial)


async def judge_candidate(
    state: TrainingState, candidate: str, trained: Pass, passes: CandidatePasses, *, of_current: bool = True
) -> Verdict:
    """Score a candidate and put it to the gate; compares only items all compared skills have answers for.

    `trained` is a rollout of the current skill; when it is an earlier one's (`of_current` false) and train items count,
    the current skill is tried on them first.
    """
    config = state.config
    validated = await passes.validate(candidate, current=state.current.outcomes, best=state.best.outcomes)
    lost, gained = lost_and_gained(validated.scored.outcomes, state.current.outcomes or {})
    if validated.stopped is not None:
        return Verdict(
            lost=lost,
            gained=gained,
            action=GateAction.REJECT,
            reason=StepReason.GATE,
            ceiling=validated.stopped.score,
            compared_with=state.current.score(config),
            tried=validated.scored,
        )
    outcomes = validated.scored.outcomes
    pairs = pair_scores(outcomes, state.current.outcomes, state.best.outcomes)
    if is_inconclusive(validated.scored, config) or not pairs.items:
        return replace(NO_ANSWERS, tried=validated.scored)

    def project(scores: tuple[float, float] | None) -> float:
        return 0.0 if scores is None else project_score(*scores, config.gate_metric, config.mixed_weight)

    current_score = project(pairs.current)
    held_in, trained_pair = (0.0, 0.0), (0.0, 0.0)
    two_split = config.gate_mode is GateMode.TWO_SPLIT and project(pairs.candidate) >= current_score
    if two_split:  # a loss on validation rejects in either mode, so nothing is spent on the train items
        if not of_current:
            trained = await passes.held_in(state.current.text, trained)
        tried = await passes.held_in(candidate, trained)
        held_pairs = pair_scores(tried.outcomes, trained.outcomes, None)
        unclear = is_inconclusive(tried, config) or is_inconclusive(trained, config)
        if unclear or held_pairs.current is None or not held_pairs.items:
            return replace(NO_ANSWERS, tried=validated.scored)
        held_in, trained_pair = held_pairs.candidate, held_pairs.current
    hard, soft = pairs.candidate
    result = evaluate_gate(
        GateEvaluation(
            candidate_skill=candidate,
            candidate_hard=hard,
            candidate_soft=soft,
            current_skill=state.current.text,
            current_score=current_score,
            best_skill=state.best.text,
            best_score=project(pairs.best),
            best_step=state.best_step,
            global_step=state.step,
            metric=config.gate_metric,
            mixed_weight=config.mixed_weight,
            mode=GateMode.TWO_SPLIT if two_split else GateMode.STRICT,
            candidate_held_in_hard=held_in[0],
            candidate_held_in_soft=held_in[1],
            current_held_in_score=project(trained_pair),
        )
    )
    return Verdict(
        action=result.action,
        reason=StepReason.GATE if result.action is GateAction.REJECT else StepReason.ACCEPTED,
        hard=hard,
        soft=soft,
        score=result.candidate_score,
        held_in_score=result.candidate_held_in_score if two_split else None,
        compared_with=current_score,
        skill=ScoredSkill(candidate, outcomes),
        tried=validated.scored,
        lost=lost,
        gained=gained,
    )


async def force_candidate(
    state: TrainingState, candidate: str, passes: CandidatePasses, *, reason: StepReason
) -> Verdict:
    """Take the candidate whatever it scores; it becomes the best only if it beats the best on the same items."""
    validated = await passes.validate(candidate)
    if is_inconclusive(validated.scored, state.config):
        return replace(NO_ANSWERS, tried=validated.scored)
    outcomes = validated.scored.outcomes
    pairs = pair_scores(outcomes, None, state.best.outcomes)
    hard, soft = pairs.candidate
    config = state.config
    score = project_score(hard, soft, config.gate_metric, config.mixed_weight)
    best = 0.0 if pairs.best is None else project_score(*pairs.best, config.gate_metric, config.mixed_weight)
    return Verdict(
        action=GateAction.ACCEPT_NEW_BEST if pairs.items and score > best else GateAction.ACCEPT,
        reason=reason,
        hard=hard,
        soft=soft,
        score=score,
        compared_with=best,
        skill=ScoredSkill(candidate, outcomes),
        tried=validated.scored,
    )
