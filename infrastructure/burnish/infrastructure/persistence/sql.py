"""The durable stores: runs, steps, checkpoints, memory and audit in one SQL database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import Row, delete, func, insert, select, update

from burnish.application.ports import AuditEntry, Claim, ClaimOutcome
from burnish.domain.gate import GateAction
from burnish.domain.runs import Checkpoint, StepRecord, TrainingRun
from burnish.infrastructure.persistence import tables
from burnish.infrastructure.persistence.audit import AuditAnchor, AuditRecord, anchor_of, chain
from burnish.infrastructure.persistence.database import Database
from burnish.infrastructure.persistence.in_memory import ENDED_WELL, differing_keys
from burnish.infrastructure.persistence.locks import RunLocks

DELETION = "DeleteRun"
"""The action of the audit entry that tells that a run was dropped."""

_RUN = TypeAdapter(TrainingRun)
_RECORD = TypeAdapter(StepRecord)


class SqlRunStore:
    """Keeps runs and their records; a lock tells who trains a run, and goes with its process."""

    def __init__(self, database: Database, locks: RunLocks) -> None:
        self._database = database
        self._locks = locks

    async def claim(self, run_id: str, identity: Mapping[str, str]) -> Claim:
        """Take the run unless it is active, of another identity, or has ended well."""
        if not await self._locks.acquire(run_id):
            return Claim(outcome=ClaimOutcome.ACTIVE)
        try:
            claim = await self._claim(run_id, identity)
        except BaseException:
            await self._locks.release(run_id)
            raise
        if claim.outcome is not ClaimOutcome.CLAIMED:
            await self._locks.release(run_id)
        return claim

    async def _claim(self, run_id: str, identity: Mapping[str, str]) -> Claim:
        runs = tables.runs
        async with self._database.turn("runs") as connection:
            row = (await connection.execute(select(runs.c.identity).where(runs.c.run_id == run_id))).first()
            if row is None:
                last = (await connection.execute(select(func.max(runs.c.ordinal)))).scalar()
                await connection.execute(
                    insert(runs).values(
                        run_id=run_id,
                        ordinal=0 if last is None else last + 1,
                        skill_id=identity.get("skill_id", ""),
                        identity=json.dumps(dict(identity), sort_keys=True),
                    )
                )
                return Claim(outcome=ClaimOutcome.CLAIMED)
            if names := differing_keys(json.loads(row.identity), identity):
                return Claim(outcome=ClaimOutcome.OTHER_IDENTITY, differing=names)
        run = await self.get(run_id)
        if run is not None and run.stop_reason in ENDED_WELL:
            return Claim(outcome=ClaimOutcome.FINISHED, known=run)
        return Claim(outcome=ClaimOutcome.CLAIMED, known=run)

    async def release(self, run_id: str) -> None:
        """Let others claim it."""
        await self._locks.release(run_id)

    async def save(self, run: TrainingRun) -> None:
        """Keep the run; its records are kept by `append`."""
        state = _RUN.dump_json(replace(run, steps=())).decode()
        async with self._database.transaction() as connection:
            await connection.execute(
                update(tables.runs)
                .where(tables.runs.c.run_id == run.run_id)
                .values(state=state, stop_reason=run.stop_reason)
            )
            if run.stop_reason is not None:  # an earlier attempt may have made more records
                steps = tables.steps
                later = (steps.c.run_id == run.run_id) & (steps.c.position >= len(run.steps))
                await connection.execute(delete(steps).where(later))

    async def append(self, run_id: str, position: int, record: StepRecord) -> None:
        """Keep the record in its position; what a resumed run comes past again is the same."""
        steps = tables.steps
        same = (steps.c.run_id == run_id) & (steps.c.position == position)
        async with self._database.transaction() as connection:
            await connection.execute(delete(steps).where(same))
            await connection.execute(
                insert(steps).values(run_id=run_id, position=position, record=_RECORD.dump_json(record).decode())
            )

    async def get(self, run_id: str) -> TrainingRun | None:
        """The run as it was last saved, with its records."""
        runs, steps = tables.runs, tables.steps
        async with self._database.transaction() as connection:
            row = (await connection.execute(select(runs.c.state).where(runs.c.run_id == run_id))).first()
            if row is None or row.state is None:
                return None
            records = await connection.execute(
                select(steps.c.record).where(steps.c.run_id == run_id).order_by(steps.c.position)
            )
            found = tuple(_RECORD.validate_json(record) for record in records.scalars())
        return replace(_RUN.validate_json(row.state), steps=found)

    async def ids(self) -> tuple[str, ...]:
        """The ids in the order they were first claimed, also of runs of which nothing was saved yet."""
        async with self._database.transaction() as connection:
            ids = await connection.execute(select(tables.runs.c.run_id).order_by(tables.runs.c.ordinal))
            return tuple(ids.scalars())

    async def identity(self, run_id: str) -> Mapping[str, str] | None:
        """What the run was first claimed with, or None."""
        async with self._database.transaction() as connection:
            query = select(tables.runs.c.identity).where(tables.runs.c.run_id == run_id)
            identity: str | None = (await connection.execute(query)).scalar()
        return None if identity is None else json.loads(identity)

    async def list(self) -> Sequence[TrainingRun]:
        """In the order they were first claimed."""
        found = [await self.get(run_id) for run_id in await self.ids()]
        return [run for run in found if run is not None]

    async def delete(self, run_id: str) -> None:
        """Drop the run and its records."""
        async with self._database.transaction() as connection:
            for table in (tables.steps, tables.runs):
                await connection.execute(delete(table).where(table.c.run_id == run_id))


class SqlCheckpointStore:
    """Keeps every checkpoint."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, checkpoint: Checkpoint) -> None:
        """Keep it in the place of an earlier one of the same step."""
        table = tables.checkpoints
        values = {
            "run_id": checkpoint.run_id,
            "step": checkpoint.step,
            "skill_id": checkpoint.skill_id,
            "epoch": checkpoint.epoch,
            "skill": checkpoint.skill,
            "skill_hash": checkpoint.skill_hash,
            "score": checkpoint.score,
            "action": checkpoint.action.value,
            "created_at": checkpoint.created_at.isoformat(),
            "memory": checkpoint.memory,
        }
        same = (table.c.run_id == checkpoint.run_id) & (table.c.step == checkpoint.step)
        async with self._database.transaction() as connection:
            await connection.execute(delete(table).where(same))
            await connection.execute(insert(table).values(values))

    async def get(self, run_id: str, step: int) -> Checkpoint | None:
        """The snapshot of that step, or None."""
        table = tables.checkpoints
        async with self._database.transaction() as connection:
            query = select(table).where(table.c.run_id == run_id, table.c.step == step)
            row = (await connection.execute(query)).first()
        return None if row is None else _checkpoint(row)

    async def best(self, run_id: str) -> Checkpoint | None:
        """The highest score, the earliest among equals."""
        table = tables.checkpoints
        async with self._database.transaction() as connection:
            query = select(table).where(table.c.run_id == run_id).order_by(table.c.score.desc(), table.c.step).limit(1)
            row = (await connection.execute(query)).first()
        return None if row is None else _checkpoint(row)

    async def list(self, run_id: str) -> Sequence[Checkpoint]:
        """By step."""
        table = tables.checkpoints
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(table).where(table.c.run_id == run_id).order_by(table.c.step))
            return [_checkpoint(row) for row in rows]

    async def delete(self, run_id: str) -> None:
        """Drop all of the run."""
        table = tables.checkpoints
        async with self._database.transaction() as connection:
            await connection.execute(delete(table).where(table.c.run_id == run_id))


