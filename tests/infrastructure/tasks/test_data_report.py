"""What is odd about items: near duplicates across splits, and answers in questions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.infrastructure.tasks.data_report import answers_in_questions, refuse_twins, said, twins, warnings
from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.near_duplicates import near_duplicates
from burnish.infrastructure.tasks.splits import Splits


def _splits(train: str, val: str, test: str = "") -> Splits:
    """Questions by split, set apart by bars."""

    def items(split: str, questions: str) -> tuple[Item, ...]:
        return tuple(
            Item(f"{split}{number}", question.strip(), ("answer",))
            for number, question in enumerate(questions.split("|"), start=1)
            if question
        )

    return Splits(items("t", train), items("v", val), items("e", test))


def test_pairs_across_splits_are_found_with_their_share() -> None:
    splits = _splits("how much is the fish|who sings it", "How much is THE fish?|what time is it", "who sings it now")
    found = [said(pair) for pair in twins(splits, 0.7)]
    assert found == [
        "'t1' of train and 'v1' of val share 100% of their words",
        "'t2' of train and 'e1' of test share 75% of their words",
    ]


def test_pairs_inside_a_split_do_not_count() -> None:
    assert list(twins(_splits("a b c|a b c", "d e f"), 0.5)) == []


@pytest.mark.parametrize(
    ("one", "other", "is_pair"),
    [
        ("東京はどこですか", "東京はどこですか？", True),
        ("東京はどこですか", "大阪の天気は", False),
        ("?", "?", True),
        ("?", "!", False),
        ("3 + 4", "3 + 5", False),
    ],
)
def test_texts_without_spaces_and_without_words(one: str, other: str, is_pair: bool) -> None:  # noqa: FBT001
    assert bool(list(twins(_splits(one, other), 0.9))) == is_pair


WORDS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=8).map(" ".join)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=8), st.sampled_from([0.3, 0.5, 2 / 3, 0.75, 0.9, 1.0]))
def test_no_pair_is_missed(ours: list[str], theirs: list[str], share: float) -> None:
    splits = [
        (name, [Item(f"{name}{number}", text, ()) for number, text in enumerate(texts)])
        for name, texts in (("a", ours), ("b", theirs))
    ]
    expected = {
        (f"a{i}", f"b{j}")
        for i, one in enumerate(ours)
        for j, other in enumerate(theirs)
        if len(set(one.split()) & set(other.split())) >= share * len(set(one.split()) | set(other.split())) - 1e-9
    }
    assert {(pair.item_id, pair.other_id) for pair in near_duplicates(splits, share)} == expected


def test_twins_are_refused_in_one_line_with_their_number() -> None:
    same = "|".join(["how much is the fish"] * 2)
    with pytest.raises(DataError) as caught:
        refuse_twins(_splits(same, same), 0.9)
    assert caught.value.line == (
        "env.check_near_duplicates: 't1' of train and 'v1' of val share 100% of their words; 't2' of train and 'v1' of val "
        "share 100% of their words; 't1' of train and 'v2' of val share 100% of their words; and 1 pairs more: "
        "keep one of each pair, put both into one split, or raise the share"
    )
    refuse_twins(_splits("a b c", "d e f"), 0.9)


def test_answers_in_questions_are_warned_of_unless_most_questions_hold_them() -> None:
    few = _splits("the answer is here|b|c", "d")
    assert answers_in_questions(few) == (("train", "t1"),)
    (line,) = warnings(few)
    assert line == (
        "1 of 4 items hold their answer in their own question, the first is 't1' of train; `burnish data` lists them"
    )
    assert warnings(_splits("answer a|answer b", "answer c|d")) == ()
    assert warnings(_splits("a", "b")) == ()


def test_short_answers_stand_in_questions_by_chance() -> None:
    splits = Splits((Item("a", "Yes or no?", ("Yes",)),), (Item("b", "Q?", ("A",)),))
    assert answers_in_questions(splits) == ()
