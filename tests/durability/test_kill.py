"""A run that is killed anywhere and started again ends as if nothing had happened, and asks nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from child_processes import Ended, Parent
from killed_runs import AFTER, BEFORE, JOURNAL, RECORDS, SMALL, Kept, asked_in, count, kept_in, results_of, train

from burnish.presentation.cli import run

MOST_COMMITS = 60
SPARE = 2
PARTS = 6
"""Tests a place's calls are spread over."""

VARIANTS = {
    "one by one": ("env.workers=1", "train.seed=2"),
    "in groups": (
        "env.workers=8",
        "train.seed=0",
        "evaluation.gate_mode=two_split",
        "optimizer.recall_meta_skill=true",
    ),
}
"""One answer a commit; and many, with a seed and a memory that are journaled too."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A run that nobody interrupted."""

    results: dict[str, bytes]
    kept: Kept
    asked: list[tuple[str, ...]]
    told: list[str]
    calls: dict[str, int]
    """How often it came past each place where it may be killed."""


def command(task: str, folder: Path, variant: str, *more: str) -> list[str]:
    return ["train", task, "--out-root", str(folder), *more, "--cfg-options", *SMALL, *VARIANTS[variant]]


def told(ended: Ended) -> list[str]:
    """The trail's lines without the headings of the steps."""
    trail, _, _ = ended.text.partition("\nsimulated models")
    return [line for line in trail.splitlines() if line and not line.startswith("epoch ")]


@pytest.fixture(scope="session")
def wholes(parent: Parent, task: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Whole]:
    found: dict[str, Whole] = {}
    for variant in VARIANTS:
        folder = tmp_path_factory.mktemp("whole")
        calls: dict[str, int] = {}
        ended = Ended(70, "not run")
        for place in (JOURNAL, RECORDS):
            files = [str(folder / f"{place}.asked"), place, str(folder / f"{place}.passed")]
            ended = parent.call(count, list(command(task, folder / place, variant)), *files)
            assert ended.status == 0, ended.text
            calls[place] = len(asked_in(folder / f"{place}.passed"))
        asked = asked_in(folder / f"{RECORDS}.asked")
        found[variant] = Whole(results_of(folder / RECORDS), kept_in(folder / RECORDS), asked, told(ended), calls)
    return found


def killed_and_resumed(
    parent: Parent, task: str, folder: Path, variant: str, point: tuple[str, int, str]
) -> tuple[Ended, Kept, Ended, list[tuple[str, ...]]]:
    """How the first attempt ended, what it had kept, how the second ended, and what it asked."""
    first = parent.call(train, command(task, folder / "run", variant), str(folder / "first"), *point)
    kept = kept_in(folder / "run")
    second = parent.call(train, command(task, folder / "run", variant), str(folder / "second"))
    return first, kept, second, asked_in(folder / "second")


def part_of(number_of_calls: int, part: int) -> Iterator[int]:
    """Every call's number once over all parts; a few more, because how answers are grouped is a matter of time."""
    yield from range(1 + part, number_of_calls + 1 + SPARE, PARTS)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    ("variant", "place", "when"),
    [
        ("one by one", JOURNAL, AFTER),
        ("in groups", JOURNAL, AFTER),
        ("in groups", JOURNAL, BEFORE),
        ("in groups", RECORDS, AFTER),
    ],
)
def test_a_run_killed_anywhere_ends_with_the_same_bytes_and_asks_nothing_twice(
    variant: str, place: str, when: str, part: int, parent: Parent, task: str, wholes: dict[str, Whole], tmp_path: Path
) -> None:
    whole = wholes[variant]
    assert place != JOURNAL or 10 < whole.calls[place] <= MOST_COMMITS
    for number in part_of(whole.calls[place], part):
        folder = tmp_path / str(number)
        folder.mkdir()
        first, kept, second, asked = killed_and_resumed(parent, task, folder, variant, (place, number, when))
        assert first.was_killed or (first.status == 0 and number > whole.calls[place] - SPARE), first.text
        assert second.status == 0, second.text
        assert "Traceback" not in second.text
        assert results_of(folder / "run") == whole.results
        assert Counter(asked) == Counter(question for question in whole.asked if question not in kept.asked)
        ended = kept_in(folder / "run")
        assert ended.answers == whole.kept.answers
        assert ended.records == whole.kept.records
        assert ended.checkpoints == whole.kept.checkpoints
        assert of_epochs(ended.audit) == of_epochs(whole.kept.audit)
        assert told(second) == whole.told[len(whole.told) - len(told(second)) :]


