"""Asking the outside world through the journal: an answer that is kept is not asked for again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json

from burnish.application.ports import Journal, JournalEntry

T = TypeVar("T")

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A value, and whether it stands for a failure that a later attempt may ask about again."""

    value: T
    is_error: bool = False


class Codec(Generic[T]):
    """Turns answers into JSON and back; built when it is first needed, because that takes milliseconds."""

    def __init__(self, build: Callable[[], TypeAdapter[T]]) -> None:
        self._build = build

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return self._build()

    def dump(self, value: T) -> str:
        """The value as JSON."""
        return self._adapter.dump_json(value).decode()

    def load(self, text: str) -> T:
        """The value again."""
        return self._adapter.validate_json(text)


class RunJournal:
    """The journal of one run in one attempt; `epoch` and `step` (1-based) are where the loop is now."""

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal = journal
        self._run_id = run_id
        self._has_asked = False
        self._has_kept = False
        self.epoch = 0
        self.step = 0

    async def prepare(self) -> None:
        """Look whether an earlier attempt has kept answers."""
        self._has_kept = await self._journal.count(self._run_id) > 0

    @property
    def is_replaying(self) -> bool:
        """Whether an earlier attempt answered everything so far."""
        return self._has_kept and not self._has_asked

    async def answer(self, key: str, codec: Codec[T], ask: Callable[[], Awaitable[Answer[T]]]) -> T:
        """What is kept under the key; without that, what `ask` brings, once it is durable."""
        kept = await self._journal.find(self._run_id, key)
        if kept is not None:
            return codec.load(kept.answer)
        self._has_asked = True
        step = self.step
        answer = await ask()
        text = codec.dump(answer.value)
        await self._journal.append(
            self._run_id, JournalEntry(key=key, answer=text, is_error=answer.is_error, step=step)
        )
        return answer.value


_active: ContextVar[RunJournal | None] = ContextVar("burnish_run_journal", default=None)


def active_journal() -> RunJournal | None:
    """The journal of the run this code works for; None outside of a run.

    A context variable, because the end of an epoch goes through the mediator: handlers there must find the journal of
    the run that sent the message, and two runs side by side must not meet.
    """
    return _active.get()


@contextmanager
def journaling(journal: RunJournal) -> Generator[None]:
    """Let everything asked in the block go through this journal."""
    token = _active.set(journal)
    try:
        yield
    finally:
        _active.reset(token)


def journal_key(kind: str, *parts: str | int) -> str:
    """What is asked, as canonical JSON."""
    return _ENCODE([kind, *parts])


def digest_of(request: object) -> str:
    """SHA-256 of a request's fields."""
    return hashlib.sha256(to_json(request, fallback=lambda value: type(value).__name__)).hexdigest()
