"""The optimizer's ports, wrapped so that a run asks each of them through its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from burnish.application.journaling import Answer, Codec, active_journal, digest_of, journal_key
from burnish.application.log import get_logger
from burnish.application.ports import (
    EditSelector,
    EpochComparison,
    EpochSummary,
    GuidanceWriter,
    MemoryWriter,
    NotConfiguredError,
    PatchAggregator,
    PatchProposer,
    PortError,
    Pure,
    ReflectionInput,
)
from burnish.application.reflect_on_failures import ask_proposer, checked_patch
from burnish.application.result import ErrorCode
from burnish.domain.edits import Patch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposal:
    """What a proposer answered: a patch, or the code of its failure."""

    patch: Patch | None = None
    code: str | None = None


_log = get_logger(__name__)

_PROPOSAL = Codec(lambda: TypeAdapter(_Proposal))
_PATCH = Codec(lambda: TypeAdapter(Patch))
_TEXT = Codec(lambda: TypeAdapter(str))


def fingerprint_of(port: object) -> str:
    """What a port says of itself, for the keys of its answers; its type when it says nothing."""
    fingerprint = getattr(port, "fingerprint", None)
    return fingerprint if isinstance(fingerprint, str) else type(port).__qualname__


class JournaledProposer:
    """Asks once for each position and request; a failure is an answer too."""

    def __init__(self, proposer: PatchProposer, secrets: Sequence[str] = ()) -> None:
        self._proposer = proposer
        self._secrets = tuple(secrets)

    async def propose(self, reflection: ReflectionInput) -> Patch:
        """The patch. Raises PortError as `ask_proposer` does."""
        journal = active_journal()
        if journal is None:
            return await ask_proposer(self._proposer, reflection, self._secrets)
        key = journal_key("reflect", journal.epoch, journal.step, fingerprint_of(self._proposer), digest_of(reflection))
        proposal = await journal.answer(key, _PROPOSAL, lambda: self._ask(reflection), stage="reflect")
        if proposal.patch is None:
            raise PortError(ErrorCode(proposal.code or ErrorCode.PROPOSER_CALL_FAILED))
        return proposal.patch

    async def _ask(self, reflection: ReflectionInput) -> Answer[_Proposal]:
        try:
            return Answer(_Proposal(patch=await ask_proposer(self._proposer, reflection, self._secrets)))
        except NotConfiguredError:
            raise
        except PortError as error:
            _log.exception("reflect.failed", code=error.code.value)
            return Answer(_Proposal(code=error.code.value), is_error=True)


class JournaledAggregator:
    """Asks an aggregator that is no pure function once for each request."""

    def __init__(self, aggregator: PatchAggregator) -> None:
        self._aggregator = aggregator

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        """The merged patch."""
        journal = active_journal()
        if journal is None or isinstance(self._aggregator, Pure):
            return await self._aggregator.aggregate(patches)

        async def ask() -> Answer[Patch]:
            return Answer(checked_patch(await self._aggregator.aggregate(patches)))

        key = journal_key(
            "aggregate", journal.epoch, journal.step, fingerprint_of(self._aggregator), digest_of(patches)
        )
        return await journal.answer(key, _PATCH, ask, stage="aggregate")


class JournaledSelector:
    """Asks a selector that is no pure function once for each request."""

    def __init__(self, selector: EditSelector) -> None:
        self._selector = selector

    async def select(self, patch: Patch, k: int) -> Patch:
        """At most `k` of the patch's edits."""
        journal = active_journal()
        if journal is None or isinstance(self._selector, Pure):
            return await self._selector.select(patch, k)

        async def ask() -> Answer[Patch]:
            return Answer(checked_patch(await self._selector.select(patch, k)))

        key = journal_key("select", journal.epoch, journal.step, k, fingerprint_of(self._selector), digest_of(patch))
        return await journal.answer(key, _PATCH, ask, stage="select")


class JournaledGuidanceWriter:
    """Asks a writer of guidance that is no pure function once for each comparison."""

    def __init__(self, writer: GuidanceWriter) -> None:
        self._writer = writer

    async def write(self, comparison: EpochComparison) -> str:
        """The guidance."""
        journal = active_journal()
        if journal is None or isinstance(self._writer, Pure):
            return await self._writer.write(comparison)

        async def ask() -> Answer[str]:
            return Answer(await self._writer.write(comparison))

        key = journal_key("guidance", journal.epoch, fingerprint_of(self._writer), digest_of(comparison))
        return await journal.answer(key, _TEXT, ask, stage="guidance")


class JournaledMemoryWriter:
    """Asks a writer of the memory that is no pure function once for each epoch."""

    def __init__(self, writer: MemoryWriter) -> None:
        self._writer = writer

    async def write(self, summary: EpochSummary) -> str:
        """The memory."""
        journal = active_journal()
        if journal is None or isinstance(self._writer, Pure):
            return await self._writer.write(summary)

        async def ask() -> Answer[str]:
            return Answer(await self._writer.write(summary))

        key = journal_key("memory", journal.epoch, fingerprint_of(self._writer), digest_of(summary))
        return await journal.answer(key, _TEXT, ask, stage="memory")
