"""Chance without a state: numbers that look random and depend on nothing but what they are drawn for."""

from __future__ import annotations

import hashlib
import json

_BITS = 48


def draw(*parts: str | int | None) -> float:
    """A number in [0, 1), always the same for the same parts."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[: _BITS // 8]) / (1 << _BITS)
