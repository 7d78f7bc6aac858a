"""Whatever a port's exception says, none of it leaves through a result, log line, span, metric, audit row or store."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from dependency_injector import providers
from fakes import (
    STEPS,
    CatalogRunner,
    FailingAuditLog,
    FailingMemory,
    FailingSink,
    RaisingProposer,
    ScriptedAggregator,
    ScriptedGuidance,
    ScriptedMemoryWriter,
    ScriptedProposer,
    ScriptedRunner,
    ScriptedSelector,
    Telescope,
    append,
    training,
)

from burnish.application.runs import GetRun, ListCheckpoints, ListRuns
from burnish.domain.runs import Checkpoint, StepRecord, TrainingRun
from burnish.infrastructure.persistence.audit import InMemoryAuditLog
from burnish.infrastructure.persistence.in_memory import InMemoryCheckpointStore, InMemoryRunStore
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

SECRETS = (
    "sk-live-PLANTED0123456789",
    "SharedAccessSignature sig=PLANTEDabc%2B123",
    "password=PLANTED-hunter2",
    "Bearer PLANTED.tok.en123456",
)
CONFIG = replace(
    STEPS,
    epochs=2,
    steps_per_epoch=2,
    patience=2,
    use_slow_update=True,
    use_meta_skill=True,
    recall_meta_skill=True,
    promote_final=True,
)


def leak() -> Exception:
    """An exception full of secrets, in its text, in its cause, in its notes and in a group."""
    error = ExceptionGroup(f"several {SECRETS[0]}", [OSError(" and ".join(SECRETS)), KeyError(SECRETS[1])])
    error.__cause__ = RuntimeError(f"connection failed: {{'headers': '{SECRETS[3]}', 'body': '{SECRETS[2]}'}}")
    error.add_note(SECRETS[0])
    return error


class LeakyCheckpoints(InMemoryCheckpointStore):
    async def save(self, checkpoint: Checkpoint) -> None:
        raise leak()

    async def list(self, run_id: str) -> Sequence[Checkpoint]:
        raise leak()


class LeakyRuns(InMemoryRunStore):
    """Fails once the run has begun."""

    async def save(self, run: TrainingRun) -> None:
        raise leak()

    async def append(self, *args: object, **kwargs: object) -> None:
        raise leak()

    async def list(self) -> Sequence[TrainingRun]:
        raise leak()


class LeakyRelease(InMemoryRunStore):
    async def release(self, run_id: str) -> None:
        raise leak()


class LeakyCatalog(CatalogRunner):
    async def item_ids(self, split: str) -> Sequence[str]:
        raise leak()


def fails(skill: str, item_id: str) -> float:
    raise leak()


def fails_later(skill: str, item_id: str) -> float:
    if "score=0.6" in skill:
        raise leak()
    return 0.2


LEAKS: dict[str, Callable[[], dict[str, object]]] = {
    "nothing": dict,
    "plain runner": lambda: {"rollouts": ScriptedRunner(fails)},
    "catalog runner": lambda: {"rollouts": CatalogRunner(fails)},
    "runner later": lambda: {"rollouts": CatalogRunner(fails_later)},
    "item ids": lambda: {"rollouts": LeakyCatalog()},
    "proposer": lambda: {"proposer": RaisingProposer(leak())},
    "aggregator": lambda: {"aggregator": ScriptedAggregator(leak())},
    "selector": lambda: {"selector": ScriptedSelector(leak())},
    "guidance writer": lambda: {"guidance_writer": ScriptedGuidance(leak())},
    "memory writer": lambda: {"memory_writer": ScriptedMemoryWriter(leak())},
    "checkpoints": lambda: {"checkpoints": LeakyCheckpoints()},
    "runs": lambda: {"runs": LeakyRuns()},
    "release": lambda: {"runs": LeakyRelease()},
    "recall": lambda: {"memory": FailingMemory(leak(), at="recall")},
    "remember": lambda: {"memory": FailingMemory(leak(), at="remember")},
    "audit log": lambda: {"audit_log": FailingAuditLog(leak())},
    "sink": lambda: {"sinks": (FailingSink(leak()),)},
}


def told_by(records: Sequence[logging.LogRecord]) -> str:
    """Everything a handler could write about the records, tracebacks of the standard formatter included."""
    formatter = logging.Formatter("%(message)s %(args)s")
    return "\n".join(f"{formatter.format(record)} {vars(record)}" for record in records)


def bound(telescope: Telescope, objects: dict[str, object]) -> Container:
    container = telescope.container
    ports = {
        "rollouts": CatalogRunner(),
        "proposer": ScriptedProposer(append("score=0.6"), append("score=0.3"), append("score=0.7")),
        "audit_log": InMemoryAuditLog(),
        **objects,
    }
    container.override_providers(**{name: providers.Object(port) for name, port in ports.items()})
    return container


@pytest.mark.parametrize("port", LEAKS)
async def test_an_exceptions_text_leaves_nowhere(
    port: str, telescope: Telescope, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    container = bound(telescope, LEAKS[port]())
    async with open_app(container=container) as app:
        results: list[object] = [
            await app.send(training(CONFIG, initial_skill="score=0.2")),
            await app.send(GetRun("run")),
            await app.send(ListRuns()),
            await app.send(ListCheckpoints("run")),
        ]
    gc.collect()  # a forgotten task would now log its exception
    numbers = telescope.reader.get_metrics_data()
    told = {
        "results": repr(results),
        "log": told_by(caplog.records),
        "spans": "".join(span.to_json() for span in telescope.spans()),
        "metrics": "" if numbers is None else numbers.to_json(),
        "audit": repr(getattr(container.audit_log(), "records", ())),
        "runs": repr(getattr(container.runs(), "_runs", ())),
        "memory": repr(getattr(container.memory(), "_texts", getattr(container.memory(), "texts", ()))),
    }
    assert [place for place, text in told.items() if "PLANTED" in text] == []
    assert told["spans"]
    assert told["metrics"]
    if port != "nothing":
        assert "caused by RuntimeError" in told["log"]


async def test_a_step_record_has_no_place_for_a_text() -> None:
    texts = {name: kind for name, kind in StepRecord.__annotations__.items() if "str" in str(kind)}
    assert texts.keys() <= {"reason", "code", "skill_hash", "fallbacks", "rate_reasoning"}  # the last is masked
