"""A cancelled run stops at once, is kept as far as it came, and its id is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from fakes import (
    Barrier,
    CatalogRunner,
    RecordingSink,
    ScriptedProposer,
    Telescope,
    append,
    steps,
    training,
)

from burnish.application.events import Event, RunFinished
from burnish.application.optimizer_ports import ReflectionInput
from burnish.application.runs import GetRun
from burnish.domain.edits import Patch
from burnish.domain.rollouts import RolloutBatch
from burnish.domain.runs import Checkpoint, StopReason
from burnish.infrastructure.persistence.audit import InMemoryAuditLog
from burnish.infrastructure.persistence.in_memory import InMemoryCheckpointStore, InMemoryRunStore
from burnish.presentation.app import open_app

CONFIG = steps(3)
Hold = Callable[[], Awaitable[None]]


class HoldingProposer(ScriptedProposer):
    """Waits before its second answer."""

    def __init__(self, hold: Hold) -> None:
        super().__init__(append("score=0.6"))
        self._hold = hold

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        answer = await super().propose(reflection)
        if len(self.reflections) == 2:
            await self._hold()
        return answer


class HoldingCheckpoints(InMemoryCheckpointStore):
    """Waits once it has saved."""

    def __init__(self, hold: Hold) -> None:
        super().__init__()
        self._hold = hold

    async def save(self, checkpoint: Checkpoint) -> None:
        await super().save(checkpoint)
        await self._hold()


class HoldingSink:
    """Waits at the end of a step."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    async def emit(self, event: Event) -> None:
        if type(event).__name__ == "StepFinished":
            await self._hold()


def in_the_second_step(hold: Hold) -> Callable[[RolloutBatch], Awaitable[None]]:
    seen: list[str] = []

    async def before(batch: RolloutBatch) -> None:
        seen.append(batch.split)
        if seen.count("train") > 4:
            await hold()

    return before


HOLDS: dict[str, Callable[[Hold], dict[str, object]]] = {
    "runner at once": lambda hold: {"rollouts": CatalogRunner(before=lambda _: hold())},
    "runner later": lambda hold: {"rollouts": CatalogRunner(before=in_the_second_step(hold))},
    "proposer": lambda hold: {"proposer": HoldingProposer(hold)},
    "checkpoints": lambda hold: {"checkpoints": HoldingCheckpoints(hold)},
    "sink": lambda hold: {"sinks": (HoldingSink(hold),)},
}


@pytest.mark.parametrize("port", HOLDS)
async def test_a_cancelled_run_is_audited_kept_told_and_free_again(port: str, telescope: Telescope) -> None:
    barrier, audit_log, sink = Barrier(), InMemoryAuditLog(), RecordingSink()
    held = HOLDS[port](barrier)
    ports: dict[str, object] = {
        "rollouts": CatalogRunner(),
        "proposer": ScriptedProposer(append("score=0.6")),
        "audit_log": audit_log,
        "container": telescope.container,
        **held,
        "sinks": (sink, *(held.get("sinks", ()))),  # type: ignore[misc]  # a tuple
    }
    async with open_app(**ports) as app:  # type: ignore[arg-type]  # by name
        task = asyncio.create_task(app.send(training(CONFIG)))
        await barrier.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run = (await app.send(GetRun("run"))).value
        barrier.opened.set()
        again = await app.send(training(CONFIG))
    assert (run.stop_reason, run.code) == (StopReason.CANCELLED, None)
    assert [record.entry.outcome for record in audit_log.records] == ["aborted", "ok"]
    assert sink.of(RunFinished)[0].run == run
    assert again.value.stop_reason is StopReason.COMPLETED
    assert again.value.best_score == 0.6
    outcomes = telescope.sums("burnish.messages")
    assert outcomes[("message", "TrainSkill"), ("outcome", "aborted")] == 1


