"""Tokens of a call to a simulated model."""

from __future__ import annotations

from burnish.domain.text_size import estimated_tokens
from burnish.infrastructure.models.chat import ChatRequest, Usage


def estimated_usage(request: ChatRequest, text: str) -> Usage:
    """Tokens guessed from the number of characters."""
    return Usage(
        prompt_tokens=estimated_tokens(request.system + request.user),
        completion_tokens=estimated_tokens(text),
        is_estimated=True,
    )
