"""What a runner answers is checked, and what it does not answer is missing data: in no mean, in no comparison."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from fakes import (
    START,
    CatalogRunner,
    RecordingSink,
    ScriptedProposer,
    append,
    rollout,
    stated,
    steps,
    training,
)

from burnish.application.evaluate_skill import EvaluateSkill
from burnish.application.events import PassScored, Stage
from burnish.application.ports import PortError, RolloutRunner
from burnish.application.result import ErrorCode, Failure, Result
from burnish.application.runs import GetRun
from burnish.domain.gate import GateAction
from burnish.domain.rollouts import BatchScore, Rollout, RolloutBatch
from burnish.domain.runs import TrainingRun
from burnish.presentation.app import open_app

Change = Callable[[list[Rollout]], list[Rollout]]


class Answering:
    """A plain runner that answers with what a function makes of the batch, whatever that is."""

    def __init__(self, *answers: object) -> None:
        self._answers = answers
        self._asked = 0

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        answer = self._answers[min(self._asked, len(self._answers) - 1)]
        self._asked += 1
        return answer(batch) if callable(answer) else answer  # type: ignore[return-value]  # untyped on purpose


class AnsweringCatalog(CatalogRunner):
    """A catalog that answers every item with the same object."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self._answer = answer

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        return self._answer  # type: ignore[return-value]  # untyped on purpose


class Listing(CatalogRunner):
    """A catalog with odd ids."""

    def __init__(self, ids: object) -> None:
        super().__init__()
        self._ids = ids

    async def item_ids(self, split: str) -> Sequence[str]:
        if isinstance(self._ids, BaseException):
            raise self._ids
        return self._ids  # type: ignore[return-value]  # untyped on purpose


def good(batch: RolloutBatch) -> list[Rollout]:
    return [rollout(item, 0.2) for item in batch.item_ids or [f"{batch.split}-{n}" for n in range(batch.size)]]


async def failure_of(rollouts: RolloutRunner, *, baseline: bool = True) -> Failure | None:
    async with open_app(rollouts=rollouts, proposer=ScriptedProposer(append("a"))) as app:
        result = await app.send(training(steps(1, evaluate_baseline=baseline, max_error_rate=0.5)))
        kept = (await app.send(GetRun("run"))).value
    assert kept.code == (None if result.failure is None else result.failure.code)
    return result.failure


@pytest.mark.parametrize(
    "ids",
    [["a", "b", "c", "d", "e"], ["a", "a"], ["a", "b", "a"], ["a", ""], ["a", "b\n"], ["a", "x" * 257]],
    ids=["too many", "twice", "twice among others", "blank", "control character", "too long"],
)
async def test_ids_of_a_plain_runners_own_choice_are_checked(ids: list[str]) -> None:
    failure = await failure_of(Answering([rollout(item, 0.2) for item in ids]))
    assert failure is not None
    assert failure.code == "skill_training.rollout.wrong_items"


CHANGES: dict[str, Change] = {
    "one missing": lambda answers: answers[:-1],
    "one more": lambda answers: [*answers, rollout("another", 0.2)],
    "one other": lambda answers: [*answers[:-1], rollout("another", 0.2)],
    "one twice": lambda answers: [*answers, answers[0]],
    "none": lambda answers: [],
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_plain_runner_must_answer_the_pinned_items_exactly(change: str) -> None:
    def changed(batch: RolloutBatch) -> list[Rollout]:
        return CHANGES[change](good(batch)) if batch.split == "val" else good(batch)

    failure = await failure_of(Answering(good, good, changed))
    assert failure == Failure(ErrorCode.ROLLOUT_WRONG_ITEMS, ("val",))


async def test_pinned_items_may_come_back_in_any_order() -> None:
    def turned(batch: RolloutBatch) -> list[Rollout]:
        return good(batch)[::-1]

    assert await failure_of(Answering(good, good, turned)) is None


@pytest.mark.parametrize(
    "answer",
    [[], [rollout("val/0", 0.2), rollout("val/1", 0.2)], [rollout("other", 0.2)], ["val/0"], [None]],
    ids=["none", "two", "other", "text", "nothing"],
)
async def test_a_catalog_must_answer_the_item_it_was_asked(answer: object) -> None:
    failure = await failure_of(AnsweringCatalog(answer))
    assert failure is not None
    assert failure.code == "skill_training.rollout.wrong_items"


@pytest.mark.parametrize("answer", [None, 3, RuntimeError, "text"])
async def test_an_answer_that_is_no_sequence_of_rollouts_never_counts(answer: object) -> None:
    assert await failure_of(AnsweringCatalog(answer)) is not None


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1.5, -0.1, "0.5", None])
@pytest.mark.parametrize("which", ["hard", "soft"])
async def test_a_score_outside_of_its_range_is_the_scorers_bug_and_names_the_item(score: object, which: str) -> None:
    def attempt(skill: str, item_id: str) -> Rollout:
        if item_id != "val/2":
            return rollout(item_id, 0.2)
        scores = {"hard": 0.2, "soft": 0.2, which: score}
        return Rollout(item_id, **scores)  # type: ignore[arg-type]  # untyped hosts score with anything

    assert await failure_of(CatalogRunner(attempt)) == Failure(ErrorCode.ROLLOUT_INVALID_SCORE, ("val/2",))


