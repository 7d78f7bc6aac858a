"""Tokens of a call to a simulated model."""

from __future__ import annotations

from burnish.domain.token_forecast import count_tokens
from burnish.infrastructure.models.chat import ChatRequest, Usage


def estimated_usage(request: ChatRequest, text: str) -> Usage:
    """Tokens guessed from the number of characters."""
    return Usage(
        prompt_tokens=count_tokens(len(request.system) + len(request.user)),
        completion_tokens=count_tokens(len(text)),
        is_estimated=True,
    )
