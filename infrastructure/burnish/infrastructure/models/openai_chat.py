"""A chat model behind OpenAI's chat completions API: at OpenAI, at Azure, or at any server that speaks it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Annotated, Final

from annotated_types import MinLen
from opentelemetry import trace
from pydantic import BaseModel, NonNegativeInt, ValidationError

from burnish.infrastructure.models import genai
from burnish.infrastructure.models.azure import token_source
from burnish.infrastructure.models.chat import ChatRequest, Usage
from burnish.infrastructure.models.openai_settings import OpenAIChatSettings
from burnish.infrastructure.models.parameters import JSON_FORMAT, Form, left_out_by_openai
from burnish.infrastructure.models.served_chat import Ending, Reply, ServedChatModel
from burnish.infrastructure.models.served_settings import ServedSettings, check_key
from burnish.infrastructure.models.wire import CONNECT_TIMEOUT_SECONDS, POOL_ROOM, Payload, Wire

OPENAI_URL: Final = "https://api.openai.com/v1"
JSON_MODES: Final = ("schema", "object", "none")

_PATTERNS: Final = {
    JSON_FORMAT: re.compile(r"response[_ ]format|json[_ ](schema|object|mode)|structured[_ ]output", re.IGNORECASE),
    "max_completion_tokens": re.compile(r"\bmax_completion_tokens\b(?! instead)"),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
    "temperature": re.compile(r"\btemperature\b"),
    "reasoning_effort": re.compile(r"\breasoning[_.]effort\b"),
    "seed": re.compile(r"\bseed\b"),
    "chat_template_kwargs": re.compile(r"\bchat_template_kwargs\b"),
    "enable_thinking": re.compile(r"\benable_thinking\b"),
}


class OpenAIChatModel(ServedChatModel):
    """A `ChatModel` on OpenAI's SDK. Raises ValueError for a blank key or one that no HTTP header can carry.

    Azure is let in by a key, or by tokens, which need the extra `azure`: without it MissingExtraError is raised.
    """

    def __init__(
        self,
        settings: OpenAIChatSettings,
        *,
        tracer: trace.Tracer | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(
            settings,
            OpenAIDialect(settings),
            _connect_azure(settings) if settings.azure is not None else connect_openai(settings, settings.base_url),
            tracer=tracer,
            sleep=sleep,
            draw=draw,
            now=now,
            clock=clock,
        )


class OpenAIDialect:
    """How chat completions are asked for and read."""

    def __init__(self, settings: OpenAIChatSettings) -> None:
        self._settings = settings

    @property
    def provider(self) -> str:
        """OpenAI's name, also for a server that only speaks its API; Azure has its own."""
        return genai.PROVIDER_OPENAI if self._settings.azure is None else genai.PROVIDER_AZURE

    @property
    def address(self) -> str:
        """The server's."""
        return self._settings.base_url or OPENAI_URL

    @property
    def fingerprint(self) -> str:
        """The settings'."""
        return self._settings.fingerprint

    @property
    def json_modes(self) -> tuple[str, ...]:
        """By schema, as any JSON object, by the prompt alone."""
        return JSON_MODES

    @property
    def form(self) -> Form:
        """As configured; at OpenAI without what its table of models refuses."""
        settings = self._settings
        refused: frozenset[str] = frozenset()
        if settings.is_openai:
            refused = left_out_by_openai(settings.model, settings.reasoning_effort)
        return Form(json_mode=settings.json_mode, token_limit=settings.token_parameter, left_out=refused)

    def payload(self, request: ChatRequest, form: Form) -> Payload:
        """The skill first, so that servers can reuse its prefix; parameters that are not set are not sent."""
        return completion_payload(self._settings, request, form)

    def read(self, body: bytes) -> Reply | None:
        """The first choice."""
        return read_completion(body)


def completion_payload(settings: ServedSettings, request: ChatRequest, form: Form) -> Payload:
    """The body of a request for a completion."""
    optional = {
        form.token_limit: settings.max_tokens if request.max_tokens is None else request.max_tokens,
        "temperature": settings.temperature if request.temperature is None else request.temperature,
        "reasoning_effort": settings.reasoning_effort,
        "seed": request.seed,
        "response_format": _response_format(request, form.json_mode),
    }
    return {
        "model": settings.model,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        **{name: value for name, value in optional.items() if value is not None and name not in form.left_out},
    }


