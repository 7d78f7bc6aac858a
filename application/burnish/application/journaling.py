"""Asking the outside world through the journal: an answer that is kept is not asked for again."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json

from burnish.application.budget import UNLIMITED, Account, Amount, Budget, amount_of
from burnish.application.journal_keys import ACTIVE, journal_key, reservation_key, rollouts_of, stage_of, text_key
from burnish.application.ports import Journal, JournalEntry, PortError, UnknownCallError
from burnish.application.redaction import fit_to_keep
from burnish.application.result import ErrorCode
from burnish.application.run_book import Book, read_book
from burnish.application.store_calls import ask_store
from burnish.application.unknown_calls import explained
from burnish.application.usage import UsageNote, collecting_usage, note_usage
from burnish.domain.runs import LostCalls, UsageTotal

T = TypeVar("T")

LONGEST_TEXT = 32_768
"""Texts behind digests that are longer, in characters, are not kept."""

_NO_TEXTS: Mapping[str, Callable[[], str]] = {}


def _unknown() -> None:
    """The most a call may use, where nobody says."""


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


_TEXT = Codec(lambda: TypeAdapter(str))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The answer to a call inside another; `around` is the digest of that one's key."""

    text: str
    around: str
    usage: tuple[UsageNote, ...]


_PART = Codec(lambda: TypeAdapter(_Part))

_around: ContextVar[str] = ContextVar("burnish_call_around", default="")
"""The digest of the key of the call that is being answered."""


