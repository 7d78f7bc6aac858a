"""The gate: projection, decisions, paired comparison, and a ceiling that never rejects what the gate would accept."""

import math
from dataclasses import replace
from typing import cast

import pytest

from burnish.domain.gate import (
    GateAction,
    GateEvaluation,
    GateMetric,
    GateMode,
    PairedScores,
    evaluate_gate,
    pair_scores,
    project_score,
)
from burnish.domain.rollouts import Outcome, OutcomeKey, Outcomes

NOT_FINITE = [math.nan, math.inf, -math.inf]


def test_names_of_metrics_modes_and_actions_are_public() -> None:
    assert [metric.value for metric in GateMetric] == ["hard", "soft", "mixed"]
    assert [mode.value for mode in GateMode] == ["strict", "two_split"]
    assert [action.value for action in GateAction] == ["accept_new_best", "accept", "reject"]


def test_defaults_of_an_evaluation() -> None:
    plain = GateEvaluation("candidate", 0.8, 0.7, "current", 0.5, "best", 0.6, 1, 2)
    assert (plain.metric, plain.mixed_weight, plain.mode) == (GateMetric.HARD, 0.5, GateMode.STRICT)
    held_in = (plain.candidate_held_in_hard, plain.candidate_held_in_soft, plain.current_held_in_score)
    assert held_in == (0.0, 0.0, 0.0)


# Projection


@pytest.mark.parametrize(
    ("metric", "weight", "expected"),
    [
        pytest.param(GateMetric.HARD, 0.5, 0.25, id="hard"),
        pytest.param(GateMetric.SOFT, 0.5, 0.75, id="soft"),
        pytest.param(GateMetric.MIXED, 0.5, 0.5, id="mixed-half"),
        pytest.param(GateMetric.MIXED, 0.0, 0.25, id="mixed-weight-0-is-hard"),
        pytest.param(GateMetric.MIXED, 1.0, 0.75, id="mixed-weight-1-is-soft"),
        pytest.param(GateMetric.MIXED, 0.25, 0.375, id="weight-is-the-share-of-the-soft-score"),
        pytest.param(GateMetric.HARD, math.nan, 0.25, id="hard-ignores-the-weight"),
        pytest.param(GateMetric.SOFT, -1.0, 0.75, id="soft-ignores-the-weight"),
    ],
)
def test_projected_score(metric: GateMetric, weight: float, expected: float) -> None:
    assert project_score(0.25, 0.75, metric, weight) == expected


def test_mixed_weight_is_a_half_by_default() -> None:
    assert project_score(0.0, 1.0, GateMetric.MIXED) == 0.5


def test_scores_above_one_pass_through() -> None:
    assert project_score(5.0, -1.0, GateMetric.HARD) == 5.0


@pytest.mark.parametrize("metric", GateMetric)
@pytest.mark.parametrize("value", NOT_FINITE)
def test_score_that_is_not_finite_raises_also_when_the_metric_ignores_it(metric: GateMetric, value: float) -> None:
    with pytest.raises(ValueError, match="hard must be finite"):
        project_score(value, 0.5, metric)
    with pytest.raises(ValueError, match="soft must be finite"):
        project_score(0.5, value, metric)


@pytest.mark.parametrize("weight", [-0.01, 1.01, math.nan, math.inf])
def test_mixed_weight_outside_0_to_1_raises(weight: float) -> None:
    with pytest.raises(ValueError, match="mixed_weight"):
        project_score(0.5, 0.5, GateMetric.MIXED, weight)


def test_unknown_metric_raises() -> None:
    with pytest.raises(ValueError, match="median"):
        project_score(0.5, 0.5, cast("GateMetric", "median"))


def test_metric_and_mode_given_as_plain_text_work_like_the_members() -> None:
    assert project_score(0.25, 0.75, cast("GateMetric", "hard")) == 0.25
    two_split = evaluation(mode=cast("GateMode", "two_split"), candidate_held_in_hard=0.1, current_held_in_score=0.2)
    assert evaluate_gate(two_split).action is GateAction.REJECT


# Decisions


def evaluation(
    *,
    candidate: float = 0.8,
    current: float = 0.5,
    best: float = 0.6,
    mode: GateMode = GateMode.STRICT,
    candidate_held_in_hard: float = 0.0,
    current_held_in_score: float = 0.0,
) -> GateEvaluation:
    return GateEvaluation(
        candidate_skill="candidate",
        candidate_hard=candidate,
        candidate_soft=0.0,
        current_skill="current",
        current_score=current,
        best_skill="best",
        best_score=best,
        best_step=3,
        global_step=7,
        mode=mode,
        candidate_held_in_hard=candidate_held_in_hard,
        current_held_in_score=current_held_in_score,
    )


