"""After the last step: the final skill gets a fresh chance, and the test split is scored once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from dependency_injector import providers
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    RecordingSink,
    ScriptedGuidance,
    ScriptedProposer,
    ScriptedRunner,
    append,
    stated,
    steps,
    training,
)

from burnish.application.events import PassScored, Stage
from burnish.application.result import Result
from burnish.application.runs import GetRun
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Patch
from burnish.domain.runs import TrainingRun
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

PROMOTING = replace(STEPS, epochs=2, use_slow_update=True, promote_final=True)
Runner = CatalogRunner | ScriptedRunner


async def finish(
    runner: Runner, config: TrainSkillConfig = PROMOTING, *, sink: RecordingSink | None = None
) -> Result[TrainingRun]:
    """Accept 0.6, then force guidance in that scores 0.5: the final skill is not the best one."""
    container = Container()
    container.override_providers(guidance_writer=providers.Object(ScriptedGuidance("score=0.5")))
    proposer = ScriptedProposer(append("score=0.6"))
    async with open_app(rollouts=runner, proposer=proposer, sinks=(sink,) if sink else (), container=container) as app:
        return await app.send(training(config))


class Moody:
    """Scores as stated, until the final skill's validation is asked afresh."""

    def __init__(self, final: Callable[[], float], best: Callable[[], float]) -> None:
        self.runner = CatalogRunner(self)
        self._final = final
        self._best = best

    def __call__(self, skill: str, item_id: str) -> float:
        if self.runner.calls[-1].batch.repeat != "final":
            return stated(skill, item_id)
        return self._final() if "SLOW_UPDATE" in skill else self._best()


def down() -> float:
    raise ConnectionError("down")


async def test_both_skills_are_scored_afresh_on_the_validation_items() -> None:
    for runner in (CatalogRunner(), ScriptedRunner()):
        sink = RecordingSink()
        run = (await finish(runner, sink=sink)).value
        assert set(runner.skills("val", repeat="final")) == {run.final_skill, run.best_skill}
        asked = [runner.asked(skill, "val", repeat="final") for skill in (run.final_skill, run.best_skill)]
        assert asked[0] == asked[1]
        assert len(asked[0]) == 4
        told = [(event.skill, event.score.hard) for event in sink.of(PassScored) if event.stage is Stage.PROMOTE_FINAL]
        assert told == [("final", 0.5), ("best", 0.6)]
        assert not run.promoted_final


async def test_a_final_skill_that_wins_afresh_becomes_the_best_with_its_fresh_score() -> None:
    run = (await finish(Moody(lambda: 0.8, lambda: 0.7).runner)).value
    assert (run.promoted_final, run.best_score, run.selected_score, run.best_step) == (True, 0.8, 0.8, 2)
    assert run.best_skill == run.final_skill


async def test_a_tie_keeps_the_best() -> None:
    run = (await finish(Moody(lambda: 0.7, lambda: 0.7).runner)).value
    assert (run.promoted_final, run.best_score, run.best_step) == (False, 0.6, 1)


@pytest.mark.parametrize("moods", [(down, lambda: 0.1), (lambda: 0.9, down), (down, down)])
async def test_without_enough_fresh_answers_the_best_stays(
    moods: tuple[Callable[[], float], Callable[[], float]],
) -> None:
    run = (await finish(Moody(*moods).runner)).value
    assert (run.promoted_final, run.best_score, run.stop_reason) == (False, 0.6, "completed")


async def test_a_promoted_skill_counts_as_accepted() -> None:
    container = Container()
    container.override_providers(guidance_writer=providers.Object(ScriptedGuidance("score=0.1")))
    moody = Moody(lambda: 0.8, lambda: 0.7)
    async with open_app(rollouts=moody.runner, proposer=ScriptedProposer(), container=container) as app:
        run = (await app.send(training(PROMOTING))).value
    assert [record.action for record in run.steps] == ["reject", "reject", "accept"]
    assert (run.has_accepted_any, run.promoted_final, run.best_score, run.best_skill) == (
        True,
        True,
        0.8,
        run.final_skill,
    )


