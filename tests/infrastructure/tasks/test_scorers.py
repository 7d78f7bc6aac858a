"""The built-in scorers, as tables: what of an answer is judged, and how."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from burnish.infrastructure.tasks.answer_scorer import folded, normalized
from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.scorers import (
    F1,
    Anls,
    Contains,
    ExactMatch,
    JsonMatch,
    Numeric,
    Regex,
    Score,
    Scorer,
    load_scorer,
)

NOWHERE = Path("nowhere")


def _item(*answers: str, **extra: object) -> Item:
    return Item("a", "Q?", answers, extra=extra)


@pytest.mark.parametrize("scorer", [ExactMatch(), F1(), Contains(), Numeric(), Regex(), Anls(), JsonMatch()])
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
        (Regex(), "It is A,\n</answer>\nso B"),
        (JsonMatch(), "It is A,\n</answer>\nso B"),
        (Anls(), "so B"),
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
        ("5 km", _item("5 km"), 1),
        ("5 kilometers", _item("5 km"), 1),
        ("5", _item("5 km"), 1),
        ("5 km", _item("5"), 1),
        ("5 m", _item("5 km"), 0),
        ("5000 m", _item("5 km"), 0),
        ("5 hours", _item("5 days"), 0),
        ("€5", _item("$5"), 0),
        ("5 dollars", _item("$5"), 1),
        ("5 %", _item("5 km"), 0),
    ],
)
def test_numeric(prediction: str, item: Item, score: int) -> None:
    found = Numeric()(prediction, item)
    assert (found.hard, found.soft) == (score, score)


@pytest.mark.parametrize(
    ("prediction", "answers", "score"),
    [
        ("NWR-7F/2", [r"^NWR-\d[A-F]/\d$"], 1),
        ("it is NWR-7F/2, I think", [r"NWR-\d[A-F]/\d"], 1),
        ("it is NWR-7F/2, I think", [r"^NWR"], 0),
        ("nwr-7f/2", ["NWR"], 0),
        ("nwr-7f/2", ["(?i)NWR"], 1),
        ("B", ["A", "B"], 1),
        ("a\nb", ["a.b"], 0),
        ("a\nb", ["(?s)a.b"], 1),
        ("a\nb", ["^b"], 0),
        ("", ["^$"], 1),
        ("A", ["^$"], 0),
        ("A", [""], 1),
        ("Straße", ["stra(?:ß|ss)e"], 0),
    ],
)
def test_regex(prediction: str, answers: list[str], score: int) -> None:
    found = Regex()(prediction, _item(*answers))
    assert (found.hard, found.soft) == (score, score)


def test_a_pattern_that_goes_back_and_forth_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burnish.infrastructure.tasks.pattern_scorer.MAX_SEARCH_SECONDS", 0.01)
    with pytest.raises(TimeoutError):
        Regex()("a" * 200 + "!", _item("^(a|a|b?)*(a|a)*$"))


@pytest.mark.parametrize(
    ("prediction", "answers", "hard", "soft"),
    [
        ("Invoice 17", ["invoice  17"], 1, 1),
        ("kitten", ["sitting"], 0, 1 - 3 / 7),
        ("invoice 18", ["invoice 17"], 0, 0.9),
        ("abcd", ["abxy"], 0, 0),  # half of it is different
        ("abc", ["abx"], 0, 2 / 3),
        ("dog", ["dig", "cat"], 0, 2 / 3),
        ("", [""], 1, 1),
        (" ", [""], 1, 1),
        ("", ["a"], 0, 0),
        ("a", [""], 0, 0),
        ("é", ["e"], 0, 0),
        ("x" * 2000 + "y", ["x" * 2001], 1, 2000 / 2001),  # above system B's 0.999
        ("x" * 999 + "y", ["x" * 1000], 1, 0.999),
        ("x" * 998 + "y", ["x" * 999], 0, 998 / 999),
    ],
)
def test_anls(prediction: str, answers: list[str], hard: int, soft: float) -> None:
    found = Anls()(prediction, _item(*answers))
    assert found.hard == hard
    assert found.soft == pytest.approx(soft, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "as_exact", "as_f1"),
    [
        ("  The  Cat!\n", "the cat!", "cat"),
        ("A an THE", "a an the", ""),
        ("N.W.R.", "n.w.r.", "nwr"),
        ("it's", "it's", "its"),
        ("“cat”", "“cat”", "“cat”"),
        ("thea then", "thea then", "thea then"),
        ("the-cat", "the-cat", "thecat"),
        ("a_b", "a_b", "ab"),
        ("STRASSE Straße", "strasse strasse", "strasse straße"),
        ("\u00a0x\u2003y\t", "x y", "x y"),
        ("cafe\u0301", "caf\u00e9", "cafe\u0301"),
        ("", "", ""),
    ],
)
def test_normal_forms(text: str, as_exact: str, as_f1: str) -> None:
    assert (folded(text), normalized(text)) == (as_exact, as_f1)


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
        (Numeric(), "it is 5 m", _item("5 km"), 'expected "5 km", got 5 m'),
        (Regex(), "B", _item("^A", "C"), 'expected a match of "^A" or "C", got "B"'),
        (Anls(), "kitten", _item("sitting"), 'expected "sitting", got "kitten"'),
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
        (Regex(), _item("a+"), ""),
        (Regex(), _item("a+", "(a"), 'its answer "(a" is no regular expression; correct it'),
        (Anls(), _item(), "it has no answer to compare with; write one, or score with a Python function"),
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


@pytest.mark.parametrize(
    ("name", "version"), [("anls", 1), ("contains", 1), ("exact_match", 1), ("f1", 1), ("numeric", 2), ("regex", 1)]
)
def test_a_built_in_scorer_is_found_by_name(name: str, version: int) -> None:
    scorer = load_scorer(name, NOWHERE)
    assert scorer.fingerprint == f"{name}/{version}"
    assert scorer.is_blocking == (name == "regex")
    assert scorer("5", _item("5")) == Score(1.0, 1.0)


@pytest.mark.parametrize("name", ["exact", "", "F1"])
def test_an_unknown_scorer_is_refused(name: str) -> None:
    with pytest.raises(DataError) as caught:
        load_scorer(name, NOWHERE)
    assert caught.value.line == (
        f"there is no scorer '{name}'; use anls, contains, exact_match, f1, json_match, numeric, regex, "
        "or a Python function as module:callable"
    )


@pytest.mark.parametrize("name", ["exact_match", "f1", "contains", "numeric", "regex", "anls"])
def test_the_reason_may_be_told_without_the_expected_answer(name: str) -> None:
    item = Item("i", "?", ("4711",))
    score = load_scorer(name, NOWHERE)("12", item)
    assert "4711" in score.reason
    assert "12" in score.reason_without_answer
    assert "4711" not in score.reason_without_answer
