"""A task's own Python function as its scorer: finding it, what it is given, what it may answer."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.python_scorer import PythonScorer
from burnish.infrastructure.tasks.scorers import load_scorer
from burnish.infrastructure.tasks.scoring import Score

NEIGHBOUR_REMEDY = "install it, or reach a file beside it with: from . import …"
ITEM = Item("a", "Q?", ("A", "B"), "sums", {"nested": {"list": [1]}})


def _scorer(answer: object) -> PythonScorer:
    """A scorer whose function gives this answer to everything."""
    return PythonScorer("checks:score", "", lambda _prediction, _item: answer)


def _write(folder: Path, source: str, name: str = "checks.py") -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(source, encoding="utf-8")


def _refusal(name: str, folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_scorer(name, folder)
    assert caught.value.line.isprintable()
    return caught.value.line


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        (True, Score(1.0, 1.0)),
        (False, Score(0.0, 0.0)),
        (1, Score(1.0, 1.0)),
        (0.7, Score(0.0, 0.7)),
        (0.9999999, Score(1.0, 0.9999999)),
        (Decimal("0.5"), Score(0.0, 0.5)),
        ((True, 0.25), Score(1.0, 0.25)),
        ([0, 0.25], Score(0.0, 0.25)),
        ({"hard": 0.5}, Score(0.5, 0.5)),
        ({"hard": False, "soft": 0.5, "reason": "too short"}, Score(0.0, 0.5, "too short")),
        ({"hard": 1, "reason": None}, Score(1.0, 1.0)),
        (1.5, Score(1.5, 1.5)),
        (-1, Score(-1.0, -1.0)),
        (math.inf, Score(math.inf, math.inf)),
        ((2, -1), Score(2.0, -1.0)),
    ],
)
def test_a_score_comes_in_several_forms_and_is_never_put_into_range(answer: object, score: Score) -> None:
    assert _scorer(answer)("A", ITEM) == score


def test_nan_is_passed_on() -> None:
    score = _scorer(math.nan)("A", ITEM)
    assert math.isnan(score.hard)
    assert math.isnan(score.soft)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "1",
        b"1",
        (),
        (1,),
        (1, 1, 1),
        ("1", 1),
        {},
        {"soft": 1},
        {"hard": 1, "sotf": 1},
        {"hard": 1, "reason": 5},
        object(),
    ],
)
def test_what_is_no_score_is_an_error(answer: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        _scorer(answer)("A", ITEM)


def test_the_function_gets_a_fresh_copy_of_the_item_each_time() -> None:
    given: list[object] = []

    def score(prediction: str, item: dict[str, object]) -> float:
        given.append((prediction, dict(item)))
        item.clear()
        return 1.0

    scorer = PythonScorer("checks:score", "", score)
    scorer("P", ITEM)
    scorer("P", ITEM)
    expected = {
        "id": "a",
        "question": "Q?",
        "answer": "A",
        "answers": ["A", "B"],
        "task_type": "sums",
        "nested": {"list": [1]},
    }
    assert given == [("P", expected), ("P", expected)]


def test_an_item_without_answers_has_an_empty_one() -> None:
    given: list[object] = []

    def score(prediction: str, item: dict[str, object]) -> bool:
        given.extend([item["answer"], item["answers"]])
        return True

    PythonScorer("checks:score", "", score)("P", Item("a", "Q?", ()))
    assert given == ["", []]


def test_a_stop_iteration_leaves_as_an_error_that_survives_a_thread() -> None:
    def score(prediction: str, item: dict[str, object]) -> bool:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        PythonScorer("checks:score", "", score)("P", ITEM)


def test_without_a_tag_the_whole_answer_is_judged() -> None:
    scorer = _scorer(answer=True)
    assert scorer.extract("\nSELECT 1\n  FROM t;\n") == "SELECT 1\n  FROM t;"
    assert scorer.extract("so <answer>42</answer>") == "42"
    assert scorer.problem(Item("a", "Q?", ())) == ""
    assert scorer.is_blocking


def test_a_function_of_the_task_folder_is_found(tmp_path: Path) -> None:
    _write(tmp_path, "def score(prediction, item):\n    return prediction == item['answer']\n")
    scorer = load_scorer("checks:score", tmp_path)
    assert scorer("A", ITEM) == Score(1.0, 1.0)
    assert scorer("X", ITEM) == Score(0.0, 0.0)


def test_a_module_may_use_its_neighbours_and_dataclasses(tmp_path: Path) -> None:
    _write(
        tmp_path,
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from . import limits\n"
        "from .deeper.more import FACTOR\n"
        "@dataclass\n"
        "class Judge:\n"
        "    factor: float\n"
        "    def score(self, prediction, item):\n"
        "        return limits.LIMIT * self.factor\n"
        "judge = Judge(FACTOR)\n",
    )
    _write(tmp_path, "LIMIT = 0.5\n", "limits.py")
    _write(tmp_path, "FACTOR = 0.5\n", "deeper/more.py")
    assert load_scorer("checks:judge.score", tmp_path)("A", ITEM) == Score(0.0, 0.25)


def test_a_dotted_module_is_found_in_the_folder(tmp_path: Path) -> None:
    _write(tmp_path, "def score(prediction, item):\n    return 0.5\n", "checks/words.py")
    assert load_scorer("checks.words:score", tmp_path)("A", ITEM) == Score(0.0, 0.5)


def test_two_tasks_may_have_modules_of_the_same_name(tmp_path: Path) -> None:
    for name, value in (("one", 0.25), ("two", 0.5)):
        _write(tmp_path / name, f"def score(prediction, item):\n    return {value}\n", "json.py")
    one, two = (load_scorer("json:score", tmp_path / name) for name in ("one", "two"))
    assert [scorer("A", ITEM).soft for scorer in (one, two)] == [0.25, 0.5]


def test_loading_leaves_path_and_folder_as_they_were(tmp_path: Path) -> None:
    _write(tmp_path, "def score(prediction, item):\n    return 1\n")
    path, writes_bytecode = list(sys.path), sys.dont_write_bytecode
    load_scorer("checks:score", tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["checks.py"]
    assert (sys.path, sys.dont_write_bytecode) == (path, writes_bytecode)


def test_an_edited_function_is_loaded_anew(tmp_path: Path) -> None:
    _write(tmp_path, "def score(prediction, item):\n    return 0.25\n")
    first = load_scorer("checks:score", tmp_path)
    _write(tmp_path, "def score(prediction, item):\n    return 0.75\n")
    second = load_scorer("checks:score", tmp_path)
    assert [scorer("A", ITEM).soft for scorer in (first, second)] == [0.25, 0.75]
    assert first.fingerprint != second.fingerprint


def test_the_fingerprint_follows_the_sources_and_not_the_folder(tmp_path: Path) -> None:
    source = "from . import limits\ndef score(prediction, item):\n    return limits.LIMIT\n"
    fingerprints: list[str] = []
    for name, limit in (("one", 1), ("two", 1), ("three", 2)):
        _write(tmp_path / name, source)
        _write(tmp_path / name, f"LIMIT = {limit}\n", "limits.py")
        fingerprints.append(load_scorer("checks:score", tmp_path / name).fingerprint)
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]
    assert fingerprints[0].startswith("python/checks:score/")


def test_an_installed_function_is_found_when_the_folder_has_no_such_module(tmp_path: Path) -> None:
    scorer = load_scorer("operator:eq", tmp_path)
    assert scorer("A", ITEM) == Score(0.0, 0.0)
    assert len(scorer.fingerprint) == len("python/operator:eq/") + 64
    assert load_scorer("sys:intern", tmp_path).fingerprint.startswith("python/sys:intern/")


@pytest.mark.parametrize(
    "name", ["checks:", ":score", "checks.py/x:score", "a:b:c", "checks:score()", "a..b:score", "2a:b"]
)
def test_a_name_of_another_form_is_refused(tmp_path: Path, name: str) -> None:
    line = f"scorer '{name}': not of the form module:callable; write for example checks:score"
    assert _refusal(name, tmp_path) == line


@pytest.mark.parametrize(
    ("name", "source", "line"),
    [
        (
            "nowhere:score",
            "",
            "scorer 'nowhere:score': there is no module 'nowhere'; put it into the task's folder, or install it",
        ),
        (
            "checks.deeper:score",
            "",
            "scorer 'checks.deeper:score': there is no module 'checks.deeper'; put it into the task's folder, or install it",
        ),
        ("checks:score", "", "scorer 'checks:score': the module has no such callable; correct the name"),
        ("checks:x.y", "x = 1", "scorer 'checks:x.y': the module has no such callable; correct the name"),
        (
            "checks:score",
            "score = 1",
            "scorer 'checks:score': not a function; name one that takes a prediction and an item",
        ),
        (
            "checks:Score",
            "class Score: pass",
            "scorer 'checks:Score': not a function; name one that takes a prediction and an item",
        ),
        (
            "checks:score",
            "async def score(prediction, item): return 1",
            "scorer 'checks:score': an async function; write it with def, it is called in a thread",
        ),
        (
            "checks:score",
            "import nowhere.deeper",
            f"scorer 'checks:score': it imports 'nowhere', which is missing; {NEIGHBOUR_REMEDY}",
        ),
        (
            "checks:score",
            "from .nowhere import x",
            f"scorer 'checks:score': it imports 'nowhere', which is missing; {NEIGHBOUR_REMEDY}",
        ),
        (
            "checks:score",
            "import sys\nsys.exit('a\\nb')",
            "scorer 'checks:score': importing it raised SystemExit; import the module in Python to see where",
        ),
        (
            "checks:score",
            "raise ModuleNotFoundError('secret')",
            "scorer 'checks:score': importing it raised ModuleNotFoundError; import the module in Python to see where",
        ),
        (
            "checks:score",
            "def score(:",
            "scorer 'checks:score': importing it raised SyntaxError; import the module in Python to see where",
        ),
        (
            "checks:score",
            "1 / 0",
            "scorer 'checks:score': importing it raised ZeroDivisionError; import the module in Python to see where",
        ),
    ],
)
def test_a_function_that_cannot_be_had_is_refused(tmp_path: Path, name: str, source: str, line: str) -> None:
    _write(tmp_path, source)
    assert _refusal(name, tmp_path) == line


def test_a_failed_load_restores_the_bytecode_setting(tmp_path: Path) -> None:
    _write(tmp_path, "1 / 0")
    before = sys.dont_write_bytecode
    _refusal("checks:score", tmp_path)
    assert sys.dont_write_bytecode == before


def test_a_callable_object_is_a_function_too() -> None:
    class Judge:
        def __call__(self, prediction: str, item: dict[str, object]) -> float:
            return 0.5

    function: Callable[[str, dict[str, object]], object] = Judge()
    assert PythonScorer("checks:judge", "", function)("A", ITEM) == Score(0.0, 0.5)
