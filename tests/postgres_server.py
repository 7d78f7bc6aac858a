"""Looking into a PostgreSQL database past the stores, for tests that need one."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine


async def execute(address: str, statement: str) -> Sequence[tuple[object, ...]]:
    """Run a statement outside of a transaction; its rows, if it has any."""
    engine = create_async_engine(address)
    try:
        async with engine.connect() as connection:
            automatic = await connection.execution_options(isolation_level="AUTOCOMMIT")
            result = await automatic.execute(text(statement))
            return [tuple(row) for row in result] if result.returns_rows else ()
    finally:
        await engine.dispose()


async def locks_held(address: str) -> int:
    """How many advisory locks there are in the database."""
    query = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
        " WHERE locktype = 'advisory' AND granted AND datname = current_database()"
    )
    ((count,),) = await execute(address, query)
    assert isinstance(count, int)
    return count


async def wait_for_no_lock(address: str, *, seconds: float = 10.0) -> None:
    """Wait until the server has noticed that the holders of its locks are gone."""
    end = time.monotonic() + seconds
    while await locks_held(address):
        assert time.monotonic() < end, "the lock is still held"
