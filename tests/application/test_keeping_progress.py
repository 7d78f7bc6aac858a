"""What is kept and told while a run goes on: checkpoints of gated steps, and events in the order of the stages."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    FailingSink,
    RecordingSink,
    ScriptedProposer,
    TickingClock,
    append,
    steps,
    training,
)

from burnish.application.events import (
    Aggregated,
    Applied,
    Event,
    MemoryUpdated,
    PassScored,
    Reflected,
    Stage,
    StepFinished,
)
from burnish.application.runs import GetCheckpoint, GetRun, ListCheckpoints
from burnish.domain.edits import Patch
from burnish.domain.gate import GateAction
from burnish.domain.rollouts import score_batch
from burnish.domain.runs import Checkpoint, TrainingRun
from burnish.infrastructure.persistence.in_memory import InMemoryCheckpointStore
from burnish.presentation.app import open_app

PATCHES = (append("score=0.6"), Patch(), append("score=0.5"), append("score=0.7"), None)


class FailingCheckpoints(InMemoryCheckpointStore):
    """Fails from a step on."""

    def __init__(self, error: BaseException, *, since: int) -> None:
        super().__init__()
        self._error = error
        self._since = since

    async def save(self, checkpoint: Checkpoint) -> None:
        if checkpoint.step >= self._since:
            raise self._error
        await super().save(checkpoint)


async def test_gated_steps_leave_a_checkpoint_accepted_or_not_and_others_none() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(*PATCHES), clock=TickingClock()) as app:
        run = (await app.send(training(steps(5)))).value
        kept = (await app.send(ListCheckpoints("run"))).value
        best = (await app.send(GetCheckpoint("run"))).value
        third = (await app.send(GetCheckpoint("run", 3))).value
        second = (await app.send(GetCheckpoint("run", 2))).failure
    assert [(each.step, each.action, each.score) for each in kept] == [
        (1, GateAction.ACCEPT_NEW_BEST, 0.6),
        (3, GateAction.REJECT, 0.6),
        (4, GateAction.ACCEPT_NEW_BEST, 0.7),
    ]
    assert third.skill == f"{START}\n\nscore=0.6"
    assert (best.skill, best.step) == (run.best_skill, run.best_step)
    assert [each.skill_hash for each in kept] == [run.steps[place].skill_hash for place in (0, 2, 3)]
    assert kept[0].created_at < kept[1].created_at < kept[2].created_at
    assert (kept[0].run_id, kept[0].skill_id, kept[0].epoch) == ("run", "skill", 1)
    assert second is not None
    assert second.code == "skill_training.run.not_found"


async def test_a_run_without_checkpoints_has_an_empty_list() -> None:
    async with open_app() as app:
        assert (await app.send(ListCheckpoints("nobody"))).value == ()
        failure = (await app.send(GetCheckpoint("nobody"))).failure
    assert failure is not None
    assert failure.code == "skill_training.run.not_found"


@pytest.mark.parametrize("error", [OSError("disk full"), asyncio.CancelledError()])
async def test_a_checkpoint_that_cannot_be_kept_ends_the_run_with_its_code(error: BaseException) -> None:
    checkpoints, runner = FailingCheckpoints(error, since=4), CatalogRunner()
    async with open_app(rollouts=runner, proposer=ScriptedProposer(*PATCHES), checkpoints=checkpoints) as app:
        result = await app.send(training(steps(5)))
        partial = (await app.send(GetRun("run"))).value
    assert result.failure is not None
    assert result.failure.code == partial.code == "skill_training.checkpoint.save_failed"
    assert (partial.stop_reason, partial.best_score, len(partial.steps)) == ("failed", 0.7, 4)
    assert len(runner.batches("train")) == 16


async def test_events_follow_the_stages() -> None:
    sink = RecordingSink()
    config = replace(STEPS, epochs=2, use_slow_update=True, use_meta_skill=True)
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(append("score=0.6")), sinks=(sink,)) as app:
        await app.send(training(config))

    def name(event: Event) -> str:
        stage = event.stage if isinstance(event, PassScored) else ""
        return f"{event.step}.{event.epoch} {stage or type(event).__name__}"

    assert [name(event) for event in sink.events] == [
        "0.0 RunStarted",
        "1.1 baseline",
        "1.1 rollout",
        "1.1 Reflected",
        "1.1 Aggregated",
        "1.1 Selected",
        "1.1 Applied",
        "1.1 gate",
        "1.1 StepFinished",
        "1.1 MemoryUpdated",
        "2.2 rollout",
        "2.2 Reflected",
        "2.2 Aggregated",
        "2.2 Selected",
        "2.2 Applied",
        "2.2 StepFinished",
        "2.2 slow_update",
        "2.2 slow_update",
        "2.2 SlowUpdated",
        "2.2 gate",
        "2.2 StepFinished",
        "2.2 MemoryUpdated",
        "0.0 RunFinished",
    ]
    assert {event.run_id for event in sink.events} == {"run"}


async def test_events_carry_the_texts_and_rollouts_behind_their_numbers() -> None:
    sink = RecordingSink()
    config = replace(STEPS, epochs=2, use_slow_update=True, use_meta_skill=True)
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(append("score=0.6")), sinks=(sink,)) as app:
        await app.send(training(config))
    passes = {(event.step, event.stage): event for event in sink.of(PassScored)}
    improved = f"{START}\n\nscore=0.6"
    assert passes[1, Stage.BASELINE].text == passes[1, Stage.ROLLOUT].text == START
    assert passes[1, Stage.GATE].text == sink.of(Applied)[0].candidate == improved
    assert sink.of(StepFinished)[0].skill == improved
    assert all(score_batch(event.rollouts) == event.score for event in passes.values())
    assert [len(event.patches) for event in sink.of(Reflected)] == [1, 1]
    assert [event.patch is not None and len(event.patch.edits) for event in sink.of(Aggregated)] == [1, 0]
    assert all(len(event.memory) == event.characters > 0 for event in sink.of(MemoryUpdated))
    told = [name for event in sink.events for name in event.summary()]
    assert {"text", "rollouts", "patches", "patch", "candidate", "memory"}.isdisjoint(told)


async def test_a_step_is_told_once_it_is_kept() -> None:
    seen: list[int] = []

    class Looking:
        async def emit(self, event: Event) -> None:
            if isinstance(event, StepFinished):
                found = await app.send(GetCheckpoint("run", event.step))
                seen.append(found.value.step)

    proposer = ScriptedProposer(append("score=0.6"), append("score=0.7"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, sinks=(Looking(),)) as app:
        await app.send(training(steps(2)))
    assert seen == [1, 2]


@pytest.mark.parametrize("error", [RuntimeError("broken pipe"), asyncio.CancelledError()])
async def test_a_sink_that_fails_changes_nothing_of_the_run(error: BaseException) -> None:
    runs: list[TrainingRun] = []
    for sinks in ((), (FailingSink(error),)):
        proposer = ScriptedProposer(append("score=0.6"), append("score=0.1"))
        async with open_app(rollouts=CatalogRunner(), proposer=proposer, sinks=sinks) as app:
            runs.append((await app.send(training(steps(2)))).value)
    assert runs[0] == runs[1]
