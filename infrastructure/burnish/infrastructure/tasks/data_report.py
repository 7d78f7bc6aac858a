"""What is odd about a task's items without being wrong: answers shown in questions, and twins across splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from burnish.domain.rollouts import SPLITS
from burnish.infrastructure.tasks.answer_scorer import folded
from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.near_duplicates import NearDuplicate, near_duplicates
from burnish.infrastructure.tasks.refusals import DataError, shown
from burnish.infrastructure.tasks.splits import Splits

SHORTEST_ANSWER: Final = 4
"""Characters of an answer that is looked for in its question: shorter ones (yes, A, 42) stand in many by chance."""

_TOLD = 3


def answers_in_questions(splits: Splits) -> tuple[tuple[str, str], ...]:
    """The items (split, id) whose question holds one of their own answers, letter case and white space aside.

    In tasks that ask for a choice or a passage that is as it should be; elsewhere it gives the answer away.
    """
    return tuple((split, item.item_id) for split in SPLITS for item in splits.named(split) if _shows_answer(item))


def warnings(splits: Splits) -> tuple[str, ...]:
    """What to tell whoever trains on these items, a line each; nothing where most questions hold their answer by design."""
    shown_ones = answers_in_questions(splits)
    total = sum(len(splits.named(split)) for split in SPLITS)
    if not shown_ones or 2 * len(shown_ones) > total:
        return ()
    split, first = shown_ones[0]
    counted = f"{len(shown_ones)} of {total} items hold their answer in their own question"
    return (f"{counted}, the first is {shown(first)} of {split}; `burnish data` lists them",)


def twins(splits: Splits, share: float) -> Iterator[NearDuplicate]:
    """Pairs of items from two splits whose questions share at least so much of their words."""
    return near_duplicates([(split, splits.named(split)) for split in SPLITS], share)


def refuse_twins(splits: Splits, share: float) -> None:
    """Raise DataError, with the first pairs and the number of all, when there are any."""
    found = list(twins(splits, share))
    if found:
        told = "; ".join(map(said, found[:_TOLD]))
        more = f"; and {len(found) - _TOLD} pairs more" if len(found) > _TOLD else ""
        raise DataError(
            f"env.check_near_duplicates: {told}{more}: keep one of each pair, put both into one split, or raise the share"
        )


def said(pair: NearDuplicate) -> str:
    """The pair for people."""
    first, second = (
        f"{shown(each)} of {split}" for split, each in ((pair.split, pair.item_id), (pair.other_split, pair.other_id))
    )
    return f"{first} and {second} share {pair.share:.0%} of their words"


def _shows_answer(item: Item) -> bool:
    question = folded(item.question)
    answers = (folded(answer) for answer in item.answers)
    return any(len(answer) >= SHORTEST_ANSWER and answer in question for answer in answers)
