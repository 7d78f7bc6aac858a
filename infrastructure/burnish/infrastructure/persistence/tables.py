"""The tables of the SQL store."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text

SCHEMA_VERSION = 1

metadata = MetaData()

schema = Table("burnish_schema", metadata, Column("version", Integer, primary_key=True))

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("ordinal", Integer, nullable=False, unique=True),
    Column("skill_id", String(128), nullable=False),
    Column("identity", Text, nullable=False),
    Column("stop_reason", String(32)),
    Column("state", Text),
)
"""A row a run: who it is (canonical JSON), how it ended, and its latest state without the records of its steps (JSON)."""

steps = Table(
    "steps",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("record", Text, nullable=False),
)
"""A row a record, in the order they were made; the record as JSON."""

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("skill_id", String(128), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("skill", Text, nullable=False),
    Column("skill_hash", String(64), nullable=False),
    Column("score", Float, nullable=False),
    Column("action", String(32), nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("memory", Text, nullable=False),
    Index("checkpoints_by_score", "run_id", "score"),
)

journal = Table(
    "journal",
    metadata,
    Column("run_id", String(128), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("key", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("is_error", Boolean, nullable=False),
    Column("step", Integer, nullable=False),
    Column("usage", Text, nullable=False),
)
"""A row an answer of the outside world; `name` is the SHA-256 of the key, `step` the run's step when it came."""

memory = Table(
    "memory",
    metadata,
    Column("key", String(512), primary_key=True),
    Column("kind", String(64), nullable=False),
    Column("content", Text, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("actor", String(256), nullable=False),
    Column("action", String(128), nullable=False),
    Column("subject", Text, nullable=False),
    Column("outcome", String(128), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("position", String(64), nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)
