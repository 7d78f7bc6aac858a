"""The files of a new Python package that brings a task and a scorer to burnish."""

from __future__ import annotations

import re
from collections.abc import Mapping

from burnish.presentation.settings.errors import SettingsError, shown
from burnish.presentation.settings.keys import KEYS

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST_NAME = 48

_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
description = "A task and a scorer for burnish."
requires-python = ">=3.11"

# burnish finds both by these names: env.task and env.scorer in a task file.
[project.entry-points."burnish.tasks"]
{name} = "{module}:items"

[project.entry-points."burnish.scorers"]
{name} = "{module}:score"

[tool.hatch.build.targets.wheel]
packages = ["src/{module}"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""
_INIT = '''\
"""A task for burnish: its items, and how an answer to one is judged."""

from {module}.items import items
from {module}.scorer import score

__all__ = ["items", "score"]
'''
_ITEMS = '''\
"""The items: what is asked, and what is right."""

from __future__ import annotations

import json
from importlib.resources import files


def items() -> list[dict[str, object]]:
    """All items, to be dealt out to train, val and test; each has an id, a question and an answer."""
    text = (files("{module}") / "items.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]
'''
_SCORER = '''\
"""The scorer: how good an answer is."""

from __future__ import annotations

from collections.abc import Mapping


def score(prediction: str, item: Mapping[str, object]) -> dict[str, object]:
    """`hard`: 1 when the item is solved; `soft`: how nearly; `reason`: told to the optimizer when it is not.

    The same answer must always get the same score. The item holds its fields, and always a list `answers`.
    """
    right = str(item["answer"]).strip().lower()
    given = prediction.strip().lower()
    if given == right:
        return {{"hard": 1.0, "soft": 1.0}}
    shared = len(set(given.split()) & set(right.split())) / max(len(set(right.split())), 1)
    return {{"hard": 0.0, "soft": min(shared, 0.99), "reason": f"expected {{right!r}}, got {{given[:200]!r}}"}}
'''
_TESTS = '''\
"""The package's promises to burnish: it is found by its names, its items are whole, its scorer is fair."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from {module} import items, score


@pytest.mark.parametrize(("group", "function"), [("burnish.tasks", items), ("burnish.scorers", score)])
def test_burnish_finds_it(group: str, function: object) -> None:
    (found,) = entry_points(group=group, name="{name}")
    assert found.load() is function


def test_every_item_has_an_id_of_its_own_a_question_and_an_answer() -> None:
    ids = [item["id"] for item in items()]
    assert len(set(ids)) == len(ids)
    assert all(item["question"] and item["answer"] for item in items())


def test_the_right_answer_is_right_and_another_is_not() -> None:
    for item in items():
        assert score(str(item["answer"]), item)["hard"] == 1.0
        wrong = score("something else", item)
        assert wrong["hard"] == 0.0
        assert wrong["reason"]
'''
_README = """\
# {name}

A task and a scorer for burnish. `src/{module}/items.jsonl` holds the items, `src/{module}/scorer.py` judges the answers.

    pip install -e .
    python -m pytest
    burnish doctor task.yaml
    burnish train task.yaml
"""
_SKILL = """\
---
name: {name}
description: How to answer the questions of {name}.
---

# {name}

Answer the question.
"""
_TASK = """\
env:
  name: {name}
  skill_init: SKILL.md
{data}
  split_ratio: "2:1:1"

train:
  batch_size: 4
"""
_BY_NAME = """\
  task: {name}
  scorer: {name}"""
_BY_PATH = """\
  data_path: src/{module}/items.jsonl
  scorer: python
  scorer_function: {module}:score"""
_ITEM = '{{"id": "{number}", "question": "What is {number} plus {number}?", "answer": "{twice}"}}\n'
_ITEM_COUNT = 12


def package_files(name: str) -> Mapping[str, str]:
    """The text of each file by its path in the package's folder. Raises SettingsError for a name that is none."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME or name == "burnish":
        raise SettingsError((f"--task-package: {shown(name)!r}: use small letters, digits and single hyphens",))
    names = {"name": name, "module": name.replace("-", "_")}
    module = f"src/{names['module']}"
    by_name = {"env.task", "env.scorer"} <= KEYS.keys()
    data = (_BY_NAME if by_name else _BY_PATH).format(**names)
    items = "".join(_ITEM.format(number=number, twice=2 * number) for number in range(1, _ITEM_COUNT + 1))
    texts = {
        "pyproject.toml": _PYPROJECT,
        "README.md": _README,
        "SKILL.md": _SKILL,
        f"{module}/__init__.py": _INIT,
        f"{module}/items.py": _ITEMS,
        f"{module}/scorer.py": _SCORER,
        f"tests/test_{names['module']}.py": _TESTS,
    }
    return {
        **{path: text.format(**names) for path, text in texts.items()},
        "task.yaml": _TASK.format(**names, data=data),
        f"{module}/items.jsonl": items,
    }
