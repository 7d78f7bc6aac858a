"""The drivers of the stores that contract tests run on.

A driver opens the stores in a place of the test's own; opened in the same place again, durable ones hold what they held.
PostgreSQL joins when the environment variable BURNISH_TEST_POSTGRES holds the address of a server's database.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from burnish.application.ports import AuditLog, CheckpointStore, Journal, KnowledgeMemory, RunStore
from burnish.infrastructure.persistence.audit import InMemoryAuditLog
from burnish.infrastructure.persistence.in_memory import (
    InMemoryCheckpointStore,
    InMemoryJournal,
    InMemoryKnowledgeMemory,
    InMemoryRunStore,
)
from burnish.infrastructure.persistence.stores import open_stores

POSTGRES_VARIABLE = "BURNISH_TEST_POSTGRES"


class Stores(Protocol):
    """All stores of one place."""

    @property
    def runs(self) -> RunStore: ...

    @property
    def checkpoints(self) -> CheckpointStore: ...

    @property
    def memory(self) -> KnowledgeMemory: ...

    @property
    def audit_log(self) -> AuditLog: ...

    @property
    def journal(self) -> Journal: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStores:
    """Stores that live as long as they are open."""

    runs: InMemoryRunStore
    checkpoints: InMemoryCheckpointStore
    memory: InMemoryKnowledgeMemory
    audit_log: InMemoryAuditLog
    journal: InMemoryJournal


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """How the stores of a folder are opened, and whether they are there again when they are opened again."""

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Stores]]
    is_durable: bool = True


@asynccontextmanager
async def in_memory(_folder: Path) -> AsyncGenerator[Stores]:
    """Stores without a place."""
    yield MemoryStores(
        runs=InMemoryRunStore(),
        checkpoints=InMemoryCheckpointStore(),
        memory=InMemoryKnowledgeMemory(),
        audit_log=InMemoryAuditLog(),
        journal=InMemoryJournal(),
    )


@asynccontextmanager
async def in_sqlite(folder: Path) -> AsyncGenerator[Stores]:
    """Stores in a file of the folder."""
    async with open_stores(folder / "burnish.db") as stores:
        yield stores


@asynccontextmanager
async def on_postgres(_folder: Path) -> AsyncGenerator[Stores]:
    """Stores in the server's database: tests name their runs after themselves, and leave nothing behind."""
    async with open_stores(os.environ[POSTGRES_VARIABLE]) as stores:
        yield stores


def drivers() -> list[Driver]:
    """Those that can be tried here."""
    found = [
        Driver(name="in memory", open=in_memory, is_durable=False),
        Driver(name="sqlite", open=in_sqlite),
    ]
    if os.environ.get(POSTGRES_VARIABLE):
        found.append(Driver(name="postgresql", open=on_postgres))
    return found
