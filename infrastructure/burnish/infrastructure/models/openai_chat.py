"""A chat model behind OpenAI's chat completions API, at OpenAI itself or at any server that speaks it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Final

from annotated_types import MinLen
from opentelemetry import trace
from pydantic import BaseModel, NonNegativeInt, ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt

from burnish.application.log import get_logger
from burnish.domain.text_size import estimated_tokens
from burnish.infrastructure.models import genai
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage
from burnish.infrastructure.models.openai_settings import (
    LONGEST_WAIT_SECONDS,
    JsonMode,
    OpenAIChatSettings,
    fingerprint_of,
)

OPENAI_URL: Final = "https://api.openai.com/v1"

_FIRST_WAIT_SECONDS: Final = 0.5
_LONGEST_BACKOFF_SECONDS: Final = 30.0
_CONNECT_TIMEOUT_SECONDS: Final = 10.0
_POOL_ROOM: Final = 4  # connections a permitted call: a pool as large as the concurrency makes httpx queue
_JSON_MODES: Final[tuple[JsonMode, ...]] = ("schema", "object", "none")  # strongest first
_NAMES_THE_FORMAT = re.compile(r"response[_ ]format|json[_ ](schema|object|mode)|structured[_ ]output", re.IGNORECASE)

# What may be logged of a server's error: any other word of it could be a piece of a prompt or a key.
_LOGGED_REASONS: Final = frozenset({"context_length_exceeded", "insufficient_quota", "unsupported_parameter"})

log = get_logger(__name__)


class OpenAIChatModel:
    """A `ChatModel` on OpenAI's SDK.

    Retried are 408, 409, 425, 429, 5xx, time-outs and broken connections, with jitter and doubling waits, never shorter
    than `Retry-After`; an answer without text once. Usage adds up all answers that were paid for. Raises ValueError for a
    blank key or one that no HTTP header can carry. One object belongs to one event loop.
    """

    def __init__(
        self,
        settings: OpenAIChatSettings,
        *,
        tracer: trace.Tracer | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._tracer = tracer or trace.get_tracer("burnish")
        self._sleep = sleep
        self._draw = draw
        self._now = now
        self._json_mode: JsonMode = settings.json_mode
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._connection = _connect(settings)

    @property
    def fingerprint(self) -> str:
        """See `fingerprint_of`."""
        return fingerprint_of(self._settings)

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Ask, retry what may pass, and answer; raises ChatError otherwise."""
        call = _Call(request=request, json_mode="none" if request.json_schema is None else self._json_mode)
        with self._tracer.start_as_current_span(
            f"{genai.OPERATION_CHAT} {self._settings.model}",
            kind=trace.SpanKind.CLIENT,
            attributes={
                genai.OPERATION_NAME: genai.OPERATION_CHAT,
                genai.PROVIDER_NAME: genai.PROVIDER_OPENAI,
                genai.REQUEST_MODEL: self._settings.model,
            },
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            # Made anew each time: tenacity keeps a call's state on this object, and calls overlap.
            outcome: ChatAnswer | _Failure = await AsyncRetrying(
                sleep=self._sleep,
                stop=stop_after_attempt(self._settings.max_retries + 1),
                wait=self._wait_seconds,
                retry=retry_if_result(_may_pass),
                retry_error_callback=_last_outcome,
            )(self._attempt, call)
            if call.usage is not None:
                span.set_attribute(genai.USAGE_INPUT_TOKENS, call.usage.prompt_tokens)
                span.set_attribute(genai.USAGE_OUTPUT_TOKENS, call.usage.completion_tokens)
            if isinstance(outcome, _Failure):
                span.set_attribute(genai.ERROR_TYPE, outcome.code.value)
                span.set_status(trace.StatusCode.ERROR)
                # Outside of any except block, so that no SDK exception, with a server's text in it, hangs on this one.
                raise ChatError(outcome.code, attempts=call.requests, usage=call.usage)
            return outcome

    async def aclose(self) -> None:
        """Close the connections; the model cannot be asked any more."""
        await self._connection.close()

    async def _attempt(self, call: _Call) -> ChatAnswer | _Failure:
        """Send one request, and again at once in a weaker JSON mode while the server refuses the mode."""
        reply = await self._post(call)
        while isinstance(reply, _Failure) and reply.names_the_format and call.json_mode != "none":
            call.json_mode = _JSON_MODES[_JSON_MODES.index(call.json_mode) + 1]
            reply = await self._post(call)
        if not isinstance(reply, _Failure):
            self._adopt_json_mode(call)
        outcome = reply if isinstance(reply, _Failure) else _read(reply, call)
        if isinstance(outcome, _Failure):
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

    async def _post(self, call: _Call) -> bytes | _Failure:
        async with self._slots:
            call.requests += 1
            return await self._connection.post(_payload(self._settings, call.request, call.json_mode))

    def _adopt_json_mode(self, call: _Call) -> None:
        """Stay with a weaker mode once it has worked: until then the request itself may have been at fault."""
        weaker = _JSON_MODES.index(call.json_mode) > _JSON_MODES.index(self._json_mode)
        if weaker and call.request.json_schema is not None:
            self._json_mode = call.json_mode
            log.warning("model.json_mode_lowered", json_mode=call.json_mode)

    def _wait_seconds(self, state: RetryCallState) -> float:
        backoff = min(_LONGEST_BACKOFF_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** (state.attempt_number - 1))
        failure = _last_outcome(state)
        asked = _retry_after_seconds(failure.retry_after, self._now()) if isinstance(failure, _Failure) else 0.0
        # Jitter shortens our own wait by up to a half and lengthens the server's by up to a tenth.
        wait = max(backoff * (1.0 - self._draw() / 2), asked * (1.0 + self._draw() / 10))
        return min(wait, LONGEST_WAIT_SECONDS)


@dataclass(slots=True, kw_only=True)
class _Call:
    """What one `complete` has been through so far."""

    request: ChatRequest
    json_mode: JsonMode
    requests: int = 0
    empty_answers: int = 0
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """Why one attempt brought no answer; holds none of the server's own words, but for a `Retry-After` not read yet."""

    code: ChatErrorCode
    is_transient: bool = False
    status: int | None = None
    retry_after: str | None = None
    names_the_format: bool = False
    reason: str | None = None
    parameter: str | None = None


def _may_pass(outcome: ChatAnswer | _Failure) -> bool:
    return isinstance(outcome, _Failure) and outcome.is_transient


def _last_outcome(state: RetryCallState) -> ChatAnswer | _Failure:
    assert state.outcome is not None, "tenacity asks after an attempt only"
    outcome: ChatAnswer | _Failure = state.outcome.result()
    return outcome


def _payload(settings: OpenAIChatSettings, request: ChatRequest, json_mode: JsonMode) -> dict[str, object]:
    max_tokens = settings.max_tokens if request.max_tokens is None else request.max_tokens
    optional = {
        settings.token_parameter: max_tokens,
        "temperature": settings.temperature if request.temperature is None else request.temperature,
        "reasoning_effort": settings.reasoning_effort,
        "seed": request.seed,
        "response_format": _response_format(request, json_mode),
    }
    return {
        "model": settings.model,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        **{name: value for name, value in optional.items() if value is not None},
    }


def _response_format(request: ChatRequest, json_mode: JsonMode) -> dict[str, object] | None:
    if request.json_schema is None or json_mode == "none":
        return None
    if json_mode == "object":
        return {"type": "json_object"}
    schema = {"name": request.schema_name, "schema": dict(request.json_schema), "strict": True}
    return {"type": "json_schema", "json_schema": schema}


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _ReportedUsage(BaseModel):
    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None


class _Completion(BaseModel):
    choices: Annotated[tuple[_Choice, ...], MinLen(1)]
    usage: _ReportedUsage | None = None


def _read(body: bytes, call: _Call) -> ChatAnswer | _Failure:
    """The answer in a reply of status 200, or why it is none; adds the reply's usage to the call's."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        return _Failure(code=ChatErrorCode.UNREADABLE)
    choice = completion.choices[0]
    text = choice.message.content or ""
    call.usage = _sum(call.usage, _usage(completion.usage, call.request, text))
    if choice.finish_reason == "length":
        return _Failure(code=ChatErrorCode.TRUNCATED)
    if choice.finish_reason == "content_filter" or choice.message.refusal:
        return _Failure(code=ChatErrorCode.FILTERED)
    if not text.strip():
        call.empty_answers += 1
        return _Failure(code=ChatErrorCode.EMPTY, is_transient=call.empty_answers == 1)
    return ChatAnswer(text=text, usage=call.usage, attempts=call.requests)


def _usage(reported: _ReportedUsage | None, request: ChatRequest, text: str) -> Usage:
    if reported is None or reported.prompt_tokens is None or reported.completion_tokens is None:
        prompt_tokens = estimated_tokens(request.system + request.user)
        return Usage(prompt_tokens=prompt_tokens, completion_tokens=estimated_tokens(text), is_estimated=True)
    return Usage(prompt_tokens=reported.prompt_tokens, completion_tokens=reported.completion_tokens)


def _sum(earlier: Usage | None, usage: Usage) -> Usage:
    if earlier is None:
        return usage
    return Usage(
        prompt_tokens=earlier.prompt_tokens + usage.prompt_tokens,
        completion_tokens=earlier.completion_tokens + usage.completion_tokens,
        is_estimated=earlier.is_estimated or usage.is_estimated,
    )


def _status_code(status: int) -> ChatErrorCode:
    if status in {401, 403}:
        return ChatErrorCode.REFUSED_KEY
    if status == 404:
        return ChatErrorCode.NOT_FOUND
    if status == 429:
        return ChatErrorCode.RATE_LIMITED
    if status in {408, 409, 425} or status >= 500:
        return ChatErrorCode.SERVER_ERROR
    # Below 400 is a redirect that leads nowhere: the SDK follows the others.
    return ChatErrorCode.BAD_REQUEST if status >= 400 else ChatErrorCode.UNREADABLE


def _retry_after_seconds(header: str | None, now: datetime) -> float:
    """The wait a `Retry-After` asks for, as seconds or as an HTTP date; 0 when it is missing, past or unreadable."""
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return 0.0
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(0.0, seconds), LONGEST_WAIT_SECONDS)  # in this order, "nan" is 0


@dataclass(frozen=True, slots=True)
class _Connection:
    post: Callable[[dict[str, object]], Awaitable[bytes | _Failure]] = field(repr=False)
    """Send a payload; the body of a reply of status 200, or a failure in place of every exception of the SDK."""
    close: Callable[[], Awaitable[None]] = field(repr=False)


def _connect(settings: OpenAIChatSettings) -> _Connection:
    """Make the SDK's client: the one place that imports it, since that costs half a second."""
    import httpx2  # noqa: PLC0415  # the SDK's own HTTP library
    import openai  # noqa: PLC0415

    if not settings.api_key.strip() or not (settings.api_key.isascii() and settings.api_key.isprintable()):
        raise ValueError("api_key is blank, or holds characters that no HTTP header can carry")

    seconds = settings.timeout_seconds
    timeout = httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_TIMEOUT_SECONDS))
    room = _POOL_ROOM * settings.max_concurrency
    client = openai.AsyncOpenAI(
        api_key=settings.api_key,
        base_url=settings.base_url or OPENAI_URL,  # never None: the SDK would look into the environment
        timeout=timeout,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            timeout=timeout,
            limits=httpx2.Limits(max_connections=room, max_keepalive_connections=room),
        ),
    )
    if settings.base_url is not None:
        client.organization = client.project = None  # the environment's, and none of another server's business

    async def post(payload: dict[str, object]) -> bytes | _Failure:
        try:
            # The HTTP library's time-outs are between bytes: a server that drips would never run into them.
            async with asyncio.timeout(seconds):
                response = await client.post("/chat/completions", body=payload, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            is_filter = error.code == "content_filter"  # Azure refuses a prompt with a 400
            code = ChatErrorCode.FILTERED if is_filter else _status_code(error.status_code)
            return _Failure(
                code=code,
                is_transient=code in {ChatErrorCode.RATE_LIMITED, ChatErrorCode.SERVER_ERROR},
                status=error.status_code,
                retry_after=error.response.headers.get("retry-after"),
                names_the_format=error.status_code in {400, 422}
                and bool(_NAMES_THE_FORMAT.search(error.response.text)),
                reason=error.code if error.code in _LOGGED_REASONS else None,
                parameter=error.param if isinstance(error.param, str) and error.param in payload else None,
            )
        except (TimeoutError, openai.APITimeoutError):
            return _Failure(code=ChatErrorCode.TIMEOUT, is_transient=True)
        except openai.APIConnectionError:
            return _Failure(code=ChatErrorCode.CONNECTION, is_transient=True)
        except openai.OpenAIError:
            return _Failure(code=ChatErrorCode.UNREADABLE)
        except UnicodeEncodeError:  # a lone surrogate in a prompt cannot be sent as JSON
            return _Failure(code=ChatErrorCode.BAD_REQUEST)
        return response.content

    return _Connection(post, client.close)
