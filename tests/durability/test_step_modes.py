"""Every way to make a step, and to end an epoch, over HTTP: workers and kills change no byte, nothing is asked twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from child_processes import Parent
from http_runs import NOTED_ROLLOUT, STEP, THREE_MINIBATCHES, Attempt, HttpRuns, with_workers
from killed_runs import AFTER, BEFORE, small_task
from ticket_server import ticket_models

PATCH, SUGGESTIONS, WHOLE = "patch", "rewrite_from_suggestions", "full_rewrite_minibatch"
FIXED, AUTONOMOUS, NONE = "fixed", "autonomous", "none"

ALL_RULES = ("env.skill_init=house_rules.md", "optimizer.learning_rate=1", "optimizer.min_learning_rate=1")
"""A skill with all rules already, so that every slip is a lapse."""
SLIPPING = ticket_models(useful=0.0, useless=1.0, harmful=0.0, noise=0.4)
"""An agent that slips often enough for notes, and for too many of them, in two steps; edits do not matter."""

ONE_ANSWER_A_COMMIT = ("env.workers=1",)
KILLS = ((26, AFTER), (10, BEFORE))
"""Below which number of a commit, and when; together they are fewer than any run has."""


@dataclass(frozen=True, slots=True)
class Case:
    """A way to train, and the calls of the optimizer that it is to make."""

    name: str
    options: tuple[str, ...]
    calls: frozenset[str]
    aware: bool = False


def step_case(mode: str, rate: str) -> Case:
    """A way to make a step: whole rewrites have no learning rate, and what has no limit needs no ranking."""
    calls = {"reflect", "merge"}
    if mode == SUGGESTIONS:
        calls.add("rewrite")
    if mode != WHOLE:
        calls |= {FIXED: {"rank"}, AUTONOMOUS: {"rank", "learning_rate"}, NONE: set[str]()}[rate]
    options = (
        f"optimizer.skill_update_mode={mode}",
        f"optimizer.lr_control_mode={rate}",
        "optimizer.use_meta_skill=false",
    )
    return Case(f"{mode}-{rate}", (*STEP, *options), frozenset(calls))


def epoch_case(*, gated: bool, remembers: bool, aware: bool = False) -> Case:
    """A way to end an epoch, over two of them; an agent that slips is reminded, if lapses are told from defects."""
    options = (
        "train.num_epochs=2",
        "train.steps_per_epoch=1",
        "evaluation.eval_test=false",
        f"optimizer.slow_update_gate_with_selection={str(gated).lower()}",
        f"optimizer.use_meta_skill={str(remembers).lower()}",
        f"optimizer.use_skill_aware_reflection={str(aware).lower()}",
        f"optimizer.skill_aware_consolidate_threshold={int(aware)}",
    )
    noted = ["consolidate", NOTED_ROLLOUT] if aware else []
    calls = {"reflect", "merge", "rank", "guidance", *(["memory"] if remembers else []), *noted}
    name = f"{'gated' if gated else 'forced'}-{'memory' if remembers else 'no memory'}{'-notes' if aware else ''}"
    all_options = (*STEP, *options, *(ALL_RULES if aware else ()))
    return Case(name, all_options, frozenset(calls), aware=aware)


CASES = [
    *(step_case(mode, rate) for mode in (PATCH, SUGGESTIONS, WHOLE) for rate in (FIXED, AUTONOMOUS, NONE)),
    *(
        epoch_case(gated=gated, remembers=remembers, aware=aware)
        for aware in (False, True)
        for gated in (False, True)
        for remembers in (True, False)
    ),
]
of_every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The task file of a task with three minibatches a step."""
    return small_task(tmp_path_factory.mktemp("task"), THREE_MINIBATCHES)


@pytest.fixture(scope="session")
def wholes(
    parent: Parent, task: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Case], tuple[HttpRuns, Attempt]]:
    """Of each case its runs, and the one with a single worker that nobody interrupted."""
    found: dict[str, tuple[HttpRuns, Attempt]] = {}

    def whole(case: Case) -> tuple[HttpRuns, Attempt]:
        if case.name not in found:
            runs = HttpRuns(parent, task, *case.options, answer=SLIPPING if case.aware else None)
            attempt = runs.whole(tmp_path_factory.mktemp("whole") / "run", *with_workers(1))
            assert attempt.ended.status == 0, attempt.ended.text
            found[case.name] = runs, attempt
        return found[case.name]

    return whole


Wholes = Callable[[Case], tuple[HttpRuns, Attempt]]


def assert_same_in_the_end(attempts: Sequence[Attempt], whole: Attempt) -> None:
    """All but the last attempt were killed; what one had kept was not asked again by any that came after."""
    assert all(attempt.ended.was_killed for attempt in attempts[:-1]), attempts[-2].ended.text
    last = attempts[-1]
    assert last.ended.status == 0, last.ended.text
    assert "Traceback" not in last.ended.text
    assert last.results == whole.results
    assert last.kept.answers == whole.kept.answers
    for number, attempt in enumerate(attempts[:-1], start=1):
        asked_after = set[str]().union(*(later.bodies for later in attempts[number:]))
        assert len(asked_after) == len(whole.bodies) - len(attempt.kept.answers)
    assert set[str]().union(*(attempt.bodies for attempt in attempts)) == set(whole.bodies)


@of_every_case
def test_the_optimizer_is_asked_in_all_its_roles_and_as_much_by_one_worker_as_by_32(
    case: Case, wholes: Wholes, tmp_path: Path
) -> None:
    runs, one = wholes(case)
    assert set(one.purposes) == case.calls | {"rollout"}
    assert one.purposes["merge"] >= 2
    assert max(one.bodies.values()) == 1
    assert len(one.asked) == len(one.kept.answers)
    many = runs.whole(tmp_path / "run", *with_workers(32))
    assert many.ended.status == 0, many.ended.text
    assert many.results == one.results
    assert len(many.results) == 4
    assert many.bodies == one.bodies


@of_every_case
def test_a_run_killed_during_each_kind_of_call_ends_with_the_same_bytes(
    case: Case, wholes: Wholes, tmp_path: Path
) -> None:
    runs, whole = wholes(case)
    in_order = [purpose for purpose in whole.purposes if purpose != "rollout"]
    attempts = [runs.killed_while_asking(tmp_path / "run", purpose) for purpose in in_order]
    assert_same_in_the_end([*attempts, runs.whole(tmp_path / "run")], whole)


@of_every_case
def test_a_run_killed_at_random_commits_ends_with_the_same_bytes(case: Case, wholes: Wholes, tmp_path: Path) -> None:
    runs, whole = wholes(case)
    chance = random.Random(case.name)
    attempts = [
        runs.killed_at_commit(tmp_path / "run", chance.randrange(1, most), *ONE_ANSWER_A_COMMIT, when=when)
        for most, when in KILLS
    ]
    assert_same_in_the_end([*attempts, runs.whole(tmp_path / "run")], whole)
