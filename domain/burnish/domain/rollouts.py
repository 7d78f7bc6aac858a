"""Rollouts: what is asked of an agent, what came back, and which items a run tries when."""

from __future__ import annotations

import hashlib
import json
import math
import random
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, TypeAlias

from annotated_types import Ge, Le

TRAIN = "train"
VALIDATION = "val"
TEST = "test"
SPLITS = (TRAIN, VALIDATION, TEST)

SUCCESS_EPSILON = 1e-6
"""How far below 1 a hard score may lie and still count as solved (system A)."""

MAX_ITEM_ID_CHARACTERS = 256

_SEED_BITS = 63


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """A request for rollouts.

    With `item_ids`, exactly these items in this order; without, at most `size` items of the runner's choice, drawn with
    `seed`. `repeat` names the purpose and the time of asking: the same skill, item and repeat may be answered once.
    """

    split: str
    size: int = 8
    seed: int = 0
    item_ids: tuple[str, ...] = ()
    repeat: str = "0"


@dataclass(frozen=True, slots=True)
class Rollout:
    """One scored attempt at one item.

    `hard` and `soft` lie in [0, 1]; `trajectory` and `fail_reason` are shown to the optimizer; `error` is a failure code
    when there was no answer: such a rollout is missing data, its scores count nowhere.
    """

    item_id: str
    hard: Annotated[float, Ge(0), Le(1)]
    soft: Annotated[float, Ge(0), Le(1)]
    trajectory: str = ""
    task_type: str = ""
    prediction: str = ""
    fail_reason: str = ""
    error: str | None = None

    @property
    def is_success(self) -> bool:
        """Solved: hard score 1 up to `SUCCESS_EPSILON`, and no error."""
        return self.error is None and self.hard >= 1.0 - SUCCESS_EPSILON


@dataclass(frozen=True, slots=True)
class BatchScore:
    """Means over the `scored` rollouts; `missing` ones had an error and are in no mean. Nothing scored: 0.0, 0.0."""

    hard: float
    soft: float
    scored: int
    missing: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The scores of one answered item."""

    hard: float
    soft: float


OutcomeKey: TypeAlias = tuple[str, str]
"""Item id and repeat."""

Outcomes: TypeAlias = Mapping[OutcomeKey, Outcome]
"""The answered items of a pass; an item without an answer has no entry."""


def score_batch(rollouts: Iterable[Rollout]) -> BatchScore:
    """Mean hard and soft score over the rollouts without an error (`math.fsum`, so independent of their order)."""
    rollouts = tuple(rollouts)
    answered = [rollout for rollout in rollouts if rollout.error is None]
    return BatchScore(
        hard=mean(rollout.hard for rollout in answered),
        soft=mean(rollout.soft for rollout in answered),
        scored=len(answered),
        missing=len(rollouts) - len(answered),
    )


def mean(values: Iterable[float]) -> float:
    """The mean over an exactly rounded sum, so independent of order; 0.0 of nothing."""
    values = tuple(values)
    return math.fsum(values) / len(values) if values else 0.0


def batch_seed(seed: int, purpose: str, *position: int) -> int:
    """The seed of one batch: a hash of the run's seed, the purpose and, for training, epoch and step; never 0."""
    text = json.dumps([seed, purpose, *position]).encode()
    return (int.from_bytes(hashlib.sha256(text).digest()[:8]) >> (64 - _SEED_BITS)) or 1


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item of a batch; `occurrence` counts its earlier turns in the same epoch (0: the first)."""

    item_id: str
    occurrence: int


def plan_epoch(
    item_ids: Sequence[str], *, seed: int, epoch: int, batch_size: int, batches: int
) -> tuple[tuple[PlannedItem, ...], ...]:
    """The epoch's train batches: shuffled by (seed, epoch), without replacement.

    Items that run out are reshuffled and the plan goes on; no batch holds an item twice, so it is never longer than the
    number of different items. One that comes up for a second time in a batch is the first of the next.
    """
    deck = _decks(item_ids, seed, epoch)
    size = min(batch_size, len(set(item_ids)))
    seen: dict[str, int] = {}
    postponed: list[str] = []
    plan: list[tuple[PlannedItem, ...]] = []
    for _ in range(batches):
        batch = dict.fromkeys(postponed)
        postponed = []
        while len(batch) < size:
            if (item := next(deck)) in batch:
                postponed.append(item)
            else:
                batch[item] = None
        plan.append(tuple(PlannedItem(item, seen.get(item, 0)) for item in batch))
        for item in batch:
            seen[item] = seen.get(item, 0) + 1
    return tuple(plan)


def _decks(item_ids: Sequence[str], seed: int, epoch: int) -> Iterator[str]:
    """Endless: every item once in random order, then again in another."""
    turn = 0
    while True:
        deck = list(dict.fromkeys(item_ids))
        random.Random(batch_seed(seed, "plan", epoch, turn)).shuffle(deck)  # noqa: S311 - a seeded plan, not a secret
        yield from deck
        turn += 1


def sample_items(item_ids: Sequence[str], size: int, *, seed: int) -> tuple[str, ...]:
    """`size` of the items, drawn with the seed, in catalogue order; all of them when there are no more than that."""
    if size >= len(item_ids):
        return tuple(item_ids)
    chosen = random.Random(seed).sample(range(len(item_ids)), size)  # noqa: S311 - a seeded sample, not a secret
    return tuple(item_ids[index] for index in sorted(chosen))


def shuffled(item_ids: Sequence[str], *, seed: int) -> tuple[str, ...]:
    """The items in a seeded order."""
    order = list(item_ids)
    random.Random(seed).shuffle(order)  # noqa: S311 - a seeded order, not a secret
    return tuple(order)


@lru_cache(maxsize=1 << 16)  # ids come again and again
def is_item_id(text: str) -> bool:
    """Whether `text` may name an item: not blank, at most 256 characters, no control characters or lone surrogates."""
    if not text.strip() or len(text) > MAX_ITEM_ID_CHARACTERS:
        return False
    return all(unicodedata.category(character) not in {"Cc", "Cs"} for character in text)
