"""A SQL database: opening it, its version, short transactions, turns that processes take, and one coded failure."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, event, insert, inspect, make_url, select, text
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

_CONNECT_SECONDS = 10.0
"""How long a PostgreSQL server may take to answer a new connection."""

LOCK_KEY = "hashtextextended(:name, 0)"
"""The SQL that makes the number of an advisory lock from its name."""


def sqlite_url(path: Path) -> URL:
    """The address of a SQLite file; its name may hold signs that mean something in an address."""
    return URL.create("sqlite+aiosqlite", database=str(path))


class Database:
    """One database and its connections; every failure is `skill_training.store.unavailable`, the cause in the log."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    async def connect(self) -> AsyncConnection:
        """A connection of the caller's own, who closes it; it takes no place in the pool."""
        try:
            connection = await self._engine.connect()
            connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.run_sync(Connection.detach)
        except (SQLAlchemyError, OSError) as error:
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
        return connection

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
    async def turn(self, name: str) -> AsyncGenerator[AsyncConnection]:
        """A transaction for reading and then writing what was decided: others of its name wait, in other processes too.

        SQLite knows one writer only, so there all wait for each other.
        """
        async with self.transaction() as connection:
            if self.dialect == "sqlite":
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                await connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK_KEY})"), {"name": f"burnish/{name}"})
            yield connection


@asynccontextmanager
async def open_database(url: str | URL) -> AsyncGenerator[Database]:
    """Open the database at a SQLAlchemy address with an async driver, making its tables when it is new.

    Raises PortError when it cannot be opened, is no database, or was written by a newer burnish.
    """
    engine = _engine(url)
    database = Database(engine)
    try:
        async with database.transaction() as connection:
            version = await connection.run_sync(_version)
        if version is None:
            async with database.turn("schema") as connection:
                version = await connection.run_sync(_version_or_new)
        if version != tables.SCHEMA_VERSION:
            _log.error("store.other_version", found=version, known=tables.SCHEMA_VERSION)
            raise PortError(ErrorCode.STORE_UNAVAILABLE)
        yield database
    finally:
        await engine.dispose()


def _engine(url: str | URL) -> AsyncEngine:
    """Parameters stay out of the texts of errors: they hold skills, answers and prompts."""
    if make_url(url).get_backend_name() != "sqlite":
        return create_async_engine(url, hide_parameters=True, connect_args={"timeout": _CONNECT_SECONDS})
    engine = create_async_engine(url, hide_parameters=True)
    event.listen(engine.sync_engine, "connect", _set_pragmas)
    return engine


def _version(connection: Connection) -> int | None:
    """The version of burnish's tables; None when there are none."""
    if not inspect(connection).has_table(tables.schema.name):
        return None
    version: int | None = connection.execute(select(tables.schema.c.version)).scalar()
    return version


def _version_or_new(connection: Connection) -> int:
    """The version of burnish's tables, which are made when there are none. Raises PortError when others have their names."""
    version = _version(connection)
    if version is None:
        if taken := tables.metadata.tables.keys() & set(inspect(connection).get_table_names()):
            _log.error("store.foreign_tables", tables=sorted(taken))
            raise PortError(ErrorCode.STORE_UNAVAILABLE)
        tables.metadata.create_all(connection)
        version = tables.SCHEMA_VERSION
        connection.execute(insert(tables.schema).values(version=version))
    return version


def _set_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    """Write-ahead log (readers and one writer do not block each other), and patience with other writers."""
    cursor: Any = connection.cursor()  # a DBAPI cursor; SQLAlchemy types it as Any as well
    cursor.execute(f"PRAGMA busy_timeout={_BUSY_MILLISECONDS}")
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