@pytest.mark.parametrize(
    ("candidate", "current", "best", "action"),
    [
        pytest.param(0.8, 0.5, 0.6, GateAction.ACCEPT_NEW_BEST, id="above-both"),
        pytest.param(0.55, 0.5, 0.6, GateAction.ACCEPT, id="between-current-and-best"),
        pytest.param(0.6, 0.5, 0.6, GateAction.ACCEPT, id="ties-the-best"),
        pytest.param(0.5, 0.5, 0.6, GateAction.REJECT, id="ties-current"),
        pytest.param(0.5, 0.5, 0.4, GateAction.REJECT, id="ties-current-above-best"),
        pytest.param(0.4, 0.5, 0.6, GateAction.REJECT, id="below"),
        pytest.param(0.0, 0.0, 0.0, GateAction.REJECT, id="all-zero"),
        pytest.param(1.0, 1.0, 1.0, GateAction.REJECT, id="nothing-to-gain"),
        pytest.param(math.nextafter(0.5, 1), 0.5, 0.5, GateAction.ACCEPT_NEW_BEST, id="no-tolerance-above"),
        pytest.param(math.nextafter(0.5, 0), 0.5, 0.5, GateAction.REJECT, id="no-tolerance-below"),
    ],
)
def test_strict_gate_accepts_only_gains(candidate: float, current: float, best: float, action: GateAction) -> None:
    assert evaluate_gate(evaluation(candidate=candidate, current=current, best=best)).action is action


@pytest.mark.parametrize(
    ("candidate", "held_in", "action"),
    [
        pytest.param(0.7, 0.4, GateAction.ACCEPT_NEW_BEST, id="gain-on-validation"),
        pytest.param(0.5, 0.5, GateAction.ACCEPT, id="gain-on-train-only"),
        pytest.param(0.7, 0.5, GateAction.ACCEPT_NEW_BEST, id="gain-on-both"),
        pytest.param(0.55, 0.5, GateAction.ACCEPT, id="gain-on-both-below-best"),
        pytest.param(0.6, 0.4, GateAction.ACCEPT, id="best-is-only-tied"),
        pytest.param(0.5, 0.4, GateAction.REJECT, id="tie-on-both"),
        pytest.param(0.7, 0.39, GateAction.REJECT, id="loss-on-train"),
        pytest.param(0.49, 0.9, GateAction.REJECT, id="loss-on-validation"),
        pytest.param(0.4, 0.3, GateAction.REJECT, id="loss-on-both"),
        pytest.param(0.7, math.nextafter(0.4, 0), GateAction.REJECT, id="no-tolerance"),
    ],
)
def test_two_split_gate_wants_no_loss_and_one_gain(candidate: float, held_in: float, action: GateAction) -> None:
    result = evaluate_gate(
        evaluation(
            candidate=candidate, mode=GateMode.TWO_SPLIT, candidate_held_in_hard=held_in, current_held_in_score=0.4
        )
    )
    assert result.action is action
    assert (result.candidate_held_in_score, result.current_held_in_score) == (held_in, 0.4)


def test_result_of_a_new_best_carries_the_candidate_everywhere() -> None:
    result = evaluate_gate(evaluation(candidate=0.8))
    assert (result.current_skill, result.current_score) == ("candidate", 0.8)
    assert (result.best_skill, result.best_score, result.best_step) == ("candidate", 0.8, 7)
    assert (result.candidate_skill, result.candidate_score) == ("candidate", 0.8)


def test_result_of_a_plain_accept_leaves_the_best_alone() -> None:
    result = evaluate_gate(evaluation(candidate=0.55))
    assert (result.current_skill, result.current_score) == ("candidate", 0.55)
    assert (result.best_skill, result.best_score, result.best_step) == ("best", 0.6, 3)


def test_result_of_a_reject_leaves_current_and_best_alone_and_tells_the_candidates_score() -> None:
    result = evaluate_gate(evaluation(candidate=0.1))
    assert (result.current_skill, result.current_score) == ("current", 0.5)
    assert (result.best_skill, result.best_score, result.best_step) == ("best", 0.6, 3)
    assert (result.candidate_skill, result.candidate_score) == ("candidate", 0.1)


def test_strict_gate_does_not_read_held_in_scores() -> None:
    result = evaluate_gate(evaluation(candidate_held_in_hard=math.nan, current_held_in_score=math.nan))
    assert result.action is GateAction.ACCEPT_NEW_BEST
    assert (result.candidate_held_in_score, result.current_held_in_score) == (0.0, 0.0)


