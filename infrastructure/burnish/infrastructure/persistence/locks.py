"""One process a run: locks that the operating system or the server frees when their holder dies."""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Protocol

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.infrastructure.persistence.database import Database


class RunLocks(Protocol):
    """Locks by run id."""

    async def acquire(self, run_id: str) -> bool:
        """Take the run's lock; False when somebody has it."""
        ...

    async def release(self, run_id: str) -> None:
        """Give it back."""
        ...


class FileLocks:
    """Locks on files beside a SQLite database; also between objects of one process."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[str, int] = {}

    async def acquire(self, run_id: str) -> bool:
        """Lock the run's file without waiting."""
        digest = hashlib.sha256(run_id.encode()).hexdigest()[:12]
        path = self._database.with_name(f"{self._database.name}.{digest}.lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
        self._held[run_id] = descriptor
        return True

    async def release(self, run_id: str) -> None:
        """Close the file; it stays, so that nobody locks a file that another is about to delete."""
        descriptor = self._held.pop(run_id, None)
        if descriptor is not None:
            os.close(descriptor)


class AdvisoryLocks:
    """PostgreSQL's session locks, each on a connection of its own that is kept as long as the lock."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: dict[str, AsyncConnection] = {}

    async def acquire(self, run_id: str) -> bool:
        """Ask the server without waiting."""
        connection = await self._database.connect()
        try:
            query = text("SELECT pg_try_advisory_lock(hashtextextended(:run_id, 0))")
            taken = bool((await connection.execute(query, {"run_id": f"burnish:{run_id}"})).scalar())
        except BaseException:
            await connection.close()
            raise
        if taken:
            self._held[run_id] = connection
        else:
            await connection.close()
        return taken

    async def release(self, run_id: str) -> None:
        """End the session that holds it."""
        connection = self._held.pop(run_id, None)
        if connection is not None:
            await connection.invalidate()
            await connection.close()
