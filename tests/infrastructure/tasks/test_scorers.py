"""The built-in scorers, as tables: what of an answer is judged, and how."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.scorers import F1, Contains, ExactMatch, Numeric, Score, Scorer, load_scorer

NOWHERE = Path("nowhere")


def _item(*answers: str, **extra: object) -> Item:
    return Item("a", "Q?", answers, extra=extra)


@pytest.mark.parametrize("scorer", [ExactMatch(), F1(), Contains(), Numeric()])
@pytest.mark.parametrize(
    ("answer", "prediction"),
    [
        ("<answer>A</answer>", "A"),
        ("I think\n<answer>\n A\n B </answer> since", "A\n B"),
        ("<answer>A</answer> no, <ANSWER>B</Answer>.", "B"),
        ("<answer>A</answer> <answer>B", "A"),
        ("<answer>A <answer>B</answer>", "B"),
        ("<answer>A</answer></answer>", "A"),
        ("<answer></answer>", ""),
        ("", ""),
        (" \n\n", ""),
        ("A", "A"),
        ("  A \r\n", "A"),
    ],
)
def test_the_last_tagged_answer_counts(scorer: Scorer, answer: str, prediction: str) -> None:
    assert scorer.extract(answer) == prediction


@pytest.mark.parametrize(
    ("scorer", "prediction"),
    [
        (ExactMatch(), "so B"),
        (F1(), "so B"),
        (Contains(), "It is A,\n</answer>\nso B"),
        (Numeric(), "It is A,\n</answer>\nso B"),
    ],
)
def test_without_a_tag_the_last_line_or_the_whole_text_counts(scorer: Scorer, prediction: str) -> None:
    assert scorer.extract("\nIt is A,\n</answer>\nso B \n \n") == prediction


def test_endless_opening_tags_cost_no_more_than_other_text() -> None:
    start = time.perf_counter()
    assert ExactMatch().extract("<answer>" * 100_000 + "A") == "<answer>" * 100_000 + "A"
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("prediction", "answers", "score"),
    [
        ("NWR-7F/2", ["NWR-7F/2"], 1),
        ("  nwr-7f/2\n", ["NWR-7F/2"], 1),
        ("NWR7F2", ["NWR-7F/2"], 0),
        ("NWR-7F/2.", ["NWR-7F/2"], 0),
        ("New  York", ["new york"], 1),
        ("the cat", ["cat"], 0),
        ("cat", ["dog", "Cat"], 1),
        ("STRASSE", ["Straße"], 1),
        ("cafe\u0301", ["café"], 1),
        ("cafe", ["café"], 0),
        ("İstanbul", ["i̇stanbul"], 1),
        ("", [""], 1),
        ("", ["A"], 0),
        ("A", [""], 0),
    ],
)
def test_exact_match(prediction: str, answers: list[str], score: int) -> None:
    found = ExactMatch()(prediction, _item(*answers))
    assert (found.hard, found.soft) == (score, score)


@pytest.mark.parametrize(
    ("prediction", "answers", "hard", "soft"),
    [
        ("The cat!", ["cat"], 1, 1),
        ("a cat sat", ["the cat"], 0, 2 / 3),
        ("cat cat", ["cat"], 0, 2 / 3),
        ("cat dog", ["dog cat"], 0, 1),
        ("cat", ["dog", "a big cat", "the cat sat on mats"], 0, 2 / 3),
        ("dog", ["cat"], 0, 0),
        ("N.W.R.", ["nwr"], 1, 1),
        ("nwr-7f/2", ["NWR7F2"], 1, 1),
        ("Où est-il?", ["où estil"], 1, 1),
        ("“cat”", ["cat"], 0, 0),  # as in B, only ASCII punctuation is dropped
        ("theatre", ["atre"], 0, 0),
        ("", ["The"], 1, 1),
        ("the", ["a!"], 1, 1),
        ("", ["cat"], 0, 0),
        ("cat", ["..."], 0, 0),
    ],
)
def test_f1(prediction: str, answers: list[str], hard: int, soft: float) -> None:
    found = F1()(prediction, _item(*answers))
    assert found.hard == hard
    assert found.soft == pytest.approx(soft, abs=1e-12)


@pytest.mark.parametrize(
    ("prediction", "answers", "score"),
    [
        ("The code is NWR-7F/2.", ["nwr-7f/2"], 1),
        ("It is New\nYork, I think", ["new york"], 1),
        ("concatenate", ["cat"], 0),
        ("cats", ["cat"], 0),
        ("a cat's tail", ["cat"], 1),
        ("cat_2", ["cat"], 0),
        ("15", ["5"], 0),
        ("written in C++17", ["C++"], 1),
        ("US$5 at most", ["$5"], 1),
        ("$50", ["$5"], 0),
        ("neither", ["dog", "neither"], 1),
        ("答えは東京です", ["東京"], 1),
        ("กรุงเทพมหานคร", ["กรุงเทพ"], 1),
        ("Straßenbahn", ["Straße"], 0),
        ("die STRASSE dort", ["Straße"], 1),
        ("(a.b)", ["a.b"], 1),
        ("axb", ["a.b"], 0),
        ("", [""], 1),
        ("A", [""], 0),
        ("A", [" "], 0),
        ("", ["A"], 0),
    ],
)
def test_contains(prediction: str, answers: list[str], score: int) -> None:
    found = Contains()(prediction, _item(*answers))
    assert (found.hard, found.soft) == (score, score)


@pytest.mark.parametrize(
    ("prediction", "item", "score"),
    [
        ("It is 42.", _item("42"), 1),
        ("42.00001", _item("42"), 1),
        ("42.0001", _item("42"), 0),
        ("41.9", _item("42", tolerance=0.01), 1),
        ("41.5", _item("42", tolerance=0.01), 0),
        ("41.9", _item("42", tolerance=0), 0),
        ("-42", _item("42"), 0),
        ("1,234.5", _item("1234.5"), 1),
        ("1234.5", _item("$1,234.50"), 1),
        ("5 million", _item("5"), 0),
        ("5 million", _item("5,000,000"), 1),
        ("5 billion", _item("5 million"), 0),
        ("5%", _item("5"), 0),
        ("5", _item("5%"), 0),
        ("0.05", _item("5%"), 0),
        ("5 percent", _item("5 %"), 1),
        ("1/4", _item("3/4"), 0),
        ("0.75", _item("3/4"), 1),
        ("0", _item("0"), 1),
        ("-0.0", _item("0"), 1),
        ("0.000000001", _item("0"), 0),
        ("7", _item("6", "7"), 1),
        ("6 + 1 = 7\n#### 7", _item("so 6 + 1 = 7\n#### 7"), 1),
        ("first 7, then 8", _item("7"), 0),
        ("seven", _item("7"), 0),
        ("", _item("7"), 0),
    ],
)
def test_numeric(prediction: str, item: Item, score: int) -> None:
    found = Numeric()(prediction, item)
    assert (found.hard, found.soft) == (score, score)


@pytest.mark.parametrize(
    ("scorer", "prediction", "item", "reason"),
    [
        (ExactMatch(), "A", _item("A"), ""),
        (ExactMatch(), "B", _item("A"), 'expected "A", got "B"'),
        (ExactMatch(), " ", _item("A", "B", "C"), 'expected "A" (or 2 more), got nothing'),
        (ExactMatch(), "x" * 500, _item("A\nB"), f'expected "A B", got "{"x" * 199}…"'),
        (F1(), "cat sat", _item("cat"), 'expected "cat", got "cat sat"'),
        (F1(), "cat", _item("the cat"), ""),
        (Contains(), "B", _item("A"), 'expected "A", got "B"'),
        (Numeric(), "it is 5 %", _item("5"), 'expected "5", got 5 %'),
        (Numeric(), "it is 5 million", _item("5"), 'expected "5", got 5000000'),
        (Numeric(), "none", _item("5"), 'expected "5", got no number'),
        (Numeric(), "5", _item("5"), ""),
    ],
)
def test_the_reason_says_what_was_expected(scorer: Scorer, prediction: str, item: Item, reason: str) -> None:
    assert scorer(prediction, item).reason == reason


@pytest.mark.parametrize(
    ("scorer", "item", "problem"),
    [
        (ExactMatch(), _item("A"), ""),
        (F1(), _item(), "it has no answer to compare with; write one, or score with a Python function"),
        (Numeric(), _item(), "it has no answer to compare with; write one, or score with a Python function"),
        (Numeric(), _item("5"), ""),
        (Numeric(), _item("5", "five"), "an answer holds no number; correct it, or choose another scorer"),
        *(
            (
                Numeric(),
                _item("5", tolerance=bad),
                '"tolerance" is not a number from 0 up; write for example 0.01 for 1 %',
            )
            for bad in ("5%", True, None, -0.1, [1], 10**400, float("inf"), float("nan"))
        ),
    ],
)
def test_an_item_a_scorer_cannot_judge_is_named(scorer: Scorer, item: Item, problem: str) -> None:
    assert scorer.problem(item) == problem


def test_numeric_refuses_to_judge_an_item_with_a_problem() -> None:
    with pytest.raises(ValueError, match="an answer holds no number"):
        Numeric()("5", _item("five"))


@pytest.mark.parametrize("name", ["contains", "exact_match", "f1", "numeric"])
def test_a_built_in_scorer_is_found_by_name(name: str) -> None:
    scorer = load_scorer(name, NOWHERE)
    assert scorer.fingerprint == f"{name}/1"
    assert not scorer.is_blocking
    assert scorer("5", _item("5")) == Score(1.0, 1.0)


@pytest.mark.parametrize("name", ["exact", "", "F1"])
def test_an_unknown_scorer_is_refused(name: str) -> None:
    with pytest.raises(DataError) as caught:
        load_scorer(name, NOWHERE)
    assert caught.value.line == (
        f"there is no scorer '{name}'; use contains, exact_match, f1, numeric, or a Python function as module:callable"
    )


@pytest.mark.parametrize("name", ["exact_match", "f1", "contains", "numeric"])
def test_the_reason_may_be_told_without_the_expected_answer(name: str) -> None:
    item = Item("i", "?", ("4711",))
    score = load_scorer(name, NOWHERE)("12", item)
    assert "4711" in score.reason
    assert "12" in score.reason_without_answer
    assert "4711" not in score.reason_without_answer
