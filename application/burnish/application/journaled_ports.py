"""The optimizer's ports, wrapped so that a run asks each of them through its journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.journaling import Answer, Codec, RunJournal, active_journal, digest_of, journal_key
from burnish.application.log import get_logger
from burnish.application.optimizer_ports import (
    EditSelector,
    EpochComparison,
    EpochSummary,
    GuidanceWriter,
    MemoryWriter,
    PatchAggregator,
    PatchProposer,
    Pure,
    ReflectionInput,
)
from burnish.application.ports import NotConfiguredError, PortError
from burnish.application.redaction import fit_to_keep
from burnish.application.reflect_on_failures import ask_proposer, checked_patch
from burnish.application.result import ErrorCode
from burnish.domain.edits import Patch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patched:
    """What came of asking for a patch: the patch, or the code of a failure."""

    patch: Patch | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What came of asking for a text: the text, or the code of a failure."""

    text: str | None = None
    code: str | None = None


_log = get_logger(__name__)

_PATCHED = Codec(lambda: TypeAdapter(_Patched))
_PATCH = Codec(lambda: TypeAdapter(Patch))
_WRITTEN = Codec(lambda: TypeAdapter(_Written))


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
        return await _patch(journal, key, lambda: ask_proposer(self._proposer, reflection, self._secrets), "reflect")


class JournaledAggregator:
    """Asks an aggregator that is no pure function once for each request; a failure is an answer too."""

    def __init__(self, aggregator: PatchAggregator) -> None:
        self._aggregator = aggregator

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        """The merged patch."""
        journal = active_journal()
        if journal is None or _is_pure(self._aggregator):
            return await self._aggregator.aggregate(patches)
        key = journal_key(
            "aggregate", journal.epoch, journal.step, fingerprint_of(self._aggregator), digest_of(patches)
        )
        return await _patch(journal, key, lambda: self._aggregator.aggregate(patches), "aggregate")


class JournaledSelector:
    """Asks a selector that is no pure function once for each request; a failure is an answer too."""

    def __init__(self, selector: EditSelector) -> None:
        self._selector = selector

    async def select(self, patch: Patch, k: int) -> Patch:
        """At most `k` of the patch's edits."""
        journal = active_journal()
        if journal is None or _is_pure(self._selector):
            return await self._selector.select(patch, k)
        key = journal_key("select", journal.epoch, journal.step, k, fingerprint_of(self._selector), digest_of(patch))
        return await _patch(journal, key, lambda: self._selector.select(patch, k), "select")


class JournaledGuidanceWriter:
    """Asks a writer of guidance that is no pure function once for each comparison; a failure is an answer too."""

    def __init__(self, writer: GuidanceWriter, secrets: Sequence[str] = ()) -> None:
        self._writer = writer
        self._secrets = tuple(secrets)

    async def write(self, comparison: EpochComparison) -> str:
        """The guidance, fit to be kept."""
        journal = active_journal()
        if journal is None or _is_pure(self._writer):
            return await self._writer.write(comparison)
        key = journal_key("guidance", journal.epoch, fingerprint_of(self._writer), digest_of(comparison))
        return await _text(journal, key, lambda: self._writer.write(comparison), "guidance", self._secrets)


class JournaledMemoryWriter:
    """Asks a writer of the memory that is no pure function once for each epoch; a failure is an answer too."""

    def __init__(self, writer: MemoryWriter, secrets: Sequence[str] = ()) -> None:
        self._writer = writer
        self._secrets = tuple(secrets)

    async def write(self, summary: EpochSummary) -> str:
        """The memory, fit to be kept."""
        journal = active_journal()
        if journal is None or _is_pure(self._writer):
            return await self._writer.write(summary)
        key = journal_key("memory", journal.epoch, fingerprint_of(self._writer), digest_of(summary))
        return await _text(journal, key, lambda: self._writer.write(summary), "memory", self._secrets)


def _is_pure(port: object) -> bool:
    return isinstance(port, Pure) and port.is_pure


async def _patch(journal: RunJournal, key: str, call: Callable[[], Awaitable[Patch]], stage: str) -> Patch:
    """The patch that is kept or that the call brings. Raises PortError with the code of a failure, kept or new."""

    async def ask() -> Answer[_Patched]:
        try:
            return Answer(_Patched(patch=_like_its_json(checked_patch(await call()))))
        except NotConfiguredError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            pass_on_cancellation(error)
            return Answer(_Patched(code=_failed(stage, error, ErrorCode.PROPOSER_CALL_FAILED)), is_error=True)

    patched = await journal.answer(key, _PATCHED, ask, stage=stage)
    if patched.patch is None:
        raise PortError(ErrorCode(patched.code or ErrorCode.PROPOSER_CALL_FAILED))
    return patched.patch


def _like_its_json(patch: Patch) -> Patch:
    """The patch as it will be read back. Raises PortError when a field is not what it should be."""
    try:
        return _PATCH.load(_PATCH.dump(patch))
    except ValueError as error:
        raise PortError(ErrorCode.UNREADABLE_PATCH) from error


async def _text(
    journal: RunJournal, key: str, call: Callable[[], Awaitable[object]], stage: str, secrets: Sequence[str]
) -> str:
    """The text that is kept or that the call brings. Raises PortError with the code of a failure, kept or new."""

    async def ask() -> Answer[_Written]:
        try:
            return Answer(_Written(text=fit_to_keep(_checked_text(await call()), secrets)))
        except NotConfiguredError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            pass_on_cancellation(error)
            return Answer(_Written(code=_failed(stage, error, ErrorCode.UNEXPECTED)), is_error=True)

    written = await journal.answer(key, _WRITTEN, ask, stage=stage)
    if written.text is None:
        raise PortError(ErrorCode(written.code or ErrorCode.UNEXPECTED))
    return written.text


def _checked_text(text: object) -> str:
    """The text; TypeError when it is none, whatever an untyped host's writer says it is."""
    if not isinstance(text, str):
        raise TypeError(f"a writer returns a str, not {type(text).__name__}")
    return text


def _failed(stage: str, error: BaseException, otherwise: ErrorCode) -> str:
    """The code of a port's failure, whose cause goes to the log."""
    code = error.code if isinstance(error, PortError) else otherwise
    _log.exception(f"{stage}.failed", code=code.value)
    return code.value
