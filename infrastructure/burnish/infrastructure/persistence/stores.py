"""All stores of one SQL database, opened together."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from burnish.infrastructure.persistence.database import open_database, sqlite_url
from burnish.infrastructure.persistence.journal import SqlJournal
from burnish.infrastructure.persistence.locks import AdvisoryLocks, FileLocks
from burnish.infrastructure.persistence.sql import SqlAuditLog, SqlCheckpointStore, SqlKnowledgeMemory, SqlRunStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStores:
    """The stores; each fits the parameter of `open_app` with its name."""

    runs: SqlRunStore
    checkpoints: SqlCheckpointStore
    memory: SqlKnowledgeMemory
    audit_log: SqlAuditLog
    journal: SqlJournal


@asynccontextmanager
async def open_stores(place: Path | str) -> AsyncGenerator[SqlStores]:
    """Open the stores in a SQLite file (a path) or on a PostgreSQL server (`postgresql+asyncpg://…`).

    Raises PortError when the database cannot be opened. PostgreSQL needs the extra `burnish[postgres]`.
    """
    url = sqlite_url(place) if isinstance(place, Path) else place
    async with open_database(url) as database:
        locks = FileLocks(place) if isinstance(place, Path) else AdvisoryLocks(database)
        yield SqlStores(
            runs=SqlRunStore(database, locks),
            checkpoints=SqlCheckpointStore(database),
            memory=SqlKnowledgeMemory(database),
            audit_log=SqlAuditLog(database),
            journal=SqlJournal(database),
        )