def test_both_splits_are_projected_with_the_same_metric_and_weight() -> None:
    mixed = replace(
        evaluation(mode=GateMode.TWO_SPLIT, candidate=0.4),
        metric=GateMetric.MIXED,
        mixed_weight=0.25,
        candidate_soft=0.8,
        candidate_held_in_hard=0.0,
        candidate_held_in_soft=1.0,
    )
    result = evaluate_gate(mixed)
    assert result.candidate_score == pytest.approx(0.5)
    assert result.candidate_held_in_score == 0.25


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("field", ["candidate_hard", "candidate_soft", "current_score", "best_score"])
@pytest.mark.parametrize("mode", GateMode)
def test_gate_raises_on_a_score_that_is_not_finite(field: str, value: float, mode: GateMode) -> None:
    broken = {
        "candidate_hard": replace(evaluation(mode=mode), candidate_hard=value),
        "candidate_soft": replace(evaluation(mode=mode), candidate_soft=value),
        "current_score": replace(evaluation(mode=mode), current_score=value),
        "best_score": replace(evaluation(mode=mode), best_score=value),
    }[field]
    with pytest.raises(ValueError, match="must be finite"):
        evaluate_gate(broken)


@pytest.mark.parametrize("value", NOT_FINITE)
def test_two_split_gate_raises_on_a_held_in_score_that_is_not_finite(value: float) -> None:
    two_split = evaluation(mode=GateMode.TWO_SPLIT)
    for broken in (
        replace(two_split, candidate_held_in_hard=value),
        replace(two_split, candidate_held_in_soft=value),
        replace(two_split, current_held_in_score=value),
    ):
        with pytest.raises(ValueError, match="must be finite"):
            evaluate_gate(broken)


@pytest.mark.parametrize(("metric", "raises"), [("hard", False), ("soft", False), ("mixed", True)])
def test_gate_checks_the_weight_for_the_mixed_metric_only(metric: str, *, raises: bool) -> None:
    weighted = replace(evaluation(), metric=GateMetric(metric), mixed_weight=2.0)
    if raises:
        with pytest.raises(ValueError, match="mixed_weight"):
            evaluate_gate(weighted)
    else:
        evaluate_gate(weighted)


# Pairs


def outcomes(**hard: float) -> dict[OutcomeKey, Outcome]:
    return {(item, "0"): Outcome(score, 1 - score) for item, score in hard.items()}


@pytest.mark.parametrize(
    ("candidate", "current", "best", "expected"),
    [
        pytest.param(
            outcomes(a=1.0, b=0.0), None, None, PairedScores((0.5, 0.5), None, None, 2), id="nothing-to-compare-with"
        ),
        pytest.param(
            outcomes(a=1.0, b=0.0),
            outcomes(a=0.0, b=0.0),
            outcomes(a=1.0, b=1.0),
            PairedScores((0.5, 0.5), (0.0, 1.0), (1.0, 0.0), 2),
            id="all-answered",
        ),
        pytest.param(
            outcomes(a=1.0, b=0.0, c=0.0),
            outcomes(a=0.0, b=1.0, d=1.0),
            outcomes(a=1.0, c=1.0, d=1.0),
            PairedScores((1.0, 0.0), (0.0, 1.0), (1.0, 0.0), 1),
            id="only-what-all-three-answered",
        ),
        pytest.param(
            outcomes(a=1.0, b=0.0),
            None,
            outcomes(b=1.0),
            PairedScores((0.0, 1.0), None, (1.0, 0.0), 1),
            id="current-not-measured",
        ),
        pytest.param(
            outcomes(a=1.0),
            outcomes(b=1.0),
            None,
            PairedScores((0.0, 0.0), (0.0, 0.0), None, 0),
            id="nothing-in-common",
        ),
        pytest.param({}, {}, {}, PairedScores((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), 0), id="nothing-answered"),
    ],
)
def test_skills_are_compared_over_items_all_have_answers_for(
    candidate: Outcomes, current: Outcomes | None, best: Outcomes | None, expected: PairedScores
) -> None:
    assert pair_scores(candidate, current, best) == expected


def test_repeats_of_an_item_are_pairs_of_their_own() -> None:
    asked_twice = {("a", "0"): Outcome(1.0, 1.0), ("a", "1"): Outcome(0.0, 0.0)}
    asked_once = {("a", "1"): Outcome(1.0, 1.0)}
    assert pair_scores(asked_twice, asked_once, None) == PairedScores((0.0, 0.0), (1.0, 1.0), None, 1)