def of_epochs(audit: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The rows of messages that have their place in a run; each command to train has its own row."""
    return [row for row in audit if row[0] in {"SlowUpdate", "MetaSkillUpdate"}]


def test_the_run_that_is_killed_holds_everything_that_is_journaled(wholes: dict[str, Whole]) -> None:
    for variant, whole in wholes.items():
        repeats = {question[3] for question in whole.asked if question[0] == "rollout"}
        assert repeats == {"0", "1", "2", "slow/2", "final", "test"}
        assert [question[0] for question in whole.asked].count("reflect") > 4
        assert of_epochs(whole.kept.audit) == [
            ("MetaSkillUpdate", "epoch 1"),
            ("SlowUpdate", "epoch 2"),
            ("MetaSkillUpdate", "epoch 2"),
        ]
        reasons = {json.loads(line)["reason"] for line in whole.results["history.jsonl"].splitlines()}
        assert {"accepted", "forced"} <= reasons
        assert (("seed",) in whole.asked) == (variant == "in groups")


def test_replayed_events_are_marked_and_tell_the_same(parent: Parent, task: str, tmp_path: Path) -> None:
    def events(ended: Ended) -> list[dict[str, object]]:
        return [json.loads(line) for line in ended.text.splitlines()]

    def unmarked(told: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{name: value for name, value in event.items() if name not in {"replayed", "folder"}} for event in told]

    whole = events(parent.call(train, command(task, tmp_path / "whole", "one by one", "--json"), str(tmp_path / "a")))
    again = command(task, tmp_path / "run", "one by one", "--json")
    first = parent.call(train, again, str(tmp_path / "b"), JOURNAL, 30, AFTER)
    assert first.was_killed
    resumed = events(parent.call(train, again, str(tmp_path / "c")))
    assert unmarked(resumed) == unmarked(whole)
    assert not any(event.get("replayed") for event in whole)
    marks = [bool(event["replayed"]) for event in resumed if event["event"] != "Summary"]
    assert marks == sorted(marks, reverse=True)
    assert 0 < sum(marks) < len(marks)
    assert sum(marks) >= len(events(first)) - 1


def test_a_run_killed_again_and_again_still_ends_the_same(
    parent: Parent, task: str, wholes: dict[str, Whole], tmp_path: Path
) -> None:
    again = command(task, tmp_path / "run", "one by one")
    attempts = 0
    while parent.call(train, again, str(tmp_path / "asked"), JOURNAL, 5, AFTER).was_killed:
        attempts += 1
    assert attempts >= 8
    assert results_of(tmp_path / "run") == wholes["one by one"].results
    assert Counter(asked_in(tmp_path / "asked")).most_common(1)[0][1] == 1


def test_the_audit_log_of_a_run_that_was_killed_is_unbroken(parent: Parent, task: str, tmp_path: Path) -> None:
    again = command(task, tmp_path / "run", "one by one")
    for number in (10, 20, 15):
        assert parent.call(train, again, str(tmp_path / "asked"), JOURNAL, number, AFTER).was_killed
    assert parent.call(train, again, str(tmp_path / "asked")).status == 0
    assert parent.call(run, ["audit", "verify", str(tmp_path / "run")]).status == 0
