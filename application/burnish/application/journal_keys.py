"""The keys of the journal: what is asked, as canonical JSON."""

from __future__ import annotations

import json
from typing import cast

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

RESERVATION = "reservation"
TEXT = "text"
ACTIVE = "active"
BOOKKEEPING = frozenset({RESERVATION, ACTIVE})
"""Kinds of entries that are about one run's attempts, and are no part of a recording."""


def journal_key(kind: str, *parts: str | int) -> str:
    """What is asked, as canonical JSON."""
    return _ENCODE([kind, *parts])


def text_key(digest: str) -> str:
    """Where the text behind a digest is kept."""
    return journal_key(TEXT, digest)


def reservation_key(key: str, attempt: int) -> str:
    """Where it is kept what a call may use at most, when it is made for the so-manieth time (from 1)."""
    return journal_key(RESERVATION, key, attempt)


def parts_of(key: str) -> list[object]:
    """The kind and the parts of a key; the key itself as its only part when it is not one of ours."""
    try:
        parts = json.loads(key)
    except ValueError:
        return [key]
    return cast("list[object]", parts) if isinstance(parts, list) else [key]


def kind_of(key: str) -> str:
    """What kind of entry is kept under the key."""
    return str(next(iter(parts_of(key)), ""))


def rollouts_of(key: str) -> int:
    """How many rollouts the call with this key makes at most."""
    kind, *parts = parts_of(key)
    if kind == "rollout":
        return 1
    size = parts[1] if kind == "batch" and len(parts) > 1 else 0
    return size if isinstance(size, int) else 0


def stage_of(key: str) -> str:
    """For people, what a call is for: its kind, and of a rollout the split."""
    return " ".join(str(part) for part in parts_of(key)[:2]) if kind_of(key) in {"rollout", "batch"} else kind_of(key)
