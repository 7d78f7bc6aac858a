"""The ceiling: it never calls a candidate hopeless that the gate would accept, and gives up as early as it can."""

import math
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.gate import (
    Ceiling,
    GateAction,
    GateEvaluation,
    GateMetric,
    GateMode,
    ceiling,
    evaluate_gate,
    pair_scores,
    project_score,
)
from burnish.domain.rollouts import Outcome, OutcomeKey, Outcomes


def outcomes(**hard: float) -> dict[OutcomeKey, Outcome]:
    return {(item, "0"): Outcome(score, 1 - score) for item, score in hard.items()}


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
def test_hope_once_lost_does_not_come_back_while_anything_can_be_compared(trial: Trial) -> None:
    strict = replace(trial, mode=GateMode.STRICT, metric=GateMetric.HARD)
    verdicts = [
        reachable.is_hopeless
        for remaining, reachable in strict.ceilings()
        if pair_scores(
            strict.candidate | dict.fromkeys(remaining, Outcome(1.0, 1.0)), strict.current, strict.best
        ).items
    ]
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
