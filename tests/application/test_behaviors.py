"""The behaviors around every handler: telemetry, audit, the error boundary, validation, in this order."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
from annotated_types import Ge
from fakes import Telescope

from burnish.application import behaviors
from burnish.application.mediator import Command, Mediator
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode, Result
from burnish.infrastructure.persistence.audit import InMemoryAuditLog
from burnish.presentation.container import utc_now


@dataclass(frozen=True, slots=True)
class Work(Command[str]):
    amount: Annotated[int, Ge(1)] = 1

    def violations(self) -> tuple[str, ...]:
        """Thirteen is refused by a rule of its own."""
        return ("amount",) if self.amount == 13 else ()


class Worker:
    """Answers, fails, or raises what it was told to."""

    def __init__(self, outcome: Result[str] | BaseException) -> None:
        self.handled: list[Work] = []
        self._outcome = outcome

    async def handle(self, message: Work, /) -> Result[str]:
        self.handled.append(message)
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


class Bench:
    """A mediator with all behaviors around one worker."""

    def __init__(self, telescope: Telescope, outcome: Result[str] | BaseException) -> None:
        self.audit_log = InMemoryAuditLog()
        self.worker = Worker(outcome)
        self.behaviors = behaviors.in_order(
            tracer=telescope.tracers.get_tracer("test"),
            meter=telescope.meters.get_meter("test"),
            audit_log=self.audit_log,
            clock=utc_now,
            actor="tester",
        )
        self.mediator = Mediator(self.behaviors)
        self.mediator.register([Work.handled_by(self.worker)])

    @property
    def audited(self) -> list[str]:
        return [record.entry.outcome for record in self.audit_log.records]


def span_errors(telescope: Telescope) -> list[object]:
    return [(span.attributes or {}).get("error.type") for span in telescope.spans("mediator Work")]


def test_the_order_is_declared_in_one_list(telescope: Telescope) -> None:
    names = [
        behavior.__name__ if inspect.isfunction(behavior) else type(behavior).__name__
        for behavior in Bench(telescope, Result.ok("")).behaviors
    ]
    assert names == ["Telemetry", "Audit", "error_boundary", "Validation"]


async def test_a_success_passes_through_unchanged(telescope: Telescope) -> None:
    bench = Bench(telescope, Result.ok("done"))
    assert (await bench.mediator.send(Work())).value == "done"
    assert (bench.audited, span_errors(telescope)) == (["ok"], [None])


@pytest.mark.parametrize("amount", [0, 13])
async def test_a_refusal_never_reaches_the_handler_but_audit_and_span(amount: int, telescope: Telescope) -> None:
    bench = Bench(telescope, Result.ok("done"))
    result = await bench.mediator.send(Work(amount))
    assert result.failure is not None
    assert (result.failure.code, result.failure.fields) == (ErrorCode.INVALID_REQUEST, ("amount",))
    assert bench.worker.handled == []
    assert (bench.audited, span_errors(telescope)) == (["request.invalid"], ["request.invalid"])


async def test_an_expected_failure_reaches_audit_and_span_as_its_code(telescope: Telescope) -> None:
    bench = Bench(telescope, Result.fail(ErrorCode.RUN_NOT_FOUND))
    result = await bench.mediator.send(Work())
    assert result.failure is not None
    code = "skill_training.run.not_found"
    assert (result.failure.code, bench.audited, span_errors(telescope)) == (code, [code], [code])


async def test_a_crash_reaches_caller_audit_and_span_as_one_code(telescope: Telescope) -> None:
    bench = Bench(telescope, ZeroDivisionError("a text"))
    result = await bench.mediator.send(Work())
    assert result.failure is not None
    code = "internal.unexpected"
    assert (result.failure.code, bench.audited, span_errors(telescope)) == (code, [code], [code])


async def test_an_adapters_own_code_and_fields_reach_the_caller(telescope: Telescope) -> None:
    bench = Bench(telescope, PortError(ErrorCode.STORE_UNAVAILABLE, "disk"))
    result = await bench.mediator.send(Work())
    assert result.failure is not None
    assert (result.failure.code, result.failure.fields) == ("skill_training.store.unavailable", ("disk",))
    assert bench.audited == ["skill_training.store.unavailable"]


async def test_a_cancellation_nobody_asked_for_is_a_failure_like_any_other(telescope: Telescope) -> None:
    bench = Bench(telescope, asyncio.CancelledError())
    result = await bench.mediator.send(Work())
    assert result.failure is not None
    assert (result.failure.code, bench.audited) == ("internal.unexpected", ["internal.unexpected"])


async def test_a_real_cancellation_passes_and_is_audited_as_aborted(telescope: Telescope) -> None:
    audit_log, started = InMemoryAuditLog(), asyncio.Event()

    class Waiting:
        async def handle(self, message: Work, /) -> Result[str]:
            started.set()
            await asyncio.Event().wait()
            return Result.ok("never")

    mediator = _around(telescope, audit_log, Waiting())
    task = asyncio.create_task(mediator.send(Work()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [record.entry.outcome for record in audit_log.records] == ["aborted"]
    assert telescope.sums("burnish.messages") == {(("message", "Work"), ("outcome", "aborted")): 1}


async def test_a_clean_up_that_fails_does_not_swallow_the_cancellation(telescope: Telescope) -> None:
    audit_log, started = InMemoryAuditLog(), asyncio.Event()

    class Untidy:
        async def handle(self, message: Work, /) -> Result[str]:
            try:
                started.set()
                await asyncio.Event().wait()
            finally:
                raise RuntimeError("while cleaning up")

    task = asyncio.create_task(_around(telescope, audit_log, Untidy()).send(Work()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [record.entry.outcome for record in audit_log.records] == ["aborted"]


async def test_a_callers_time_limit_is_kept(telescope: Telescope) -> None:
    class Endless:
        async def handle(self, message: Work, /) -> Result[str]:
            await asyncio.Event().wait()
            return Result.ok("never")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await _around(telescope, InMemoryAuditLog(), Endless()).send(Work())


async def test_a_span_takes_no_text_from_an_exception_nobody_caught(telescope: Telescope) -> None:
    telemetry = behaviors.Telemetry(telescope.tracers.get_tracer("test"), telescope.meters.get_meter("test"))
    mediator = Mediator([telemetry])
    mediator.register([Work.handled_by(Worker(RuntimeError("PLANTED")))])
    with pytest.raises(RuntimeError):
        await mediator.send(Work())
    (span,) = telescope.spans()
    assert (span.events, span.status.description) == ((), None)


async def test_a_span_is_open_while_the_handler_works(telescope: Telescope) -> None:
    tracer = telescope.tracers.get_tracer("test")

    class Tracing:
        async def handle(self, message: Work, /) -> Result[str]:
            with tracer.start_as_current_span("inner"):
                return Result.ok("done")

    await _around(telescope, InMemoryAuditLog(), Tracing()).send(Work())
    (inner,), (outer,) = telescope.spans("inner"), telescope.spans("mediator Work")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id


def _around(telescope: Telescope, audit_log: InMemoryAuditLog, handler: object) -> Mediator:
    mediator = Mediator(
        behaviors.in_order(
            tracer=telescope.tracers.get_tracer("test"),
            meter=telescope.meters.get_meter("test"),
            audit_log=audit_log,
            clock=utc_now,
            actor="tester",
        )
    )
    mediator.register([Work.handled_by(handler)])  # type: ignore[arg-type]  # each of them has the one method
    return mediator