@pytest.mark.parametrize("score", [0, 1, 0.0, 1.0])
async def test_scores_at_the_ends_of_the_range_are_fine(score: float) -> None:
    assert await failure_of(CatalogRunner(lambda skill, item_id: score)) is None


async def test_the_first_wrong_item_in_the_order_of_asking_is_named() -> None:
    def attempt(skill: str, item_id: str) -> float:
        return 2.0 if item_id in {"val/1", "val/3"} else 0.2

    first, second = await failure_of(CatalogRunner(attempt)), await failure_of(CatalogRunner(attempt))
    assert first == second == Failure(ErrorCode.ROLLOUT_INVALID_SCORE, ("val/1",))


async def test_the_scores_of_an_errored_rollout_are_not_looked_at() -> None:
    def attempt(skill: str, item_id: str) -> Rollout:
        return rollout(item_id, math.nan if item_id == "val/1" else 0.2, error="x" if item_id == "val/1" else None)

    assert await failure_of(CatalogRunner(attempt)) is None


async def test_a_runners_own_contract_codes_end_the_run_and_its_others_are_missing_data() -> None:
    def wrong(skill: str, item_id: str) -> float:
        raise PortError(ErrorCode.ROLLOUT_INVALID_SCORE, item_id)

    def down(skill: str, item_id: str) -> float:
        if item_id == "val/0":
            raise PortError(ErrorCode.STORE_UNAVAILABLE)
        return 0.2

    assert await failure_of(CatalogRunner(wrong)) == Failure(ErrorCode.ROLLOUT_INVALID_SCORE, ("val/0",))
    assert await failure_of(CatalogRunner(down)) is None


@pytest.mark.parametrize(
    ("ids", "failure"),
    [
        ([], Failure(ErrorCode.ROLLOUT_EMPTY_BATCH, ("train",))),
        (["a", "a"], Failure(ErrorCode.ROLLOUT_WRONG_ITEMS, ("train",))),
        (["a", " "], Failure(ErrorCode.ROLLOUT_WRONG_ITEMS, ("train",))),
        (["a", 3], Failure(ErrorCode.ROLLOUT_WRONG_ITEMS, ("train",))),
        (None, Failure(ErrorCode.ROLLOUT_CALL_FAILED, ("train",))),
        (OSError("no such file"), Failure(ErrorCode.ROLLOUT_CALL_FAILED, ("train",))),
        (PortError(ErrorCode.STORE_UNAVAILABLE, "items"), Failure(ErrorCode.STORE_UNAVAILABLE, ("items",))),
    ],
)
async def test_a_catalogs_list_of_items_is_checked(ids: object, failure: Failure) -> None:
    async with open_app(rollouts=Listing(ids), proposer=ScriptedProposer()) as app:
        assert (await app.send(training())).failure == failure


@pytest.mark.parametrize(("train", "val", "missing"), [(0, 4, "train"), (4, 0, "val")])
async def test_an_empty_split_is_refused_by_name(train: int, val: int, missing: str) -> None:
    runner = CatalogRunner(train=train, val=val)
    assert await failure_of(runner) == Failure(ErrorCode.ROLLOUT_EMPTY_BATCH, (missing,))
    assert runner.calls == []


async def test_a_plain_runner_without_items_is_an_empty_split() -> None:
    assert await failure_of(Answering([])) == Failure(ErrorCode.ROLLOUT_EMPTY_BATCH, ("val",))
    assert await failure_of(Answering([]), baseline=False) == Failure(ErrorCode.ROLLOUT_EMPTY_BATCH, ("train",))


@pytest.mark.parametrize("text", [None, 7, ["[user]", "hello"]], ids=["null", "number", "list"])
async def test_a_text_beside_the_scores_that_is_missing_or_no_text_ends_no_run(text: object) -> None:
    """System B dies of a fail_reason that is null."""
    texts = dict.fromkeys(("trajectory", "task_type", "prediction", "fail_reason"), text)

    def attempt(skill: str, item_id: str) -> Rollout:
        return replace(rollout(item_id, stated(skill, item_id)), **texts)  # type: ignore[arg-type]  # untyped on purpose

    proposer = ScriptedProposer(append("score=0.7"))
    async with open_app(rollouts=CatalogRunner(attempt), proposer=proposer) as app:
        run = (await app.send(training(steps(1)))).value
    assert run.selected_score == 0.7
    (shown, *_) = proposer.reflections[0].rollouts
    assert (shown.fail_reason, shown.trajectory) == (("", "") if text is None else (str(text), str(text)))


# --- missing data ----------------------------------------------------------------------------------------------------


