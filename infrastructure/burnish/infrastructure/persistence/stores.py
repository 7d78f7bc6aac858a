"""All stores of one SQL database, opened together."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from burnish.application.ports import AuditEntry
from burnish.infrastructure.persistence.database import open_database, sqlite_url
from burnish.infrastructure.persistence.journal import SqlJournal
from burnish.infrastructure.persistence.locks import AdvisoryLocks, FileLocks, RunLocks
from burnish.infrastructure.persistence.postgres import check_address
from burnish.infrastructure.persistence.sql import (
    DELETION,
    SqlAuditLog,
    SqlCheckpointStore,
    SqlKnowledgeMemory,
    SqlRunStore,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStores:
    """The stores; each fits the parameter of `open_app` with its name."""

    runs: SqlRunStore
    checkpoints: SqlCheckpointStore
    memory: SqlKnowledgeMemory
    audit_log: SqlAuditLog
    journal: SqlJournal
    locks: RunLocks

    async def forget(self, run_id: str, *, actor: str, at: datetime) -> None:
        """Drop all that is kept of a run but its audit entries, and add one about this. The caller holds the run's lock."""
        digest = hashlib.sha256(run_id.encode()).hexdigest()
        entry = AuditEntry(at=at, actor=actor, action=DELETION, subject=run_id, outcome="ok", digest=digest)
        await self.audit_log.append(entry)
        await self.journal.delete(run_id)
        await self.checkpoints.delete(run_id)
        await self.runs.delete(run_id)


@asynccontextmanager
async def open_stores(place: Path | str) -> AsyncGenerator[SqlStores]:
    """Open the stores in a SQLite file (a path) or on a PostgreSQL server (`postgresql+asyncpg://…`).

    Raises PortError when the database cannot be opened, and ValueError for an address of another form. PostgreSQL needs
    the extra `burnish[postgres]`. At the end, what is being written is written, and locks still held are given back.
    """
    if not isinstance(place, Path):
        check_address(place)
    async with open_database(sqlite_url(place) if isinstance(place, Path) else place) as database:
        locks: RunLocks = FileLocks(place) if isinstance(place, Path) else AdvisoryLocks(database)
        journal = SqlJournal(database)
        try:
            yield SqlStores(
                runs=SqlRunStore(database, locks),
                checkpoints=SqlCheckpointStore(database),
                memory=SqlKnowledgeMemory(database),
                audit_log=SqlAuditLog(database),
                journal=journal,
                locks=locks,
            )
        finally:
            await journal.close()
            await locks.release_all()
