"""A chat model behind any HTTP API: retries, limits, corrections and spans, the same for all of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from time import monotonic
from typing import Final, Protocol
from urllib.parse import urlsplit

from opentelemetry import trace
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt

from burnish.application.log import get_logger
from burnish.domain.text_size import estimated_tokens
from burnish.infrastructure.models import genai
from burnish.infrastructure.models.adaptive_limit import AdaptiveLimit
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage
from burnish.infrastructure.models.failures import CallFailure, retry_after_seconds
from burnish.infrastructure.models.pace import Pace
from burnish.infrastructure.models.parameters import JSON_FORMAT, Form
from burnish.infrastructure.models.served_settings import LONGEST_WAIT_SECONDS, ServedSettings
from burnish.infrastructure.models.wire import Payload, Wire

_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_BACKOFF_SECONDS: Final = 30.0

log = get_logger(__name__)


class Ending(StrEnum):
    """How an answer came to its end, in the API's words where those are known, so that no other text gets into spans."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a reply of status 200 says; `usage` None: nothing."""

    text: str
    ending: Ending = Ending.STOP
    usage: Usage | None = None


class Dialect(Protocol):
    """How one API is asked, and how its replies are read."""

    @property
    def provider(self) -> str:
        """Its name in OpenTelemetry's conventions."""
        ...

    @property
    def address(self) -> str:
        """Where it is."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of the model and the parameters that decide about its answers."""
        ...

    @property
    def json_modes(self) -> tuple[str, ...]:
        """The ways to ask for JSON, the strongest first; the last one asks in the prompt only."""
        ...

    @property
    def form(self) -> Form:
        """How a request is put at first."""
        ...

    def payload(self, request: ChatRequest, form: Form) -> Payload:
        """The request's body."""
        ...

    def read(self, body: bytes) -> Reply | None:
        """What a reply says; None when it is not what the API promises."""
        ...


