"""Items of two splits whose questions are nearly the same: what a skill learns from one is no proof on the other."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from burnish.infrastructure.tasks.answer_scorer import folded
from burnish.infrastructure.tasks.items import Item

_WORD: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]|\w+"
)
"""A word; in scripts that set no spaces, a character."""


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two items, each with its split, and which share of their words they have in common (1: all)."""

    split: str
    item_id: str
    other_split: str
    other_id: str
    share: float


def near_duplicates(splits: Sequence[tuple[str, Sequence[Item]]], share: float) -> Iterator[NearDuplicate]:
    """Pairs from two splits whose questions share at least so much of their words (0 < share <= 1), in the splits' order.

    The share is that of the words both have among those either has (Jaccard), letter case and punctuation aside; questions
    without a word are alike when they are equal. Only pairs that share one of their rarest words are looked at, which
    misses none (prefix filtering), so that ten thousand items take seconds.
    """
    words = [
        (split, item.item_id, frozenset(_WORD.findall(folded(item.question))) or frozenset({item.question}))
        for split, items in splits
        for item in items
    ]
    frequency = Counter(word for _, _, each in words for word in each)
    by_word: defaultdict[str, list[int]] = defaultdict(list)
    for index, (split, item_id, mine) in enumerate(words):
        rarest = sorted(mine, key=lambda word: (frequency[word], word))
        prefix = rarest[: len(mine) - math.ceil(share * len(mine) - 1e-9) + 1]
        candidates = {earlier for word in prefix for earlier in by_word[word]}
        for earlier in sorted(candidates):
            other_split, other_id, others = words[earlier]
            common = len(mine & others)
            if other_split != split and common >= share * (len(mine) + len(others) - common) - 1e-9:
                found = common / (len(mine) + len(others) - common)
                yield NearDuplicate(other_split, other_id, split, item_id, found)
        for word in prefix:
            by_word[word].append(index)
