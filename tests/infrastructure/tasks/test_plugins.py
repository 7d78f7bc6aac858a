"""Scorers that installed packages bring."""

from __future__ import annotations

from pathlib import Path

import pytest
from installed_packages import install

from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.plugins import SCORERS, plugin_names
from burnish.infrastructure.tasks.scorers import Score, load_scorer
from burnish.presentation.settings.scorer_names import bad_scorer

FUNCTION = """
def score(prediction, item):
    return {"hard": prediction == item["answer"], "reason": "not the same"}
"""
OBJECT = """
from burnish.api import Item, Score


class Length:
    fingerprint = "length/1"
    is_blocking = False

    def problem(self, item: Item) -> str:
        return ""

    def extract(self, answer: str) -> str:
        return answer.strip()

    def __call__(self, prediction: str, item: Item) -> Score:
        return Score(float(len(prediction) == len(item.question)), 0.5)


length = Length()
"""
ITEM = Item("a", "Q?", ("A",))


def test_a_function_of_a_package_is_a_scorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "one_scorer", FUNCTION, {SCORERS: {"same": "one_scorer:score"}})
    scorer = load_scorer("same", tmp_path)
    assert scorer("A", ITEM) == Score(1.0, 1.0, "not the same")
    assert scorer("B", ITEM) == Score(0.0, 0.0, "not the same")
    assert scorer.fingerprint.startswith("python/same of burnish.scorers/")


def test_an_object_of_a_package_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "length_scorer", OBJECT, {SCORERS: {"length": "length_scorer:length"}})
    scorer = load_scorer("length", tmp_path)
    assert scorer.fingerprint == "length/1"
    assert scorer(scorer.extract(" ab "), ITEM) == Score(1.0, 0.5)


def test_its_name_is_one_of_the_scorers_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "same" not in plugin_names(SCORERS)
    install(tmp_path, monkeypatch, "one_scorer", FUNCTION, {SCORERS: {"same": "one_scorer:score"}})
    assert bad_scorer("same") is None
    assert (bad_scorer("sane") or "").endswith("or same, not sane: did you mean same?")


@pytest.mark.parametrize(
    ("source", "target", "line"),
    [
        ("score = 3", "bad_scorer:score", "scorer 'bad of burnish.scorers': not a function; name one"),
        (
            "raise OSError",
            "bad_scorer:score",
            "scorer 'bad': importing it raised OSError; import 'bad_scorer:score' in",
        ),
        ("", "bad_scorer:score", "scorer 'bad': importing it raised AttributeError; import"),
        ("raise SystemExit", "bad_scorer:score", "scorer 'bad': importing it raised SystemExit; import"),
    ],
)
def test_one_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, target: str, line: str
) -> None:
    install(tmp_path, monkeypatch, "bad_scorer", source, {SCORERS: {"bad": target}})
    with pytest.raises(DataError) as caught:
        load_scorer("bad", tmp_path)
    assert caught.value.line.startswith(line)


def test_two_packages_with_one_name_are_told_apart_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one_scorer", "other_scorer"):
        install(tmp_path, monkeypatch, name, FUNCTION, {SCORERS: {"same": f"{name}:score"}})
    with pytest.raises(DataError) as caught:
        load_scorer("same", tmp_path)
    line = "scorer 'same': both one_scorer and other_scorer bring one of that name; uninstall one of them"
    assert caught.value.line == line
