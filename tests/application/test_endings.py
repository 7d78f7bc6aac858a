"""Why a run ends: done, out of patience, or because the world outside did not work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    RaisingProposer,
    RecordingSink,
    ScriptedProposer,
    ScriptedRunner,
    append,
    stated,
    steps,
    training,
)

from burnish.application.events import RunFinished, RunStarted, StepFinished
from burnish.application.result import Failure, Result
from burnish.application.runs import GetRun, ListCheckpoints
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Patch
from burnish.domain.runs import StepReason, StopReason, TrainingRun
from burnish.presentation.app import open_app


def code_of(result: Result[TrainingRun]) -> str | None:
    return None if result.failure is None else result.failure.code.value


class Outage:
    """Scores as stated, but fails for the steps (of one call an item) in which it is down."""

    def __init__(self, down: Callable[[int], bool], *, split: str = "train", items: int = 4) -> None:
        self._down = down
        self._split = split
        self._items = items
        self._asked = 0

    def __call__(self, skill: str, item_id: str) -> float:
        if not item_id.startswith(self._split):
            return stated(skill, item_id)
        step = self._asked // self._items
        self._asked += 1
        if self._down(step):
            raise ConnectionError("down")
        return stated(skill, item_id)


async def test_a_run_that_takes_all_its_steps_is_completed() -> None:
    sink = RecordingSink()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), sinks=(sink,)) as app:
        run = (await app.send(training(TrainSkillConfig(epochs=2, steps_per_epoch=2, seed=1)))).value
    assert (run.stop_reason, run.steps_executed, run.code) == (StopReason.COMPLETED, 4, None)
    assert [(record.step, record.epoch) for record in run.steps if record.reason is StepReason.NO_PATCHES] == [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 2),
    ]
    assert [type(event) for event in (sink.events[0], sink.events[-1])] == [RunStarted, RunFinished]
    assert sink.of(RunFinished)[0].run == run


async def test_patience_counts_rejects_in_a_row() -> None:
    answers = (Patch(), append("score=0.3"), Patch(), append("score=0.1"), append("score=0.9"))
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(*answers)) as app:
        run = (await app.send(training(steps(5, patience=2)))).value
    assert (run.stop_reason, run.steps_executed, run.consecutive_rejects, run.best_score) == ("patience", 4, 2, 0.3)


async def test_without_patience_rejects_end_nothing() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        run = (await app.send(training(steps(9, patience=None)))).value
    assert (run.stop_reason, run.steps_executed, run.consecutive_rejects) == (StopReason.COMPLETED, 9, 9)


async def test_an_optimizer_that_only_fails_ends_the_run_with_its_code() -> None:
    proposer = ScriptedProposer(append("score=0.6"), None, RuntimeError("down"), "no patch", append("score=0.9"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        result = await app.send(training(steps(5, patience=3)))
        partial = (await app.send(GetRun("run"))).value
    assert result.failure == Failure("skill_training.run.optimizer_failed")  # type: ignore[arg-type]  # a code equals its text
    assert (partial.stop_reason, partial.code) == ("optimizer_failed", "skill_training.run.optimizer_failed")
    assert (partial.best_score, partial.steps_executed, partial.consecutive_rejects) == (0.6, 4, 3)
    assert [record.code for record in partial.steps] == [
        None,
        "skill_training.reflect.proposer_returned_null",
        "skill_training.reflect.proposer_call_failed",
        "skill_training.reflect.unreadable_patch",
    ]


async def test_one_answer_among_the_failures_makes_it_patience() -> None:
    proposer = ScriptedProposer(None, Patch(), None)
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(steps(9, patience=3)))).value
    assert run.stop_reason is StopReason.PATIENCE


async def test_an_optimizer_without_one_readable_answer_is_nothing_worked() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=RaisingProposer(RuntimeError("down"))) as app:
        result = await app.send(training(steps(2, patience=None)))
        partial = (await app.send(GetRun("run"))).value
    assert code_of(result) == "skill_training.run.nothing_worked"
    assert (partial.stop_reason, partial.steps_executed, partial.baseline_score) == (StopReason.FAILED, 2, 0.2)


async def test_a_missing_runner_ends_the_run_at_once() -> None:
    proposer = ScriptedProposer()
    async with open_app(proposer=proposer) as app:
        result = await app.send(training(steps(3)))
        partial = (await app.send(GetRun("run"))).value
    assert code_of(result) == "skill_training.rollout.not_configured"
    assert result.failure is not None
    assert "open_app" in result.failure.code.remedy
    assert (partial.stop_reason, partial.steps, proposer.reflections) == (StopReason.FAILED, (), [])


async def test_a_missing_proposer_ends_the_run_at_once() -> None:
    runner = CatalogRunner()
    async with open_app(rollouts=runner) as app:
        result = await app.send(training(steps(3)))
    assert code_of(result) == "skill_training.reflect.not_configured"
    assert len(runner.batches("train")) == 4


async def test_a_step_without_enough_answers_decides_nothing_and_costs_no_patience() -> None:
    runner = CatalogRunner(Outage(lambda step: step == 1))
    proposer = ScriptedProposer(Patch(), append("score=0.1"))
    sink = RecordingSink()
    async with open_app(rollouts=runner, proposer=proposer, sinks=(sink,)) as app:
        run = (await app.send(training(steps(3, patience=3)))).value
        checkpoints = (await app.send(ListCheckpoints("run"))).value
    assert [record.reason for record in run.steps] == ["no_patches", "inconclusive", "gate"]
    assert (run.steps[1].action, run.steps[1].code) == (None, "skill_training.rollout.call_failed")
    assert (run.stop_reason, run.consecutive_rejects, len(proposer.reflections)) == (StopReason.COMPLETED, 2, 2)
    assert [checkpoint.step for checkpoint in checkpoints] == [3]
    assert [event.record for event in sink.of(StepFinished)] == list(run.steps)


@pytest.mark.parametrize(("failing", "reason"), [(1, StepReason.NO_PATCHES), (2, StepReason.INCONCLUSIVE)])
async def test_a_step_is_inconclusive_above_the_error_rate_not_at_it(failing: int, reason: StepReason) -> None:
    def attempt(skill: str, item_id: str) -> float:
        if item_id in [f"train/{number}" for number in range(failing)]:
            raise TimeoutError
        return 0.2

    proposer = ScriptedProposer(Patch())
    async with open_app(rollouts=CatalogRunner(attempt), proposer=proposer) as app:
        await app.send(training(steps(1, max_error_rate=0.25)))
        run = (await app.send(GetRun("run"))).value
    assert run.steps[0].reason is reason
    if proposer.reflections:
        assert len(proposer.reflections[0].rollouts) == 4 - failing


async def test_a_candidate_without_enough_answers_is_inconclusive_and_changes_nothing() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if "score=0.6" in skill and item_id == "val/0":
            raise TimeoutError
        return stated(skill, item_id)

    proposer = ScriptedProposer(append("score=0.6"), append("score=0.5"))
    async with open_app(rollouts=CatalogRunner(attempt), proposer=proposer) as app:
        run = (await app.send(training(steps(2)))).value
    first, second = run.steps
    assert (first.action, first.reason, first.candidate_score, first.applied) == (None, "inconclusive", None, 1)
    assert (second.reason, run.best_skill) == ("accepted", f"{START}\n\nscore=0.5")


async def test_three_inconclusive_steps_in_a_row_end_the_run() -> None:
    runner, proposer = CatalogRunner(Outage(lambda step: step > 0)), ScriptedProposer(append("score=0.6"))
    async with open_app(rollouts=runner, proposer=proposer) as app:
        result = await app.send(training(steps(9, patience=1)))
        partial = (await app.send(GetRun("run"))).value
    assert code_of(result) == "skill_training.run.inconclusive"
    assert (partial.stop_reason, partial.code) == (StopReason.FAILED, "skill_training.run.inconclusive")
    assert (partial.steps_executed, partial.best_score) == (4, 0.6)


async def test_inconclusive_steps_with_a_decision_in_between_end_nothing() -> None:
    runner = CatalogRunner(Outage(lambda step: step % 3 != 2))
    async with open_app(rollouts=runner, proposer=ScriptedProposer()) as app:
        run = (await app.send(training(steps(9)))).value
    assert [record.reason for record in run.steps] == ["inconclusive", "inconclusive", "no_patches"] * 3
    assert run.stop_reason is StopReason.COMPLETED


async def test_inconclusive_steps_neither_use_nor_renew_patience() -> None:
    runner = CatalogRunner(Outage(lambda step: step == 1))
    proposer = ScriptedProposer(None, None)
    async with open_app(rollouts=runner, proposer=proposer) as app:
        result = await app.send(training(steps(9, patience=2)))
        partial = (await app.send(GetRun("run"))).value
    assert code_of(result) == "skill_training.run.optimizer_failed"
    assert [record.reason for record in partial.steps] == ["optimizer_failed", "inconclusive", "optimizer_failed"]


async def test_a_baseline_without_enough_answers_ends_the_run() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if item_id == "val/0":
            raise TimeoutError
        return 0.2

    async with open_app(rollouts=CatalogRunner(attempt), proposer=ScriptedProposer()) as app:
        result = await app.send(training(steps(3)))
        partial = (await app.send(GetRun("run"))).value
    assert code_of(result) == "skill_training.run.inconclusive"
    assert (partial.stop_reason, partial.steps, partial.baseline_score) == (StopReason.FAILED, (), None)


@pytest.mark.parametrize("baseline", [True, False])
@pytest.mark.parametrize("kind", [CatalogRunner, ScriptedRunner])
async def test_a_runner_without_one_answer_is_nothing_worked(
    kind: type[CatalogRunner | ScriptedRunner],
    *,
    baseline: bool,
) -> None:
    def attempt(skill: str, item_id: str) -> float:
        raise ConnectionError("no route")

    async with open_app(rollouts=kind(attempt), proposer=ScriptedProposer()) as app:
        result = await app.send(training(steps(9, evaluate_baseline=baseline)))
        partial = (await app.send(GetRun("run"))).value
    assert code_of(result) == "skill_training.run.nothing_worked"
    assert partial.stop_reason is StopReason.FAILED


async def test_a_run_that_ended_badly_may_be_started_again() -> None:
    proposer = ScriptedProposer(None, append("score=0.6"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        failed = await app.send(training(steps(1, patience=1)))
        again = await app.send(training(steps(1, patience=1)))
    assert code_of(failed) == "skill_training.run.optimizer_failed"
    assert (again.value.best_score, again.value.code, len(again.value.steps)) == (0.6, None, 1)


async def test_the_learning_rate_follows_the_schedule_over_all_epochs() -> None:
    config = TrainSkillConfig(epochs=2, steps_per_epoch=3, lr_start=4, lr_min=1, use_slow_update=False, seed=1)
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        run = (await app.send(training(config))).value
    assert [record.learning_rate for record in run.steps] == [4, 4, 3, 2, 1, 1]


async def test_the_optimizer_is_told_the_skill_its_rollouts_and_its_budget() -> None:
    proposer = ScriptedProposer(append("score=0.6"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        await app.send(training(steps(2)))
    first, second = proposer.reflections
    assert (first.current_skill, second.current_skill) == (START, f"{START}\n\nscore=0.6")
    assert [rollout.hard for rollout in second.rollouts] == [0.6] * 4
    assert (first.edit_budget, first.include_successes, first.meta_skill_memory) == (STEPS.lr_start, True, "")
    assert first.seed != second.seed


async def test_with_failures_only_and_none_of_them_the_optimizer_is_not_asked() -> None:
    proposer = ScriptedProposer(append("a"))
    async with open_app(rollouts=CatalogRunner(lambda skill, item_id: 1.0), proposer=proposer) as app:
        run = (await app.send(training(steps(2, failure_only=True)))).value
    assert (proposer.reflections, [record.reason for record in run.steps]) == ([], ["no_patches", "no_patches"])


async def test_answers_that_led_to_no_decision_are_answers_all_the_same() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if "score=0.6" in skill:
            raise TimeoutError
        return stated(skill, item_id)

    async with open_app(rollouts=CatalogRunner(attempt), proposer=ScriptedProposer(append("score=0.6"))) as app:
        run = (await app.send(training())).value
    assert (run.stop_reason, run.steps[0].reason) == (StopReason.COMPLETED, "inconclusive")
