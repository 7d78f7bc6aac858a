"""How long a text is for a model, when no model is there to count."""

from __future__ import annotations

CHARACTERS_A_TOKEN = 4
"""The usual rule of thumb for English text."""


def count_tokens(characters: int) -> int:
    """Tokens guessed from the number of characters, rounded up."""
    return -(-characters // CHARACTERS_A_TOKEN)


def estimated_tokens(text: str) -> int:
    """Tokens of a text, guessed from its length."""
    return count_tokens(len(text))
