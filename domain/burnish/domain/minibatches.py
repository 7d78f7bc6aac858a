"""Which rollouts one call of the optimizer reads: failures apart from successes, in seeded groups."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from burnish.domain.edits import EditSource
from burnish.domain.rollouts import Rollout

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Minibatch:
    """Rollouts that one analyst reads; all failed, or all succeeded."""

    source: EditSource
    rollouts: tuple[Rollout, ...]


def split_minibatches(
    rollouts: Iterable[Rollout], *, size: int, seed: int, failure_only: bool = False
) -> tuple[Minibatch, ...]:
    """The minibatches of a step (system B): failures first, each kind shuffled by seed, in groups of at most `size`.

    Rollouts without an answer are in none; a partial score is a failure. With `failure_only` successes are left out.
    """
    answered = [rollout for rollout in rollouts if rollout.error is None]
    batches: list[Minibatch] = []
    for source in (EditSource.FAILURE, EditSource.SUCCESS):
        is_success = source is EditSource.SUCCESS
        if is_success and failure_only:
            continue
        shuffled = [rollout for rollout in answered if rollout.is_success is is_success]
        random.Random(seed + is_success).shuffle(shuffled)  # noqa: S311 - a seeded order, not a secret
        batches += [Minibatch(source, group) for group in in_groups(shuffled, size)]
    return tuple(batches)


def in_groups(members: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    """The members in order, in groups of `size`; the last may be smaller. Raises ValueError for a size below 1."""
    if size < 1:
        raise ValueError(f"a group has at least 1 member, not {size}")
    for start in range(0, len(members), size):
        yield tuple(members[start : start + size])