async def test_what_a_cancelled_run_has_reached_is_kept() -> None:
    barrier = Barrier()
    runner = CatalogRunner(before=in_the_second_step(barrier))
    async with open_app(rollouts=runner, proposer=ScriptedProposer(append("score=0.6"))) as app:
        task = asyncio.create_task(app.send(training(CONFIG)))
        await barrier.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run = (await app.send(GetRun("run"))).value
    assert (run.steps_executed, run.best_score, run.baseline_score) == (1, 0.6, 0.2)
    assert [record.reason for record in run.steps] == ["accepted"]


async def test_every_call_that_is_under_way_is_cancelled_and_none_is_begun() -> None:
    barrier = Barrier(4)
    runner = CatalogRunner(train=50, val=50, before=barrier)
    config = steps(1, train_batch_size=50, val_batch_size=50)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(), workers=4) as app:
        task = asyncio.create_task(app.send(training(config)))
        await barrier.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (runner.at_once, len(runner.calls)) == (0, 4)


@pytest.mark.parametrize("kind", ["raises another error", "raises its own"])
async def test_a_runner_whose_clean_up_fails_does_not_keep_the_run_going(kind: str) -> None:
    barrier = Barrier(2)

    async def untidy(batch: RolloutBatch) -> None:
        try:
            await barrier()
        except asyncio.CancelledError:
            if kind == "raises another error":
                raise ConnectionError("closed while cancelling") from None
            raise
        finally:
            if kind == "raises its own":
                await asyncio.sleep(0)

    runner = CatalogRunner(train=50, val=50, before=untidy)
    config = steps(1, train_batch_size=50, val_batch_size=50)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(), workers=2) as app:
        task = asyncio.create_task(app.send(training(config)))
        await barrier.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        run = (await app.send(GetRun("run"))).value
    assert (run.stop_reason, len(runner.calls)) == (StopReason.CANCELLED, 2)


async def test_a_time_limit_around_a_run_is_kept() -> None:
    async with open_app(rollouts=CatalogRunner(before=Barrier()), proposer=ScriptedProposer()) as app:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await app.send(training(CONFIG))
        assert (await app.send(GetRun("run"))).value.stop_reason is StopReason.CANCELLED


async def test_a_time_limit_inside_of_a_port_is_that_ports_failure_only() -> None:
    async def too_slow(batch: RolloutBatch) -> None:
        if batch.item_ids == ("val/0",):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()

    runner = CatalogRunner(before=too_slow)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(append("score=0.6"))) as app:
        run = (await app.send(training(steps(1, max_error_rate=0.5)))).value
    assert (run.stop_reason, run.best_score) == (StopReason.COMPLETED, 0.6)


async def test_one_run_is_cancelled_and_the_others_go_on() -> None:
    barrier = Barrier()

    async def hold_the_first(batch: RolloutBatch) -> None:
        if not barrier.reached.is_set():
            await barrier()

    async with open_app(rollouts=CatalogRunner(before=hold_the_first), proposer=ScriptedProposer(), workers=20) as app:
        first = asyncio.create_task(app.send(training(CONFIG, run_id="first")))
        await barrier.reached.wait()
        second = asyncio.create_task(app.send(training(CONFIG, run_id="second")))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await second).is_ok


async def test_a_run_that_is_cancelled_while_it_is_scored_has_not_ended() -> None:
    """The test split comes after the last step: a run without it is not complete, and the next attempt goes on."""
    reached = asyncio.Event()
    runs, is_first = InMemoryRunStore(), True

    async def stop_at_the_test_split(batch: RolloutBatch) -> None:
        if batch.repeat == "test" and is_first:
            reached.set()
            await asyncio.Event().wait()

    config = steps(1, eval_test=True)
    runner = CatalogRunner(test=3, before=stop_at_the_test_split)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(append("score=0.5")), runs=runs) as app:
        attempt = asyncio.create_task(app.send(training(config)))
        await reached.wait()
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert (await app.send(GetRun("run"))).value.stop_reason is StopReason.CANCELLED
        is_first = False
        run = (await app.send(training(config))).value
    assert run.stop_reason is StopReason.COMPLETED
    assert run.test is not None
