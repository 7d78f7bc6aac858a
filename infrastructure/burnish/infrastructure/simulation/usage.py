"""Tokens of a call to a simulated model."""

from __future__ import annotations

import math

from burnish.infrastructure.models.chat import ChatRequest, Usage

CHARACTERS_A_TOKEN = 4
"""The usual rule of thumb for English text."""


def estimated_usage(request: ChatRequest, text: str) -> Usage:
    """Tokens guessed from the number of characters, rounded up."""
    return Usage(
        prompt_tokens=_tokens(len(request.system) + len(request.user)),
        completion_tokens=_tokens(len(text)),
        is_estimated=True,
    )


def _tokens(characters: int) -> int:
    return math.ceil(characters / CHARACTERS_A_TOKEN)
