"""The optimizer's memory across epochs: on its side only, kept under two keys, and never worth a run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dependency_injector import providers
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    FailingMemory,
    RecordingSink,
    ScriptedMemoryWriter,
    ScriptedProposer,
    append,
    training,
)

from burnish.application.events import MemoryUpdated
from burnish.application.meta_skill_update import MetaSkillUpdate
from burnish.application.runs import ListCheckpoints
from burnish.domain.edits import Patch
from burnish.infrastructure.persistence.in_memory import InMemoryKnowledgeMemory
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

EPOCHS = replace(STEPS, epochs=3, use_meta_skill=True)
LATEST, OF_RUN = "skill-training/meta/skill", "skill-training/meta/skill/run"


def writing(writer: ScriptedMemoryWriter) -> Container:
    container = Container()
    container.override_providers(memory_writer=providers.Object(writer))
    return container


async def test_every_epoch_adds_to_it_and_the_later_ones_read_it() -> None:
    proposer, writer, sink = ScriptedProposer(append("score=0.6")), ScriptedMemoryWriter(), RecordingSink()
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, sinks=(sink,), container=writing(writer)) as app:
        run = (await app.send(training(EPOCHS))).value
    assert [reflection.meta_skill_memory for reflection in proposer.reflections] == ["", "<1>", "<1><2>"]
    assert [(each.epoch, each.prior_memory, each.current_score) for each in writer.summaries] == [
        (1, "", 0.6),
        (2, "<1>", 0.6),
        (3, "<1><2>", 0.6),
    ]
    assert run.memory == "<1><2><3>"
    assert [event.characters for event in sink.of(MemoryUpdated)] == [3, 6, 9]


async def test_it_is_never_in_the_skill() -> None:
    container = writing(ScriptedMemoryWriter("PLANTED"))
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), container=container) as app:
        run = (await app.send(training(EPOCHS))).value
    assert (run.memory, "PLANTED" in run.final_skill + run.best_skill) == ("PLANTED", False)


async def test_it_is_kept_for_the_run_and_as_the_latest_of_the_skill() -> None:
    memory = InMemoryKnowledgeMemory()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), memory=memory) as app:
        run = (await app.send(training(EPOCHS))).value
    assert await memory.recall(OF_RUN) == await memory.recall(LATEST) == run.memory
    assert run.memory.startswith("## Epoch 1 (score 0.2000)\nSkill length: 18 chars.\n\n## Epoch 2 ")


async def test_a_later_run_recalls_the_latest_only_on_request() -> None:
    memory = FailingMemory(RuntimeError(), at="never")
    memory.texts[LATEST] = "learnt before"
    proposer = ScriptedProposer()
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, memory=memory) as app:
        await app.send(training(STEPS, run_id="plain"))
        await app.send(training(replace(STEPS, recall_meta_skill=True), run_id="recalling"))
        await app.send(training(replace(STEPS, recall_meta_skill=True), run_id="other", skill_id="unknown"))
    assert [reflection.meta_skill_memory for reflection in proposer.reflections] == ["", "learnt before", ""]


async def test_a_memory_that_cannot_be_recalled_ends_the_run_with_its_stores_code() -> None:
    memory = FailingMemory(OSError("disk"), at="recall")
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), memory=memory) as app:
        result = await app.send(training(replace(STEPS, recall_meta_skill=True)))
    assert result.failure is not None
    assert result.failure.code == "skill_training.store.unavailable"


@pytest.mark.parametrize(
    ("writer", "at", "code"),
    [
        (ScriptedMemoryWriter(), "remember", "skill_training.meta.persist_failed"),
        (ScriptedMemoryWriter(RuntimeError("down")), "never", "internal.unexpected"),
        (ScriptedMemoryWriter(3), "never", "internal.unexpected"),
    ],
    ids=["not kept", "not written", "no text"],
)
async def test_a_memory_that_cannot_grow_stays_as_it_is_and_the_run_goes_on(
    writer: ScriptedMemoryWriter, at: str, code: str
) -> None:
    memory = FailingMemory(OSError("disk"), at=at)
    memory.texts[LATEST] = "old"
    proposer, sink = ScriptedProposer(), RecordingSink()
    async with open_app(
        rollouts=CatalogRunner(), proposer=proposer, memory=memory, sinks=(sink,), container=writing(writer)
    ) as app:
        run = (await app.send(training(replace(EPOCHS, recall_meta_skill=True)))).value
    assert (run.stop_reason, run.memory) == ("completed", "old")
    assert [(event.code, event.characters) for event in sink.of(MemoryUpdated)] == [(code, 3)] * 3
    assert {reflection.meta_skill_memory for reflection in proposer.reflections} == {"old"}


@pytest.mark.parametrize("nothing", ["", " \n"])
async def test_an_epoch_that_yields_nothing_leaves_what_is_known(nothing: str) -> None:
    memory, proposer = InMemoryKnowledgeMemory(), ScriptedProposer()
    await memory.remember(LATEST, "old", "test")
    async with open_app(
        rollouts=CatalogRunner(),
        proposer=proposer,
        memory=memory,
        memory_writer=ScriptedMemoryWriter(nothing),
    ) as app:
        run = (await app.send(training(replace(EPOCHS, recall_meta_skill=True)))).value
    assert (run.memory, await memory.recall(LATEST)) == ("old", "old")
    assert {reflection.meta_skill_memory for reflection in proposer.reflections} == {"old"}


async def test_it_can_be_switched_off() -> None:
    memory, sink = InMemoryKnowledgeMemory(), RecordingSink()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), memory=memory, sinks=(sink,)) as app:
        run = (await app.send(training(replace(EPOCHS, use_meta_skill=False)))).value
    assert (run.memory, await memory.recall(LATEST), sink.of(MemoryUpdated)) == ("", None, [])


async def test_an_early_stop_skips_it() -> None:
    proposer = ScriptedProposer(append("score=0.6"), Patch())
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(replace(EPOCHS, patience=1)))).value
    assert (run.steps_executed, run.memory.count("## Epoch")) == (2, 1)


async def test_its_writer_reads_the_comparison_of_the_epochs() -> None:
    writer = ScriptedMemoryWriter()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), container=writing(writer)) as app:
        await app.send(training(replace(EPOCHS, epochs=2, use_slow_update=True)))
    first, second = writer.summaries
    assert first.analysis is None
    assert second.analysis is not None
    assert second.analysis.total == 4


async def test_checkpoints_hold_the_memory_of_their_step() -> None:
    proposer = ScriptedProposer(append("score=0.6"), append("score=0.7"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, container=writing(ScriptedMemoryWriter())) as app:
        await app.send(training(replace(EPOCHS, epochs=2)))
        checkpoints = (await app.send(ListCheckpoints("run"))).value
    assert [checkpoint.memory for checkpoint in checkpoints] == ["", "<1>"]


async def test_the_message_by_itself_extends_and_keeps_a_memory() -> None:
    memory = InMemoryKnowledgeMemory()
    message = MetaSkillUpdate(
        run_id="run", skill_id="skill", epoch=3, current_skill="", current_score=0.75, prior_memory="before \n"
    )
    async with open_app(memory=memory) as app:
        text = (await app.send(message)).value
    assert text == "before\n\n## Epoch 3 (score 0.7500)\nSkill length: 0 chars."
    assert await memory.recall(OF_RUN) == text


async def test_a_run_from_an_empty_skill_without_progress_has_a_memory_too() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        run = (await app.send(training(replace(EPOCHS, epochs=1), initial_skill=""))).value
    assert run.memory == "## Epoch 1 (score 0.0000)\nSkill length: 0 chars."
    assert START not in run.memory