class SqlKnowledgeMemory:
    """Keeps the latest text of every key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def remember(self, key: str, content: str, kind: str) -> None:
        """Replace what was there."""
        table = tables.memory
        async with self._database.turn("memory") as connection:
            await connection.execute(delete(table).where(table.c.key == key))
            await connection.execute(insert(table).values(key=key, content=content, kind=kind))

    async def recall(self, key: str) -> str | None:
        """The text, or None."""
        table = tables.memory
        async with self._database.transaction() as connection:
            found: str | None = (await connection.execute(select(table.c.content).where(table.c.key == key))).scalar()
        return found


class SqlAuditLog:
    """The hash-chained log in a table; entries are added one after another, whichever process they come from."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._adding = asyncio.Lock()

    async def append(self, entry: AuditEntry) -> None:
        """Add an entry at the end; one whose place in its run is taken since the run was last deleted is there already."""
        table = tables.audit
        async with self._adding, self._database.turn("audit") as connection:
            if entry.position:
                of_subject = table.c.subject == entry.subject
                deletion = select(func.max(table.c.sequence)).where(of_subject, table.c.action == DELETION)
                same = of_subject & (table.c.action == entry.action) & (table.c.position == entry.position)
                since = table.c.sequence > func.coalesce(deletion.scalar_subquery(), -1)
                query = select(table.c.sequence).where(same, since).limit(1)
                if (await connection.execute(query)).first() is not None:
                    return
            last = (await connection.execute(_LAST_RECORD)).first()
            record = chain(entry, _anchor(last))
            await connection.execute(
                insert(table).values(
                    sequence=record.sequence,
                    at=entry.at.isoformat(),
                    actor=entry.actor,
                    action=entry.action,
                    subject=entry.subject,
                    outcome=entry.outcome,
                    digest=entry.digest,
                    position=entry.position,
                    previous=record.previous,
                    hash=record.hash,
                )
            )

    async def records(self) -> tuple[AuditRecord, ...]:
        """All records, in the order of their numbers."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(tables.audit).order_by(tables.audit.c.sequence))
            return tuple(_audit_record(row) for row in rows)

    async def anchor(self) -> AuditAnchor:
        """What to keep elsewhere."""
        async with self._database.transaction() as connection:
            return _anchor((await connection.execute(_LAST_RECORD)).first())


_LAST_RECORD = select(tables.audit.c.sequence, tables.audit.c.hash).order_by(tables.audit.c.sequence.desc()).limit(1)


def _anchor(last: Row[int, str] | None) -> AuditAnchor:
    """The anchor of a log that ends with this record."""
    return anchor_of(()) if last is None else AuditAnchor(last.sequence + 1, last.hash)


def _checkpoint(row: Row[tuple[object, ...]]) -> Checkpoint:
    return Checkpoint(
        run_id=row.run_id,
        skill_id=row.skill_id,
        step=row.step,
        epoch=row.epoch,
        skill=row.skill,
        skill_hash=row.skill_hash,
        score=row.score,
        action=GateAction(row.action),
        created_at=datetime.fromisoformat(row.created_at),
        memory=row.memory,
    )


def _audit_record(row: Row[tuple[object, ...]]) -> AuditRecord:
    entry = AuditEntry(
        at=datetime.fromisoformat(row.at),
        actor=row.actor,
        action=row.action,
        subject=row.subject,
        outcome=row.outcome,
        digest=row.digest,
        position=row.position,
    )
    return AuditRecord(entry, row.sequence, row.previous, row.hash)
