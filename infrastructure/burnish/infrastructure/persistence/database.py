"""A SQL database: opening it, its pragmas and its version, short transactions, and one coded failure."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event, insert, select
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from burnish.application.log import get_logger
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.infrastructure.persistence import tables

_log = get_logger(__name__)

_BUSY_MILLISECONDS = 5_000
"""How long SQLite waits for another writer before it gives up."""


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return f"sqlite+aiosqlite:///{path}"


class Database:
    """One database and its connections; every failure is `skill_training.store.unavailable`, the cause in the log."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    async def connect(self) -> AsyncConnection:
        """A connection of the caller's own, who closes it."""
        try:
            connection = await self._engine.connect()
            return await connection.execution_options(isolation_level="AUTOCOMMIT")
        except (SQLAlchemyError, OSError) as error:
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[AsyncConnection]:
        """A short transaction: committed at the end, rolled back when the block raises."""
        try:
            async with self._engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, OSError) as error:
            _log.exception("store.failed", error_type=type(error).__name__)
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error


@asynccontextmanager
async def open_database(url: str) -> AsyncGenerator[Database]:
    """Open the database at a SQLAlchemy address with an async driver, making its tables when it is new.

    Raises PortError when it cannot be opened, is no database, or was written by a newer burnish.
    """
    engine = create_async_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine.sync_engine, "connect", _set_pragmas)
    database = Database(engine)
    try:
        async with database.transaction() as connection:
            await connection.run_sync(tables.metadata.create_all)
            version = (await connection.execute(select(tables.schema.c.version))).scalar()
            if version is None:
                await connection.execute(insert(tables.schema).values(version=tables.SCHEMA_VERSION))
            elif version != tables.SCHEMA_VERSION:
                _log.error("store.other_version", found=version, known=tables.SCHEMA_VERSION)
                raise PortError(ErrorCode.STORE_UNAVAILABLE)
        yield database
    finally:
        await engine.dispose()


def _set_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    """Write-ahead log (readers and one writer do not block each other), and patience with other writers."""
    cursor: Any = connection.cursor()  # a DBAPI cursor; SQLAlchemy types it as Any as well
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute(f"PRAGMA busy_timeout={_BUSY_MILLISECONDS}")
    cursor.close()
