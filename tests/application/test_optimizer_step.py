"""Analysts and merges: who reads which rollouts, how patches become one, and what happens when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from fakes import CatalogRunner, Scramble, ScriptedAggregator, append, training
from optimizer_team import CONFIG, MIXED_ITEMS, Team, fixed, half_solved, raising, train

from burnish.application.optimizer_ports import (
    Focus,
    MergeInput,
    RateDecision,
    ReflectionInput,
)
from burnish.domain.config import RateControl
from burnish.domain.edits import Edit, EditOp, EditSource, Patch
from burnish.domain.rollouts import RolloutBatch
from burnish.domain.runs import StepReason, TrainingRun
from burnish.presentation.app import open_app

# --- reflect ---------------------------------------------------------------------------------------------------------


async def test_failures_and_successes_are_read_by_analysts_of_their_own_in_minibatches() -> None:
    team = Team()
    run = await train(team)
    assert [request.focus for request in team.reflections] == [Focus.FAILURES] * 2 + [Focus.SUCCESSES] * 2
    read = [rollout.item_id for request in team.reflections for rollout in request.rollouts]
    assert sorted(read) == sorted(MIXED_ITEMS)
    assert {len(request.rollouts) for request in team.reflections} == {2}
    assert len({request.seed for request in team.reflections}) == 4
    assert (run.steps[0].analysts, run.steps[0].analysts_failed, run.steps[0].proposed) == (4, 0, 4)


async def test_successes_are_not_read_when_only_failures_are_wanted() -> None:
    team = Team()
    await train(team, replace(CONFIG, failure_only=True))
    assert [request.focus for request in team.reflections] == [Focus.FAILURES] * 2


async def test_an_analyst_that_fails_costs_its_own_edits_only() -> None:
    answers = iter([raising, fixed(append("- better")), raising, raising])

    def propose(request: ReflectionInput) -> Patch:
        return next(answers)(request)

    run = await train(Team(propose_=propose))
    assert (run.steps[0].analysts, run.steps[0].analysts_failed) == (4, 3)
    assert run.steps[0].reason is StepReason.ACCEPTED


async def test_a_step_fails_when_all_its_analysts_failed_and_asks_nobody_further() -> None:
    team = Team(propose_=raising, merge_=raising)
    aggregator = ScriptedAggregator(append("never"))
    config = replace(CONFIG, steps_per_epoch=2)
    runner = CatalogRunner(half_solved, train=8)
    async with open_app(rollouts=runner, proposer=team, merger=team, aggregator=aggregator) as app:
        result = await app.send(training(config))
    assert result.failure is not None
    assert result.failure.code == "skill_training.run.nothing_worked"
    assert team.merges == []


@pytest.mark.parametrize(
    ("control", "budgets"),
    [(RateControl.FIXED, [4, 3, 2]), (RateControl.NONE, [None] * 3), (RateControl.AUTONOMOUS, [4] * 3)],
)
async def test_an_analyst_may_propose_as_much_as_this_step_may_keep(
    control: RateControl, budgets: list[int | None]
) -> None:
    team = Team(choose_=lambda _: RateDecision(learning_rate=1))
    config = replace(
        CONFIG, lr_control_mode=control, lr_scheduler="linear", lr_min=2, steps_per_epoch=3, failure_only=True
    )
    await train(team, replace(config, minibatch_size=8))
    assert [request.edit_budget for request in team.reflections] == budgets


async def test_accumulated_batches_are_read_together() -> None:
    team = Team()
    run = await train(team, replace(CONFIG, train_batch_size=2, accumulation=3, minibatch_size=8))
    assert sum(len(request.rollouts) for request in team.reflections) == 6
    assert len(run.steps) == 1


async def test_accumulated_batches_of_a_plain_runner_count_shared_items_once() -> None:
    class Plain:
        def __init__(self) -> None:
            self.inner = CatalogRunner(half_solved, train=8)

        async def run(self, skill: str, batch: RolloutBatch) -> Sequence[object]:
            items = batch.item_ids or [f"{batch.split}/{(batch.seed + n) % 4}" for n in range(min(batch.size, 3))]
            return await self.inner.run(skill, replace(batch, item_ids=tuple(items)))

    team = Team()
    config = replace(CONFIG, train_batch_size=3, accumulation=4, minibatch_size=8)
    async with open_app(rollouts=Plain(), proposer=team) as app:  # type: ignore[arg-type]  # an untyped host's
        assert (await app.send(training(config))).is_ok
    read = [rollout.item_id for request in team.reflections for rollout in request.rollouts]
    assert len(read) == len(set(read)) > 3


# --- aggregate -------------------------------------------------------------------------------------------------------


def by_minibatch(request: ReflectionInput) -> Patch:
    """Another edit for each minibatch, named by its items."""
    return append(" ".join(sorted(rollout.item_id for rollout in request.rollouts)) + " better")


def union(request: MergeInput) -> Patch:
    return Patch(tuple(edit for patch in request.patches for edit in patch.edits))


async def test_patches_are_merged_in_trees_and_the_failures_come_first() -> None:
    team = Team(propose_=by_minibatch, merge_=union)
    run = await train(team, replace(CONFIG, minibatch_size=1))
    shapes = [(merge.focus, merge.level, len(merge.patches)) for merge in team.merges]
    assert sorted(shapes, key=str) == sorted(
        [
            (Focus.FAILURES, 1, 2),
            (Focus.FAILURES, 1, 2),
            (Focus.FAILURES, 2, 2),
            (Focus.SUCCESSES, 1, 2),
            (Focus.SUCCESSES, 1, 2),
            (Focus.SUCCESSES, 2, 2),
            (Focus.MIXED, 3, 2),
        ],
        key=str,
    )
    final = team.merges[-1]
    assert [{edit.source for edit in patch.edits} for patch in final.patches] == [
        {EditSource.FAILURE},
        {EditSource.SUCCESS},
    ]
    assert (run.steps[0].merged, run.steps[0].fallbacks) == (8, ())


async def test_equal_edits_become_one_before_a_model_is_asked() -> None:
    team = Team(merge_=union)
    run = await train(team, replace(CONFIG, failure_only=True))
    assert team.merges == []
    assert run.steps[0].merged == 1


@pytest.mark.parametrize("merge", [raising, fixed(Patch()), fixed(Patch((Edit(EditOp.SUGGEST, "x"),)))])
async def test_a_merge_that_fails_or_is_empty_discards_nothing(merge: Callable[[MergeInput], Patch]) -> None:
    team = Team(propose_=by_minibatch, merge_=merge)
    run = await train(team)
    assert (run.steps[0].proposed, run.steps[0].merged, run.steps[0].fallbacks) == (4, 4, ("merge",))
    assert run.steps[0].reason is StepReason.ACCEPTED


async def test_partial_credit_is_read_by_the_analysts_of_failures() -> None:
    def partly_solved(skill: str, item_id: str) -> float:
        return 0.3 if item_id == "train/0" else half_solved(skill, item_id)

    team = Team()
    runner = CatalogRunner(partly_solved, train=8)
    async with open_app(rollouts=runner, proposer=team) as app:
        assert (await app.send(training(replace(CONFIG, minibatch_size=8)))).is_ok
    focus_of = {rollout.item_id: request.focus for request in team.reflections for rollout in request.rollouts}
    assert focus_of["train/0"] is Focus.FAILURES
    assert focus_of["train/1"] is Focus.SUCCESSES


async def test_the_order_in_which_answers_come_changes_no_minibatch_and_no_merge() -> None:
    @dataclass
    class Slow(Team):
        seed: int = 0

        async def propose(self, reflection: ReflectionInput) -> Patch | None:
            await Scramble(self.seed)()
            return await super().propose(reflection)

        async def merge(self, request: MergeInput) -> Patch:
            await Scramble(self.seed + request.level)()
            return await super().merge(request)

    async def asked(seed: int) -> tuple[set[ReflectionInput], set[MergeInput], TrainingRun]:
        team = Slow(propose_=by_minibatch, merge_=union, seed=seed)
        runner = CatalogRunner(half_solved, train=16, before=Scramble(seed))
        async with open_app(rollouts=runner, proposer=team, merger=team, workers=16) as app:
            run = (await app.send(training(replace(CONFIG, train_batch_size=16, steps_per_epoch=2)))).value
        return set(team.reflections), set(team.merges), run

    in_order = await asked(0)
    assert len(in_order[1]) > 4
    for seed in (1, 2, 3):
        assert await asked(seed) == in_order


# --- concurrency -----------------------------------------------------------------------------------------------------


async def test_no_more_analysts_are_asked_at_once_than_allowed() -> None:
    @dataclass
    class Counting:
        now: int = 0
        most: int = 0
        wait: Callable[[], Awaitable[None]] | None = None

        async def propose(self, reflection: ReflectionInput) -> Patch:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(5):
                await asyncio.sleep(0)
            self.now -= 1
            return append("- better")

    for workers in (1, 3):
        proposer = Counting()
        runner = CatalogRunner(half_solved, train=8)
        async with open_app(rollouts=runner, proposer=proposer, analyst_workers=workers) as app:
            assert (await app.send(training(replace(CONFIG, minibatch_size=1)))).is_ok
        assert proposer.most == workers