class ServedChatModel:
    """A `ChatModel` on an official SDK.

    Retried are 408, 409, 425, 429, 5xx, time-outs and broken connections, with jitter and doubling waits, never shorter
    than `Retry-After`; an answer without text once. A parameter that the server refuses is put in another way or left
    out, each at most once a call, and so for all later calls once that has worked. Usage adds up all answers that were
    paid for. One object belongs to one event loop.
    """

    def __init__(
        self,
        settings: ServedSettings,
        dialect: Dialect,
        wire: Wire,
        *,
        tracer: trace.Tracer | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings = settings
        self._dialect = dialect
        self._wire = wire
        self._tracer = tracer or trace.get_tracer("burnish")
        self._sleep = sleep
        self._draw = draw
        self._now = now
        self._form = dialect.form
        self._limit = AdaptiveLimit(settings.max_concurrency, clock=clock, sleep=sleep)
        self._pace = Pace(
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            clock=clock,
            sleep=sleep,
        )

    @property
    def fingerprint(self) -> str:
        """A SHA-256 over the model and its parameters, as configured: it does not move when a server refuses one."""
        return self._dialect.fingerprint

    @property
    def concurrency(self) -> int:
        """How many requests may be in flight now: fewer than configured while the server is asked too much."""
        return self._limit.limit

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Ask, retry what may pass, and answer; raises ChatError otherwise."""
        call = _Call(request=request, form=self._form)
        with self._tracer.start_as_current_span(
            f"{genai.OPERATION_CHAT} {self._settings.model}",
            kind=trace.SpanKind.CLIENT,
            attributes=self._attributes(request),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            # Made anew each time: tenacity keeps a call's state on this object, and calls overlap.
            outcome: ChatAnswer | CallFailure = await AsyncRetrying(
                sleep=self._sleep,
                stop=stop_after_attempt(self._settings.max_retries + 1),
                wait=self._wait_seconds,
                retry=retry_if_result(_may_pass),
                retry_error_callback=_last_outcome,
            )(self._attempt, call)
            if call.usage is not None:
                span.set_attributes(genai.usage_attributes(call.usage))
            if call.ending is not None:
                span.set_attribute(genai.RESPONSE_FINISH_REASONS, (call.ending.value,))
            if isinstance(outcome, CallFailure):
                span.set_attribute(genai.ERROR_TYPE, outcome.code.value)
                span.set_status(trace.StatusCode.ERROR)
                # Outside of any except block, so that no SDK exception, with a server's text in it, hangs on this one.
                raise ChatError(outcome.code, attempts=call.requests, usage=call.usage)
            return outcome

    async def aclose(self) -> None:
        """Close the connections; the model cannot be asked any more."""
        await self._wire.close()

    async def _attempt(self, call: _Call) -> ChatAnswer | CallFailure:
        """Send one request, and again at once in another form while the server refuses a parameter of it."""
        body = await self._post(call)
        while isinstance(body, CallFailure) and self._is_corrected(call, body):
            body = await self._post(call)
        if not isinstance(body, CallFailure):
            self._adopt(call)
        outcome = body if isinstance(body, CallFailure) else self._read(body, call)
        if isinstance(outcome, CallFailure):
            log.warning(
                "model.call_failed",
                code=outcome.code.value,
                status=outcome.status,
                attempt=call.requests,
                purpose=call.request.purpose,
                reason=outcome.reason,
                parameter=outcome.parameter,
            )
        return outcome

    async def _post(self, call: _Call) -> bytes | CallFailure:
        payload = self._dialect.payload(call.request, call.form)
        call.estimate = estimated_tokens(call.request.system + call.request.user)
        async with self._limit.slot() as slot:
            await self._pace.wait(call.estimate)
            call.requests += 1
            body = await self._wire.deliver(payload, self._settings.timeout_seconds)
            if not isinstance(body, CallFailure):
                self._limit.answered()
            elif body.is_pressure:
                self._limit.refused(slot, retry_after_seconds(body.retry_after, self._now()))
            return body

    def _is_corrected(self, call: _Call, failure: CallFailure) -> bool:
        named = failure.named
        if named is None or (named in call.corrected and named != JSON_FORMAT):
            return False
        form = call.form.without(named, self._dialect.json_modes)
        payload = self._dialect.payload
        if form is None or payload(call.request, form) == payload(call.request, call.form):
            return False  # what is refused was not asked for
        call.form = form
        call.corrected.add(named)
        return True

    def _adopt(self, call: _Call) -> None:
        """Stay with another form once it has worked: until then the request itself may have been at fault."""
        if not call.corrected or call.form == self._form:
            return
        if call.form.json_mode != self._form.json_mode:
            log.warning("model.json_mode_lowered", json_mode=call.form.json_mode)
        for name in sorted(call.corrected - {JSON_FORMAT}):
            log.warning("model.parameter_corrected", parameter=name, token_limit=call.form.token_limit)
        self._form = call.form

    def _read(self, body: bytes, call: _Call) -> ChatAnswer | CallFailure:
        """The answer in a reply of status 200, or why it is none; adds the reply's usage to the call's."""
        reply = self._dialect.read(body)
        if reply is None:
            return CallFailure(code=ChatErrorCode.UNREADABLE)
        usage = reply.usage or Usage(
            prompt_tokens=call.estimate, completion_tokens=estimated_tokens(reply.text), is_estimated=True
        )
        self._pace.correct(usage.prompt_tokens + usage.completion_tokens - call.estimate)
        call.usage = usage if call.usage is None else call.usage + usage
        call.ending = reply.ending
        if reply.ending is Ending.LENGTH:
            return CallFailure(code=ChatErrorCode.TRUNCATED)
        if reply.ending is Ending.CONTENT_FILTER:
            return CallFailure(code=ChatErrorCode.FILTERED)
        if not reply.text.strip():
            call.empty_answers += 1
            return CallFailure(code=ChatErrorCode.EMPTY, is_transient=call.empty_answers == 1)
        return ChatAnswer(text=reply.text, usage=call.usage, attempts=call.requests)

    def _attributes(self, request: ChatRequest) -> dict[str, str | int | float]:
        settings, address = self._settings, urlsplit(self._dialect.address)
        optional: dict[str, str | int | float | None] = {
            genai.REQUEST_MAX_TOKENS: settings.max_tokens if request.max_tokens is None else request.max_tokens,
            genai.REQUEST_TEMPERATURE: settings.temperature if request.temperature is None else request.temperature,
            genai.REQUEST_SEED: request.seed,
            genai.OUTPUT_TYPE: None if request.json_schema is None else genai.OUTPUT_JSON,
            genai.SERVER_ADDRESS: address.hostname,
            genai.SERVER_PORT: address.port,
        }
        return {
            genai.OPERATION_NAME: genai.OPERATION_CHAT,
            genai.PROVIDER_NAME: self._dialect.provider,
            genai.REQUEST_MODEL: settings.model,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _wait_seconds(self, state: RetryCallState) -> float:
        backoff = min(_LONGEST_BACKOFF_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** (state.attempt_number - 1))
        failure = _last_outcome(state)
        asked = retry_after_seconds(failure.retry_after, self._now()) if isinstance(failure, CallFailure) else 0.0
        # Jitter shortens our own wait by up to a half and lengthens the server's by up to a tenth.
        wait = max(backoff * (1.0 - self._draw() / 2), asked * (1.0 + self._draw() / 10))
        return min(wait, LONGEST_WAIT_SECONDS)


@dataclass(slots=True, kw_only=True)
class _Call:
    """What one `complete` has been through so far."""

    request: ChatRequest
    form: Form
    corrected: set[str] = field(default_factory=set[str])
    requests: int = 0
    empty_answers: int = 0
    estimate: int = 0
    usage: Usage | None = None
    ending: Ending | None = None


def _may_pass(outcome: ChatAnswer | CallFailure) -> bool:
    return isinstance(outcome, CallFailure) and outcome.is_transient


def _last_outcome(state: RetryCallState) -> ChatAnswer | CallFailure:
    assert state.outcome is not None, "tenacity asks after an attempt only"
    outcome: ChatAnswer | CallFailure = state.outcome.result()
    return outcome
