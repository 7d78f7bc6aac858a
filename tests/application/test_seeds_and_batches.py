"""Which items are asked when, with which seeds, one a call and never more calls at once than allowed."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from dependency_injector import providers
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    RecordingSink,
    Scramble,
    ScriptedProposer,
    ScriptedRunner,
    append,
    steps,
    training,
)

from burnish.application.events import RunStarted
from burnish.domain.rollouts import RolloutBatch
from burnish.domain.runs import TrainingRun
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

Runner = CatalogRunner | ScriptedRunner
KINDS = pytest.mark.parametrize("kind", [CatalogRunner, ScriptedRunner])
MANY = replace(STEPS, epochs=2, steps_per_epoch=3, use_slow_update=True, eval_test=True)


async def train(runner: Runner, config: object = MANY, *answers: object, draw_seed: int | None = None) -> TrainingRun:
    container = Container()
    if draw_seed is not None:
        container.override_providers(draw_seed=providers.Object(lambda: draw_seed))
    async with open_app(rollouts=runner, proposer=ScriptedProposer(*answers), container=container) as app:
        return (await app.send(training(config))).value  # type: ignore[arg-type]  # a configuration


def asked(runner: Runner) -> list[tuple[str, RolloutBatch]]:
    return sorted(((call.skill, call.batch) for call in runner.calls), key=repr)


# --- seeds -----------------------------------------------------------------------------------------------------------


async def test_without_a_seed_one_is_drawn_reported_and_used() -> None:
    drawn, given, sink = ScriptedRunner(), ScriptedRunner(), RecordingSink()
    container = Container()
    container.override_providers(draw_seed=providers.Object(lambda: 4711))
    async with open_app(rollouts=drawn, proposer=ScriptedProposer(), sinks=(sink,), container=container) as app:
        run = (await app.send(training(replace(MANY, seed=0)))).value
    (started,) = sink.of(RunStarted)
    assert run.seed == started.seed == 4711
    assert (await train(given, replace(MANY, seed=4711))).steps == run.steps
    assert asked(given) == asked(drawn)


async def test_drawn_seeds_differ_and_are_never_zero() -> None:
    seeds = {(await train(CatalogRunner(), replace(STEPS, seed=0))).seed for _ in range(5)}
    assert len(seeds) == 5
    assert 0 not in seeds


async def test_a_given_seed_is_reported() -> None:
    assert (await train(CatalogRunner(), steps(1, seed=99))).seed == 99


@KINDS
async def test_no_batch_has_the_seed_zero(kind: type[Runner]) -> None:
    runner = kind() if kind is ScriptedRunner else CatalogRunner(test=3)
    await train(runner, MANY, append("score=0.3"), append("score=0.4"), append("score=0.5"))
    assert 0 not in {call.batch.seed for call in runner.calls}


@KINDS
async def test_seeds_are_the_same_over_validation_and_another_for_each_train_batch(kind: type[Runner]) -> None:
    runner = kind() if kind is ScriptedRunner else CatalogRunner(test=3)
    await train(runner, MANY, append("score=0.3"), append("score=0.4"), append("score=0.5"))
    rollouts = [batch for batch in runner.batches("train") if not batch.repeat.startswith("slow")]
    assert len({batch.seed for batch in runner.batches("val")}) == 1
    assert len({batch.seed for batch in runner.batches("test")}) == 1
    assert len({batch.seed for batch in rollouts}) == 6
    purposes = [{b.seed for b in runner.batches(split)} for split in ("train", "val", "test")]
    assert not purposes[0] & purposes[1] | purposes[0] & purposes[2] | purposes[1] & purposes[2]


async def test_every_call_of_the_optimizer_has_a_seed_of_its_own() -> None:
    proposer = ScriptedProposer()
    async with open_app(rollouts=CatalogRunner(test=1), proposer=proposer) as app:
        await app.send(training(MANY))
    seeds = [reflection.seed for reflection in proposer.reflections]
    assert len(set(seeds)) == 6
    assert 0 not in seeds


@KINDS
async def test_the_same_seed_asks_the_same_and_another_asks_something_else(kind: type[Runner]) -> None:
    runs: list[list[tuple[str, RolloutBatch]]] = []
    for seed in (1, 1, 2):
        runner = kind() if kind is ScriptedRunner else CatalogRunner(train=30, val=30, test=3)
        await train(runner, replace(MANY, seed=seed))
        runs.append(asked(runner))
    assert runs[0] == runs[1] != runs[2]


# --- a plain runner --------------------------------------------------------------------------------------------------


async def test_a_plain_runner_is_asked_for_so_many_items() -> None:
    runner = ScriptedRunner()
    await train(runner, steps(2, train_batch_size=3, val_batch_size=5))
    assert [(batch.size, batch.item_ids) for batch in runner.batches("train")] == [(3, ()), (3, ())]
    assert [(batch.size, batch.item_ids) for batch in runner.batches("val")] == [(5, ())]


async def test_the_items_of_its_first_validation_are_pinned_for_the_run() -> None:
    runner = ScriptedRunner()
    await train(runner, steps(3), append("score=0.3"), append("score=0.4"), append("score=0.1"))
    first, *later = runner.batches("val")
    assert first.item_ids == ()
    assert len(later) == 3
    assert len({batch.item_ids for batch in later}) == 1
    assert (len(later[0].item_ids), later[0].size) == (4, 4)


async def test_a_validation_that_failed_pins_nothing() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if "broken" in skill:
            raise TimeoutError
        return 0.5

    runner = ScriptedRunner(attempt)
    config = steps(3, evaluate_baseline=False)
    await train(runner, config, append("broken"), append("score=1"))
    failed, first, *rest = runner.batches("val")
    assert (failed.item_ids, first.item_ids, rest) == ((), (), [])


async def test_its_whole_batch_is_one_call_whatever_the_number_of_repeats() -> None:
    runner = ScriptedRunner()
    await train(runner, steps(1, repeats=3), append("score=0.3"))
    assert [(batch.repeat, bool(batch.item_ids)) for batch in runner.batches("val")] == [
        ("0", False),
        ("1", True),
        ("2", True),
        ("0", True),
        ("1", True),
        ("2", True),
    ]


# --- a catalog -------------------------------------------------------------------------------------------------------


async def test_a_catalog_is_asked_for_one_item_a_call() -> None:
    runner = CatalogRunner(test=3)
    await train(runner, MANY, append("score=0.3"))
    assert {(len(call.batch.item_ids), call.batch.size) for call in runner.calls} == {(1, 1)}


async def test_an_epoch_goes_through_all_train_items_before_any_comes_again() -> None:
    runner = CatalogRunner(train=8)
    await train(runner, steps(5))
    batches = runner.batches("train")
    items = [batch.item_ids[0] for batch in batches]
    assert Counter(items[:8]) == Counter(items[8:16]) == Counter(runner.items["train"])
    assert Counter(batch.repeat for batch in batches) == {"1": 8, "1+1": 8, "1+2": 4}
    for step in range(5):
        assert len(set(items[4 * step : 4 * step + 4])) == 4


async def test_epochs_go_through_the_items_in_another_order() -> None:
    runner = CatalogRunner(train=12)
    await train(runner, replace(STEPS, epochs=2, steps_per_epoch=3))
    first, second = ([batch.item_ids[0] for batch in runner.batches("train", repeat=epoch)] for epoch in ("1", "2"))
    assert sorted(first) == sorted(second)
    assert first != second


async def test_one_sample_of_the_validation_items_serves_the_whole_run() -> None:
    runner = CatalogRunner(val=50)
    await train(runner, steps(3), append("score=0.3"), append("score=0.4"))
    samples = [runner.asked(skill, "val") for skill in runner.skills("val")]
    assert len(samples) == 3
    assert samples[0] == samples[1] == samples[2]
    assert len(samples[0]) == 4
    assert samples[0] != [f"val/{number}" for number in range(4)]


async def test_a_batch_is_no_larger_than_its_split() -> None:
    runner = CatalogRunner(train=3, val=2)
    await train(runner, steps(2))
    assert len(runner.batches("train")) == 6
    assert runner.asked(START, "val") == ["val/0", "val/1"]


async def test_repeats_ask_every_validation_item_again() -> None:
    runner = CatalogRunner(val=2)
    run = await train(runner, steps(1, repeats=3))
    assert Counter((batch.item_ids[0], batch.repeat) for batch in runner.batches("val")) == {
        (item, repeat): 1 for item in ("val/0", "val/1") for repeat in ("0", "1", "2")
    }
    assert run.baseline_score == pytest.approx(0.2)


async def test_the_slow_update_samples_train_items() -> None:
    runner = CatalogRunner(train=50)
    config = replace(STEPS, epochs=3, use_slow_update=True, slow_update_samples=5)
    await train(runner, config, append("score=0.3"), append("score=0.4"), append("score=0.5"))
    second, third = (
        {
            skill: runner.asked(skill, "train", repeat=f"slow/{epoch}")
            for skill in runner.skills("train", repeat=f"slow/{epoch}")
        }
        for epoch in (2, 3)
    )
    assert [len(items) for items in (*second.values(), *third.values())] == [5, 5, 5, 5]
    assert len({tuple(items) for items in second.values()}) == 1
    assert set(map(tuple, second.values())) != set(map(tuple, third.values()))


# --- concurrency -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3, 64])
async def test_no_more_calls_run_at_once_than_there_are_workers(workers: int) -> None:
    runner = CatalogRunner(train=40, val=40, before=Scramble(1))
    config = steps(2, train_batch_size=40, val_batch_size=40, block_size=40)
    proposer = ScriptedProposer(append("score=0.3"))
    async with open_app(rollouts=runner, proposer=proposer, workers=workers) as app:
        await app.send(training(config))
    assert runner.most_at_once == workers


async def test_runs_side_by_side_share_the_workers() -> None:
    runner = CatalogRunner(before=Scramble(1))
    async with open_app(rollouts=runner, proposer=ScriptedProposer(), workers=5) as app:
        await asyncio.gather(*(app.send(training(steps(3), run_id=f"r{number}")) for number in range(6)))
    assert runner.most_at_once == 5


async def test_the_baseline_is_scored_beside_the_first_rollout() -> None:
    meeting = asyncio.Barrier(2)

    async def meet(batch: RolloutBatch) -> None:
        async with asyncio.timeout(5):
            await meeting.wait()

    async with open_app(rollouts=CatalogRunner(train=1, val=1, before=meet), proposer=ScriptedProposer()) as app:
        assert (await app.send(training())).is_ok


async def test_both_skills_of_a_slow_update_are_tried_side_by_side() -> None:
    meeting = asyncio.Barrier(2)

    async def meet(batch: RolloutBatch) -> None:
        if batch.repeat.startswith("slow"):
            async with asyncio.timeout(5):
                await meeting.wait()

    config = replace(STEPS, epochs=2, use_slow_update=True, slow_update_samples=1)
    proposer = ScriptedProposer(append("score=0.3"), append("score=0.4"))
    async with open_app(rollouts=CatalogRunner(before=meet), proposer=proposer) as app:
        assert (await app.send(training(config))).is_ok
