"""An answer that cannot be kept must not be used: a journal that fails ends the run, whatever was being asked."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from dependency_injector import providers
from fakes import (
    STEPS,
    CatalogRunner,
    ScriptedAggregator,
    ScriptedGuidance,
    ScriptedMemoryWriter,
    ScriptedProposer,
    ScriptedRunner,
    ScriptedSelector,
    append,
    training,
)

from burnish.application.ports import JournalEntry, PortError
from burnish.application.result import ErrorCode
from burnish.application.runs import GetRun
from burnish.infrastructure.persistence.in_memory import InMemoryJournal
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

EPOCHS = replace(STEPS, epochs=2, use_slow_update=True, use_meta_skill=True, recall_meta_skill=True, seed=0)
ERRORS = (OSError("disk full"), PortError(ErrorCode.STORE_UNAVAILABLE), asyncio.CancelledError())


class FailingJournal(InMemoryJournal):
    """Keeps no answer of one kind, or finds none."""

    def __init__(self, kind: str, error: BaseException, *, at: str) -> None:
        super().__init__()
        self._kind = kind
        self._error = error
        self._at = at
        self.failed = 0

    async def find(self, run_id: str, key: str) -> JournalEntry | None:
        self._perhaps("find", key)
        return await super().find(run_id, key)

    async def append(self, run_id: str, entry: JournalEntry) -> None:
        self._perhaps("append", entry.key)
        await super().append(run_id, entry)

    def _perhaps(self, at: str, key: str) -> None:
        if at == self._at and json.loads(key)[0] == self._kind:
            self.failed += 1
            raise self._error


def ports() -> dict[str, object]:
    return {
        "rollouts": CatalogRunner(),
        "proposer": ScriptedProposer(append("score=0.6")),
        "aggregator": ScriptedAggregator(append("score=0.6")),
        "selector": ScriptedSelector(append("score=0.6")),
        "guidance_writer": ScriptedGuidance("Be brief."),
        "memory_writer": ScriptedMemoryWriter(),
    }


async def kinds_asked() -> set[str]:
    """Every kind of question a run asks through the journal."""
    seen: set[str] = set()

    class Looking(InMemoryJournal):
        async def append(self, run_id: str, entry: JournalEntry) -> None:
            seen.add(json.loads(entry.key)[0])
            await super().append(run_id, entry)

    for runner in (CatalogRunner(), ScriptedRunner()):
        container = Container()
        given = {**ports(), "rollouts": runner, "journal": Looking()}
        container.override_providers(**{name: providers.Object(port) for name, port in given.items()})
        async with open_app(container=container) as app:
            assert (await app.send(training(EPOCHS))).is_ok
    return seen


KINDS = {
    "rollout",
    "batch",
    "reflect",
    "aggregate",
    "select",
    "guidance",
    "memory",
    "seed",
    "recalled_memory",
}


async def test_the_kinds_below_are_all_there_are() -> None:
    assert await kinds_asked() == {*KINDS, "text"}


@pytest.mark.parametrize("at", ["find", "append"])
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("error", ERRORS, ids=["error", "coded", "cancelled"])
async def test_a_journal_that_fails_ends_the_run(kind: str, at: str, error: BaseException) -> None:
    journal = FailingJournal(kind, error, at=at)
    container = Container()
    given = {**ports(), "journal": journal}
    if kind == "batch":
        given["rollouts"] = ScriptedRunner()
    container.override_providers(**{name: providers.Object(port) for name, port in given.items()})
    async with open_app(container=container) as app:
        failure = (await app.send(training(EPOCHS))).failure
        kept = await app.send(GetRun("run"))
    assert journal.failed > 0
    assert failure is not None
    assert failure.code == "skill_training.store.unavailable"
    if kind != "seed":
        assert (kept.value.stop_reason, kept.value.code) == ("failed", "skill_training.store.unavailable")
