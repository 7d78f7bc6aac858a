"""The optimizer's ports, wrapped so that a run asks each of them through its journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from pydantic import TypeAdapter

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.journal_keys import journal_key
from burnish.application.journaling import Answer, Codec, RunJournal, active_journal, digest_of
from burnish.application.log import get_logger
from burnish.application.optimizer import Optimizer
from burnish.application.optimizer_ports import (
    EditRanker,
    EditSelector,
    EpochComparison,
    EpochSummary,
    GuidanceWriter,
    MemoryWriter,
    MergeInput,
    NoteConsolidator,
    NotesInput,
    PatchAggregator,
    PatchMerger,
    PatchProposer,
    Pure,
    Ranking,
    RankInput,
    RateChooser,
    RateDecision,
    RateInput,
    ReflectionInput,
    Rewrite,
    RewriteInput,
    SkillRewriter,
)
from burnish.application.outline import outline
from burnish.application.port_traits import fingerprint_of, text_behind, usage_at_most
from burnish.application.ports import NotConfiguredError, PortError
from burnish.application.redaction import fit_to_keep
from burnish.application.reflect_on_failures import ask_proposer, checked_patch, fit_patch
from burnish.application.result import ErrorCode
from burnish.domain.edits import Patch

T = TypeVar("T")

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept(Generic[T]):
    """What came of asking a port: a value, or the code of a failure."""

    value: T | None = None
    code: str | None = None


Slot = AbstractAsyncContextManager[object]
"""What calls wait in, so that no more than so many run at once."""


class _Role(Generic[T]):
    """One of the optimizer's roles: the stage its usage counts for, how its answers are kept, the code of its failures."""

    def __init__(self, stage: str, adapter: Callable[[], TypeAdapter[_Kept[T]]], otherwise: ErrorCode) -> None:
        self._stage = stage
        self._codec = Codec(adapter)
        self._otherwise = otherwise

    async def ask(
        self,
        port: object,
        position: Sequence[str | int],
        arguments: Sequence[object],
        call: Callable[[], Awaitable[T]],
        *,
        slot: Slot | None = None,
    ) -> T:
        """What is kept for the position and the arguments, or what the call brings: a failure is an answer too.

        Raises PortError with the code of a failure, kept or new. Outside of a run, and of a port that is pure, nothing is
        kept.
        """
        journal = active_journal()
        if journal is None or (isinstance(port, Pure) and port.is_pure):
            return await call()
        request = arguments[0] if len(arguments) == 1 else tuple(arguments)
        digest, fingerprint = digest_of(request), fingerprint_of(port)
        kept = await journal.answer(
            journal_key(self._stage, *position, fingerprint, digest),
            self._codec,
            lambda: self._asked(call),
            stage=self._stage,
            slot=slot,
            at_most=lambda: usage_at_most(port, *arguments),
            texts={
                digest: lambda: outline(request),
                fingerprint: lambda: text_behind(port, fingerprint),
            },
        )
        if kept.value is None:
            raise PortError(ErrorCode(kept.code or self._otherwise))
        return kept.value

    async def _asked(self, call: Callable[[], Awaitable[T]]) -> Answer[_Kept[T]]:
        try:
            return Answer(self._like_its_json(_Kept(value=await call())))
        except NotConfiguredError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            pass_on_cancellation(error)
            code = error.code if isinstance(error, PortError) else self._otherwise
            _log.exception(f"{self._stage}.failed", code=code.value)
            return Answer(_Kept(code=code.value), is_error=True)

    def _like_its_json(self, kept: _Kept[T]) -> _Kept[T]:
        """The value as it will be read back. Raises PortError when it is not what it should be."""
        try:
            return self._codec.load(self._codec.dump(kept))
        except ValueError as error:
            raise PortError(ErrorCode.UNREADABLE_PATCH) from error


