"""compare_epochs and extend_memory: counts, guidance and the cross-epoch memory."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.epochs import SlowUpdateAnalysis, compare_epochs, extend_memory
from burnish.domain.rollouts import Rollout

NOTHING_PAIRED = "Slow update: no paired items found between prior and current rollouts."
FORWARD = "On balance, the current skill is moving forward; keep the direction."
STUCK = "No movement since the last epoch: try smaller rules that name one situation each."
REGRESSING = "The skill is regressing more items than it improves: keep the rules that worked before, above all."


def solved(*ids: str) -> list[Rollout]:
    return [Rollout(item, 1.0, 1.0) for item in ids]


def failed(*ids: str) -> list[Rollout]:
    return [Rollout(item, 0.0, 0.9) for item in ids]


def lost(*ids: str) -> list[Rollout]:
    return [Rollout(item, 1.0, 1.0, error="skill_training.rollout.call_failed") for item in ids]


def counts(analysis: SlowUpdateAnalysis) -> tuple[int, int, int, int]:
    return analysis.improved, analysis.regressed, analysis.persistent_fail, analysis.stable_success


@pytest.mark.parametrize(
    ("prior", "current", "expected"),
    [
        pytest.param(failed("a"), solved("a"), (1, 0, 0, 0), id="improved"),
        pytest.param(solved("a"), failed("a"), (0, 1, 0, 0), id="regressed"),
        pytest.param(failed("a"), failed("a"), (0, 0, 1, 0), id="persistent-failure"),
        pytest.param(solved("a"), solved("a"), (0, 0, 0, 1), id="stable-success"),
        pytest.param([], [], (0, 0, 0, 0), id="nothing"),
        pytest.param(solved("a", "b"), solved("b", "c"), (0, 0, 0, 1), id="only-items-of-both"),
        pytest.param(solved("a", "b"), [*failed("b"), *solved("a")], (0, 1, 0, 1), id="whatever-the-order"),
        pytest.param([*failed("a"), *solved("a")], solved("a"), (0, 0, 0, 1), id="last-prior-rollout-wins"),
        pytest.param(solved("a"), [*solved("a"), *failed("a")], (0, 1, 0, 0), id="last-current-rollout-wins"),
        pytest.param(lost("a"), solved("a"), (0, 0, 0, 0), id="error-before"),
        pytest.param(failed("a", "b"), [*lost("a"), *solved("b")], (1, 0, 0, 0), id="error-after"),
        pytest.param([*solved("a"), *lost("a")], solved("a"), (0, 0, 0, 0), id="last-one-is-an-error"),
        pytest.param([*lost("a"), *solved("a")], solved("a"), (0, 0, 0, 1), id="error-made-good"),
        pytest.param([Rollout("a", 1 - 1e-7, 0)], failed("a"), (0, 1, 0, 0), id="solved-up-to-the-epsilon"),
    ],
)
def test_paired_items_fall_into_four_categories(
    prior: list[Rollout], current: list[Rollout], expected: tuple[int, int, int, int]
) -> None:
    analysis = compare_epochs(prior, current)
    assert counts(analysis) == expected
    assert analysis.total == sum(expected)


def test_rollouts_may_come_from_an_iterator() -> None:
    def one_by_one() -> Iterator[Rollout]:
        yield from solved("a")

    assert counts(compare_epochs(one_by_one(), one_by_one())) == (0, 0, 0, 1)


def pairs(improved: int, regressed: int, persistent: int, stable: int) -> tuple[list[Rollout], list[Rollout]]:
    outcomes = [(0, 1)] * improved + [(1, 0)] * regressed + [(0, 0)] * persistent + [(1, 1)] * stable
    prior = [Rollout(str(number), before, 0.0) for number, (before, _) in enumerate(outcomes)]
    return prior, [Rollout(str(number), after, 0.0) for number, (_, after) in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("numbers", "advice"),
    [
        pytest.param((1, 2, 0, 0), REGRESSING, id="more-regressed-than-improved"),
        pytest.param((0, 1, 9, 9), REGRESSING, id="regression-outweighs-all-the-rest"),
        pytest.param((0, 0, 1, 0), STUCK, id="nothing-moved-and-something-fails"),
        pytest.param((0, 0, 1, 8), STUCK, id="one-persistent-failure-is-enough"),
        pytest.param((2, 1, 3, 4), FORWARD, id="more-improved-than-regressed"),
        pytest.param((1, 1, 5, 0), FORWARD, id="as-many-regressed-as-improved"),
        pytest.param((0, 0, 0, 3), FORWARD, id="all-stable"),
    ],
)
def test_guidance_is_the_counts_and_the_advice_that_follows(numbers: tuple[int, int, int, int], advice: str) -> None:
    improved, regressed, persistent, stable = numbers
    assert compare_epochs(*pairs(*numbers)).guidance == (
        f"Slow update over {sum(numbers)} paired items: +{improved} improved, -{regressed} regressed, "
        f"{persistent} persistent failures, {stable} stable successes. {advice}"
    )


def test_guidance_without_pairs_says_so() -> None:
    assert compare_epochs(solved("a"), solved("b")).guidance == NOTHING_PAIRED


few = st.integers(0, 4)


@given(few, few, few, few)
def test_swapping_the_epochs_swaps_gains_and_losses(
    improved: int, regressed: int, persistent: int, stable: int
) -> None:
    prior, current = pairs(improved, regressed, persistent, stable)
    assert counts(compare_epochs(prior, current)) == (improved, regressed, persistent, stable)
    assert counts(compare_epochs(current, prior)) == (regressed, improved, persistent, stable)


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        pytest.param("", "## Epoch 2 (score 0.6667)\nSkill length: 5 chars.", id="first-entry"),
        pytest.param(" \n\t", "## Epoch 2 (score 0.6667)\nSkill length: 5 chars.", id="blank-memory-is-none"),
        pytest.param("old", "old\n\n## Epoch 2 (score 0.6667)\nSkill length: 5 chars.", id="blank-line-between"),
        pytest.param(
            "\n old \n\n\n", "\n old\n\n## Epoch 2 (score 0.6667)\nSkill length: 5 chars.", id="trimmed-at-its-end-only"
        ),
    ],
)
def test_memory_grows_by_an_entry_an_epoch(prior: str, expected: str) -> None:
    assert extend_memory(prior, epoch=2, skill="größe", score=2 / 3) == expected


@pytest.mark.parametrize(
    ("score", "text"), [(0.0, "0.0000"), (1.0, "1.0000"), (0.75, "0.7500"), (0.00005, "0.0001"), (0.99999, "1.0000")]
)
def test_score_in_memory_has_four_decimals(score: float, text: str) -> None:
    assert extend_memory("", epoch=1, skill="", score=score) == f"## Epoch 1 (score {text})\nSkill length: 0 chars."
