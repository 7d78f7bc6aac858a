"""The mediator takes each message to its one handler, and tells sinks what happened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from fakes import FailingSink, RecordingSink, Telescope

from burnish.application import behaviors
from burnish.application.events import Event
from burnish.application.mediator import Command, Mediator, Query, Sender
from burnish.application.result import ErrorCode, Result
from burnish.infrastructure.persistence.audit import InMemoryAuditLog
from burnish.presentation.container import utc_now


@dataclass(frozen=True, slots=True)
class Double(Query[int]):
    number: int


@dataclass(frozen=True, slots=True)
class Greet(Command[str]):
    name: str


@dataclass(frozen=True, slots=True)
class Countdown(Command[tuple[int, ...]]):
    start: int


class DoubleHandler:
    async def handle(self, message: Double, /) -> Result[int]:
        return Result.ok(2 * message.number)


class GreetHandler:
    async def handle(self, message: Greet, /) -> Result[str]:
        return Result.ok(f"hello {message.name}")


class CountdownHandler:
    """Sends a shorter countdown from inside its own."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def handle(self, message: Countdown, /) -> Result[tuple[int, ...]]:
        if message.start == 0:
            return Result.ok((0,))
        rest = await self._sender.send(Countdown(message.start - 1))
        return Result.ok((message.start, *rest.value))


class MeetingHandler:
    """Answers once as many messages as it expects are inside of it together."""

    def __init__(self, expected: int) -> None:
        self._everybody = asyncio.Barrier(expected)

    async def handle(self, message: Double, /) -> Result[int]:
        async with self._everybody:
            return Result.ok(message.number)


@pytest.fixture
def mediator(telescope: Telescope) -> Mediator:
    """A mediator with every behavior, and no handler yet."""
    return Mediator(
        behaviors.in_order(
            tracer=telescope.tracers.get_tracer("test"),
            meter=telescope.meters.get_meter("test"),
            audit_log=InMemoryAuditLog(),
            clock=utc_now,
            actor="tester",
        )
    )


async def test_each_message_reaches_its_own_handler(mediator: Mediator) -> None:
    mediator.register([Double.handled_by(DoubleHandler()), Greet.handled_by(GreetHandler())])
    assert (await mediator.send(Double(21))).value == 42
    assert (await mediator.send(Greet("Ada"))).value == "hello Ada"


def test_a_second_handler_for_a_message_is_refused(mediator: Mediator) -> None:
    mediator.register([Double.handled_by(DoubleHandler())])
    with pytest.raises(ValueError, match="Double already has a handler"):
        mediator.register([Double.handled_by(DoubleHandler())])


def test_a_second_handler_in_the_same_list_is_refused(mediator: Mediator) -> None:
    with pytest.raises(ValueError, match="Greet already has a handler"):
        mediator.register([Greet.handled_by(GreetHandler()), Greet.handled_by(GreetHandler())])


async def test_a_message_nobody_handles_is_the_callers_bug(mediator: Mediator) -> None:
    with pytest.raises(LookupError, match="no handler for Double"):
        await mediator.send(Double(1))


async def test_two_mediators_know_nothing_of_each_other(mediator: Mediator) -> None:
    mediator.register([Double.handled_by(DoubleHandler())])
    with pytest.raises(LookupError):
        await Mediator().send(Double(1))


async def test_a_handler_may_send_messages_itself(mediator: Mediator) -> None:
    mediator.register([Countdown.handled_by(CountdownHandler(mediator))])
    assert (await mediator.send(Countdown(5))).value == (5, 4, 3, 2, 1, 0)


async def test_messages_are_handled_concurrently(mediator: Mediator) -> None:
    mediator.register([Double.handled_by(MeetingHandler(20))])
    async with asyncio.timeout(5):
        answers = await asyncio.gather(*(mediator.send(Double(number)) for number in range(20)))
    assert [answer.value for answer in answers] == list(range(20))


async def test_every_sink_gets_an_event_in_the_order_of_the_list() -> None:
    first, second = RecordingSink(), RecordingSink()
    await Mediator(sinks=(first, second)).publish(Event(run_id="r"))
    assert first.events == second.events == [Event(run_id="r")]


@pytest.mark.parametrize("error", [RuntimeError("broken"), asyncio.CancelledError(), KeyError("x")])
async def test_a_sink_that_fails_keeps_no_event_from_the_others(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    healthy = RecordingSink()
    await Mediator(sinks=(FailingSink(error), healthy)).publish(Event(run_id="r"))
    assert healthy.events == [Event(run_id="r")]
    assert "event.sink_failed" in caplog.text


async def test_a_sink_that_is_cancelled_from_outside_lets_the_cancellation_through() -> None:
    waiting = asyncio.Event()

    class Waiting:
        async def emit(self, event: Event) -> None:
            waiting.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(Mediator(sinks=(Waiting(),)).publish(Event(run_id="r")))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_value_of_a_failure_cannot_be_taken_for_one() -> None:
    failed = Result.fail(ErrorCode.RUN_NOT_FOUND)
    with pytest.raises(RuntimeError, match=r"skill_training\.run\.not_found"):
        _ = failed.value
