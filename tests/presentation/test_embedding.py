"""burnish inside of somebody else's process: ports brought along, apps side by side, nothing global touched."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import structlog
from dependency_injector import providers
from dependency_injector.errors import Error
from fakes import (
    START,
    CatalogRunner,
    RecordingSink,
    Scramble,
    ScriptedAggregator,
    ScriptedProposer,
    ScriptedRunner,
    ScriptedSelector,
    TickingClock,
    append,
    steps,
    training,
)
from opentelemetry import metrics, trace

from burnish.application.runs import GetCheckpoint, GetRun, ListRuns
from burnish.infrastructure.persistence.audit import InMemoryAuditLog
from burnish.infrastructure.persistence.in_memory import InMemoryRunStore
from burnish.presentation.app import open_app
from burnish.presentation.container import Container


async def test_a_host_brings_a_runner_and_a_proposer_and_sends_a_message() -> None:
    async with open_app(rollouts=ScriptedRunner(), proposer=ScriptedProposer(append("score=0.9"))) as app:
        result = await app.send(training())
    assert result.is_ok
    assert result.value.best_skill == f"{START}\n\nscore=0.9"


async def test_two_apps_in_one_process_know_nothing_of_each_other() -> None:
    logs = InMemoryAuditLog(), InMemoryAuditLog()
    runners = CatalogRunner(before=Scramble(1)), CatalogRunner(before=Scramble(2))
    proposers = ScriptedProposer(append("score=0.6")), ScriptedProposer(append("score=0.7"))
    async with (
        open_app(rollouts=runners[0], proposer=proposers[0], audit_log=logs[0]) as one,
        open_app(rollouts=runners[1], proposer=proposers[1], audit_log=logs[1]) as two,
    ):
        first, second = await asyncio.gather(one.send(training()), two.send(training()))
        await two.send(training(run_id="second"))
        listed = [[run.run_id for run in (await app.send(ListRuns())).value] for app in (one, two)]
    assert (first.value.best_score, second.value.best_score) == (0.6, 0.7)
    assert listed == [["run"], ["run", "second"]]
    assert [len(log.records) for log in logs] == [1, 2]


async def test_an_app_answers_many_messages_at_once() -> None:
    runner = CatalogRunner(before=Scramble(1))
    async with open_app(rollouts=runner, proposer=ScriptedProposer()) as app:
        results = await asyncio.gather(
            *(app.send(training(steps(2), run_id=f"r{number}")) for number in range(20)),
            *(app.send(GetRun("nobody")) for _ in range(20)),
        )
    assert [result.is_ok for result in results] == [True] * 20 + [False] * 20


async def test_every_port_may_be_brought() -> None:
    log, sink, clock, runs = InMemoryAuditLog(), RecordingSink(), TickingClock(), InMemoryRunStore()
    async with open_app(
        rollouts=CatalogRunner(),
        proposer=ScriptedProposer(append("a")),
        aggregator=ScriptedAggregator(append("b")),
        selector=ScriptedSelector(append("score=0.5")),
        runs=runs,
        audit_log=log,
        sinks=(sink,),
        clock=clock,
        actor="the-host",
    ) as app:
        run = (await app.send(training())).value
        checkpoint = (await app.send(GetCheckpoint("run"))).value
    assert run.best_skill == f"{START}\n\nscore=0.5"
    assert await runs.get("run") == run
    assert (log.records[0].entry.actor, log.records[0].entry.at.year, checkpoint.created_at.year) == (
        "the-host",
        2026,
        2026,
    )
    assert sink.events


# --- a container of the host's own -----------------------------------------------------------------------------------


async def test_bindings_of_a_container_are_used() -> None:
    container = Container()
    container.override_providers(
        rollouts=providers.Singleton(CatalogRunner),
        proposer=providers.Object(ScriptedProposer(append("score=0.6"))),
    )
    async with open_app(container=container) as app:
        assert (await app.send(training())).value.best_score == 0.6


async def test_parameters_override_a_container_for_this_app_only() -> None:
    container = Container()
    container.override_providers(
        rollouts=providers.Object(CatalogRunner()), proposer=providers.Object(ScriptedProposer())
    )
    better = ScriptedProposer(append("score=0.6"))
    async with open_app(container=container, proposer=better) as app:
        assert (await app.send(training())).value.best_score == 0.6
    async with open_app(container=container) as app:
        assert not (await app.send(training(run_id="second"))).value.has_accepted_any


async def test_a_container_serves_several_apps_that_share_its_stores() -> None:
    container = Container()
    sinks = RecordingSink(), RecordingSink()
    runner = CatalogRunner(before=Scramble(1))
    async with (
        open_app(container=container, rollouts=runner, proposer=ScriptedProposer(), sinks=(sinks[0],)) as one,
        open_app(container=container, rollouts=runner, proposer=ScriptedProposer(), sinks=(sinks[1],)) as two,
    ):
        await asyncio.gather(one.send(training(run_id="a")), two.send(training(run_id="b")))
        assert {run.run_id for run in (await one.send(ListRuns())).value} == {"a", "b"}
    assert [{event.run_id for event in sink.events} for sink in sinks] == [{"a"}, {"b"}]


async def test_a_container_is_as_it_was_after_an_object_that_did_not_fit() -> None:
    container = Container()
    with pytest.raises(Error):
        await open_app(container=container, proposer=3).__aenter__()  # type: ignore[arg-type]  # what this is about
    async with open_app(container=container, rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        assert (await app.send(training())).is_ok


# --- what does not fit -----------------------------------------------------------------------------------------------

PORTS = ("rollouts", "proposer", "aggregator", "selector", "checkpoints", "runs", "memory", "audit_log", "journal")


@pytest.mark.parametrize("port", PORTS)
async def test_an_object_that_does_not_fit_its_port_is_refused_at_once(port: str) -> None:
    with pytest.raises(Error, match=r"3 is not an instance of .*burnish\.application\.(optimizer_)?ports\."):
        await open_app(**{port: 3}).__aenter__()  # type: ignore[arg-type]  # what this is about


@pytest.mark.parametrize("port", ["rollouts", "proposer"])
async def test_a_class_in_the_place_of_its_object_is_refused_at_once(port: str) -> None:
    kind = CatalogRunner if port == "rollouts" else ScriptedProposer
    with pytest.raises(TypeError, match=rf"{port} must be an object, .* did you mean {kind.__name__}\(\)\?"):
        await open_app(**{port: kind}).__aenter__()  # type: ignore[arg-type]  # what this is about


@pytest.mark.parametrize("sink", [3, print, RecordingSink])
async def test_a_sink_that_cannot_listen_is_refused_at_once(sink: object) -> None:
    with pytest.raises(TypeError, match="a sink must have `async emit"):
        await open_app(sinks=(RecordingSink(), sink)).__aenter__()  # type: ignore[arg-type]  # what this is about


async def test_a_clock_that_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="the clock must be callable"):
        await open_app(clock=3).__aenter__()  # type: ignore[arg-type]  # what this is about


@pytest.mark.parametrize("workers", [0, -1])
async def test_there_is_at_least_one_worker(workers: int) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1"):
        await open_app(workers=workers).__aenter__()


# --- what belongs to the host ----------------------------------------------------------------------------------------


def globals_of_the_process() -> list[object]:
    root = logging.getLogger()
    return [
        trace.get_tracer_provider(),
        metrics.get_meter_provider(),
        list(root.handlers),
        root.level,
        logging.getLogger("burnish").handlers,
        structlog.is_configured(),
        dict(os.environ),
    ]


async def test_nothing_global_is_touched() -> None:
    before = globals_of_the_process()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        await app.send(training())
        assert globals_of_the_process() == before
    assert globals_of_the_process() == before


async def test_the_hosts_own_errors_inside_of_the_block_come_out_unchanged() -> None:
    class HostError(Exception):
        pass

    async def work() -> None:
        async with open_app():
            raise HostError

    with pytest.raises(HostError):
        await work()


def test_importing_the_api_loads_no_database_no_sdk_and_no_console() -> None:
    heavy = ("sqlalchemy", "aiosqlite", "openai", "rich", "typer", "json_repair", "opentelemetry.sdk")
    code = f"import sys, burnish.api; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", [CatalogRunner, ScriptedRunner])
async def test_an_app_may_be_used_from_one_loop_after_another(
    kind: Callable[[], CatalogRunner | ScriptedRunner],
) -> None:
    def run() -> float:
        async def train() -> float:
            async with open_app(rollouts=kind(), proposer=ScriptedProposer(append("score=0.6"))) as app:
                return (await app.send(training())).value.best_score

        return asyncio.run(train())

    assert [await asyncio.to_thread(run) for _ in range(2)] == [0.6, 0.6]
