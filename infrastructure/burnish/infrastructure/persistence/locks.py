"""One process a run: locks that the operating system or the server frees when their holder dies."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from burnish.application.log import get_logger
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.infrastructure.persistence.database import LOCK_KEY, Database

_log = get_logger(__name__)


class RunLocks(Protocol):
    """Locks by run id."""

    async def acquire(self, run_id: str) -> bool:
        """Take the run's lock; False when somebody has it."""
        ...

    async def release(self, run_id: str) -> None:
        """Give it back."""
        ...

    async def release_all(self) -> None:
        """Give back every lock this object has taken."""
        ...


class FileLocks:
    """Locks on files beside a SQLite database; also between objects of one process."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[str, int] = {}

    async def acquire(self, run_id: str) -> bool:
        """Lock the run's file without waiting."""
        digest = hashlib.sha256(run_id.encode()).hexdigest()[:12]
        return self._lock(run_id, self._database.with_name(f"{self._database.name}.{digest}.lock"))

    def acquire_every(self) -> bool:
        """Lock the files of all runs that were ever trained in this database; False when one of them is being trained."""
        return all(self._lock(path.name, path) for path in sorted(lock_files(self._database)))

    def _lock(self, name: str, path: Path) -> bool:
        """Raises PortError also when somebody deleted the file meanwhile, and with it the database."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(descriptor), path.stat())
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
        if not is_there:
            os.close(descriptor)
            raise PortError(ErrorCode.STORE_UNAVAILABLE)
        self._held[name] = descriptor
        return True

    async def release(self, run_id: str) -> None:
        """Close the file; it stays, so that nobody locks a file that another is about to delete."""
        descriptor = self._held.pop(run_id, None)
        if descriptor is not None:
            os.close(descriptor)

    async def release_all(self) -> None:
        """Close the files."""
        for name in tuple(self._held):
            await self.release(name)


def lock_files(database: Path) -> Iterator[Path]:
    """The files that locks of this SQLite database have left."""
    return database.parent.glob(f"{database.name}.*.lock")


class AdvisoryLocks:
    """PostgreSQL's session locks, each on a connection of its own that is kept as long as the lock.

    They need a session that stays: a pooler between burnish and the server must not work by transaction.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: dict[str, AsyncConnection] = {}

    async def acquire(self, run_id: str) -> bool:
        """Ask the server without waiting."""
        connection = await self._database.connect()
        taken = False
        try:
            await connection.execute(_KEEP_ALIVE)
            taken = bool((await connection.execute(_TRY_LOCK, {"name": _name(run_id)})).scalar())
        except (SQLAlchemyError, OSError) as error:
            raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
        finally:
            if not taken:
                await connection.close()
        if taken:
            self._held[run_id] = connection
        return taken

    async def release(self, run_id: str) -> None:
        """Give it back and end the session that holds it; one that has ended already holds nothing."""
        connection = self._held.pop(run_id, None)
        if connection is None:
            return
        try:
            await connection.execute(_UNLOCK, {"name": _name(run_id)})
        except (SQLAlchemyError, OSError) as error:
            _log.warning("lock.lost", run_id=run_id, error_type=type(error).__name__)
        finally:
            await connection.close()

    async def release_all(self) -> None:
        """End every session."""
        for run_id in tuple(self._held):
            await self.release(run_id)


_TRY_LOCK = text(f"SELECT pg_try_advisory_lock({LOCK_KEY})")
_UNLOCK = text(f"SELECT pg_advisory_unlock({LOCK_KEY})")
_KEEP_ALIVE = text(
    "SELECT set_config('tcp_keepalives_idle', '60', false), set_config('tcp_keepalives_interval', '10', false),"
    " set_config('tcp_keepalives_count', '6', false)"
)
"""The session is idle for as long as a run takes: this keeps it alive, and ends it soon after its machine is gone."""


def _name(run_id: str) -> str:
    return f"burnish:{run_id}"