async def test_an_item_without_an_answer_is_in_no_mean() -> None:
    def attempt(skill: str, item_id: str) -> Rollout | float:
        if item_id == "val/0":
            raise asyncio.CancelledError
        return rollout(item_id, 1.0, error="agent.refused") if item_id == "val/1" else 0.5

    sink = RecordingSink()
    async with open_app(rollouts=CatalogRunner(attempt), proposer=ScriptedProposer(), sinks=(sink,)) as app:
        run = (await app.send(training(steps(1, max_error_rate=0.5)))).value
    assert run.baseline_score == 0.5
    (baseline,) = [event for event in sink.of(PassScored) if event.stage is Stage.BASELINE]
    assert baseline.score == BatchScore(0.5, 0.5, 2, 2)


async def train_on(table: dict[str, dict[str, float]]) -> TrainingRun:
    """Two candidates on a table of versions and items; what is not in the table stays without an answer."""

    def attempt(skill: str, item_id: str) -> float:
        return 0.0 if item_id.startswith("train") else table[skill.rsplit(maxsplit=1)[-1]][item_id]

    proposer = ScriptedProposer(append("v1"), append("v2"))
    async with open_app(rollouts=CatalogRunner(attempt, val=3), proposer=proposer) as app:
        return (await app.send(training(steps(2, max_error_rate=0.5), initial_skill="v0"))).value


async def test_the_gate_compares_only_items_all_skills_have_answers_for() -> None:
    run = await train_on(
        {
            "v0": {"val/0": 0.5, "val/1": 0.5, "val/2": 0.0},
            "v1": {"val/0": 0.4, "val/1": 0.5},  # 0.45 to 0.5 on common items, though 0.45 beats the mean of 0.33
            "v2": {"val/1": 0.6, "val/2": 0.0},  # 0.3 to 0.25
        }
    )
    first, second = run.steps
    assert (first.action, first.candidate_score, first.compared_with) == (GateAction.REJECT, 0.45, 0.5)
    assert (second.action, second.candidate_score, second.compared_with) == (GateAction.ACCEPT_NEW_BEST, 0.3, 0.25)


async def test_an_item_the_current_skill_has_no_answer_for_compares_nothing() -> None:
    run = await train_on(
        {
            "v0": {"val/0": 0.2, "val/1": 0.2},
            "v1": {"val/0": 0.1, "val/1": 0.1, "val/2": 1.0},
            "v2": {"val/0": 0.3, "val/1": 0.3, "val/2": 0.0},
        }
    )
    assert [record.action for record in run.steps] == [GateAction.REJECT, GateAction.ACCEPT_NEW_BEST]
    assert run.best_skill.endswith("v2")


async def test_without_a_common_item_there_is_no_decision() -> None:
    run = await train_on({"v0": {"val/0": 0.2, "val/1": 0.2}, "v1": {"val/2": 1.0, "val/0": 0.3}, "v2": {"val/2": 1.0}})
    first, second = run.steps
    assert first.action is GateAction.ACCEPT_NEW_BEST
    assert (second.action, second.reason) == (None, "inconclusive")


async def test_the_optimizer_sees_answered_rollouts_only() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if item_id == "train/1":
            raise TimeoutError
        return stated(skill, item_id)

    proposer = ScriptedProposer()
    async with open_app(rollouts=CatalogRunner(attempt), proposer=proposer) as app:
        await app.send(training(steps(1, max_error_rate=0.5)))
    (reflection,) = proposer.reflections
    assert sorted(each.item_id for each in reflection.rollouts) == ["train/0", "train/2", "train/3"]


# --- evaluating a skill outside of a run -----------------------------------------------------------------------------


async def evaluate(runner: RolloutRunner, **fields: object) -> Result[BatchScore]:
    async with open_app(rollouts=runner) as app:
        return await app.send(EvaluateSkill(**{"skill": START, "split": "val", **fields}))  # type: ignore[arg-type]  # by name


async def test_a_catalogs_whole_split_is_evaluated_unless_a_size_is_given() -> None:
    runner = CatalogRunner(val=20)
    assert (await evaluate(runner)).value == BatchScore(0.2, 0.2, 20, 0)
    assert (await evaluate(runner, size=3)).value.scored == 3
    assert (await evaluate(runner, split="nowhere")).failure == Failure(ErrorCode.ROLLOUT_EMPTY_BATCH, ("nowhere",))


async def test_a_plain_runner_is_evaluated_on_sixteen_items_unless_a_size_is_given() -> None:
    assert (await evaluate(Answering(good))).value.scored == 16
    assert (await evaluate(Answering(good), size=3)).value.scored == 3


async def test_an_evaluation_without_one_answer_fails_and_with_some_tells_how_many_are_missing() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if item_id != "val/3":
            raise TimeoutError
        return 1.0

    assert (await evaluate(CatalogRunner(attempt))).value == BatchScore(1.0, 1.0, 1, 3)
    assert (await evaluate(CatalogRunner(attempt, val=3))).failure == Failure(ErrorCode.ROLLOUT_CALL_FAILED)


async def test_the_seed_of_an_evaluation_draws_its_items() -> None:
    drawn: list[list[str]] = []
    for seed in (1, 1, 2):
        runner = CatalogRunner(val=50)
        await evaluate(runner, size=5, seed=seed)
        drawn.append(runner.asked(START, "val"))
    assert drawn[0] == drawn[1] != drawn[2]
