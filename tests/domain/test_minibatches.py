"""Minibatches hold every answered rollout once, failures apart from successes, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.edits import EditSource
from burnish.domain.minibatches import in_groups, split_minibatches
from burnish.domain.rollouts import Rollout

SCORES = st.sampled_from([0.0, 0.3, 0.999, 1.0, None])


def rollouts(scores: Sequence[float | None]) -> list[Rollout]:
    """A rollout a score; None: without an answer."""
    return [
        Rollout(f"item {index}", score or 0.0, score or 0.0, error=None if score is not None else "model.timeout")
        for index, score in enumerate(scores)
    ]


@given(st.lists(SCORES, max_size=40), st.integers(1, 10), st.integers(0, 2**63 - 1), st.booleans())
def test_every_answered_rollout_is_read_once(
    scores: list[float | None],
    size: int,
    seed: int,
    failure_only: bool,  # noqa: FBT001 - drawn by hypothesis
) -> None:
    tried = rollouts(scores)
    batches = split_minibatches(tried, size=size, seed=seed, failure_only=failure_only)
    read = [rollout for batch in batches for rollout in batch.rollouts]
    wanted = [r for r in tried if r.error is None and not (failure_only and r.is_success)]
    assert sorted(read, key=lambda r: r.item_id) == sorted(wanted, key=lambda r: r.item_id)
    assert all(1 <= len(batch.rollouts) <= size for batch in batches)
    for batch in batches:
        assert {r.is_success for r in batch.rollouts} == {batch.source is EditSource.SUCCESS}
    sources = [batch.source for batch in batches]
    assert sources == sorted(sources, key=list(EditSource).index)
    assert batches == split_minibatches(tried, size=size, seed=seed, failure_only=failure_only)


def test_a_partial_score_is_read_as_a_failure() -> None:
    (batch,) = split_minibatches(rollouts([0.3]), size=8, seed=1)
    assert batch.source is EditSource.FAILURE


def test_failures_are_shuffled_by_the_seed_and_successes_by_the_next() -> None:
    tried = rollouts([0.0] * 10 + [1.0] * 10)
    failed, solved = split_minibatches(tried, size=10, seed=42)
    numbers = list(range(10))
    random.Random(42).shuffle(numbers)
    assert numbers == [7, 3, 2, 8, 5, 6, 9, 4, 0, 1]
    assert [r.item_id for r in failed.rollouts] == [f"item {number}" for number in numbers]
    numbers = list(range(10, 20))
    random.Random(43).shuffle(numbers)
    assert [r.item_id for r in solved.rollouts] == [f"item {number}" for number in numbers]


def test_groups_are_contiguous_and_the_last_may_be_short() -> None:
    assert list(in_groups("abcdefg", 3)) == [("a", "b", "c"), ("d", "e", "f"), ("g",)]
    with pytest.raises(ValueError, match="at least 1"):
        list(in_groups("a", 0))