async def test_nothing_is_asked_when_the_final_skill_is_the_best_or_promotion_is_off() -> None:
    runner = CatalogRunner()
    async with open_app(rollouts=runner, proposer=ScriptedProposer(append("score=0.6"))) as app:
        await app.send(training(replace(STEPS, promote_final=True)))
    assert runner.batches("val", repeat="final") == []
    switched_off = CatalogRunner()
    await finish(switched_off, replace(PROMOTING, promote_final=False))
    assert switched_off.batches("val", repeat="final") == []


async def test_a_run_that_stopped_for_patience_is_promoted_too() -> None:
    container = Container()
    container.override_providers(guidance_writer=providers.Object(ScriptedGuidance("score=0.5")))
    moody = Moody(lambda: 0.8, lambda: 0.7)
    proposer = ScriptedProposer(append("score=0.6"), Patch())
    async with open_app(rollouts=moody.runner, proposer=proposer, container=container) as app:
        run = (await app.send(training(replace(PROMOTING, epochs=3, patience=2)))).value
    assert (run.stop_reason, run.promoted_final, run.best_score) == ("patience", True, 0.8)


# --- the test split --------------------------------------------------------------------------------------------------


async def test_initial_best_and_final_skill_are_scored_on_the_test_split() -> None:
    runner, sink = CatalogRunner(test=3), RecordingSink()
    run = (await finish(runner, replace(PROMOTING, eval_test=True), sink=sink)).value
    assert run.test is not None
    assert (run.test.initial.hard, run.test.best.hard, run.test.final.hard) == pytest.approx((0.2, 0.6, 0.5))
    assert run.test.final.scored == 3
    assert [runner.asked(skill, "test") for skill in runner.skills("test")] == [["test/0", "test/1", "test/2"]] * 3
    assert [event.skill for event in sink.of(PassScored) if event.stage is Stage.TEST] == ["initial", "best", "final"]


async def test_equal_skills_are_tested_once() -> None:
    runner = CatalogRunner(test=3)
    async with open_app(rollouts=runner, proposer=ScriptedProposer()) as app:
        run = (await app.send(training(replace(STEPS, eval_test=True)))).value
    assert run.test is not None
    assert run.test.initial == run.test.best == run.test.final
    assert len(runner.batches("test")) == 3


async def test_a_plain_runner_is_tested_on_the_same_items_for_every_skill() -> None:
    runner = ScriptedRunner()
    await finish(runner, replace(PROMOTING, eval_test=True))
    first, second, third = runner.batches("test")
    assert first.item_ids == ()
    assert len(second.item_ids) == 4
    assert second.item_ids == third.item_ids


async def test_the_test_split_is_not_touched_unless_asked_for() -> None:
    runner = CatalogRunner(test=3)
    run = (await finish(runner)).value
    assert (run.test, runner.batches("test")) == (None, [])


async def test_a_missing_test_split_is_told_before_anything_is_spent() -> None:
    runner = CatalogRunner(test=0)
    result = await finish(runner, replace(PROMOTING, eval_test=True))
    assert result.failure is not None
    assert (result.failure.code, result.failure.fields) == ("skill_training.rollout.empty_batch", ("test",))
    assert runner.calls == []


async def test_a_scorer_that_breaks_on_the_test_split_fails_the_run_that_stays_readable() -> None:
    def attempt(skill: str, item_id: str) -> float:
        return 7.0 if item_id == "test/1" else stated(skill, item_id)

    runner = CatalogRunner(attempt, test=2)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(append("score=0.6"))) as app:
        result = await app.send(training(steps(1, eval_test=True)))
        partial = (await app.send(GetRun("run"))).value
    assert result.failure is not None
    assert (result.failure.code, result.failure.fields) == ("skill_training.rollout.invalid_score", ("test/1",))
    assert (partial.stop_reason, partial.best_skill, partial.test) == ("failed", f"{START}\n\nscore=0.6", None)
