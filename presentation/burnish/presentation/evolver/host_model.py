"""The host's `llm` as a chat model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.log import get_logger
from burnish.domain.text_size import estimated_tokens
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage
from burnish.presentation.evolver.host import HostCalls, Llm, LlmRequest

_log = get_logger(__name__)


class HostModel:
    """Asks the host. Retries, time-outs and rate limits are the host's own."""

    def __init__(self, llm: Llm, calls: HostCalls, *, temperature: float | None) -> None:
        self._llm = llm
        self._calls = calls
        self._temperature = temperature

    @property
    def fingerprint(self) -> str:
        """What is known of the host's model: the temperature it is asked with."""
        return f"host llm, temperature {self._temperature}"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer. Raises ChatError when the host raises, or its answer holds no text."""
        asked = LlmRequest(
            system=request.system,
            user=request.user,
            purpose=request.purpose,
            json_schema=request.json_schema,
            schema_name=request.schema_name,
            max_tokens=request.max_tokens,
            temperature=self._temperature if request.temperature is None else request.temperature,
            seed=request.seed,
        )
        try:
            answer = await self._calls.call(self._llm, asked)
        except (Exception, asyncio.CancelledError) as error:
            pass_on_cancellation(error)
            _log.exception("llm.raised", purpose=request.purpose)
            raise ChatError(ChatErrorCode.SERVER_ERROR) from error
        text = answer if isinstance(answer, str) else _part(answer, "text")
        if not isinstance(text, str):
            _log.warning("llm.no_text", purpose=request.purpose, answered=type(answer).__name__)
            raise ChatError(ChatErrorCode.UNREADABLE)
        usage = _usage(_part(answer, "usage"), asked, text)
        if not text.strip():
            raise ChatError(ChatErrorCode.EMPTY, usage=usage)
        return ChatAnswer(text=text, usage=usage)

    async def aclose(self) -> None:
        """Nothing is open."""


def _part(answer: object, name: str) -> object:
    if isinstance(answer, Mapping):
        return cast("Mapping[str, object]", answer).get(name)
    return getattr(answer, name, None)


def _usage(told: object, asked: LlmRequest, text: str) -> Usage:
    """What the host tells, or a guess by the length of the texts."""
    prompt, completion = _part(told, "prompt_tokens"), _part(told, "completion_tokens")
    if type(prompt) is int and type(completion) is int and prompt >= 0 and completion >= 0:
        return Usage(prompt_tokens=prompt, completion_tokens=completion)
    return Usage(
        prompt_tokens=estimated_tokens(asked.system + asked.user),
        completion_tokens=estimated_tokens(text),
        is_estimated=True,
    )
