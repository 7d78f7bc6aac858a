"""Rollouts and their scores, seeds of batches, and which items an epoch tries when."""

import math
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.rollouts import (
    SPLITS,
    BatchScore,
    PlannedItem,
    Rollout,
    RolloutBatch,
    batch_seed,
    is_item_id,
    mean,
    plan_epoch,
    sample_items,
    score_batch,
)


def test_defaults_of_a_batch_and_of_a_rollout() -> None:
    assert RolloutBatch("train") == RolloutBatch("train", size=8, seed=0, item_ids=(), repeat="0")
    rollout = Rollout("a", 0.0, 0.0)
    assert (rollout.trajectory, rollout.task_type, rollout.prediction, rollout.fail_reason) == ("", "", "", "")
    assert rollout.error is None
    assert SPLITS == ("train", "val", "test")


@pytest.mark.parametrize(
    ("hard", "error", "is_success"),
    [
        pytest.param(1.0, None, True, id="solved"),
        pytest.param(1.0 - 1e-6, None, True, id="solved-up-to-the-epsilon"),
        pytest.param(1.0 - 2e-6, None, False, id="just-below-the-epsilon"),
        pytest.param(0.0, None, False, id="failed"),
        pytest.param(math.nan, None, False, id="no-number"),
        pytest.param(1.0, "skill_training.rollout.call_failed", False, id="error"),
        pytest.param(1.0, "", False, id="blank-error-is-an-error"),
    ],
)
def test_success_is_a_hard_score_of_one_without_an_error(hard: float, error: str | None, *, is_success: bool) -> None:
    assert Rollout("a", hard, 0.0, error=error).is_success is is_success


@pytest.mark.parametrize(
    ("rollouts", "expected"),
    [
        pytest.param([], BatchScore(0.0, 0.0, 0, 0), id="nothing"),
        pytest.param([Rollout("a", 1.0, 0.5)], BatchScore(1.0, 0.5, 1, 0), id="one"),
        pytest.param([Rollout("a", 1.0, 0.5), Rollout("b", 0.0, 0.25)], BatchScore(0.5, 0.375, 2, 0), id="means"),
        pytest.param(
            [Rollout("a", 1.0, 1.0), Rollout("b", 0.0, 0.0, error="x")],
            BatchScore(1.0, 1.0, 1, 1),
            id="error-is-missing",
        ),
        pytest.param([Rollout("a", 1.0, 1.0, error="x")] * 3, BatchScore(0.0, 0.0, 0, 3), id="errors-only"),
        pytest.param(
            [Rollout("a", math.nan, 9.0, error="x"), Rollout("b", 0.5, 0.5)],
            BatchScore(0.5, 0.5, 1, 1),
            id="scores-of-an-error-count-nowhere",
        ),
        pytest.param([Rollout("a", 0.1, 0.0)] * 10, BatchScore(0.1, 0.0, 10, 0), id="exact-sum"),
    ],
)
def test_batch_score_is_the_mean_of_what_was_answered(rollouts: list[Rollout], expected: BatchScore) -> None:
    assert score_batch(rollouts) == expected
    assert score_batch(iter(rollouts)) == expected


def test_score_that_is_no_number_shows_in_the_mean() -> None:
    assert math.isnan(score_batch([Rollout("a", math.nan, 0.0), Rollout("b", 1.0, 0.0)]).hard)


unit = st.floats(0, 1)


@given(st.lists(st.tuples(unit, unit, st.booleans()), max_size=30), st.randoms(use_true_random=False))
def test_batch_score_does_not_depend_on_the_order(scores: list[tuple[float, float, bool]], random: Random) -> None:
    rollouts = [Rollout(str(n), hard, soft, error="x" if lost else None) for n, (hard, soft, lost) in enumerate(scores)]
    expected = score_batch(rollouts)
    assert 0.0 <= expected.hard <= 1.0
    assert expected.scored + expected.missing == len(rollouts)
    random.shuffle(rollouts)
    assert score_batch(rollouts) == expected


