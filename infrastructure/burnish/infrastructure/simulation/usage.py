"""Answers of a simulated model: with tokens guessed, and cut off where a real model would be."""

from __future__ import annotations

from burnish.domain.text_size import estimated_tokens
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage


def answered(request: ChatRequest, text: str) -> ChatAnswer:
    """The answer; raises ChatError (TRUNCATED), at the cost of the request's `max_tokens`, when it is longer than these."""
    usage = estimated_usage(request, text)
    most = request.max_tokens
    if most is not None and usage.completion_tokens > most:
        paid = Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=most, is_estimated=True)
        raise ChatError(ChatErrorCode.TRUNCATED, usage=paid)
    return ChatAnswer(text=text, usage=usage)


def estimated_usage(request: ChatRequest, text: str) -> Usage:
    """Tokens guessed from the number of characters."""
    return Usage(
        prompt_tokens=estimated_tokens(request.system + request.user),
        completion_tokens=estimated_tokens(text),
        is_estimated=True,
    )
