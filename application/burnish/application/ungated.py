"""Judging without a gate: a candidate is measured, and taken whatever it scores."""

from __future__ import annotations

from dataclasses import replace

from burnish.application.candidate import NO_ANSWERS, CandidatePasses, Verdict, is_inconclusive
from burnish.application.passes import Pass
from burnish.application.training_state import ScoredSkill, TrainingState
from burnish.domain.gate import GateAction, pair_scores, project_score
from burnish.domain.runs import StepReason


async def accept_anyway(state: TrainingState, candidate: str, _trained: Pass, passes: CandidatePasses) -> Verdict:
    """Take the candidate; it becomes the best only if it beats the best on the items both have answers for."""
    validated = await passes.validate(candidate)
    if is_inconclusive(validated.scored, state.config):
        return replace(NO_ANSWERS, tried=validated.scored)
    outcomes = validated.scored.outcomes
    pairs = pair_scores(outcomes, None, state.best.outcomes)
    config = state.config
    score = project_score(*pairs.candidate, config.gate_metric, config.mixed_weight)
    best = None if pairs.best is None else project_score(*pairs.best, config.gate_metric, config.mixed_weight)
    return Verdict(
        action=GateAction.ACCEPT_NEW_BEST if pairs.items and (best is None or score > best) else GateAction.ACCEPT,
        reason=StepReason.FORCED,
        hard=pairs.candidate[0],
        soft=pairs.candidate[1],
        score=score,
        compared_with=best,
        skill=ScoredSkill(candidate, outcomes),
        tried=validated.scored,
    )
