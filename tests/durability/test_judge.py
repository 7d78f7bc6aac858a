"""A run that a model judges, killed at commits of its journal: it ends with the same bytes and grades nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_processes import Parent
from killed_runs import AFTER, BEFORE, JOURNAL, SMALL, asked_in, count, kept_in, results_of, train

from burnish.application.journal_keys import kind_of

OPTIONS = ("env.scorer=llm_judge", "env.judge_repeats=2", "train.seed=1", "train.num_epochs=1")
VARIANTS = {"one by one": "env.workers=1", "in groups": "env.workers=8"}
PARTS = 3


def command(task: str, folder: Path, variant: str) -> list[str]:
    return ["train", task, "--out-root", str(folder), "--cfg-options", *SMALL, *OPTIONS, VARIANTS[variant]]


def numbers(commits: int, part: int) -> Iterator[int]:
    yield from range(2 + 3 * part, commits, 3 * PARTS)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("variant", "when"), [("one by one", AFTER), ("one by one", BEFORE), ("in groups", AFTER)])
def test_a_judged_run_that_is_killed_ends_the_same(
    variant: str, when: str, part: int, parent: Parent, task: str, tmp_path: Path
) -> None:
    files = [str(tmp_path / "whole.asked"), JOURNAL, str(tmp_path / "passed")]
    assert parent.call(count, command(task, tmp_path / "whole", variant), *files).status == 0
    commits = len(asked_in(tmp_path / "passed"))
    assert commits > 20
    for number in numbers(commits, part):
        again = command(task, tmp_path / str(number), variant)
        first = parent.call(train, again, str(tmp_path / f"{number}.first"), JOURNAL, number, when)
        may_be_over = variant == "in groups" and number > commits // 2  # how answers are grouped is a matter of time
        assert first.was_killed or (first.status == 0 and may_be_over), first.text
        kept = kept_in(tmp_path / str(number))
        second = parent.call(train, again, str(tmp_path / f"{number}.second"))
        assert second.status == 0, second.text
        assert results_of(tmp_path / str(number)) == results_of(tmp_path / "whole")
        ended = kept_in(tmp_path / str(number))
        grades = {key: answer for key, answer in kept.answers.items() if kind_of(key) == "judge"}
        assert grades.items() <= ended.answers.items()
        rollouts = {tuple(json.loads(key)[:5]) for key in kept.answers if kind_of(key) == "rollout"}
        assert not rollouts.intersection(asked_in(tmp_path / f"{number}.second"))