@given(st.lists(unit, min_size=1, max_size=30))
def test_mean_lies_between_the_extremes(values: list[float]) -> None:
    assert math.nextafter(min(values), -1) <= mean(values) <= math.nextafter(max(values), 2)


# Seeds


def test_batch_seed_is_the_same_on_every_machine() -> None:
    assert batch_seed(42, "train", 1, 1) == 5275505459578570178
    assert batch_seed(42, "val") == 4263019414848598563


def test_batch_seeds_differ_by_seed_purpose_and_position() -> None:
    positions: list[tuple[int, ...]] = [(), (0,), (1,), (11,), (1, 1), (1, 11), (11, 1), (1, 1, 1), (0, 0)]
    arguments = [(seed, purpose, at) for seed in range(4) for purpose in ("train", "val", "") for at in positions]
    seeds = {batch_seed(seed, purpose, *at) for seed, purpose, at in arguments}
    assert len(seeds) == len(arguments)


@given(st.integers(), st.text(), st.lists(st.integers(), max_size=3))
def test_batch_seed_is_positive_and_fits_a_signed_64_bit_integer(seed: int, purpose: str, position: list[int]) -> None:
    found = batch_seed(seed, purpose, *position)
    assert 1 <= found < 2**63
    assert found == batch_seed(seed, purpose, *position)


# Plans


def items(count: int) -> list[str]:
    return [f"item-{number}" for number in range(count)]


def ids_of(plan: tuple[tuple[PlannedItem, ...], ...]) -> list[list[str]]:
    return [[planned.item_id for planned in batch] for batch in plan]


def test_plan_is_the_same_on_every_machine() -> None:
    plan = plan_epoch(["a", "b", "c", "d", "e"], seed=7, epoch=1, batch_size=3, batches=3)
    assert plan == (
        (PlannedItem("d", 0), PlannedItem("b", 0), PlannedItem("c", 0)),
        (PlannedItem("a", 0), PlannedItem("e", 0), PlannedItem("c", 1)),
        (PlannedItem("b", 1), PlannedItem("d", 1), PlannedItem("e", 1)),
    )


@pytest.mark.parametrize(
    ("count", "batch_size", "batches", "sizes"),
    [
        pytest.param(0, 4, 3, [0, 0, 0], id="no-items"),
        pytest.param(3, 8, 2, [3, 3], id="never-longer-than-the-items"),
        pytest.param(5, 2, 0, [], id="no-batches"),
        pytest.param(5, 0, 2, [0, 0], id="batches-of-nothing"),
        pytest.param(1, 1, 3, [1, 1, 1], id="one-item"),
        pytest.param(5, 2, 4, [2, 2, 2, 2], id="wraps-around"),
    ],
)
def test_plan_has_as_many_batches_as_asked_and_full_ones(
    count: int, batch_size: int, batches: int, sizes: list[int]
) -> None:
    plan = plan_epoch(items(count), seed=1, epoch=1, batch_size=batch_size, batches=batches)
    assert [len(batch) for batch in plan] == sizes


def test_an_id_listed_twice_is_one_item() -> None:
    plan = plan_epoch(["a", "b", "a"], seed=1, epoch=1, batch_size=3, batches=2)
    assert [sorted(batch) for batch in ids_of(plan)] == [["a", "b"], ["a", "b"]]


def test_plans_differ_by_seed_and_by_epoch() -> None:
    plans = {
        plan_epoch(items(30), seed=seed, epoch=epoch, batch_size=10, batches=3) for seed in (1, 2) for epoch in (1, 2)
    }
    assert len(plans) == 4


def test_items_that_run_out_come_again_in_another_order() -> None:
    (first, second) = ids_of(plan_epoch(items(30), seed=1, epoch=1, batch_size=30, batches=2))
    assert sorted(first) == sorted(second) == sorted(items(30))
    assert first != second


plans = st.tuples(st.integers(1, 12), st.integers(1, 14), st.integers(0, 12), st.integers(0, 9), st.integers(1, 3))