class RunJournal:
    """The journal of one run in one attempt; `epoch` and `step` (1-based) are where the loop is now.

    Usage counts answers from `counted_from` on, a step: of the whole run, unless its steps are followed one by one.

    `lost` are calls of earlier attempts whose answers never came; it is known when the run has a budget.
    Beside answers it keeps, under keys of other kinds, what `run_book` reads, and the texts behind the digests in keys.
    """

    def __init__(
        self,
        journal: Journal,
        run_id: str,
        budget: Budget = UNLIMITED,
        secrets: Sequence[str] = (),
        *,
        counted_from: int = 0,
    ) -> None:
        self._journal = journal
        self._secrets = tuple(secrets)
        self._run_id = run_id
        self._budget = budget
        self._counted_from = counted_from
        self._account: Account | None = None
        self._has_asked = False
        self._has_kept = False
        self._counted: set[str] = set()
        self._usage: dict[tuple[str, str], UsageTotal] = {}
        self._attempts: Counter[str] = Counter()
        self._active_seconds = 0.0
        self._marks = 0
        self._texts: set[str] = set()
        self.lost: LostCalls | None = None
        self.epoch = 0
        self.step = 0

    async def prepare(self) -> None:
        """Look whether an earlier attempt has kept answers, and under a budget what it has spent.

        Raises PortError when what is kept cannot be read, or when dollars are capped and a role has no price.
        """
        self._has_kept = await ask_store(self._journal.count(self._run_id)) > 0
        budget = self._budget
        book = Book()
        if self._has_kept and (budget.caps_calls or budget.max_minutes is not None):
            book = read_book(await ask_store(self._journal.entries(self._run_id)))
        self.lost, self._active_seconds, self._marks = book.lost, book.active_seconds, book.marks
        self._attempts = Counter(book.reservations)
        if budget.caps_calls:
            paid = (amount_of(rollouts_of(key), usage, budget) for key, usage in book.paid)
            self._account = Account(budget, sum(paid, Amount()))

    @property
    def is_replaying(self) -> bool:
        """Whether an earlier attempt answered everything so far."""
        return self._has_kept and not self._has_asked

    @property
    def is_in_order(self) -> bool:
        """Whether passes that could be asked side by side are asked one after the other, because calls are capped."""
        return self._account is not None

    @property
    def usage(self) -> tuple[UsageTotal, ...]:
        """What the model calls behind all answers used, by role and stage."""
        return tuple(self._usage[place] for place in sorted(self._usage))

    @property
    def is_time_over(self) -> bool:
        """Whether the run has been active for as long as it may."""
        return self._budget.is_time_over(self._active_seconds)

    async def note_active(self, seconds: float) -> None:
        """Add to the time the run was active."""
        if self._budget.max_minutes is None:
            return
        self._active_seconds += seconds
        self._marks += 1
        key = journal_key(ACTIVE, self._marks)
        await self._append(JournalEntry(key=key, answer=repr(seconds), step=self.step))

    async def answer(
        self,
        key: str,
        codec: Codec[T],
        ask: Callable[[], Awaitable[Answer[T]]],
        *,
        stage: str,
        slot: AbstractAsyncContextManager[object] | None = None,
        at_most: Callable[[], Sequence[UsageNote] | None] = _unknown,
        texts: Mapping[str, Callable[[], str]] = _NO_TEXTS,
    ) -> T:
        """What is kept under the key; without that, what `ask` brings, once it is durable. `stage` is for the usage.

        `ask` brings answers that are read back from JSON as they are, so that a run sees the same whether it asks or
        replays; it is called within `slot`. `at_most` says what the call may use (None: nobody knows); `texts` reads the
        texts behind digests in the key. Under a cap, calls are granted in the order in which this is called: nothing is
        awaited before. Raises PortError when what is kept is no answer, and for a call that must not be made.
        """
        turn = None if self._account is None else self._account.turn()
        try:
            kept = await self._find(key, texts)
            if kept is not None:
                if key not in self._counted and kept.step >= self._counted_from:
                    self._count(key, kept.usage, stage)
                return _load(codec, kept)
            async with nullcontext() if slot is None else slot:
                worst = await self._reserve(turn, key, at_most)
                self._has_asked = True
                step = self.step
                around = _around.set(hashlib.sha256(key.encode()).hexdigest())
                with collecting_usage() as usage:
                    try:
                        answer = await ask()
                    finally:
                        _around.reset(around)
                        self._settle(worst, key, usage)
        finally:
            if self._account is not None and turn is not None:
                self._account.give_up(turn)
        entry = JournalEntry(
            key=key, answer=codec.dump(answer.value), is_error=answer.is_error, step=step, usage=tuple(usage)
        )
        new = tuple(self._new_texts(texts))
        if new:  # written together
            await asyncio.gather(*(self._append(each) for each in (*new, entry)))
        else:
            await self._append(entry)
        self._count(key, entry.usage, stage)
        return answer.value

    async def part(self, key: str, ask: Callable[[], Awaitable[str]]) -> str:
        """The text kept under the key of a call that is made inside another; without that, what `ask` brings, once kept.

        What such a call uses is noted with the call around it, and covered by what was reserved for that: with the one it
        was first made in, also when that one is made again because it was never answered. Known secrets are masked in the
        text. A failure is the outer call's own, and is not kept here. Raises PortError when what is kept is no such text.
        """
        around = _around.get()
        found = await self._find(key, _NO_TEXTS)
        if found is None:
            with collecting_usage() as usage:
                text = fit_to_keep(await ask(), self._secrets)
            part = _Part(text=text, around=around, usage=tuple(usage))
            await self._append(JournalEntry(key=key, answer=_PART.dump(part), step=self.step))
        else:
            part = _load(_PART, found)
        if part.around == around:
            for note in part.usage:
                note_usage(note)
        return part.text

    async def _find(self, key: str, texts: Mapping[str, Callable[[], str]]) -> JournalEntry | None:
        try:
            return await ask_store(self._journal.find(self._run_id, key))
        except UnknownCallError as error:
            raise await explained(error, key, self._readable(texts), self._kept_text) from error

    def _readable(self, texts: Mapping[str, Callable[[], str]]) -> Mapping[str, str]:
        """The texts as they would be kept; those that would not be are left out."""
        read = {digest: fit_to_keep(text(), self._secrets) for digest, text in texts.items()}
        return {digest: text for digest, text in read.items() if 0 < len(text) <= LONGEST_TEXT}

    async def _kept_text(self, digest: str) -> str | None:
        """The text behind a digest, as an earlier attempt or a recording has kept it."""
        try:
            kept = await self._journal.find(self._run_id, text_key(digest))
        except PortError:
            return None
        return None if kept is None else _load(_TEXT, kept)

    def _new_texts(self, texts: Mapping[str, Callable[[], str]]) -> Iterator[JournalEntry]:
        new = {digest: text for digest, text in texts.items() if digest not in self._texts}
        if not new:
            return
        self._texts.update(new)
        for digest, text in self._readable(new).items():
            yield JournalEntry(key=text_key(digest), answer=_TEXT.dump(text), step=self.step)

    async def _reserve(
        self, turn: int | None, key: str, at_most: Callable[[], Sequence[UsageNote] | None]
    ) -> Amount | None:
        """Have the call granted and keep a note of it; what it may amount to, or None without a cap."""
        if self._account is None or turn is None:
            return None
        usage = at_most()
        if usage is None and self._budget.caps_tokens:
            raise PortError(ErrorCode.BUDGET_UNBOUNDED, stage_of(key))
        worst = amount_of(rollouts_of(key), usage or (), self._budget)
        await self._account.reserve(turn, worst)
        self._attempts[key] += 1
        noted = reservation_key(key, self._attempts[key])
        try:
            await self._append(JournalEntry(key=noted, answer="null", step=self.step, usage=tuple(usage or ())))
        except BaseException:
            self._account.settle(worst, Amount())
            raise
        return worst

    def _settle(self, worst: Amount | None, key: str, usage: Sequence[UsageNote]) -> None:
        if self._account is not None and worst is not None:
            self._account.settle(worst, amount_of(rollouts_of(key), usage, self._budget))

    async def _append(self, entry: JournalEntry) -> None:
        await ask_store(self._journal.append(self._run_id, entry))

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


def _load(codec: Codec[T], kept: JournalEntry) -> T:
    try:
        return codec.load(kept.answer)
    except ValueError as error:  # somebody has damaged it
        raise PortError(ErrorCode.STORE_UNAVAILABLE) from error


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


def digest_of(request: object) -> str:
    """SHA-256 of a request's fields."""
    return hashlib.sha256(to_json(request, fallback=lambda value: type(value).__name__)).hexdigest()
