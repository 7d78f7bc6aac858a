"""The gate: whether a candidate skill replaces the current one, and the best one."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeAlias

from annotated_types import Ge, Le, MaxLen

from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.domain.rollouts import OutcomeKey, Outcomes, mean

UnitInterval: TypeAlias = Annotated[float, Ge(0), Le(1)]
SkillText: TypeAlias = Annotated[str, MaxLen(MAX_SKILL_CHARACTERS)]

_ROUNDING_MARGIN = 1e-12
"""Per item; far below any difference of real scores, far above what rounding a projection can move."""


class GateMetric(StrEnum):
    """Which score decides; mixed is `(1 - w) * hard + w * soft`."""

    HARD = "hard"
    SOFT = "soft"
    MIXED = "mixed"


class GateMode(StrEnum):
    """Strict: only a gain on validation. Two-split: no loss on validation or train, and a gain on one of them."""

    STRICT = "strict"
    TWO_SPLIT = "two_split"


class GateAction(StrEnum):
    """What the gate decided."""

    ACCEPT_NEW_BEST = "accept_new_best"
    ACCEPT = "accept"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class GateEvaluation:
    """What the gate compares: the candidate's raw scores with the projected scores of current and best.

    The held-in scores (the step's train items) are read by the two-split mode only.
    """

    candidate_skill: SkillText
    candidate_hard: UnitInterval
    candidate_soft: UnitInterval
    current_skill: SkillText
    current_score: UnitInterval
    best_skill: SkillText
    best_score: UnitInterval
    best_step: Annotated[int, Ge(0)]
    global_step: Annotated[int, Ge(0)]
    metric: GateMetric = GateMetric.HARD
    mixed_weight: UnitInterval = 0.5
    mode: GateMode = GateMode.STRICT
    candidate_held_in_hard: UnitInterval = 0.0
    candidate_held_in_soft: UnitInterval = 0.0
    current_held_in_score: UnitInterval = 0.0


@dataclass(frozen=True, slots=True)
class GateResult:
    """The decision, and current and best as they are after it; held-in scores are 0.0 in strict mode."""

    action: GateAction
    current_skill: str
    current_score: float
    best_skill: str
    best_score: float
    best_step: int
    candidate_skill: str
    candidate_score: float
    candidate_held_in_score: float
    current_held_in_score: float


def project_score(hard: float, soft: float, metric: GateMetric, mixed_weight: float = 0.5) -> float:
    """The one score the metric makes of two.

    Raises ValueError when either score is not finite (also the one the metric ignores), for an unknown metric, or, for
    the mixed metric, when the weight is not in [0, 1] (system A).
    """
    _require_finite(hard=hard, soft=soft)
    metric = GateMetric(metric)
    if metric is GateMetric.HARD:
        return hard
    if metric is GateMetric.SOFT:
        return soft
    if not 0.0 <= mixed_weight <= 1.0:
        raise ValueError(f"mixed_weight must be in [0, 1], not {mixed_weight}")
    return (1.0 - mixed_weight) * hard + mixed_weight * soft


def evaluate_gate(evaluation: GateEvaluation) -> GateResult:
    """Decide on a candidate; ties reject in strict mode, and a new best must beat the best's validation score.

    Comparisons are exact. Raises ValueError on a score that is not finite (system A).
    """
    _require_finite(current_score=evaluation.current_score, best_score=evaluation.best_score)
    score = project_score(
        evaluation.candidate_hard, evaluation.candidate_soft, evaluation.metric, evaluation.mixed_weight
    )
    held_in = current_held_in = 0.0
    if evaluation.mode == GateMode.TWO_SPLIT:
        current_held_in = evaluation.current_held_in_score
        _require_finite(current_held_in_score=current_held_in)
        held_in = project_score(
            evaluation.candidate_held_in_hard,
            evaluation.candidate_held_in_soft,
            evaluation.metric,
            evaluation.mixed_weight,
        )
        gains = (score - evaluation.current_score, held_in - current_held_in)
        accepted = min(gains) >= 0.0 and max(gains) > 0.0
    else:
        accepted = score > evaluation.current_score
    new_best = accepted and score > evaluation.best_score
    return GateResult(
        action=GateAction.ACCEPT_NEW_BEST if new_best else GateAction.ACCEPT if accepted else GateAction.REJECT,
        current_skill=evaluation.candidate_skill if accepted else evaluation.current_skill,
        current_score=score if accepted else evaluation.current_score,
        best_skill=evaluation.candidate_skill if new_best else evaluation.best_skill,
        best_score=score if new_best else evaluation.best_score,
        best_step=evaluation.global_step if new_best else evaluation.best_step,
        candidate_skill=evaluation.candidate_skill,
        candidate_score=score,
        candidate_held_in_score=held_in,
        current_held_in_score=current_held_in,
    )


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Mean (hard, soft) of up to three skills over the items all of them have answers for, and the number of those."""

    candidate: tuple[float, float]
    current: tuple[float, float] | None
    best: tuple[float, float] | None
    items: int


def pair_scores(candidate: Outcomes, current: Outcomes | None, best: Outcomes | None) -> PairedScores:
    """Compare like with like: only items every measured skill has an answer for; None: that skill was not measured."""
    measured = [outcomes for outcomes in (current, best) if outcomes is not None]
    keys = [key for key in candidate if all(key in outcomes for outcomes in measured)]

    def means(outcomes: Outcomes) -> tuple[float, float]:
        return mean(outcomes[key].hard for key in keys), mean(outcomes[key].soft for key in keys)

    return PairedScores(
        candidate=means(candidate),
        current=None if current is None else means(current),
        best=None if best is None else means(best),
        items=len(keys),
    )


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best score a candidate can still reach on validation, and whether that is too little to pass the gate."""

    score: float
    is_hopeless: bool


def ceiling(
    answered: Outcomes,
    remaining: Collection[OutcomeKey],
    current: Outcomes | None,
    best: Outcomes | None,
    *,
    metric: GateMetric = GateMetric.HARD,
    mixed_weight: float = 0.5,
    mode: GateMode = GateMode.STRICT,
) -> Ceiling:
    """What a candidate can reach when every one of the `remaining` items is solved perfectly.

    Exact: whatever the remaining items bring, also when some of them stay unanswered, the gate over the paired items
    accepts no candidate called hopeless. The sign of a sum is the sign of its `math.fsum`; where the gate itself rounds
    (mixed metric, two-split differences) hopeless needs a margin of 1e-12 an item. A current skill that was not measured
    (None), or has no answer to any of the items, makes nothing hopeless.
    """

    def comparable(keys: Iterable[OutcomeKey]) -> list[OutcomeKey]:
        return [key for key in keys if all(key in outcomes for outcomes in (current, best) if outcomes is not None)]

    done, open_ = comparable(answered), comparable(remaining)
    hard = [answered[key].hard for key in done] + [1.0] * len(open_)
    soft = [answered[key].soft for key in done] + [1.0] * len(open_)
    score = project_score(mean(hard), mean(soft), metric, mixed_weight)
    if current is None:
        return Ceiling(score, is_hopeless=False)
    now = [current[key] for key in (*done, *open_)]
    if not now:
        return Ceiling(score, is_hopeless=False)
    hard_gain = math.fsum([*hard, *(-outcome.hard for outcome in now)])
    soft_gain = math.fsum([*soft, *(-outcome.soft for outcome in now)])
    margin = _ROUNDING_MARGIN * len(now)
    if metric == GateMetric.MIXED:
        return Ceiling(score, is_hopeless=(1.0 - mixed_weight) * hard_gain + mixed_weight * soft_gain < -margin)
    gain = hard_gain if metric == GateMetric.HARD else soft_gain
    return Ceiling(score, is_hopeless=gain < -margin if mode == GateMode.TWO_SPLIT else gain <= 0.0)


def _require_finite(**scores: float) -> None:
    for name, score in scores.items():
        if not math.isfinite(score):
            raise ValueError(f"{name} must be finite, not {score}")