@given(plans)
def test_no_batch_holds_an_item_twice(plan: tuple[int, int, int, int, int]) -> None:
    count, batch_size, batches, seed, epoch = plan
    planned = plan_epoch(items(count), seed=seed, epoch=epoch, batch_size=batch_size, batches=batches)
    assert planned == plan_epoch(items(count), seed=seed, epoch=epoch, batch_size=batch_size, batches=batches)
    for batch in ids_of(planned):
        assert len(set(batch)) == len(batch) == min(count, batch_size)


@given(plans)
def test_every_item_comes_once_before_any_comes_twice(plan: tuple[int, int, int, int, int]) -> None:
    count, batch_size, batches, seed, epoch = plan
    planned = plan_epoch(items(count), seed=seed, epoch=epoch, batch_size=batch_size, batches=batches)
    turns = Counter(dict.fromkeys(items(count), 0))
    for batch in planned:
        for item in batch:
            assert item.occurrence == turns[item.item_id]
            turns[item.item_id] += 1
        # Within a batch an item may wait for its turn, at its end nobody is more than one turn ahead.
        assert max(turns.values()) - min(turns.values()) <= 1


@given(plans)
def test_a_longer_plan_begins_like_a_shorter_one(plan: tuple[int, int, int, int, int]) -> None:
    count, batch_size, batches, seed, epoch = plan
    short = plan_epoch(items(count), seed=seed, epoch=epoch, batch_size=batch_size, batches=batches)
    long = plan_epoch(items(count), seed=seed, epoch=epoch, batch_size=batch_size, batches=batches + 3)
    assert long[:batches] == short


# Samples


def test_sample_is_the_same_on_every_machine() -> None:
    assert sample_items(items(10), 4, seed=3) == ("item-2", "item-3", "item-7", "item-8")


@pytest.mark.parametrize("size", [3, 4, 100])
def test_sample_as_large_as_the_catalogue_is_all_of_it_in_order(size: int) -> None:
    assert sample_items(["c", "a", "b"], size, seed=5) == ("c", "a", "b")


def test_sample_of_nothing_is_empty() -> None:
    assert sample_items(["a"], 0, seed=5) == ()
    assert sample_items([], 5, seed=5) == ()


@given(st.integers(0, 30), st.integers(0, 35), st.integers(0, 2**63 - 1))
def test_sample_keeps_catalogue_order_and_size(count: int, size: int, seed: int) -> None:
    catalogue = items(count)
    sample = sample_items(catalogue, size, seed=seed)
    assert len(sample) == min(size, count)
    assert list(sample) == [item for item in catalogue if item in sample]
    assert sample == sample_items(catalogue, size, seed=seed)


def test_different_seeds_draw_different_samples() -> None:
    assert len({sample_items(items(100), 10, seed=seed) for seed in range(20)}) == 20


# Ids


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        pytest.param("a", True, id="letter"),
        pytest.param("Größe/../ 42 → 🙂", True, id="any-text"),
        pytest.param("x" * 256, True, id="256-characters"),
        pytest.param("🙂" * 256, True, id="characters-not-bytes"),
        pytest.param("x" * 257, False, id="257-characters"),
        pytest.param("", False, id="empty"),
        pytest.param(" \u2003", False, id="blank"),
        pytest.param("a\nb", False, id="line-feed"),
        pytest.param("a\t", False, id="tab"),
        pytest.param("a\x00", False, id="nul"),
        pytest.param("a\x1b[2J", False, id="escape"),
        pytest.param("a\x7f", False, id="delete"),
        pytest.param("a\x9b2J", False, id="escape-of-the-upper-set"),
        pytest.param("a\x85b", False, id="next-line"),
        pytest.param("a\ud800", False, id="half-a-character"),
    ],
)
def test_item_id_is_text_without_control_characters(text: str, *, is_valid: bool) -> None:
    assert is_item_id(text) is is_valid
