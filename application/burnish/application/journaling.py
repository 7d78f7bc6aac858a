"""Asking the outside world through the journal: an answer that is kept is not asked for again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json

from burnish.application.ports import Journal, JournalEntry

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A value, and whether it stands for a failure that a later attempt may ask about again."""

    value: T
    is_error: bool = False


class RunJournal:
    """The journal of one run in one attempt.

    `step` is where the loop is now. `is_replaying` tells whether everything asked so far was answered by what an earlier
    attempt had kept.
    """

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal = journal
        self._run_id = run_id
        self._asked = False
        self._kept = False
        self.step = 0

    async def prepare(self) -> None:
        """Look whether an earlier attempt has kept answers."""
        self._kept = await self._journal.count(self._run_id) > 0

    @property
    def is_replaying(self) -> bool:
        """Whether an earlier attempt answered everything so far."""
        return self._kept and not self._asked

    async def answer(self, key: str, codec: TypeAdapter[T], ask: Callable[[], Awaitable[Answer[T]]]) -> T:
        """What is kept under the key; without that, what `ask` brings, once it is durable."""
        kept = await self._journal.find(self._run_id, key)
        if kept is not None:
            return codec.validate_json(kept.answer)
        self._asked = True
        answer = await ask()
        text = codec.dump_json(answer.value).decode()
        entry = JournalEntry(key=key, answer=text, is_error=answer.is_error, step=self.step)
        await self._journal.append(self._run_id, entry)
        return answer.value


def journal_key(kind: str, *position: str | int, request: object = None) -> str:
    """What is asked, as canonical JSON: its kind, where in the run, and a digest of the request itself."""
    parts: list[str | int] = [kind, *position]
    if request is not None:
        parts.append(f"sha256:{digest_of(request)}")
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def digest_of(request: object) -> str:
    """SHA-256 of a request's fields."""
    return hashlib.sha256(to_json(request, fallback=lambda value: type(value).__name__)).hexdigest()