_REFLECT = _Role("reflect", lambda: TypeAdapter(_Kept[Patch]), ErrorCode.PROPOSER_CALL_FAILED)
_AGGREGATE = _Role("aggregate", lambda: TypeAdapter(_Kept[Patch]), ErrorCode.PROPOSER_CALL_FAILED)
_SELECT = _Role("select", lambda: TypeAdapter(_Kept[Patch]), ErrorCode.PROPOSER_CALL_FAILED)
_MERGE = _Role("merge", lambda: TypeAdapter(_Kept[Patch]), ErrorCode.PROPOSER_CALL_FAILED)
_RATE = _Role("rate", lambda: TypeAdapter(_Kept[RateDecision]), ErrorCode.PROPOSER_CALL_FAILED)
_RANK = _Role("rank", lambda: TypeAdapter(_Kept[Ranking]), ErrorCode.PROPOSER_CALL_FAILED)
_REWRITE = _Role("rewrite", lambda: TypeAdapter(_Kept[Rewrite]), ErrorCode.PROPOSER_CALL_FAILED)
_NOTES: _Role[tuple[str, ...]] = _Role(
    "consolidate", lambda: TypeAdapter(_Kept[tuple[str, ...]]), ErrorCode.PROPOSER_CALL_FAILED
)
_GUIDANCE = _Role("guidance", lambda: TypeAdapter(_Kept[str]), ErrorCode.UNEXPECTED)
_MEMORY = _Role("memory", lambda: TypeAdapter(_Kept[str]), ErrorCode.UNEXPECTED)


class JournaledProposer:
    """Asks once for each position and request."""

    def __init__(self, proposer: PatchProposer, secrets: Sequence[str] = (), slot: Slot | None = None) -> None:
        self._proposer = proposer
        self._secrets = tuple(secrets)
        self._slot = slot

    async def propose(self, reflection: ReflectionInput) -> Patch:
        """The patch. Raises PortError as `ask_proposer` does."""
        return await _REFLECT.ask(
            self._proposer,
            _step_position(active_journal()),
            (reflection,),
            lambda: ask_proposer(self._proposer, reflection, self._secrets),
            slot=self._slot,
        )


class JournaledAggregator:
    """Asks an aggregator that is no pure function once for each request."""

    def __init__(self, aggregator: PatchAggregator) -> None:
        self._aggregator = aggregator

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        """The merged patch."""

        async def call() -> Patch:
            return checked_patch(await self._aggregator.aggregate(patches))

        return await _AGGREGATE.ask(self._aggregator, _step_position(active_journal()), (tuple(patches),), call)


class JournaledSelector:
    """Asks a selector that is no pure function once for each request."""

    def __init__(self, selector: EditSelector) -> None:
        self._selector = selector

    async def select(self, patch: Patch, k: int) -> Patch:
        """At most `k` of the patch's edits."""

        async def call() -> Patch:
            return checked_patch(await self._selector.select(patch, k))

        return await _SELECT.ask(self._selector, _step_position(active_journal()), (patch, k), call)


class JournaledMerger:
    """Asks once for each position and request."""

    def __init__(self, merger: PatchMerger, secrets: Sequence[str] = (), slot: Slot | None = None) -> None:
        self._merger = merger
        self._secrets = tuple(secrets)
        self._slot = slot

    async def merge(self, request: MergeInput) -> Patch:
        """The merged patch, its texts fit to be kept."""

        async def call() -> Patch:
            return fit_patch(checked_patch(await self._merger.merge(request)), self._secrets)

        return await _MERGE.ask(self._merger, _step_position(active_journal()), (request,), call, slot=self._slot)


class JournaledRateChooser:
    """Asks once for each position and request."""

    def __init__(self, chooser: RateChooser, secrets: Sequence[str] = ()) -> None:
        self._chooser = chooser
        self._secrets = tuple(secrets)

    async def choose(self, request: RateInput) -> RateDecision:
        """The decision, its texts fit to be kept."""

        async def call() -> RateDecision:
            decision = await self._chooser.choose(request)
            return replace(
                decision,
                reasoning=fit_to_keep(decision.reasoning, self._secrets),
                risks=fit_to_keep(decision.risks, self._secrets),
            )

        return await _RATE.ask(self._chooser, _step_position(active_journal()), (request,), call)


class JournaledRanker:
    """Asks once for each position and request."""

    def __init__(self, ranker: EditRanker, secrets: Sequence[str] = ()) -> None:
        self._ranker = ranker
        self._secrets = tuple(secrets)

    async def rank(self, request: RankInput) -> Ranking:
        """The ranking, its reasons fit to be kept."""

        async def call() -> Ranking:
            ranking = await self._ranker.rank(request)
            return replace(ranking, reasoning=fit_to_keep(ranking.reasoning, self._secrets))

        return await _RANK.ask(self._ranker, _step_position(active_journal()), (request,), call)


