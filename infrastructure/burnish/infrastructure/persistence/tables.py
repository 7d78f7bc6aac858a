"""The tables of the SQL store."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, String, Table

from burnish.infrastructure.persistence.any_text import AnyText

SCHEMA_VERSION = 1

metadata = MetaData()

schema = Table("burnish_schema", metadata, Column("version", Integer, primary_key=True))

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("ordinal", Integer, nullable=False, unique=True),
    Column("skill_id", String(128), nullable=False),
    Column("identity", AnyText, nullable=False),
    Column("stop_reason", String(32)),
    Column("state", AnyText),
)
"""A row a run: who it is (canonical JSON), how it ended, and its latest state without the records of its steps (JSON)."""

steps = Table(
    "steps",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("record", AnyText, nullable=False),
)
"""A row a record, in the order they were made; the record as JSON."""

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("skill_id", String(128), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("skill", AnyText, nullable=False),
    Column("skill_hash", String(64), nullable=False),
    Column("score", Float, nullable=False),
    Column("action", String(32), nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("memory", AnyText, nullable=False),
    Index("checkpoints_by_score", "run_id", "score"),
)

journal = Table(
    "journal",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("key", AnyText, nullable=False),
    Column("answer", AnyText, nullable=False),
    Column("is_error", Boolean, nullable=False),
    Column("step", Integer, nullable=False),
    Column("usage", AnyText, nullable=False),
)
"""A row an answer of the outside world; `name` is the SHA-256 of the key, `step` the run's step when it came."""

memory = Table(
    "memory",
    metadata,
    Column("key", AnyText, primary_key=True),
    Column("kind", AnyText, nullable=False),
    Column("content", AnyText, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("actor", AnyText, nullable=False),
    Column("action", AnyText, nullable=False),
    Column("subject", AnyText, nullable=False),
    Column("outcome", String(128), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("position", AnyText, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)
