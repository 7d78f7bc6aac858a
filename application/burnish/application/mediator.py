"""Messages, and the mediator that takes each to its one handler through the behaviors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import ConfigDict

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.events import Event
from burnish.application.log import get_logger
from burnish.application.ports import EventSink
from burnish.application.result import Result

_log = get_logger(__name__)

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
M = TypeVar("M", bound="Message[Any]")
M_contra = TypeVar("M_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Message(Generic[R]):
    """A request that is answered with `Result[R]`; its fields carry their constraints, `Validation` checks them."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        revalidate_instances="always", strict=True, allow_inf_nan=False
    )

    def violations(self) -> tuple[str, ...]:
        """Paths of the fields that break a rule across fields; asked only when every single field is right."""
        return ()

    @classmethod
    def handled_by(cls: type[M], handler: Handler[M, R]) -> Route:
        """Pair this message type with its handler; type checkers reject a mismatch."""
        return Route(cls, handler)

    @property
    def position(self) -> str:
        """Where in its run the message has its place; empty for one that may be sent any number of times."""
        return ""


@dataclass(frozen=True, slots=True)
class Command(Message[R]):
    """A message that changes state; every one is audited."""


@dataclass(frozen=True, slots=True)
class Query(Message[R]):
    """A message that only reads."""


class Handler(Protocol[M_contra, R_co]):
    """Answers one type of message."""

    async def handle(self, message: M_contra, /) -> Result[R_co]:
        """The answer; expected failures are results, not exceptions."""
        ...


class Sender(Protocol):
    """What a handler sees of the mediator."""

    async def send(self, message: Message[R], /) -> Result[R]:
        """Take the message to its handler."""
        ...


class Publisher(Protocol):
    """Tells listeners what happened."""

    async def publish(self, event: Event, /) -> None:
        """Hand the event to every sink."""
        ...


class Behavior(Protocol):
    """A step around every handler: it may look, time or refuse, but not swap the message."""

    async def __call__(self, message: Message[R], call_next: Callable[[], Awaitable[Result[R]]], /) -> Result[R]:
        """Answer the message, as a rule by awaiting `call_next()`."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """A message type and its handler."""

    message: type[Message[Any]]
    handler: Handler[Any, Any]


class Mediator:
    """Sends messages through the behaviors, outermost first, to their handlers; publishes events to sinks.

    Holds no state of a message on its way, so it may be used concurrently and from inside handlers.
    """

    def __init__(self, behaviors: Sequence[Behavior] = (), sinks: Sequence[EventSink] = ()) -> None:
        self._behaviors = tuple(behaviors)
        self._sinks = tuple(sinks)
        self._handlers: dict[type[Message[Any]], Handler[Any, Any]] = {}

    def register(self, routes: Iterable[Route]) -> None:
        """Add handlers; raises ValueError on a second handler for a message."""
        for route in routes:
            if route.message in self._handlers:
                raise ValueError(f"{route.message.__name__} already has a handler")
            self._handlers[route.message] = route.handler

    async def send(self, message: Message[R], /) -> Result[R]:
        """The handler's answer; raises LookupError when nobody handles this type of message."""
        try:
            handler: Handler[Message[R], R] = self._handlers[type(message)]
        except KeyError:
            raise LookupError(f"no handler for {type(message).__name__}") from None

        async def run(position: int) -> Result[R]:
            if position == len(self._behaviors):
                return await handler.handle(message)
            return await self._behaviors[position](message, lambda: run(position + 1))

        return await run(0)

    async def publish(self, event: Event, /) -> None:
        """Hand the event to every sink in turn; a sink that fails is logged and changes nothing."""
        for sink in self._sinks:
            try:
                await sink.emit(event)
            except (Exception, asyncio.CancelledError) as error:
                pass_on_cancellation(error)
                _log.exception("event.sink_failed", event_type=type(event).__name__, run_id=event.run_id)
