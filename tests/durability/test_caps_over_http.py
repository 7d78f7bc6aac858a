"""Caps on tokens and dollars over HTTP, by the count of the server that is paid: never passed, whatever happens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from child_processes import Parent
from http_runs import LIMITED, STEP, THREE_MINIBATCHES, Asked, Attempt, HttpRuns, with_workers
from killed_runs import small_task
from ticket_server import OPTIMIZER, TARGET

USD_A_MILLION = {TARGET: (1, 2), OPTIMIZER: (3, 15)}
PRICES = f"""
budget:
  prices:
    {TARGET}: {{prompt: 1, completion: 2}}
    {OPTIMIZER}: {{prompt: 3, completion: 15}}
"""


@dataclass(frozen=True, slots=True)
class Cap:
    """A setting, a value at which a run stops between calls of the optimizer, and what a server's requests count for."""

    key: str
    value: int | float
    spent: Callable[[Sequence[Asked]], float]

    def option_at(self, share: float) -> str:
        """The option that sets a share of it."""
        value = self.value * share
        return f"{self.key}={int(value) if isinstance(self.value, int) else value}"

    @property
    def option(self) -> str:
        """The option that sets it."""
        return self.option_at(1)


def tokens(asked: Sequence[Asked]) -> float:
    return sum(each.read + each.written for each in asked)


def dollars(asked: Sequence[Asked]) -> float:
    millionths = 0
    for each in asked:
        prompt, completion = USD_A_MILLION[OPTIMIZER if each.purpose != "rollout" else TARGET]
        millionths += each.read * prompt + each.written * completion
    return millionths / 1_000_000


CAPS = [Cap("budget.max_tokens", 170_000, tokens), Cap("budget.max_usd", 0.6, dollars)]
of_every_cap = pytest.mark.parametrize("cap", CAPS, ids=lambda cap: cap.key)


@pytest.fixture(scope="session")
def runs(parent: Parent, tmp_path_factory: pytest.TempPathFactory) -> HttpRuns:
    """Of a task with prices, and with limits for all answers."""
    task = Path(small_task(tmp_path_factory.mktemp("task"), THREE_MINIBATCHES))
    task.write_text(task.read_text(encoding="utf-8") + PRICES, encoding="utf-8")
    return HttpRuns(parent, str(task), *STEP, *LIMITED)


@pytest.fixture(scope="session")
def whole(runs: HttpRuns, tmp_path_factory: pytest.TempPathFactory) -> Attempt:
    """A run without a cap."""
    attempt = runs.whole(tmp_path_factory.mktemp("whole") / "run")
    assert attempt.ended.status == 0, attempt.ended.text
    return attempt


def stopped_at(cap: Cap, attempt: Attempt) -> bool:
    """Whether the run ended well, and told that it stopped at the cap and how to go on."""
    summary = json.loads(attempt.results["summary.json"])
    assert (attempt.ended.status, summary["stop_reason"]) == (0, "budget"), attempt.ended.text
    return f"stopped: budget ({cap.key}: raise it, and the same command goes on)" in attempt.ended.text


def lost_in(folder: Path) -> dict[str, int] | None:
    lost: dict[str, int] | None = json.loads((folder / "timing.json").read_text(encoding="utf-8"))["lost"]
    return lost


@of_every_cap
@pytest.mark.parametrize(
    ("share", "asked"), [(0.02, {"rollout"}), (1.0, {"rollout", "reflect", "merge", "rank"})], ids=["early", "late"]
)
def test_a_cap_stops_a_run_at_the_same_call_for_any_number_of_workers(
    share: float, asked: set[str], cap: Cap, runs: HttpRuns, whole: Attempt, tmp_path: Path
) -> None:
    one = runs.whole(tmp_path / "one", cap.option_at(share), *with_workers(1))
    many = runs.whole(tmp_path / "many", cap.option_at(share), *with_workers(32))
    assert stopped_at(cap, one)
    assert stopped_at(cap, many)
    assert one.bodies == many.bodies
    assert one.results == many.results
    assert set(one.purposes) == asked
    assert set(one.bodies) < set(whole.bodies)
    assert cap.spent(one.asked) <= share * cap.value


@of_every_cap
def test_a_run_whose_cap_is_raised_goes_on_as_if_there_had_been_none(
    cap: Cap, runs: HttpRuns, whole: Attempt, tmp_path: Path
) -> None:
    attempts: list[Attempt] = []
    for share in (0.1, 0.6, 1.0):
        attempts.append(runs.whole(tmp_path / "run", cap.option_at(share)))
        assert stopped_at(cap, attempts[-1])
        assert cap.spent([asked for attempt in attempts for asked in attempt.asked]) <= share * cap.value
    attempts.append(runs.whole(tmp_path / "run", f"{cap.key}=1000000"))
    assert attempts[-1].ended.status == 0, attempts[-1].ended.text
    assert attempts[-1].results == whole.results
    assert sum((attempt.bodies for attempt in attempts), Counter[str]()) == whole.bodies
    assert lost_in(tmp_path / "run") is None


@of_every_cap
def test_calls_that_are_lost_with_a_killed_process_count_and_no_cap_is_passed(
    cap: Cap, runs: HttpRuns, whole: Attempt, tmp_path: Path
) -> None:
    folder, lost = tmp_path / "run", list[int]()
    attempts = [runs.killed_while_asking(folder, purpose, cap.option) for purpose in ("rollout", "rollout", "reflect")]
    assert all(attempt.ended.was_killed for attempt in attempts)
    for _ in range(2):
        attempts.append(runs.whole(folder, cap.option))
        assert stopped_at(cap, attempts[-1])
        assert "calls of earlier attempts that were never answered, counted at their worst" in attempts[-1].ended.text
        assert cap.spent([asked for attempt in attempts for asked in attempt.asked]) <= cap.value
        told = lost_in(folder)
        assert told is not None
        lost.append(told["calls"])
    assert lost[0] == lost[1] >= 3
    attempts.append(runs.whole(folder, f"{cap.key}=1000000"))
    assert attempts[-1].ended.status == 0, attempts[-1].ended.text
    assert attempts[-1].results == whole.results
