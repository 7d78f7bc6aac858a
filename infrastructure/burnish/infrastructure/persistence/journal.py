"""The journal: what the outside world answered, kept before anybody acts on it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter
from sqlalchemy import Row, delete, insert, select

from burnish.application.ports import JournalEntry, PortError
from burnish.application.usage import UsageNote
from burnish.infrastructure.persistence import tables
from burnish.infrastructure.persistence.database import Database

_USAGE = TypeAdapter(tuple[UsageNote, ...])


@dataclass(slots=True)
class _Known:
    """What is in the database of one run: hashes of all keys, and entries read ahead that were not asked for yet."""

    keys: set[str]
    ahead: dict[str, JournalEntry]


@dataclass(slots=True)
class _Waiting:
    """An entry on its way to the disk."""

    run_id: str
    entry: JournalEntry
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
        self._waiting: list[_Waiting] = []
        self._committing: list[_Waiting] = []
        self._writer: asyncio.Task[None] | None = None

    async def find(self, run_id: str, key: str) -> JournalEntry | None:
        """The answer kept under the key, or None."""
        known = await self._run(run_id)
        name = _name(key)
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
        known.keys.add(name)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(run_id, entry, written))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        try:
            await asyncio.shield(written)
        except PortError:
            known.keys.discard(name)
            raise

    async def forget_errors(self, run_id: str, *, from_step: int) -> int:
        """Drop the errors of this and later steps; returns how many there were."""
        table = tables.journal
        self._known.pop(run_id, None)
        async with self._database.transaction() as connection:
            result = await connection.execute(
                delete(table).where(table.c.run_id == run_id, table.c.is_error, table.c.step >= from_step)
            )
        return result.rowcount

    async def count(self, run_id: str) -> int:
        """How many answers are kept of the run."""
        return len((await self._run(run_id)).keys)

    async def delete(self, run_id: str) -> None:
        """Drop everything kept of the run."""
        self._known.pop(run_id, None)
        async with self._database.transaction() as connection:
            await connection.execute(delete(tables.journal).where(tables.journal.c.run_id == run_id))

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
        for waiting in (*self._committing, *self._waiting):
            if waiting.run_id == run_id and _name(waiting.entry.key) == name:
                return waiting.entry
        async with self._database.transaction() as connection:
            query = select(table).where(table.c.run_id == run_id, table.c.name == name)
            row = (await connection.execute(query)).first()
        return None if row is None else _entry(row)

    async def _write(self) -> None:
        """Commit group after group until nothing waits; a group that cannot be written fails for all in it."""
        try:
            while group := self._waiting:
                self._waiting, self._committing = [], group
                try:
                    await self._commit(group)
                except PortError as error:
                    _settle(group, error)
                else:
                    _settle(group, None)
        finally:
            self._writer, self._committing = None, []

    async def _commit(self, group: Sequence[_Waiting]) -> None:
        rows = [
            {
                "run_id": waiting.run_id,
                "name": _name(waiting.entry.key),
                "key": waiting.entry.key,
                "answer": waiting.entry.answer,
                "is_error": waiting.entry.is_error,
                "step": waiting.entry.step,
                "usage": _USAGE.dump_json(waiting.entry.usage).decode(),
            }
            for waiting in group
        ]
        async with self._database.transaction() as connection:
            await connection.execute(insert(tables.journal), rows)


def _entry(row: Row[tuple[object, ...]]) -> JournalEntry:
    usage = _USAGE.validate_json(row.usage)
    return JournalEntry(key=row.key, answer=row.answer, is_error=row.is_error, step=row.step, usage=usage)


def _settle(group: Sequence[_Waiting], error: PortError | None) -> None:
    for waiting in group:
        if waiting.written.done():
            continue
        if error is None:
            waiting.written.set_result(None)
        else:
            waiting.written.set_exception(error)


def _name(key: str) -> str:
    """The key in 64 digits, whatever its length."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
