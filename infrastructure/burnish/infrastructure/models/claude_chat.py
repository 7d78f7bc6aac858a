"""A chat model behind Anthropic's messages API."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Annotated, Final

from annotated_types import Ge
from opentelemetry import trace
from pydantic import BaseModel, ValidationError

from burnish.infrastructure.models import genai
from burnish.infrastructure.models.chat import ChatRequest, Usage
from burnish.infrastructure.models.claude_settings import DEFAULT_MAX_TOKENS, ClaudeChatSettings
from burnish.infrastructure.models.extras import MissingExtraError
from burnish.infrastructure.models.parameters import JSON_FORMAT, Form, left_out_by_claude
from burnish.infrastructure.models.served_chat import Ending, Reply, ServedChatModel
from burnish.infrastructure.models.served_settings import check_key
from burnish.infrastructure.models.wire import CONNECT_TIMEOUT_SECONDS, POOL_ROOM, Payload, Wire

CLAUDE_URL: Final = "https://api.anthropic.com"
JSON_MODES: Final = ("schema", "tool", "none")

_PATTERNS: Final = {
    JSON_FORMAT: re.compile(
        r"output_config(?!\.effort)|output_format|json_schema|structured[ _]outputs?|\btool_choice\b|\btools\b"
    ),
    "temperature": re.compile(r"\btemperature\b"),
    "effort": re.compile(r"\beffort\b"),
    "thinking": re.compile(r"\bthinking\b"),
}
_NO_THINKING: Final = frozenset({"none"})
_EFFORTS: Final = {"minimal": "low"}
"""Efforts that the API has no word for, and the nearest it has."""

_ENDINGS: Final = {
    "max_tokens": Ending.LENGTH,
    "model_context_window_exceeded": Ending.LENGTH,
    "refusal": Ending.CONTENT_FILTER,
}


class ClaudeChatModel(ServedChatModel):
    """A `ChatModel` on Anthropic's SDK.

    Raises ValueError for a blank key or one that no HTTP header can carry, MissingExtraError without the SDK.
    """

    def __init__(
        self,
        settings: ClaudeChatSettings,
        *,
        tracer: trace.Tracer | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(
            settings,
            _ClaudeDialect(settings),
            _connect(settings),
            tracer=tracer,
            sleep=sleep,
            draw=draw,
            now=now,
            clock=clock,
        )


class _ClaudeDialect:
    """How messages are asked for and read."""

    def __init__(self, settings: ClaudeChatSettings) -> None:
        self._settings = settings

    @property
    def provider(self) -> str:
        return genai.PROVIDER_ANTHROPIC

    @property
    def address(self) -> str:
        return self._settings.base_url or CLAUDE_URL

    @property
    def fingerprint(self) -> str:
        return self._settings.fingerprint

    @property
    def json_modes(self) -> tuple[str, ...]:
        return JSON_MODES

    @property
    def form(self) -> Form:
        return Form(json_mode=self._settings.json_mode, left_out=left_out_by_claude(self._settings.model))

    def payload(self, request: ChatRequest, form: Form) -> Payload:
        """The request; the system prompt, which opens with the skill, is marked for the provider's cache."""
        settings = self._settings
        max_tokens = request.max_tokens or settings.max_tokens or DEFAULT_MAX_TOKENS
        temperature = settings.temperature if request.temperature is None else request.temperature
        effort = settings.reasoning_effort
        optional: dict[str, object] = {}
        if request.system.strip():  # an empty text block is refused
            cached = {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
            optional["system"] = [cached]
        if temperature is not None and "temperature" not in form.left_out:
            optional["temperature"] = temperature
        if effort in _NO_THINKING and "thinking" not in form.left_out:
            optional["thinking"] = {"type": "disabled"}
        output: dict[str, object] = {}
        if effort is not None and effort not in _NO_THINKING and "effort" not in form.left_out:
            output["effort"] = _EFFORTS.get(effort, effort)
        if request.json_schema is not None and form.json_mode == "schema":
            output["format"] = {"type": "json_schema", "schema": dict(request.json_schema)}
        if output:
            optional["output_config"] = output
        if request.json_schema is not None and form.json_mode == "tool":
            tool = {
                "name": request.schema_name,
                "description": "Takes the answer.",
                "input_schema": dict(request.json_schema),
            }
            optional |= {"tools": [tool], "tool_choice": {"type": "tool", "name": request.schema_name}}
        return {
            "model": settings.model,
            "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": request.user}],
            **optional,
        }

    def read(self, body: bytes) -> Reply | None:
        """The texts of the message, or what the tool was called with; thinking is left out."""
        try:
            message = _Message.model_validate_json(body)
        except ValidationError:
            return None
        texts = [block.text for block in message.content if block.type == "text"]
        calls = [json.dumps(block.input, ensure_ascii=False) for block in message.content if block.type == "tool_use"]
        return Reply(
            text=calls[0] if calls else "".join(texts),
            ending=_ENDINGS.get(message.stop_reason or "", Ending.STOP),
            usage=None if message.usage is None else message.usage.counted(),
        )


class _Block(BaseModel):
    type: str
    text: str = ""
    input: dict[str, object] | None = None


_Count = Annotated[int, Ge(0)]


class _ReportedUsage(BaseModel):
    input_tokens: _Count
    output_tokens: _Count
    cache_read_input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None

    def counted(self) -> Usage:
        """With the tokens of the cache in the prompt's, which the API counts apart."""
        cached, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        return Usage(
            prompt_tokens=self.input_tokens + cached + written,
            completion_tokens=self.output_tokens,
            cached_tokens=cached,
            cache_written_tokens=written,
        )


class _Message(BaseModel):
    content: tuple[_Block, ...]
    stop_reason: str | None = None
    usage: _ReportedUsage | None = None


def _connect(settings: ClaudeChatSettings) -> Wire:
    """Make the SDK's client: the one place that imports it."""
    try:
        import anthropic  # noqa: PLC0415  # an extra
    except ImportError:
        raise MissingExtraError("anthropic") from None
    import httpx2  # noqa: PLC0415  # the SDK's own HTTP library

    check_key(settings.api_key)
    seconds, room = settings.timeout_seconds, POOL_ROOM * settings.max_concurrency
    timeout = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_SECONDS))
    client = anthropic.AsyncAnthropic(
        api_key=None if settings.is_token else settings.api_key,
        auth_token=settings.api_key if settings.is_token else None,
        base_url=settings.base_url or CLAUDE_URL,  # never None: the SDK would look into the environment
        timeout=timeout,
        max_retries=0,
        open_telemetry=False,  # our own span tells the same
        http_client=anthropic.DefaultAsyncHttpxClient(
            timeout=timeout,
            limits=httpx2.Limits(max_connections=room, max_keepalive_connections=room),
        ),
    )

    async def post(payload: Payload) -> bytes:
        return (await client.post("/v1/messages", body=payload, cast_to=httpx2.Response)).content

    return Wire(
        post=post,
        close=client.close,
        status_error=anthropic.APIStatusError,
        timeout_error=anthropic.APITimeoutError,
        connection_error=anthropic.APIConnectionError,
        any_error=anthropic.AnthropicError,
        patterns=_PATTERNS,
    )
