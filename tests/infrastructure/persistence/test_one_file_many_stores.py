"""Several openings of one SQLite file, as of several processes that train different runs in one folder."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from burnish.application.ports import AuditEntry, ClaimOutcome
from burnish.infrastructure.persistence.audit import verify
from burnish.infrastructure.persistence.stores import open_stores

ENTRY = AuditEntry(
    at=datetime(2026, 1, 1, tzinfo=UTC), actor="ada", action="TrainSkill", subject="r", outcome="ok", digest="0" * 64
)
IDENTITY = {"skill_id": "s"}


async def test_entries_from_several_openings_make_one_unbroken_chain(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_stores(tmp_path / "burnish.db")) for _ in range(3)]
        await asyncio.gather(*(stores.audit_log.append(ENTRY) for stores in opened * 20))
        records = await opened[0].audit_log.records()
        assert len(records) == 60
        assert verify(records, await opened[1].audit_log.anchor()) is None


async def test_a_new_file_may_be_opened_and_its_runs_claimed_at_once(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        opened = await asyncio.gather(
            *(stack.enter_async_context(open_stores(tmp_path / "burnish.db")) for _ in range(4))
        )
        claims = await asyncio.gather(*(stores.runs.claim(f"r{n}", IDENTITY) for n, stores in enumerate(opened)))
        assert [claim.outcome for claim in claims] == [ClaimOutcome.CLAIMED] * 4
        contested = await asyncio.gather(*(stores.runs.claim("one", IDENTITY) for stores in opened))
        assert [claim.outcome for claim in contested].count(ClaimOutcome.CLAIMED) == 1


async def test_locks_still_held_end_with_the_stores(tmp_path: Path) -> None:
    async with open_stores(tmp_path / "burnish.db") as stores:
        await stores.runs.claim("r", IDENTITY)
    async with open_stores(tmp_path / "burnish.db") as stores:
        assert (await stores.runs.claim("r", IDENTITY)).outcome is ClaimOutcome.CLAIMED
