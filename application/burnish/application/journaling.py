"""Asking the outside world through the journal: an answer that is kept is not asked for again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json

from burnish.application.ports import Journal, JournalEntry, PortError
from burnish.application.result import ErrorCode
from burnish.application.store_calls import ask_store
from burnish.application.usage import UsageNote, collecting_usage
from burnish.domain.runs import UsageTotal

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
        """The value as JSON. Raises ValueError when it is not of its type."""
        return self._adapter.dump_json(value, warnings="error").decode()

    def load(self, text: str) -> T:
        """The value again. Raises ValueError when the text holds none."""
        return self._adapter.validate_json(text)


class RunJournal:
    """The journal of one run in one attempt; `epoch` and `step` (1-based) are where the loop is now."""

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal = journal
        self._run_id = run_id
        self._has_asked = False
        self._has_kept = False
        self._counted: set[str] = set()
        self._usage: dict[tuple[str, str], UsageTotal] = {}
        self.epoch = 0
        self.step = 0

    async def prepare(self) -> None:
        """Look whether an earlier attempt has kept answers."""
        self._has_kept = await self._journal.count(self._run_id) > 0

    @property
    def is_replaying(self) -> bool:
        """Whether an earlier attempt answered everything so far."""
        return self._has_kept and not self._has_asked

    @property
    def usage(self) -> tuple[UsageTotal, ...]:
        """What the model calls behind all answers used, by role and stage."""
        return tuple(self._usage[place] for place in sorted(self._usage))

    async def answer(self, key: str, codec: Codec[T], ask: Callable[[], Awaitable[Answer[T]]], *, stage: str) -> T:
        """What is kept under the key; without that, what `ask` brings, once it is durable. `stage` is for the usage.

        `ask` brings answers that are read back from JSON as they are, so that a run sees the same whether it asks or
        replays. Raises PortError when what is kept is no answer.
        """
        kept = await ask_store(self._journal.find(self._run_id, key))
        if kept is not None:
            if key not in self._counted:
                self._count(key, kept.usage, stage)
            try:
                return codec.load(kept.answer)
            except ValueError as error:  # somebody has damaged it
                raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
        self._has_asked = True
        step = self.step
        with collecting_usage() as usage:
            answer = await ask()
        entry = JournalEntry(
            key=key, answer=codec.dump(answer.value), is_error=answer.is_error, step=step, usage=tuple(usage)
        )
        await ask_store(self._journal.append(self._run_id, entry))
        self._count(key, entry.usage, stage)
        return answer.value

    def _count(self, key: str, notes: tuple[UsageNote, ...], stage: str) -> None:
        self._counted.add(key)
        for note in notes:
            total = self._usage.get((note.role, stage)) or UsageTotal(
                role=note.role, stage=stage, calls=0, prompt_tokens=0, completion_tokens=0, is_estimated=False
            )
            self._usage[note.role, stage] = replace(
                total,
                calls=total.calls + 1,
                prompt_tokens=total.prompt_tokens + note.prompt_tokens,
                completion_tokens=total.completion_tokens + note.completion_tokens,
                is_estimated=total.is_estimated or note.is_estimated,
            )


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
