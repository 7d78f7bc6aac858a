"""`json_match`: which object of an answer is judged, field by field, and with which weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.scorers import JsonMatch, Score, load_scorer

RIGHT = '{"city": "Bonn", "total": 12.5, "paid": true}'


def _item(*answers: str) -> Item:
    return Item("a", "Q?", answers)


@pytest.mark.parametrize(
    ("prediction", "soft"),
    [
        ('{"city": "Bonn", "total": 12.5, "paid": true}', 1),
        ('{"paid": true, "total": 12.50, "city": " bonn "}', 1),
        ('{"city": "Bonn", "total": 12.5, "paid": true, "more": 1}', 1),
        ('Here it is:\n```json\n{"city": "Bonn", "total": 12.5, "paid": true}\n```\nDone.', 1),
        ('First {"city": "Köln"}, then {"city": "Bonn", "total": 12.5, "paid": true}', 1),
        ('{"city": "Bonn", "total": 12.5, "paid": false}', 2 / 3),
        ('{"city": "Bonn", "total": 12.5, "paid": 1}', 2 / 3),
        ('{"city": "Bonn", "total": "12.5", "paid": true}', 2 / 3),
        ('{"city": "Bonn", "total": null, "paid": true}', 2 / 3),
        ('{"city": "Bonn"}', 1 / 3),
        ("{}", 0),
        ('{"City": "Bonn"}', 0),
        ("Bonn, 12.5, paid", 0),
        ('{"city": "Bonn", "total": 12.5, "paid": true', 0),
        ("[1, 2]", 0),
        ("", 0),
        ("{" * 5000, 0),
        ('{"a":' * 5000, 0),
    ],
)
def test_fields_are_compared(prediction: str, soft: float) -> None:
    found = JsonMatch()(prediction, _item(RIGHT))
    assert found.hard == float(soft == 1)
    assert found.soft == pytest.approx(soft, abs=1e-12)


@pytest.mark.parametrize(
    ("right", "given_", "is_equal"),
    [
        ("1", "1.0", True),
        ("1", "1.0000000001", True),
        ("1", "1.001", False),
        ("1", "true", False),
        ("true", "1", False),
        ('"a"', '"A "', True),
        ('"a"', '"b"', False),
        ("null", "null", True),
        ("null", "0", False),
        ("[1, 2]", "[1.0, 2]", True),
        ("[1, 2]", "[2, 1]", False),
        ("[1, 2]", "[1, 2, 3]", False),
        ('["a"]', '["A"]', True),
        ("[]", "[]", True),
        ("[]", "null", False),
        ("{}", "{}", True),
        ('[{"a": 1}]', '[{"a": 1}]', True),
        ("[true]", "[1]", False),
        (f"1{'0' * 400}", "1", False),
        ("1e308", f"1{'0' * 400}", False),
    ],
)
def test_values_are_equal(right: str, given_: str, is_equal: bool) -> None:  # noqa: FBT001
    found = JsonMatch()(f'{{"x": {given_}, "y": 1}}', _item(f'{{"x": {right}, "y": 1}}'))
    assert found.soft == (1.0 if is_equal else 0.5)


def test_a_field_that_should_be_null_may_be_left_out() -> None:
    assert JsonMatch()('{"y": 1}', _item('{"x": null, "y": 1}')).hard == 1.0


def test_objects_inside_are_compared_field_by_field() -> None:
    item = _item('{"id": 7, "address": {"city": "Bonn", "zip": "53111"}}')
    found = JsonMatch()('{"id": 7, "address": {"city": "Bonn", "zip": 53111}}', item)
    assert found.soft == pytest.approx(2 / 3)
    assert found.reason == 'address.zip is 53111, expected "53111"'
    assert found.reason_without_answer == "address.zip is 53111, which is wrong"


@pytest.mark.parametrize(
    ("weights", "soft", "hard"),
    [
        ({}, 2 / 3, 0),
        ({"total": 2.0}, 3 / 4, 0),
        ({"city": 6.0}, 2 / 8, 0),
        ({"city": 0.0}, 1, 1),
        ({"total": 0.0, "paid": 0.0}, 0, 0),
    ],
)
def test_fields_may_weigh_more_than_others(weights: dict[str, float], soft: float, hard: float) -> None:
    found = JsonMatch(weights)('{"city": "Köln", "total": 12.5, "paid": true}', _item(RIGHT))
    assert found.soft == pytest.approx(soft)
    assert found.hard == hard


def test_the_best_answer_counts() -> None:
    assert JsonMatch()('{"a": 2}', _item('{"a": 1}', '{"a": 2}')) == Score(1.0, 1.0)


def test_the_reason_names_what_is_wrong_and_not_more_than_five_fields() -> None:
    right = json.dumps({f"f{number}": number for number in range(8)})
    found = JsonMatch()('{"f0": "x"}', _item(right))
    assert found.reason == (
        'f0 is "x", expected 0; f1 is missing, expected 1; f2 is missing, expected 2; f3 is missing, expected 3; '
        "f4 is missing, expected 4; and 3 fields more"
    )
    assert "expected" not in found.reason_without_answer


def test_the_reason_says_when_there_is_no_object() -> None:
    found = JsonMatch()("Bonn", _item(RIGHT))
    assert found.reason == 'expected a JSON object with "city, total, paid", got "Bonn", which holds none'


@pytest.mark.parametrize(
    ("answer", "weights", "problem"),
    [
        ("Bonn", {}, 'an answer is no JSON object; write it as "answer": {"field": …}'),
        ("[1]", {}, 'an answer is no JSON object; write it as "answer": {"field": …}'),
        ("{}", {}, 'an answer is no JSON object; write it as "answer": {"field": …}'),
        ('{"a": 1}', {"a": 0.0}, "no field of its answer has a weight; add one, or correct env.field_weights"),
        ('{"a": 1}', {"b": 0.0}, ""),
    ],
)
def test_an_answer_it_cannot_use_is_named(answer: str, weights: dict[str, float], problem: str) -> None:
    assert JsonMatch(weights).problem(_item(answer)) == problem


def test_weights_of_no_field_are_found() -> None:
    scorer = JsonMatch({"a": 2.0, "b.c": 1.0, "typo": 1.0})
    assert scorer.unused_weights([_item('{"a": 1}'), _item('{"b": {"c": 1}}')]) == ("typo",)


def test_the_fingerprint_tells_the_weights() -> None:
    one, two = (load_scorer("json_match", Path("nowhere"), field_weights=weights) for weights in ({}, {"a": 2.0}))
    assert one.fingerprint == "json_match/1"
    assert two.fingerprint != one.fingerprint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(derandomize=True, deadline=None)
@given(st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=4))
def test_an_answer_matches_itself(record: dict[str, object]) -> None:
    text = json.dumps(record)
    assert JsonMatch()(f"It is {text}.", _item(text)) == Score(1.0, 1.0)


@settings(derandomize=True, deadline=None)
@given(st.text(st.sampled_from('{}[]":,abc01 \n\\') | st.characters(), max_size=80))
def test_any_prediction_gets_a_score(text: str) -> None:
    found = JsonMatch()(text, _item(RIGHT))
    assert 0.0 <= found.soft <= 1.0
    assert found.hard in {0.0, 1.0}
