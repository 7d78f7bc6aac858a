"""What happens around every handler: telemetry, audit, the error boundary, validation, in this order."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from opentelemetry.metrics import Counter, Meter
from opentelemetry.trace import Status, StatusCode, Tracer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.log import get_logger
from burnish.application.mediator import Behavior, Command, Message
from burnish.application.ports import AuditEntry, AuditLog, Clock, PortError
from burnish.application.result import ErrorCode, Result
from burnish.domain.runs import is_run_id

_log = get_logger(__name__)

R = TypeVar("R")


def in_order(*, tracer: Tracer, meter: Meter, audit_log: AuditLog, clock: Clock, actor: str) -> tuple[Behavior, ...]:
    """The behaviors, outermost first. Refusals and crashes reach telemetry and audit as codes; this is the one list."""
    return (Telemetry(tracer, meter), Audit(audit_log, clock, actor, meter), error_boundary, Validation())


class Telemetry:
    """A span and a count for every message; of a failure they show the code, never a text."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._messages = meter.create_counter("burnish.messages", description="Messages answered, by outcome.")

    async def __call__(self, message: Message[R], call_next: Callable[[], Awaitable[Result[R]]], /) -> Result[R]:
        """Answer the message inside a span named after its type."""
        name = type(message).__name__
        outcome = "aborted"
        with self._tracer.start_as_current_span(
            f"mediator {name}", record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                result = await call_next()
                outcome = _outcome(result)
                if result.failure is not None:
                    span.set_attribute("error.type", outcome)
                    span.set_status(Status(StatusCode.ERROR))
                return result
            finally:
                self._messages.add(1, {"message": name, "outcome": outcome})


class Audit:
    """Records every command: also refused, failed and cancelled ones. Failing to record never changes the answer."""

    def __init__(self, audit_log: AuditLog, clock: Clock, actor: str, meter: Meter) -> None:
        self._audit_log = audit_log
        self._clock = clock
        self._actor = actor
        self._failures: Counter = meter.create_counter(
            "burnish.audit.write_failures", description="Audit entries that could not be kept."
        )

    async def __call__(self, message: Message[R], call_next: Callable[[], Awaitable[Result[R]]], /) -> Result[R]:
        """Answer the message and keep an entry with the outcome."""
        if not isinstance(message, Command):
            return await call_next()
        outcome = "aborted"
        try:
            result = await call_next()
            outcome = _outcome(result)
            return result
        finally:
            await self._record(message, outcome)

    async def _record(self, message: Message[Any], outcome: str) -> None:
        try:
            subject = getattr(message, "run_id", None)
            entry = AuditEntry(
                at=self._clock(),
                actor=self._actor,
                action=type(message).__name__,
                subject=subject if isinstance(subject, str) and is_run_id(subject) else "",
                outcome=outcome,
                digest=_digest(message),
                position=message.position,
            )
            await self._audit_log.append(entry)
        except (Exception, asyncio.CancelledError) as error:
            self._failures.add(1)
            _log.exception("audit.write_failed", message_type=type(message).__name__)
            pass_on_cancellation(error)


async def error_boundary(message: Message[R], call_next: Callable[[], Awaitable[Result[R]]], /) -> Result[R]:
    """Turn whatever a handler raises into a code; the exception itself goes to the log only. Cancellation passes."""
    try:
        return await call_next()
    except (Exception, asyncio.CancelledError) as error:
        pass_on_cancellation(error)
        if isinstance(error, PortError):
            _log.exception("message.port_failed", message_type=type(message).__name__, code=error.code.value)
            return Result.fail(error.code, *error.fields)
        _log.exception("message.failed", message_type=type(message).__name__)
        return Result.fail(ErrorCode.UNEXPECTED)


class Validation:
    """Checks the constraints on the message's fields, then its rules across fields, before its handler sees it."""

    def __init__(self) -> None:
        self._adapters: dict[type[Message[Any]], TypeAdapter[Any]] = {}

    async def __call__(self, message: Message[R], call_next: Callable[[], Awaitable[Result[R]]], /) -> Result[R]:
        """Refuse a message that breaks a rule with `request.invalid` and the paths of its fields."""
        adapter = self._adapters.get(type(message))
        if adapter is None:
            adapter = self._adapters[type(message)] = TypeAdapter(type(message))
        try:
            adapter.validate_python(message)
        except ValidationError as error:
            problems = error.errors(include_input=False, include_context=False, include_url=False)
            fields = {".".join(map(str, problem["loc"])) for problem in problems}
            return Result.fail(ErrorCode.INVALID_REQUEST, *sorted(fields - _outer(fields)))
        if broken := message.violations():
            return Result.fail(ErrorCode.INVALID_REQUEST, *sorted(set(broken)))
        return await call_next()


def _outcome(result: Result[Any]) -> str:
    return "ok" if result.failure is None else result.failure.code.value


def _outer(fields: set[str]) -> set[str]:
    """Paths of what other paths lie in: pydantic also calls a tuple too short whose items are wrong."""
    return {field for field in fields if any(other.startswith(f"{field}.") for other in fields)}


def _digest(message: Message[Any]) -> str:
    """SHA-256 of the message's fields; the text itself is kept nowhere."""
    try:
        fields = to_json(message, fallback=lambda value: type(value).__name__)
    except PydanticSerializationError:  # a lone surrogate, say, in a message that was refused for it
        fields = repr(message).encode("utf-8", "backslashreplace")
    return hashlib.sha256(fields).hexdigest()
