"""Runs of several epochs that are broken off at any call, run out of patience at a boundary, or get no answer at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from fakes import START, STEPS, CatalogRunner, append, training

from burnish.application.journal_keys import TEXT, kind_of
from burnish.application.optimizer_ports import EpochComparison, EpochSummary, NotesInput, ReflectionInput
from burnish.application.result import Result
from burnish.application.runs import GetRun
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Patch
from burnish.domain.regions import RegionKind, read_region
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.domain.runs import StepReason, StopReason, TrainingRun
from burnish.infrastructure.persistence.in_memory import (
    InMemoryCheckpointStore,
    InMemoryJournal,
    InMemoryKnowledgeMemory,
    InMemoryRunStore,
)
from burnish.presentation.app import open_app

EPOCHS = replace(
    STEPS, epochs=3, steps_per_epoch=2, use_slow_update=True, slow_update_samples=2, use_meta_skill=True, seed=3
)


NOTING = replace(EPOCHS, use_skill_aware_reflection=True, skill_aware_consolidate_threshold=2)


class BrokenOffError(BaseException):
    """Stands for the end of the process."""


@dataclass
class World:
    """The outside world of a run in all its attempts: it counts and notes calls, and breaks off at the one it is told."""

    scores: Sequence[float]
    """The validation score of the skill with so many added lines; the last one counts for all longer ones."""
    is_dead: bool = False
    breaks_at: int = 0
    dies_at: str = ""
    """The role whose first call is the first that the optimizer does not answer any more."""
    calls: list[str] = field(default_factory=list[str])
    checkpoints: InMemoryCheckpointStore = field(default_factory=InMemoryCheckpointStore)
    runs: InMemoryRunStore = field(default_factory=InMemoryRunStore)
    memory: InMemoryKnowledgeMemory = field(default_factory=InMemoryKnowledgeMemory)
    journal: InMemoryJournal = field(default_factory=InMemoryJournal)

    def note(self, call: str) -> None:
        self.calls.append(call)
        if len(self.calls) == self.breaks_at:
            raise BrokenOffError

    def ask_optimizer(self, role: str) -> None:
        self.note(role)
        self.is_dead = self.is_dead or role == self.dies_at
        if self.is_dead:
            raise ConnectionError

    async def train(self, config: TrainSkillConfig) -> Result[TrainingRun]:
        async with open_app(
            rollouts=_Agent(self),
            proposer=_Proposer(self),
            note_consolidator=_Consolidator(self),
            guidance_writer=_Guidance(self),
            memory_writer=_Memory(self),
            checkpoints=self.checkpoints,
            runs=self.runs,
            memory=self.memory,
            journal=self.journal,
            workers=1,
            analyst_workers=1,
        ) as app:
            return await app.send(training(config))

    async def answers(self) -> set[str]:
        """The keys of the answers that are kept."""
        return {entry.key for entry in await self.journal.entries("run") if kind_of(entry.key) != TEXT}

    async def run(self) -> TrainingRun:
        """The run as it is kept."""
        async with open_app(runs=self.runs) as app:
            return (await app.send(GetRun("run"))).value


class _Agent(CatalogRunner):
    def __init__(self, world: World) -> None:
        super().__init__(self._score)
        self._world = world

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        self._world.note(f"{batch.split} {batch.item_ids} {batch.repeat} {hash(skill)}")
        return await super().run(skill, batch)

    def _score(self, skill: str, item: str) -> float:
        scores = self._world.scores
        return scores[min(skill.count("line"), len(scores) - 1)] if item.startswith("val") else 0.0


class _Proposer:
    def __init__(self, world: World) -> None:
        self._world = world

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        self._world.ask_optimizer("reflect")
        notes = (f"note {reflection.seed}",) if reflection.wants_notes else ()
        return replace(append(f"line {reflection.seed}"), notes=notes)


class _Consolidator:
    def __init__(self, world: World) -> None:
        self._world = world

    async def consolidate(self, request: NotesInput) -> Sequence[str]:
        self._world.ask_optimizer("consolidate")
        return request.notes[-1:]


class _Guidance:
    def __init__(self, world: World) -> None:
        self._world = world

    async def write(self, comparison: EpochComparison) -> str:
        self._world.ask_optimizer("guidance")
        return f"{comparison.previous_guidance}+"


class _Memory:
    def __init__(self, world: World) -> None:
        self._world = world

    async def write(self, summary: EpochSummary) -> str:
        self._world.ask_optimizer("memory")
        return f"{summary.prior_memory}<{summary.epoch}>"


@pytest.mark.parametrize(
    "scores", [(0.0,), (0.0, 0.0, 0.5), (0.0, 0.25, 0.25, 0.5, 0.0)], ids=["always 0.0", "0.0 at first", "up and down"]
)
@pytest.mark.parametrize("config", [EPOCHS, NOTING], ids=["without notes", "with notes"])
async def test_a_run_broken_off_at_any_call_ends_as_if_it_had_not_been_and_asks_nothing_twice(
    scores: tuple[float, ...], config: TrainSkillConfig
) -> None:
    whole = World(scores)
    expected = (await whole.train(config)).value
    assert {"reflect", "guidance", "memory", *(["consolidate"] if config is NOTING else [])} <= set(whole.calls)
    for number in range(1, len(whole.calls) + 1):
        world = World(scores, breaks_at=number)
        with pytest.raises((BrokenOffError, BaseExceptionGroup)):  # in a group when it happened in one
            await world.train(config)
        kept = await world.answers()
        world.calls.clear()
        world.breaks_at = 0
        assert (await world.train(config)).value == expected
        assert len(world.calls) == len(await world.answers() - kept)
        assert await world.answers() == await whole.answers()


@pytest.mark.parametrize("steps_per_epoch", [1, 2, 3])
async def test_patience_that_ends_with_an_epoch_ends_the_run_before_its_boundary(steps_per_epoch: int) -> None:
    world = World((0.5, 0.0))
    run = (await world.train(replace(EPOCHS, steps_per_epoch=steps_per_epoch, patience=steps_per_epoch))).value
    assert (run.stop_reason, run.steps_executed, run.memory) == (StopReason.PATIENCE, steps_per_epoch, "")
    assert set(world.calls) & {"guidance", "memory"} == set()
    assert (await world.train(replace(EPOCHS, steps_per_epoch=steps_per_epoch, patience=steps_per_epoch))).value == run


async def test_patience_that_ends_with_a_later_epoch_keeps_what_earlier_boundaries_did() -> None:
    world = World((0.2, 0.4, 0.0))
    run = (await world.train(replace(EPOCHS, patience=3))).value
    assert (run.stop_reason, run.steps_executed) == (StopReason.PATIENCE, 4)
    assert (run.memory, read_region(run.final_skill, RegionKind.SLOW_UPDATE)) == ("<1>", None)


@pytest.mark.parametrize(
    ("patience", "code"),
    [(None, "skill_training.run.nothing_worked"), (4, "skill_training.run.optimizer_failed")],
)
async def test_an_optimizer_that_fails_in_every_role_ends_the_run_loudly_and_a_repaired_one_completes_it(
    patience: int | None, code: str
) -> None:
    config = replace(EPOCHS, patience=patience)
    world = World((0.0, 0.5), is_dead=True)
    failure = (await world.train(config)).failure
    assert failure is not None
    assert failure.code == code
    run = await world.run()
    assert {record.reason for record in run.steps} == {StepReason.OPTIMIZER_FAILED}
    assert (run.final_skill, run.memory, run.has_accepted_any) == (START, "", False)
    world.is_dead = False
    assert (await world.train(config)).value == (await World((0.0, 0.5)).train(config)).value


async def test_what_an_outage_kept_out_of_the_notes_is_asked_for_again_with_the_next_steps() -> None:
    config, rising = replace(NOTING, patience=3), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    expected = (await World(rising).train(config)).value
    world = World(rising, dies_at="consolidate")
    failure = (await world.train(config)).failure
    assert failure is not None
    assert failure.code == "skill_training.run.optimizer_failed"
    interrupted = await world.run()
    assert [record.fallbacks for record in interrupted.steps if record.is_of_notes] == [(), (), ("consolidate",)]
    world.dies_at, world.is_dead = "", False
    assert (await world.train(config)).value == expected
