"""A Qwen model behind a vLLM-style server: OpenAI's API, with thinking switched on or off and kept out of the answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import Final

from opentelemetry import trace

from burnish.infrastructure.models import genai
from burnish.infrastructure.models.chat import ChatRequest
from burnish.infrastructure.models.openai_chat import JSON_MODES, completion_payload, connect_openai, read_completion
from burnish.infrastructure.models.parameters import Form
from burnish.infrastructure.models.qwen_settings import QWEN_URL, QwenChatSettings
from burnish.infrastructure.models.served_chat import Reply, ServedChatModel
from burnish.infrastructure.models.wire import Payload

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"

_SWITCH: Final = "chat_template_kwargs"
_OTHER_SWITCH: Final = "enable_thinking"


class QwenChatModel(ServedChatModel):
    """A `ChatModel` on OpenAI's SDK. Raises ValueError for a blank key or one that no HTTP header can carry."""

    def __init__(
        self,
        settings: QwenChatSettings,
        *,
        tracer: trace.Tracer | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(
            settings,
            _QwenDialect(settings),
            connect_openai(settings, settings.base_url or QWEN_URL),
            tracer=tracer,
            sleep=sleep,
            draw=draw,
            now=now,
            clock=clock,
        )


def without_thoughts(text: str) -> str:
    """The answer without the thoughts before it, whether the model opened them or the server's template did."""
    thoughts, closed, answer = text.partition(_CLOSE)
    if thoughts.lstrip().startswith(_OPEN):
        return answer.lstrip()
    return answer.lstrip() if closed and _OPEN not in thoughts else text


class _QwenDialect:
    """How a Qwen model is asked, and its answers read."""

    def __init__(self, settings: QwenChatSettings) -> None:
        self._settings = settings

    @property
    def provider(self) -> str:
        return genai.PROVIDER_QWEN

    @property
    def address(self) -> str:
        return self._settings.base_url or QWEN_URL

    @property
    def fingerprint(self) -> str:
        return self._settings.fingerprint

    @property
    def json_modes(self) -> tuple[str, ...]:
        return JSON_MODES

    @property
    def form(self) -> Form:
        return Form(json_mode=self._settings.json_mode)

    def payload(self, request: ChatRequest, form: Form) -> Payload:
        """A request for a completion; a server that does not know vLLM's switch for thinking is given the cloud's."""
        payload = completion_payload(self._settings, request, form)
        if self._settings.thinking_mode == "server_default":
            return payload
        thinks = self._settings.thinking_mode == "enabled"
        if _SWITCH not in form.left_out:
            return {**payload, _SWITCH: {"enable_thinking": thinks}}
        return payload if _OTHER_SWITCH in form.left_out else {**payload, _OTHER_SWITCH: thinks}

    def read(self, body: bytes) -> Reply | None:
        """The first choice without its thoughts; a server that tells them apart has them in a field of their own."""
        reply = read_completion(body)
        return None if reply is None else replace(reply, text=without_thoughts(reply.text))
