"""The journal: what the outside world answered, kept before anybody acts on it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Row, delete, insert, select

from burnish.application.log import get_logger
from burnish.application.ports import JournalEntry, PortError
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote
from burnish.infrastructure.persistence import tables
from burnish.infrastructure.persistence.database import Database

_log = get_logger(__name__)

_USAGE = TypeAdapter(tuple[UsageNote, ...])


@dataclass(slots=True)
class _Known:
    """What is kept of one run: hashes of all keys, entries read ahead that were not asked for yet, and what is coming."""

    keys: set[str]
    ahead: dict[str, JournalEntry]
    coming: dict[str, _Coming] = field(default_factory=dict[str, "_Coming"])


@dataclass(slots=True)
class _Coming:
    """An entry on its way to the disk."""

    run_id: str
    name: str
    entry: JournalEntry
    known: _Known
    written: asyncio.Future[None]


class SqlJournal:
    """A table of answers, written in groups: whatever waits is committed together, and each waits for its commit.

    A run's entries are read once, when it is first asked for; each is dropped from memory when it was used, and read
    again should it be asked for again.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, _Known] = {}
        self._reading = asyncio.Lock()
        self._waiting: list[_Coming] = []
        self._writer: asyncio.Task[None] | None = None

    async def find(self, run_id: str, key: str) -> JournalEntry | None:
        """The answer kept under the key, or None; one that is on its way to the disk is waited for."""
        known = await self._run(run_id)
        name = _name(key)
        coming = known.coming.get(name)
        if coming is not None:
            try:
                await asyncio.shield(coming.written)
            except PortError:
                return None
            return coming.entry
        if name not in known.keys:
            return None
        ahead = known.ahead.pop(name, None)
        return ahead or await self._read(run_id, name)

    async def append(self, run_id: str, entry: JournalEntry) -> None:
        """Keep an answer: it is on the disk when this returns. One that is there already stays."""
        known = await self._run(run_id)
        name = _name(entry.key)
        if name in known.keys:
            return
        coming = known.coming.get(name)
        if coming is None:
            written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            coming = known.coming[name] = _Coming(run_id, name, entry, known, written)
            self._waiting.append(coming)
            if self._writer is None:
                self._writer = asyncio.create_task(self._write())
        await asyncio.shield(coming.written)

    async def forget_errors(self, run_id: str, *, from_step: int) -> int:
        """Drop the errors of this and later steps; returns how many there were."""
        table = tables.journal
        await self.close()
        async with self._database.transaction() as connection:
            result = await connection.execute(
                delete(table).where(table.c.run_id == run_id, table.c.is_error, table.c.step >= from_step)
            )
        self._known.pop(run_id, None)
        return result.rowcount

    async def count(self, run_id: str) -> int:
        """How many answers are kept of the run."""
        return len((await self._run(run_id)).keys)

    async def entries(self, run_id: str) -> Sequence[JournalEntry]:
        """All answers of the run, by key."""
        table = tables.journal
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(table).where(table.c.run_id == run_id))
            entries = [_entry(row) for row in rows]
        return sorted(entries, key=lambda entry: entry.key)

    async def delete(self, run_id: str) -> None:
        """Drop everything kept of the run."""
        await self.close()
        async with self._database.transaction() as connection:
            await connection.execute(delete(tables.journal).where(tables.journal.c.run_id == run_id))
        self._known.pop(run_id, None)

    async def close(self) -> None:
        """Wait for what is on its way to the disk, also when those who asked have been cancelled."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    async def _run(self, run_id: str) -> _Known:
        known = self._known.get(run_id)
        if known is not None:
            return known
        async with self._reading:
            if run_id not in self._known:
                table = tables.journal
                async with self._database.transaction() as connection:
                    rows = await connection.execute(select(table).where(table.c.run_id == run_id))
                    ahead = {row.name: _entry(row) for row in rows}
                self._known[run_id] = _Known(set(ahead), ahead)
        return self._known[run_id]

    async def _read(self, run_id: str, name: str) -> JournalEntry | None:
        table = tables.journal
        async with self._database.transaction() as connection:
            query = select(table).where(table.c.run_id == run_id, table.c.name == name)
            row = (await connection.execute(query)).first()
        return None if row is None else _entry(row)

    async def _write(self) -> None:
        """Commit group after group until nothing waits; a group that cannot be written fails for all in it."""
        try:
            while group := self._waiting:
                self._waiting = []
                try:
                    await self._commit(group)
                except Exception as error:
                    _log.exception("journal.write_failed", answers=len(group), error_type=type(error).__name__)
                    _settle(group, PortError(ErrorCode.STORE_UNAVAILABLE))
                except BaseException:
                    _settle(group, asyncio.CancelledError())
                    raise
                else:
                    _settle(group, None)
        finally:
            self._writer = None

    async def _commit(self, group: Sequence[_Coming]) -> None:
        rows = [
            {
                "run_id": coming.run_id,
                "name": coming.name,
                "key": coming.entry.key,
                "answer": coming.entry.answer,
                "is_error": coming.entry.is_error,
                "step": coming.entry.step,
                "usage": _USAGE.dump_json(coming.entry.usage).decode(),
            }
            for coming in group
        ]
        async with self._database.transaction() as connection:
            await connection.execute(insert(tables.journal), rows)


def _entry(row: Row[tuple[object, ...]]) -> JournalEntry:
    """The row's entry. Raises PortError when somebody has damaged it."""
    try:
        usage = _USAGE.validate_json(row.usage)
    except ValidationError as error:
        raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
    return JournalEntry(key=row.key, answer=row.answer, is_error=row.is_error, step=row.step, usage=usage)


def _settle(group: Sequence[_Coming], error: BaseException | None) -> None:
    """Tell those who wait for the group that it is on the disk, or why it is not."""
    for coming in group:
        del coming.known.coming[coming.name]
        if error is None:
            coming.known.keys.add(coming.name)
            coming.written.set_result(None)
        elif isinstance(error, asyncio.CancelledError):
            coming.written.cancel()
        else:
            coming.written.set_exception(error)


def _name(key: str) -> str:
    """The key in 64 digits, whatever its length."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
