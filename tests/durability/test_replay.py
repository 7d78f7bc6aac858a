"""Whatever a port answers, and however it fails: the journal alone gives the same run again, and nobody is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from dependency_injector import providers
from fakes import STEPS, CatalogRunner, ScriptedProposer, ScriptedRunner, append, training

from burnish.application.optimizer_ports import (
    EpochComparison,
    EpochSummary,
    GuidanceWriter,
    MemoryWriter,
    ReflectionInput,
)
from burnish.application.ports import Journal, RolloutRunner
from burnish.application.runs import GetRun
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.domain.runs import TrainingRun
from burnish.infrastructure.persistence.in_memory import InMemoryJournal
from burnish.infrastructure.persistence.stores import open_stores
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

SECRET = "sk-planted-0123456789"
CONFIG = replace(
    STEPS,
    epochs=2,
    steps_per_epoch=2,
    use_slow_update=True,
    use_meta_skill=True,
    promote_final=True,
    max_error_rate=0.5,
)


class Silence:
    """All optimizer ports in one, of an attempt in which nobody may be asked."""

    fingerprint = "odd"

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        pytest.fail("the optimizer was asked again")

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        pytest.fail("the aggregator was asked again")

    async def select(self, patch: Patch, k: int) -> Patch:
        pytest.fail("the selector was asked again")


class SilentWriter:
    fingerprint = "odd"

    async def write(self, _asked: object) -> str:
        pytest.fail("a writer was asked again")


class Odd(Silence):
    """Answers each question with the next of the answers for it, for ever with the last; an exception is raised."""

    def __init__(self, *, propose: object = None, aggregate: object = None, select: object = None) -> None:
        self._answers = {"propose": propose, "aggregate": aggregate, "select": select}
        self._asked = 0

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        self._asked += 1
        return self._answer("propose", append(f"score=0.{self._asked + 2}"))

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        return self._answer("aggregate", patches[0] or Patch())

    async def select(self, patch: Patch, k: int) -> Patch:
        return self._answer("select", patch)

    def _answer(self, port: str, usual: Patch) -> Patch:
        odd = self._answers[port]
        if isinstance(odd, BaseException):
            raise odd
        return usual if odd is None else odd  # type: ignore[return-value]  # untyped hosts return what they like


class OddWriter:
    fingerprint = "odd"

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def write(self, _asked: EpochComparison | EpochSummary) -> str:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer  # type: ignore[return-value]  # untyped hosts return what they like


class SilentRunner(CatalogRunner):
    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        pytest.fail("the agent was asked again")


class SilentPlainRunner:
    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        pytest.fail("the agent was asked again")


async def trained(
    runner: RolloutRunner,
    optimizer: Silence,
    guidance: GuidanceWriter,
    memory: MemoryWriter,
    *,
    journal: Journal,
    config: TrainSkillConfig = CONFIG,
) -> TrainingRun:
    """The run of an attempt of its own, in a store that knows of no other."""
    container = Container()
    container.override_providers(guidance_writer=providers.Object(guidance), memory_writer=providers.Object(memory))
    async with open_app(
        rollouts=runner,
        proposer=optimizer,
        aggregator=optimizer,
        selector=optimizer,
        journal=journal,
        secrets=(SECRET,),
        container=container,
    ) as app:
        await app.send(training(config))
        return (await app.send(GetRun("run"))).value


ODD_EDIT = Edit(EditOp.APPEND, "score=0.9", support_count=2.5)  # type: ignore[arg-type]  # as untyped hosts may
ODD_TEXTS = Edit(EditOp.APPEND, f"score=0.9 \ud800 {SECRET}", origin="x")

OPTIMIZERS = {
    "usual": Odd(),
    "proposer fails": Odd(propose=RuntimeError("down")),
    "aggregator fails": Odd(aggregate=RuntimeError("down")),
    "selector fails": Odd(select=ConnectionError("down")),
    "aggregator gives no patch": Odd(aggregate="no patch"),
    "selector gives no patch": Odd(select=7),
    "an edit of odd fields": Odd(propose=Patch((ODD_EDIT,))),
    "aggregator with an edit of odd fields": Odd(aggregate=Patch((ODD_EDIT,))),
    "selector with an edit of odd fields": Odd(select=Patch((ODD_EDIT,))),
    "an edit of odd texts": Odd(propose=Patch((ODD_TEXTS,))),
}
WRITERS = {
    "usual": "- Mind the order number.",
    "fails": RuntimeError("down"),
    "no text": 7,
    "a surrogate": "text \ud800",
    "control characters": "a\x00b\x1a",
    "blank": " ",
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
async def test_what_the_optimizer_answers_replays(optimizer: Odd) -> None:
    journal, writer = InMemoryJournal(), OddWriter("- Mind the order number.")
    first = await trained(CatalogRunner(), optimizer, writer, writer, journal=journal)
    assert len(first.steps) >= 4
    assert await trained(SilentRunner(), Silence(), SilentWriter(), SilentWriter(), journal=journal) == first


@pytest.mark.parametrize("answer", WRITERS.values(), ids=WRITERS.keys())
async def test_what_writers_write_replays(answer: object) -> None:
    journal, writer = InMemoryJournal(), OddWriter(answer)
    first = await trained(CatalogRunner(), Odd(), writer, writer, journal=journal)
    assert await trained(SilentRunner(), Silence(), SilentWriter(), SilentWriter(), journal=journal) == first


async def test_what_writers_write_holds_no_secret() -> None:
    writer = OddWriter(f"- Mind {SECRET}.")
    run = await trained(CatalogRunner(), Odd(), writer, writer, journal=InMemoryJournal())
    assert "- Mind [REDACTED]." in run.final_skill
    assert run.memory == "- Mind [REDACTED]."


def odd_attempt(skill: str, item_id: str) -> Rollout:
    number = int(item_id.rpartition("/")[2])
    texts = f"{skill[-3:]} \ud800 \x00 {SECRET}"
    if number == 0:
        return Rollout(item_id, math.nan, math.inf, texts, texts, texts, texts, error=f"late {SECRET}")
    if number == 1:
        return Rollout(item_id, hard=1, soft=True, task_type=texts)
    if number == 2 and "0.4" in skill:
        raise TimeoutError(SECRET)
    return Rollout(item_id, 0.1 + 0.2, 1 / 3, texts, texts, texts, texts)


async def test_what_the_agent_answers_replays_and_holds_no_secret(tmp_path: Path) -> None:
    writer = OddWriter("- Mind the order number.")
    async with open_stores(tmp_path / "burnish.db") as stores:
        first = await trained(CatalogRunner(odd_attempt), Odd(), writer, writer, journal=stores.journal)
    assert {record.reason.value for record in first.steps} & {"accepted", "gate"}
    async with open_stores(tmp_path / "burnish.db") as stores:
        silent = (SilentRunner(), Silence(), SilentWriter(), SilentWriter())
        assert await trained(*silent, journal=stores.journal) == first
    for file in tmp_path.iterdir():
        assert SECRET.encode() not in file.read_bytes()


def failing_at_times(skill: str, item_id: str) -> float:
    if "0.4" in skill:
        raise TimeoutError
    return 0.5


async def test_what_a_plain_runner_answers_replays() -> None:
    journal, writer = InMemoryJournal(), OddWriter("- Mind the order number.")
    first = await trained(ScriptedRunner(failing_at_times), Odd(), writer, writer, journal=journal)
    assert "inconclusive" in {record.reason.value for record in first.steps}
    assert await trained(SilentPlainRunner(), Silence(), SilentWriter(), SilentWriter(), journal=journal) == first


async def test_records_that_only_a_failed_attempt_made_are_gone_when_the_next_one_ends(tmp_path: Path) -> None:
    answers: list[object] = ["- Mind the order number."]

    class Guidance(OddWriter):
        async def write(self, _asked: EpochComparison | EpochSummary) -> str:
            return str(answers[0])

    container = Container()
    container.override_providers(guidance_writer=providers.Object(Guidance("")))
    optimizer = ScriptedProposer(None, None, append("score=0.5"), append("score=0.6"))
    config = replace(CONFIG, steps_per_epoch=1)
    async with (
        open_stores(tmp_path / "burnish.db") as stores,
        open_app(
            rollouts=CatalogRunner(), proposer=optimizer, runs=stores.runs, journal=stores.journal, container=container
        ) as app,
    ):
        failed = await app.send(training(config))
        assert not failed.is_ok
        assert [record.reason.value for record in (await app.send(GetRun("run"))).value.steps] == [
            "optimizer_failed",
            "optimizer_failed",
            "forced",
        ]
        answers[0] = ""
        again = (await app.send(training(config))).value
        assert [record.reason.value for record in again.steps] == ["accepted", "accepted"]
        assert (await app.send(GetRun("run"))).value == again
