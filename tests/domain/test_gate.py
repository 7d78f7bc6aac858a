"""The gate: projection, decisions, paired comparison, and a ceiling that never rejects what the gate would accept."""

import math
from dataclasses import dataclass, replace
from random import Random
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.gate import (
    Ceiling,
    GateAction,
    GateEvaluation,
    GateMetric,
    GateMode,
    PairedScores,
    ceiling,
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


# The ceiling


@pytest.mark.parametrize(
    ("answered", "remaining", "current", "expected"),
    [
        pytest.param(
            outcomes(a=0.0), ["b", "c"], outcomes(a=1.0, b=1.0, c=0.0), Ceiling(2 / 3, True), id="can-only-tie"
        ),
        pytest.param(outcomes(a=0.0), ["b", "c"], outcomes(a=1.0, b=0.0, c=0.0), Ceiling(2 / 3, False), id="can-gain"),
        pytest.param(outcomes(a=1.0), ["b"], outcomes(a=1.0, b=1.0), Ceiling(1.0, True), id="current-is-perfect"),
        pytest.param(outcomes(a=1.0), ["b"], None, Ceiling(1.0, False), id="current-not-measured"),
        pytest.param(outcomes(a=0.0), ["b"], outcomes(a=1.0), Ceiling(0.0, True), id="remaining-cannot-be-compared"),
        pytest.param(outcomes(a=0.0), ["b"], {}, Ceiling(0.0, False), id="nothing-can-be-compared"),
        pytest.param({}, ["a"], outcomes(a=0.5), Ceiling(1.0, False), id="nothing-answered-yet"),
        pytest.param(outcomes(a=0.0), [], outcomes(a=0.0), Ceiling(0.0, True), id="nothing-remains"),
    ],
)
def test_ceiling_counts_remaining_items_as_solved(
    answered: Outcomes, remaining: list[str], current: Outcomes | None, expected: Ceiling
) -> None:
    assert ceiling(answered, [(item, "0") for item in remaining], current, None) == expected


def test_ceiling_leaves_out_items_the_best_has_no_answer_for() -> None:
    best = outcomes(a=1.0)
    assert ceiling(outcomes(a=1.0), [("b", "0")], outcomes(a=1.0, b=0.0), best) == Ceiling(1.0, is_hopeless=True)


def test_a_tie_leaves_hope_in_two_split_mode() -> None:
    tie = ceiling(outcomes(a=1.0), [], outcomes(a=1.0), None, mode=GateMode.TWO_SPLIT)
    loss = ceiling(outcomes(a=0.9), [], outcomes(a=1.0), None, mode=GateMode.TWO_SPLIT)
    assert (tie.is_hopeless, loss.is_hopeless) == (False, True)


def test_ceiling_weighs_both_scores_alike_by_default() -> None:
    assert ceiling(outcomes(a=0.0), [("b", "0")], None, None, metric=GateMetric.MIXED).score == 0.75


@pytest.mark.parametrize(("metric", "score"), [("hard", 0.5), ("soft", 1.0), ("mixed", 0.875)])
def test_ceiling_is_projected_by_the_metric(metric: str, score: float) -> None:
    found = ceiling(outcomes(a=0.0), [("b", "0")], None, None, metric=GateMetric(metric), mixed_weight=0.75)
    assert found.score == score


SCORE_TABLES: dict[str, list[float]] = {
    "zero or one": [0.0, 1.0],
    "tenths": [number * 0.1 for number in range(11)],
    "ninths": [number / 9 for number in range(10)],
    "neighbours": [0.3, 0.1 * 3, math.nextafter(0.3, 0), 0.7, 0.1 * 7, 1.0, math.nextafter(1.0, 0), 5e-324, 0.0],
    "any": [],
}


@dataclass(frozen=True)
class Trial:
    """A candidate's pass over the selection set, as a training loop sees it."""

    order: list[OutcomeKey]
    candidate: dict[OutcomeKey, Outcome]
    current: dict[OutcomeKey, Outcome] | None
    best: dict[OutcomeKey, Outcome] | None
    block_size: int
    metric: GateMetric
    mixed_weight: float
    mode: GateMode

    def project(self, scores: tuple[float, float] | None) -> float:
        return 0.0 if scores is None else project_score(*scores, self.metric, self.mixed_weight)

    def accepts(self, candidate: Outcomes, *, held_in: float = 1.0, current_held_in: float = 0.0) -> bool:
        """What the gate says to the whole pass; the held-in scores of a two-split gate are as kind as can be."""
        pairs = pair_scores(candidate, self.current, self.best)
        hard, soft = pairs.candidate
        result = evaluate_gate(
            GateEvaluation(
                candidate_skill="candidate",
                candidate_hard=hard,
                candidate_soft=soft,
                current_skill="current",
                current_score=self.project(pairs.current),
                best_skill="best",
                best_score=self.project(pairs.best),
                best_step=0,
                global_step=1,
                metric=self.metric,
                mixed_weight=self.mixed_weight,
                mode=self.mode,
                candidate_held_in_hard=held_in,
                candidate_held_in_soft=held_in,
                current_held_in_score=current_held_in,
            )
        )
        return result.action is not GateAction.REJECT

    def ceilings(self) -> list[tuple[list[OutcomeKey], Ceiling]]:
        """After each block: what remains, and the ceiling then."""
        found: list[tuple[list[OutcomeKey], Ceiling]] = []
        for cut in range(0, len(self.order) + self.block_size, self.block_size):
            answered = {key: self.candidate[key] for key in self.order[:cut] if key in self.candidate}
            reachable = ceiling(
                answered,
                self.order[cut:],
                self.current,
                self.best,
                metric=self.metric,
                mixed_weight=self.mixed_weight,
                mode=self.mode,
            )
            found.append((self.order[cut:], reachable))
        return found


def nudged(answer: Outcome, random: Random) -> Outcome:
    """Scores one step of the number line up or down, or where they were."""
    hard, soft = (math.nextafter(score, random.choice([0.0, 1.0, score])) for score in (answer.hard, answer.soft))
    return Outcome(hard, soft)


@st.composite
def trials(
    draw: st.DrawFn,
    tables: tuple[str, ...] = tuple(SCORE_TABLES),
    kinships: tuple[str, ...] = ("none", "close", "a rounding error away"),
) -> Trial:
    """Tables are filled by a seeded generator: drawing every score on its own would be slow."""
    scores = SCORE_TABLES[draw(st.sampled_from(tables))]
    random = Random(draw(st.integers(0, 2**32)))
    count, repeats = draw(st.integers(1, 24)), draw(st.integers(1, 2))
    keys = [(f"item-{number}", str(repeat)) for repeat in range(repeats) for number in range(count)]

    def score() -> float:
        return random.choice(scores) if scores else random.random()

    def table(share_missing: float) -> dict[OutcomeKey, Outcome]:
        return {key: Outcome(score(), score()) for key in keys if random.random() >= share_missing}

    current = table(draw(st.sampled_from([0.0, 0.1, 0.5])))
    candidate = table(draw(st.sampled_from([0.0, 0.1, 0.5])))
    kinship = draw(st.sampled_from(kinships))
    if kinship != "none":  # the interesting candidates are close to current
        unlike = set(random.sample(keys, k=min(3, len(keys))))
        candidate = {key: answer for key, answer in candidate.items() if key in unlike}
        candidate |= {key: answer for key, answer in current.items() if key not in unlike}
        if kinship == "a rounding error away":
            candidate |= {key: nudged(current[key], random) for key in unlike if key in current}
    random.shuffle(keys)
    return Trial(
        order=keys,
        candidate=candidate,
        current=draw(st.sampled_from([current, current, current, None])),
        best=draw(st.sampled_from([current, table(0.2), None])),
        block_size=draw(st.integers(1, 10)),
        metric=draw(st.sampled_from(GateMetric)),
        mixed_weight=draw(st.sampled_from([0.0, 0.5, 1.0, 0.1, 0.3, random.random()])),
        mode=draw(st.sampled_from(GateMode)),
    )


@settings(max_examples=400)
@given(trials())
def test_no_candidate_the_gate_would_accept_is_called_hopeless(trial: Trial) -> None:
    if trial.accepts(trial.candidate):
        assert [reachable for _, reachable in trial.ceilings() if reachable.is_hopeless] == []


@given(trials(), st.floats(0, 1), st.floats(0, 1))
def test_a_hopeless_candidate_is_rejected_whatever_the_train_items_say(
    trial: Trial, held_in: float, current_held_in: float
) -> None:
    if any(reachable.is_hopeless for _, reachable in trial.ceilings()):
        assert not trial.accepts(trial.candidate, held_in=held_in, current_held_in=current_held_in)


@given(trials())
def test_ceiling_is_the_score_of_a_pass_that_solves_what_remains(trial: Trial) -> None:
    for remaining, reachable in trial.ceilings():
        answered = {key: answer for key, answer in trial.candidate.items() if key not in remaining}
        perfect = answered | dict.fromkeys(remaining, Outcome(1.0, 1.0))
        assert reachable.score == trial.project(pair_scores(perfect, trial.current, trial.best).candidate)
        actual = trial.project(pair_scores(trial.candidate, trial.current, trial.best).candidate)
        assert actual <= reachable.score + 1e-12


@pytest.mark.parametrize("metric", [GateMetric.HARD, GateMetric.SOFT])
@pytest.mark.parametrize(
    ("candidate_tenths", "current_tenths"),
    [
        pytest.param([0, 7], [2, 5], id="a-running-sum-sees-a-tie"),
        pytest.param([8, 5, 6], [0, 9, 10], id="a-running-sum-sees-a-loss"),
        pytest.param([5, 6, 0, 7], [9, 8, 1, 0], id="a-difference-of-sums-sees-a-tie"),
    ],
)
def test_a_gain_the_size_of_a_rounding_error_is_not_hopeless(
    metric: GateMetric, candidate_tenths: list[int], current_tenths: list[int]
) -> None:
    order = [(str(number), "0") for number in range(len(candidate_tenths))]
    candidate, current = (
        {key: Outcome(tenth * 0.1, tenth * 0.1) for key, tenth in zip(order, tenths, strict=True)}
        for tenths in (candidate_tenths, current_tenths)
    )
    trial = Trial(order, candidate, current, None, 1, metric, 0.5, GateMode.STRICT)
    assert trial.accepts(candidate)
    assert not any(reachable.is_hopeless for _, reachable in trial.ceilings())


@pytest.mark.parametrize("metric", GateMetric)
def test_a_loss_that_rounding_hides_from_the_two_split_gate_is_not_hopeless(metric: GateMetric) -> None:
    order = [("a", "0"), ("b", "0")]
    current = dict.fromkeys(order, Outcome(1.0, 1.0)) | {("b", "0"): Outcome(5e-324, 5e-324)}
    candidate = current | {("b", "0"): Outcome(0.0, 0.0)}
    trial = Trial(order, candidate, current, None, 1, metric, 0.5, GateMode.TWO_SPLIT)
    assert trial.accepts(candidate)
    assert not any(reachable.is_hopeless for _, reachable in trial.ceilings())


@given(trials())
def test_hope_once_lost_does_not_come_back(trial: Trial) -> None:
    strict = replace(trial, mode=GateMode.STRICT, metric=GateMetric.HARD)
    verdicts = [reachable.is_hopeless for _, reachable in strict.ceilings()]
    assert verdicts == sorted(verdicts)


@given(trials(tables=("zero or one",), kinships=("none", "close")))
def test_a_strict_gate_gives_up_as_soon_as_a_perfect_rest_would_not_do(trial: Trial) -> None:
    strict = replace(trial, mode=GateMode.STRICT, metric=GateMetric.SOFT)
    for remaining, reachable in strict.ceilings():
        answered = {key: answer for key, answer in strict.candidate.items() if key not in remaining}
        perfect = answered | dict.fromkeys(remaining, Outcome(1.0, 1.0))
        if strict.current is not None and pair_scores(perfect, strict.current, strict.best).items:
            assert reachable.is_hopeless is not strict.accepts(perfect)
        else:
            assert not reachable.is_hopeless