def _response_format(request: ChatRequest, json_mode: str) -> dict[str, object] | None:
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


class _PromptDetails(BaseModel):
    cached_tokens: NonNegativeInt | None = None


class _ReportedUsage(BaseModel):
    prompt_tokens: NonNegativeInt | None = None
    completion_tokens: NonNegativeInt | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(BaseModel):
    choices: Annotated[tuple[_Choice, ...], MinLen(1)]
    usage: _ReportedUsage | None = None


def read_completion(body: bytes) -> Reply | None:
    """What the first choice of a completion says; None when there is none, or it is not to be read."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        return None
    choice = completion.choices[0]
    ending = Ending.STOP
    if choice.finish_reason == "length":
        ending = Ending.LENGTH
    elif choice.finish_reason == "content_filter" or choice.message.refusal:
        ending = Ending.CONTENT_FILTER
    return Reply(text=choice.message.content or "", ending=ending, usage=_usage(completion.usage))


def _usage(reported: _ReportedUsage | None) -> Usage | None:
    if reported is None or reported.prompt_tokens is None or reported.completion_tokens is None:
        return None
    details = reported.prompt_tokens_details
    return Usage(
        prompt_tokens=reported.prompt_tokens,
        completion_tokens=reported.completion_tokens,
        cached_tokens=(details.cached_tokens or 0) if details is not None else 0,
    )


def connect_openai(settings: ServedSettings, base_url: str | None) -> Wire:
    """Make the SDK's client, which is the place that imports it, since that costs half a second."""
    import httpx2  # noqa: PLC0415  # the SDK's own HTTP library
    import openai  # noqa: PLC0415

    check_key(settings.api_key)
    seconds, room = settings.timeout_seconds, POOL_ROOM * settings.max_concurrency
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_SECONDS))
    client = openai.AsyncOpenAI(
        api_key=settings.api_key,
        base_url=base_url or OPENAI_URL,  # never None: the SDK would look into the environment
        timeout=timeout,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            timeout=timeout,
            limits=httpx2.Limits(max_connections=room, max_keepalive_connections=room),
        ),
    )
    if base_url is not None:
        client.organization = client.project = None  # the environment's, and none of another server's business

    async def post(payload: Payload) -> bytes:
        return (await client.post("/chat/completions", body=payload, cast_to=httpx2.Response)).content

    return _wire(post, client.close)


def _connect_azure(settings: OpenAIChatSettings) -> Wire:
    import httpx2  # noqa: PLC0415  # the SDK's own HTTP library
    import openai  # noqa: PLC0415

    access = settings.azure
    if access is None or settings.base_url is None:
        raise ValueError("Azure needs the resource's address")
    seconds, room = settings.timeout_seconds, POOL_ROOM * settings.max_concurrency
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_SECONDS))
    by_key = access.auth == "api_key"
    if by_key:
        check_key(settings.api_key)
    client = openai.AsyncAzureOpenAI(
        azure_endpoint=settings.base_url,
        api_version=access.api_version,
        api_key=settings.api_key if by_key else None,
        azure_ad_token_provider=None if by_key else token_source(access),
        timeout=timeout,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            timeout=timeout,
            limits=httpx2.Limits(max_connections=room, max_keepalive_connections=room),
        ),
    )
    client.organization = client.project = None  # the environment's, for OpenAI itself

    async def post(payload: Payload) -> bytes:
        return (await client.post("/chat/completions", body=payload, cast_to=httpx2.Response)).content

    return _wire(post, client.close)


def _wire(post: Callable[[Payload], Awaitable[bytes]], close: Callable[[], Awaitable[None]]) -> Wire:
    import openai  # noqa: PLC0415

    return Wire(
        post=post,
        close=close,
        status_error=openai.APIStatusError,
        timeout_error=openai.APITimeoutError,
        connection_error=openai.APIConnectionError,
        any_error=openai.OpenAIError,
        patterns=_PATTERNS,
    )
