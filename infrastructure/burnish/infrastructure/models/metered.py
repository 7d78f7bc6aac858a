"""A chat model whose tokens are counted for the role it plays."""

from __future__ import annotations

import json
from typing import Final

from burnish.application.usage import UsageNote, note_usage
from burnish.infrastructure.models.chat import (
    MOST_PAID_ANSWERS,
    ChatAnswer,
    ChatError,
    ChatModel,
    ChatRequest,
    Usage,
)

_FORM_TOKENS: Final = 64  # what a server puts around the texts of a request


def most_usage(request: ChatRequest, role: str) -> tuple[UsageNote, ...]:
    """The most tokens one call can use: a token is at least a byte. ValueError when the request has no `max_tokens`."""
    if request.max_tokens is None:
        raise ValueError("nothing limits the answer to a request without max_tokens")
    schema = "" if request.json_schema is None else json.dumps(dict(request.json_schema)) + request.schema_name
    texts = (request.system, request.user, schema)
    prompt_tokens = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + _FORM_TOKENS
    return (UsageNote(role, prompt_tokens, request.max_tokens),) * MOST_PAID_ANSWERS


class MeteredModel:
    """Passes everything on, and notes what each call used, also one that was paid for and gave no usable answer."""

    def __init__(self, model: ChatModel, role: str) -> None:
        self._model = model
        self._role = role

    @property
    def fingerprint(self) -> str:
        """The model's own."""
        return self._model.fingerprint

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The model's answer."""
        try:
            answer = await self._model.complete(request)
        except ChatError as error:
            if error.usage is not None:
                self._note(error.usage)
            raise
        self._note(answer.usage)
        return answer

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    def _note(self, usage: Usage) -> None:
        # A token written to a provider's cache costs a quarter more: counted so, a cap in dollars is never passed.
        prompt_tokens = usage.prompt_tokens + -(-usage.cache_written_tokens // 4)
        note_usage(UsageNote(self._role, prompt_tokens, usage.completion_tokens, usage.is_estimated))
