"""What the initial skill is worth, and what a run says when nothing beats it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    RecordingSink,
    ScriptedProposer,
    ScriptedRunner,
    append,
    rollout,
    stated,
    steps,
    training,
)

from burnish.application.events import PassScored, Stage, StepFinished
from burnish.domain.gate import GateAction, GateMetric
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import StopReason
from burnish.presentation.app import open_app


async def test_the_initial_skill_is_scored_once_on_the_validation_items() -> None:
    runner, sink = CatalogRunner(), RecordingSink()
    async with open_app(rollouts=runner, proposer=ScriptedProposer(), sinks=(sink,)) as app:
        run = (await app.send(training(steps(3)))).value
    assert runner.asked(START, "val") == ["val/0", "val/1", "val/2", "val/3"]
    assert (run.baseline_score, run.final_score) == (0.2, 0.2)
    (baseline,) = [event for event in sink.of(PassScored) if event.stage is Stage.BASELINE]
    assert (baseline.score.hard, baseline.score.scored, baseline.step) == (0.2, 4, 1)


async def test_a_candidate_worse_than_the_initial_skill_is_rejected() -> None:
    proposer = ScriptedProposer(append("score=0.1"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training())).value
    (record,) = run.steps
    assert (record.action, record.candidate_score, record.compared_with) == (GateAction.REJECT, 0.1, 0.2)


async def test_a_candidate_as_good_as_the_initial_skill_is_rejected() -> None:
    proposer = ScriptedProposer(append("score=0.2"))
    async with open_app(rollouts=ScriptedRunner(), proposer=proposer) as app:
        run = (await app.send(training())).value
    (record,) = run.steps
    assert (record.action, record.candidate_score) == (GateAction.REJECT, 0.2)


async def test_without_an_accepted_candidate_the_best_is_the_initial_skill_and_scores_nothing() -> None:
    proposer = ScriptedProposer(append("score=0.1"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training())).value
    assert (run.best_skill, run.best_score, run.best_step, run.has_accepted_any) == (START, 0.0, 0, False)
    assert (run.baseline_score, run.selected_score, run.final_skill) == (0.2, 0.2, START)
    assert run.stop_reason is StopReason.COMPLETED


async def test_with_an_accepted_candidate_its_score_is_the_one_to_show() -> None:
    proposer = ScriptedProposer(append("score=0.1"), append("score=0.6"), append("score=0.5"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(steps(3)))).value
    assert (run.best_score, run.best_step, run.has_accepted_any) == (0.6, 2, True)
    assert (run.baseline_score, run.selected_score, run.final_score) == (0.2, 0.6, 0.6)
    assert run.best_skill == run.final_skill == f"{START}\n\nscore=0.6"
    assert [record.action for record in run.steps] == [GateAction.REJECT, GateAction.ACCEPT_NEW_BEST, GateAction.REJECT]


async def test_an_unmeasured_initial_skill_costs_no_rollout_and_has_no_score() -> None:
    runner, proposer = CatalogRunner(), ScriptedProposer()
    async with open_app(rollouts=runner, proposer=proposer) as app:
        run = (await app.send(training(steps(2, evaluate_baseline=False)))).value
    assert runner.batches("val") == []
    assert (run.baseline_score, run.selected_score, run.final_score, run.best_score) == (None, None, None, 0.0)


async def test_against_an_unmeasured_initial_skill_any_gain_above_zero_counts() -> None:
    proposer = ScriptedProposer(append("score=0.0"), append("score=0.1"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(steps(2, evaluate_baseline=False)))).value
    nothing, gain = run.steps
    assert (nothing.action, nothing.candidate_score, nothing.ceiling) == (GateAction.REJECT, 0.0, None)
    assert (gain.action, gain.candidate_score, gain.compared_with) == (GateAction.ACCEPT_NEW_BEST, 0.1, 0.0)
    assert (run.baseline_score, run.selected_score, run.best_score) == (None, 0.1, 0.1)


async def test_against_an_unmeasured_initial_skill_the_candidate_has_its_own_mean() -> None:
    def some_fail(skill: str, item_id: str) -> float:
        if item_id == "val/0":
            raise TimeoutError
        return {"val/1": 1.0, "val/2": 0.5}.get(item_id, 0.0)

    proposer = ScriptedProposer(append("x"))
    async with open_app(rollouts=CatalogRunner(some_fail), proposer=proposer) as app:
        run = (await app.send(training(steps(1, evaluate_baseline=False, max_error_rate=0.5)))).value
    assert run.steps[0].candidate_score == run.best_score == 0.5


@pytest.mark.parametrize(
    ("metric", "weight", "score"),
    [
        (GateMetric.HARD, 0.5, 0.25),
        (GateMetric.SOFT, 0.5, 0.75),
        (GateMetric.MIXED, 0.2, 0.35),
        (GateMetric.MIXED, 1.0, 0.75),
    ],
)
async def test_scores_are_those_of_the_metric(metric: GateMetric, weight: float, score: float) -> None:
    def attempt(skill: str, item_id: str) -> Rollout:
        return rollout(item_id, 0.25, 0.75)

    config = replace(STEPS, gate_metric=metric, mixed_weight=weight)
    async with open_app(rollouts=CatalogRunner(attempt), proposer=ScriptedProposer()) as app:
        run = (await app.send(training(config))).value
    assert run.baseline_score == pytest.approx(score)


async def test_an_empty_initial_skill_is_trained_from_scratch() -> None:
    proposer = ScriptedProposer(append("score=0.3"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(initial_skill=""))).value
    assert (run.baseline_score, run.best_skill) == (0.0, "score=0.3")


async def test_scores_after_the_decision_are_told_with_the_step() -> None:
    sink, proposer = RecordingSink(), ScriptedProposer(append("score=0.6"), append("score=0.1"))
    async with open_app(rollouts=CatalogRunner(stated), proposer=proposer, sinks=(sink,)) as app:
        await app.send(training(steps(2)))
    assert [(event.step, event.current_score, event.best_score) for event in sink.of(StepFinished)] == [
        (1, 0.6, 0.6),
        (2, 0.6, 0.6),
    ]
