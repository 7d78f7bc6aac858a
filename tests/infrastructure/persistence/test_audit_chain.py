"""The hash chain of the audit log shows what was done to it."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest

from burnish.application.ports import AuditEntry
from burnish.infrastructure.persistence.audit import (
    AuditAnchor,
    AuditRecord,
    InMemoryAuditLog,
    anchor_of,
    chain,
    verify,
)

ENTRY = AuditEntry(
    at=datetime(2026, 1, 1, tzinfo=UTC), actor="ada", action="TrainSkill", subject="r", outcome="ok", digest="0" * 64
)


async def log_of(number: int) -> InMemoryAuditLog:
    log = InMemoryAuditLog()
    for place in range(number):
        await log.append(replace(ENTRY, subject=f"r{place}"))
    return log


async def test_a_log_that_was_left_alone_is_sound() -> None:
    log = await log_of(5)
    assert [record.sequence for record in log.records] == [0, 1, 2, 3, 4]
    assert log.anchor == AuditAnchor(5, log.records[-1].hash)
    assert verify(log.records, log.anchor) is None


def test_an_empty_log_is_sound() -> None:
    assert verify(()) is None
    assert verify((), anchor_of(())) is None


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize(
    "change",
    [
        {"at": ENTRY.at + timedelta(microseconds=1)},
        {"actor": "eve"},
        {"action": "GateCandidateSkill"},
        {"subject": "other"},
        {"outcome": "aborted"},
        {"digest": "1" * 64},
    ],
)
async def test_an_altered_field_is_found(place: int, change: dict[str, object]) -> None:
    records = list((await log_of(5)).records)
    records[place] = replace(records[place], entry=replace(records[place].entry, **change))  # type: ignore[arg-type]  # by name
    assert verify(records) == f"record {place} was altered"


def test_every_field_of_an_entry_counts() -> None:
    first = chain(ENTRY, anchor_of(()))
    for field in fields(AuditEntry):
        value = getattr(ENTRY, field.name)
        other: object = value + timedelta(1) if isinstance(value, datetime) else f"{value}!"
        changed = replace(ENTRY, **{field.name: other})  # type: ignore[arg-type]  # by name
        assert chain(changed, anchor_of(())).hash != first.hash, field.name


async def test_a_record_written_anew_with_a_hash_of_its_own_is_found_by_the_next() -> None:
    records = list((await log_of(3)).records)
    records[1] = chain(replace(ENTRY, outcome="forged"), AuditAnchor(1, records[0].hash))
    assert verify(records) == "record 2 does not follow the one before it"


@pytest.mark.parametrize("place", [0, 1, 3])
async def test_a_dropped_record_is_found(place: int) -> None:
    records = list((await log_of(5)).records)
    del records[place]
    assert verify(records) == f"record {place} is missing or out of order: number {place + 1} stands in its place"


@pytest.mark.parametrize("left", [0, 1, 4])
async def test_a_cut_tail_is_found_by_the_anchor_only(left: int) -> None:
    log = await log_of(5)
    assert verify(log.records[:left]) is None
    assert verify(log.records[:left], log.anchor) == f"there are {left} records where the anchor counts 5"


async def test_a_last_record_written_anew_is_found_by_the_anchor() -> None:
    log = await log_of(3)
    forged = chain(replace(ENTRY, outcome="forged"), AuditAnchor(2, log.records[1].hash))
    assert verify([*log.records[:2], forged]) is None
    assert verify([*log.records[:2], forged], log.anchor) == "record 2 is not the one the anchor names"


async def test_a_log_that_has_grown_since_the_anchor_was_taken_is_sound() -> None:
    log = await log_of(3)
    anchor = log.anchor
    await log.append(ENTRY)
    assert verify(log.records, anchor) is None
    assert verify(log.records, anchor_of(())) is None


async def test_a_cut_tail_with_others_in_its_place_is_found_by_an_older_anchor() -> None:
    log = await log_of(3)
    rest: list[AuditRecord] = list(log.records[:2])
    for _ in range(3):
        rest.append(chain(ENTRY, anchor_of(rest)))
    assert verify(rest) is None
    assert verify(rest, log.anchor) == "record 2 is not the one the anchor names"


async def test_swapped_records_are_found() -> None:
    records = list((await log_of(4)).records)
    records[1], records[2] = records[2], records[1]
    assert verify(records) == "record 1 is missing or out of order: number 2 stands in its place"


async def test_swapped_entries_are_found() -> None:
    records = list((await log_of(4)).records)
    one, two = records[1].entry, records[2].entry
    records[1], records[2] = replace(records[1], entry=two), replace(records[2], entry=one)
    assert verify(records) == "record 1 was altered"


async def test_fields_cannot_run_into_each_other() -> None:
    one = chain(replace(ENTRY, actor="ab", action="c"), anchor_of(()))
    two = chain(replace(ENTRY, actor="a", action="bc"), anchor_of(()))
    assert one.hash != two.hash