class JournaledRewriter:
    """Asks once for each position and request."""

    def __init__(self, rewriter: SkillRewriter, secrets: Sequence[str] = ()) -> None:
        self._rewriter = rewriter
        self._secrets = tuple(secrets)

    async def rewrite(self, request: RewriteInput) -> Rewrite:
        """The new skill, fit to be kept."""

        async def call() -> Rewrite:
            rewrite = await self._rewriter.rewrite(request)
            skill = fit_to_keep(_checked_text(rewrite.skill), self._secrets)
            return Rewrite(skill=skill, summary=fit_to_keep(rewrite.summary, self._secrets))

        return await _REWRITE.ask(self._rewriter, _step_position(active_journal()), (request,), call)


class JournaledNoteConsolidator:
    """Asks once for each position and request."""

    def __init__(self, consolidator: NoteConsolidator, secrets: Sequence[str] = ()) -> None:
        self._consolidator = consolidator
        self._secrets = tuple(secrets)

    async def consolidate(self, request: NotesInput) -> tuple[str, ...]:
        """The notes, fit to be kept."""

        async def call() -> tuple[str, ...]:
            notes: object = await self._consolidator.consolidate(request)
            if not isinstance(notes, list | tuple):
                raise TypeError(f"a consolidator returns a sequence of str, not {type(notes).__name__}")
            given = cast("Sequence[object]", notes)
            return tuple(fit_to_keep(_checked_text(note), self._secrets) for note in given)

        position = _epoch_position(active_journal())  # errors count for the next step, the request's seed for its own
        return await _NOTES.ask(self._consolidator, position, (request,), call)


def journaled(optimizer: Optimizer, *, secrets: Sequence[str] = (), analyst_workers: int = 16) -> Optimizer:
    """The optimizer, each role asked through the journal; at most so many analysts and merges are called at once."""
    slot = asyncio.Semaphore(analyst_workers)
    merger, chooser, ranker, rewriter = optimizer.merger, optimizer.rate_chooser, optimizer.ranker, optimizer.rewriter
    consolidator = optimizer.note_consolidator
    return Optimizer(
        proposer=JournaledProposer(optimizer.proposer, secrets, slot),
        aggregator=JournaledAggregator(optimizer.aggregator),
        selector=JournaledSelector(optimizer.selector),
        merger=None if merger is None else JournaledMerger(merger, secrets, slot),
        rate_chooser=None if chooser is None else JournaledRateChooser(chooser, secrets),
        ranker=None if ranker is None else JournaledRanker(ranker, secrets),
        rewriter=None if rewriter is None else JournaledRewriter(rewriter, secrets),
        note_consolidator=None if consolidator is None else JournaledNoteConsolidator(consolidator, secrets),
    )


class JournaledGuidanceWriter:
    """Asks a writer of guidance that is no pure function once for each comparison."""

    def __init__(self, writer: GuidanceWriter, secrets: Sequence[str] = ()) -> None:
        self._writer = writer
        self._secrets = tuple(secrets)

    async def write(self, comparison: EpochComparison) -> str:
        """The guidance, fit to be kept."""

        async def call() -> str:
            return fit_to_keep(_checked_text(await self._writer.write(comparison)), self._secrets)

        position = _epoch_position(active_journal())
        return await _GUIDANCE.ask(self._writer, position, (comparison,), call)


class JournaledMemoryWriter:
    """Asks a writer of the memory that is no pure function once for each epoch."""

    def __init__(self, writer: MemoryWriter, secrets: Sequence[str] = ()) -> None:
        self._writer = writer
        self._secrets = tuple(secrets)

    async def write(self, summary: EpochSummary) -> str:
        """The memory, fit to be kept."""

        async def call() -> str:
            return fit_to_keep(_checked_text(await self._writer.write(summary)), self._secrets)

        position = _epoch_position(active_journal())
        return await _MEMORY.ask(self._writer, position, (summary,), call)


def _step_position(journal: RunJournal | None) -> tuple[int, ...]:
    return () if journal is None else (journal.epoch, journal.step)


def _epoch_position(journal: RunJournal | None) -> tuple[int, ...]:
    return () if journal is None else (journal.epoch,)


def _checked_text(text: object) -> str:
    """The text; TypeError when it is none, whatever an untyped host's writer says it is."""
    if not isinstance(text, str):
        raise TypeError(f"a writer returns a str, not {type(text).__name__}")
    return text
