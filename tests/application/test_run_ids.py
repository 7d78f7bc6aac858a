"""A run id means one run: finished, being trained, or started with other settings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from fakes import (
    START,
    STEPS,
    Barrier,
    CatalogRunner,
    RecordingSink,
    Scramble,
    ScriptedProposer,
    append,
    steps,
    training,
)

from burnish.application.ports import Claim
from burnish.application.result import Failure, Result
from burnish.application.runs import GetRun, ListRuns
from burnish.application.train_skill import TrainSkill
from burnish.domain.config import AppendixSource, PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.gate import GateMetric, GateMode
from burnish.domain.rollouts import RolloutBatch
from burnish.domain.runs import TrainingRun
from burnish.infrastructure.persistence.in_memory import InMemoryRunStore
from burnish.presentation.app import open_app


async def differing(second: TrainSkill, first: TrainSkill | None = None) -> tuple[str, ...] | None:
    """The names in which a second command differs from the finished first one; None when it is the same run."""
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        assert (await app.send(first or training())).is_ok
        failure = (await app.send(second)).failure
    if failure is not None:
        assert failure.code == "skill_training.run.identity_mismatch"
    return None if failure is None else failure.fields


async def test_a_finished_run_is_answered_from_the_store_without_a_call() -> None:
    runner, proposer, sink = CatalogRunner(), ScriptedProposer(append("score=0.6")), RecordingSink()
    async with open_app(rollouts=runner, proposer=proposer, sinks=(sink,)) as app:
        first = await app.send(training())
        calls, events = len(runner.calls), len(sink.events)
        again = await app.send(training())
    assert again == first
    assert (len(runner.calls), len(sink.events), len(proposer.reflections)) == (calls, events, 1)


async def test_a_run_that_ran_out_of_patience_is_finished_too() -> None:
    proposer = ScriptedProposer()
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        first = await app.send(training(steps(5, patience=2)))
        assert await app.send(training(steps(5, patience=2))) == first
    assert (first.value.stop_reason, len(proposer.reflections)) == ("patience", 2)


async def test_other_settings_on_the_same_id_are_refused_by_name() -> None:
    other = training(replace(STEPS, epochs=2, seed=8), skill_id="other", initial_skill=START + "!")
    assert await differing(other) == ("config.epochs", "config.seed", "initial_skill", "skill_id")


OTHERS: Mapping[str, object] = {
    "epochs": 2,
    "steps_per_epoch": 2,
    "lr_start": 9,
    "lr_min": 2,
    "lr_scheduler": "linear",
    "train_batch_size": 2,
    "val_batch_size": 2,
    "gate_metric": GateMetric.SOFT,
    "gate_mode": GateMode.TWO_SPLIT,
    "mixed_weight": 0.25,
    "patience": 5,
    "use_slow_update": True,
    "use_meta_skill": True,
    "seed": 8,
    "evaluate_baseline": False,
    "failure_only": True,
    "slow_update_samples": 3,
    "slow_update_gate": True,
    "recall_meta_skill": True,
    "promote_final": True,
    "eval_test": True,
    "max_error_rate": 0.2,
    "repeats": 2,
    "block_size": 4,
    "accumulation": 2,
    "minibatch_size": 2,
    "merge_batch_size": 2,
    "lr_control_mode": RateControl.NONE,
    "update_mode": UpdateMode.FULL_REWRITE_MINIBATCH,
    "longitudinal_pair_policy": PairPolicy.CHANGED,
    "use_skill_aware_reflection": True,
    "skill_aware_appendix_source": AppendixSource.FAILURE_ONLY,
    "skill_aware_consolidate_threshold": 5,
    "max_skill_tokens": 100,
    "one_shot_baseline": True,
}


@pytest.mark.parametrize("name", OTHERS)
async def test_every_setting_with_an_effect_is_part_of_what_a_run_is(name: str) -> None:
    config = replace(STEPS, **{name: OTHERS[name]})  # type: ignore[arg-type]  # by name
    assert await differing(training(config)) == (f"config.{name}",)


def test_no_setting_is_forgotten_above() -> None:
    assert {field.name for field in fields(TrainSkillConfig)} == OTHERS.keys()


async def test_settings_of_the_same_meaning_are_the_same_run() -> None:
    first = replace(STEPS, lr_scheduler="cosine", mixed_weight=1.0, max_error_rate=0.0)
    second = replace(STEPS, lr_scheduler="Cosine", mixed_weight=1, max_error_rate=0)
    assert await differing(training(second), training(first)) is None


async def test_an_agent_that_answers_otherwise_is_another_run() -> None:
    runs = InMemoryRunStore()
    for fingerprint, expected in (("a", None), ("a", None), ("b", ("target",))):
        runner = CatalogRunner(fingerprint=fingerprint)
        async with open_app(rollouts=runner, proposer=ScriptedProposer(), runs=runs) as app:
            failure = (await app.send(training())).failure
        assert (None if failure is None else failure.fields) == expected


async def test_other_items_are_another_run() -> None:
    runs = InMemoryRunStore()
    for train, expected in ((4, None), (4, None), (5, ("items",))):
        runner = CatalogRunner(train=train)
        async with open_app(rollouts=runner, proposer=ScriptedProposer(), runs=runs) as app:
            failure = (await app.send(training())).failure
        assert (None if failure is None else failure.fields) == expected


async def test_a_refused_command_leaves_the_run_as_it_was() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        run = (await app.send(training())).value
        await app.send(training(steps(2)))
        assert (await app.send(GetRun("run"))).value == run


async def test_a_run_that_is_being_trained_is_refused_and_the_others_are_not() -> None:
    barrier = Barrier()
    runner = CatalogRunner(before=barrier)
    async with open_app(rollouts=runner, proposer=ScriptedProposer()) as app:
        first = asyncio.create_task(app.send(training()))
        await barrier.reached.wait()
        second = await app.send(training())
        other_settings = await app.send(training(steps(2)))
        other_id = asyncio.create_task(app.send(training(run_id="other")))
        barrier.opened.set()
        assert (await first).is_ok
        assert (await other_id).is_ok
        assert await app.send(training()) == await first
    assert second.failure == other_settings.failure == Failure("skill_training.run.already_active")  # type: ignore[arg-type]  # a code equals its text


async def test_of_many_at_once_one_is_trained() -> None:
    async with open_app(rollouts=CatalogRunner(before=Scramble(1)), proposer=ScriptedProposer()) as app:
        results = await asyncio.gather(*(app.send(training()) for _ in range(20)))
    assert sorted(str(code_of(result)) for result in results) == ["None", *["skill_training.run.already_active"] * 19]


def code_of(result: Result[TrainingRun]) -> str | None:
    return None if result.failure is None else result.failure.code.value


async def test_runs_are_listed_in_the_order_they_began() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        for run_id in ("b", "a", "c", "a"):
            await app.send(training(run_id=run_id))
        listed = (await app.send(ListRuns())).value
    assert [run.run_id for run in listed] == ["b", "a", "c"]


async def test_a_run_nobody_knows_is_not_found() -> None:
    async with open_app() as app:
        assert (await app.send(GetRun("nobody"))).failure == Failure("skill_training.run.not_found")  # type: ignore[arg-type]  # a code equals its text


async def test_a_run_can_be_read_while_it_is_trained() -> None:
    barrier, proposer = Barrier(), ScriptedProposer(append("score=0.6"))

    async def hold_the_second_step(batch: RolloutBatch) -> None:
        if batch.split == "train" and proposer.reflections:
            await barrier()

    runner = CatalogRunner(before=hold_the_second_step)
    async with open_app(rollouts=runner, proposer=proposer) as app:
        task = asyncio.create_task(app.send(training(steps(2))))
        await barrier.reached.wait()
        so_far = (await app.send(GetRun("run"))).value
        barrier.opened.set()
        done = (await task).value
    assert (so_far.stop_reason, so_far.steps_executed, so_far.best_score) == (None, 1, 0.6)
    assert (done.stop_reason, done.steps[0]) == ("completed", so_far.steps[0])


# --- stores that fail ------------------------------------------------------------------------------------------------


class FailingRuns(InMemoryRunStore):
    """Fails at one method, from its call number `since` on."""

    def __init__(self, at: str, *, since: int = 1, error: BaseException | None = None) -> None:
        super().__init__()
        self._at = at
        self._since = since
        self._error = error or OSError("disk full")
        self._calls = 0

    def _perhaps(self, name: str) -> None:
        if name == self._at:
            self._calls += 1
            if self._calls >= self._since:
                raise self._error

    async def claim(self, run_id: str, identity: Mapping[str, str]) -> Claim:
        self._perhaps("claim")
        return await super().claim(run_id, identity)

    async def release(self, run_id: str) -> None:
        self._perhaps("release")
        await super().release(run_id)

    async def save(self, run: TrainingRun) -> None:
        self._perhaps("save")
        await super().save(run)

    async def append(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever the port has
        self._perhaps("append")
        await super().append(*args, **kwargs)

    async def get(self, run_id: str) -> TrainingRun | None:
        self._perhaps("get")
        return await super().get(run_id)


@pytest.mark.parametrize("error", [OSError("disk full"), asyncio.CancelledError()])
@pytest.mark.parametrize(
    ("at", "since"), [("claim", 1), ("append", 1), ("append", 2), ("save", 1), ("save", 2), ("release", 1)]
)
async def test_a_store_that_fails_is_the_answer(at: str, since: int, error: BaseException) -> None:
    runs, sink = FailingRuns(at, since=since, error=error), RecordingSink()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), runs=runs, sinks=(sink,)) as app:
        result = await app.send(training(steps(2)))
    assert code_of(result) == "skill_training.store.unavailable"
    assert [type(event).__name__ for event in sink.events].count("RunFinished") == (at != "claim")


async def test_a_store_that_cannot_be_read_is_the_answer_to_queries() -> None:
    async with open_app(runs=FailingRuns("get")) as app:
        assert code_of(await app.send(GetRun("run"))) == "skill_training.store.unavailable"
