"""What the stores promise on PostgreSQL beyond their contract: many processes, many runs, texts of any content."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from postgres_server import execute, locks_held, wait_for_no_lock
from sqlalchemy import make_url

from burnish.application.ports import AuditEntry, ClaimOutcome, JournalEntry, PortError
from burnish.application.result import ErrorCode
from burnish.domain.gate import GateAction
from burnish.domain.runs import Checkpoint, StopReason, TrainingRun, skill_hash
from burnish.infrastructure.persistence.audit import verify
from burnish.infrastructure.persistence.stores import SqlStores, open_stores

pytestmark = pytest.mark.services

ENTRY = AuditEntry(
    at=datetime(2026, 1, 1, tzinfo=UTC), actor="ada", action="TrainSkill", subject="r", outcome="ok", digest="0" * 64
)
STRANGE = "NUL \0, SUBSTITUTE \x1a, both \x1a0\0" + "1\x1a\x1a1, \U0001f525, \u2028, '; DROP TABLE runs; --"

APPENDING = """
import asyncio, sys
from dataclasses import replace
from datetime import UTC, datetime
from burnish.application.ports import AuditEntry
from burnish.infrastructure.persistence.stores import open_stores

async def main(address, name):
    async with open_stores(address) as stores:
        print("open", flush=True)
        sys.stdin.readline()
        entry = AuditEntry(
            at=datetime.now(UTC), actor=name, action="TrainSkill", subject="r", outcome="ok", digest="0" * 64
        )
        for number in range(40):
            await stores.audit_log.append(entry)
            await stores.audit_log.append(replace(entry, action="SlowUpdate", position=str(number)))

asyncio.run(main(*sys.argv[1:]))
"""

HOLDING = """
import asyncio, sys
from burnish.infrastructure.persistence.stores import open_stores

async def main(address):
    async with open_stores(address) as stores:
        print((await stores.runs.claim("held", {"skill_id": "s"})).outcome, flush=True)
        sys.stdin.readline()

asyncio.run(main(*sys.argv[1:]))
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that runs the code; it goes on when it is sent a line."""
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def send_line(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def run_of(run_id: str, skill: str = "# Skill") -> TrainingRun:
    return TrainingRun(
        run_id=run_id,
        skill_id="s",
        best_skill=skill,
        best_score=0.1 + 0.2,
        best_step=1,
        baseline_score=None,
        selected_score=None,
        final_skill=skill,
        steps_executed=1,
        consecutive_rejects=0,
        has_accepted_any=False,
        steps=(),
        stop_reason=StopReason.COMPLETED,
    )


def checkpoint_of(run_id: str, skill: str) -> Checkpoint:
    return Checkpoint(
        run_id=run_id,
        skill_id="s",
        step=1,
        epoch=1,
        skill=skill,
        skill_hash=skill_hash(skill),
        score=0.1 + 0.2,
        action=GateAction.ACCEPT,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        memory=skill,
    )


async def fill(stores: SqlStores, run_id: str, text: str = "# Skill") -> None:
    await stores.runs.claim(run_id, {"skill_id": "s"})
    await stores.runs.save(run_of(run_id, text))
    await stores.checkpoints.save(checkpoint_of(run_id, text))
    await stores.journal.append(run_id, JournalEntry(key=text, answer=text))
    await stores.runs.release(run_id)


async def test_texts_of_any_content_come_back_as_they_were(database_url: str) -> None:
    async with open_stores(database_url) as stores:
        await fill(stores, "r", STRANGE)
        await stores.memory.remember(STRANGE, STRANGE, "kind")
        await stores.audit_log.append(replace(ENTRY, actor=STRANGE * 20, action="A" * 200))
    async with open_stores(database_url) as stores:
        run, checkpoint = await stores.runs.get("r"), await stores.checkpoints.get("r", 1)
        found = await stores.journal.find("r", STRANGE)
        assert run == run_of("r", STRANGE)
        assert checkpoint == checkpoint_of("r", STRANGE)
        assert found == JournalEntry(key=STRANGE, answer=STRANGE)
        assert await stores.memory.recall(STRANGE) == STRANGE
        records = await stores.audit_log.records()
        assert records[0].entry.actor == STRANGE * 20
        assert verify(records, await stores.audit_log.anchor()) is None


async def test_processes_that_audit_at_once_do_not_break_the_chain(database_url: str) -> None:
    processes = [python(APPENDING, database_url, name) for name in ("ada", "bob", "eve")]
    assert [first_line(process) for process in processes] == ["open\n"] * 3
    for process in processes:
        send_line(process)
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    async with open_stores(database_url) as stores:
        records = await stores.audit_log.records()
        assert verify(records, await stores.audit_log.anchor()) is None
    actions = [record.entry.action for record in records]
    assert actions.count("TrainSkill") == 3 * 40
    assert actions.count("SlowUpdate") == 40, "who comes second finds the place taken"
    assert {record.entry.actor for record in records} == {"ada", "bob", "eve"}


async def test_an_altered_a_removed_and_a_cut_off_audit_record_are_found(database_url: str) -> None:
    async with open_stores(database_url) as stores:
        for number in range(5):
            await stores.audit_log.append(replace(ENTRY, subject=f"r{number}"))
        anchor = await stores.audit_log.anchor()
        await execute(database_url, "DELETE FROM audit WHERE sequence = 4")
        assert verify(await stores.audit_log.records(), anchor) == "there are 4 records where the anchor counts 5"
        await execute(database_url, "UPDATE audit SET outcome = 'fine' WHERE sequence = 2")
        assert verify(await stores.audit_log.records(), anchor) == "record 2 was altered"
        await execute(database_url, "DELETE FROM audit WHERE sequence = 1")
        problem = verify(await stores.audit_log.records(), anchor)
        assert problem == "record 1 is missing or out of order: number 2 stands in its place"


async def test_many_may_open_a_new_database_at_once_and_claim_runs_in_it(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        opened = await asyncio.gather(*(stack.enter_async_context(open_stores(database_url)) for _ in range(8)))
        identity = {"skill_id": "s"}
        claims = await asyncio.gather(*(s.runs.claim(f"r{n}", identity) for n, s in enumerate(opened)))
        assert [claim.outcome for claim in claims] == [ClaimOutcome.CLAIMED] * 8
        assert sorted(await opened[0].runs.ids()) == [f"r{number}" for number in range(8)]
        contested = await asyncio.gather(*(stores.runs.claim("one", identity) for stores in opened))
        assert [claim.outcome for claim in contested].count(ClaimOutcome.CLAIMED) == 1
        assert [claim.outcome for claim in contested].count(ClaimOutcome.ACTIVE) == 7


async def test_many_may_remember_under_one_key_at_once(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_stores(database_url)) for _ in range(4)]
        await asyncio.gather(*(s.memory.remember("key", f"{n}", "kind") for n, s in enumerate(opened * 5)))
        assert await opened[0].memory.recall("key") in {f"{number}" for number in range(20)}


async def test_locks_take_no_place_from_the_work_and_end_with_the_stores(database_url: str) -> None:
    async with open_stores(database_url) as stores:
        for number in range(30):
            assert (await stores.runs.claim(f"r{number}", {"skill_id": "s"})).outcome is ClaimOutcome.CLAIMED
        entries = [JournalEntry(key=f"{number}", answer="{}") for number in range(100)]
        await asyncio.gather(*(stores.journal.append("r0", entry) for entry in entries))
        assert await locks_held(database_url) == 30
        await stores.runs.release("r0")
        assert await locks_held(database_url) == 29
    await wait_for_no_lock(database_url)


async def test_a_lock_goes_with_a_killed_process(database_url: str) -> None:
    holder = python(HOLDING, database_url)
    assert first_line(holder) == "claimed\n"
    async with open_stores(database_url) as stores:
        assert (await stores.runs.claim("held", {"skill_id": "s"})).outcome is ClaimOutcome.ACTIVE
        holder.kill()
        holder.communicate()
        await wait_for_no_lock(database_url)
        assert (await stores.runs.claim("held", {"skill_id": "s"})).outcome is ClaimOutcome.CLAIMED


async def test_a_lock_whose_session_the_server_ended_is_given_back_without_a_word(database_url: str) -> None:
    async with open_stores(database_url) as stores:
        await stores.runs.claim("r", {"skill_id": "s"})
        await execute(
            database_url,
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())",
        )
        await stores.runs.release("r")
        assert (await stores.runs.claim("r", {"skill_id": "s"})).outcome is ClaimOutcome.CLAIMED


async def test_forgetting_a_run_leaves_the_others_and_the_audit_log(database_url: str) -> None:
    async with open_stores(database_url) as stores:
        for run_id in ("one", "two"):
            await fill(stores, run_id)
            await stores.audit_log.append(replace(ENTRY, subject=run_id, action="SlowUpdate", position="1"))
        await stores.forget("one", actor="ada", at=ENTRY.at)
        assert await stores.runs.ids() == ("two",)
        assert await stores.checkpoints.get("one", 1) is None
        assert await stores.journal.count("one") == 0
        assert await stores.runs.get("two") == run_of("two")
        assert await stores.checkpoints.get("two", 1) == checkpoint_of("two", "# Skill")
        assert await stores.journal.count("two") == 1
        for run_id in ("one", "two"):
            await stores.audit_log.append(replace(ENTRY, subject=run_id, action="SlowUpdate", position="1"))
        entries = [record.entry for record in await stores.audit_log.records()]
        assert verify(await stores.audit_log.records()) is None
    told = [(entry.action, entry.subject) for entry in entries]
    again = ("SlowUpdate", "one")
    assert told == [again, ("SlowUpdate", "two"), ("DeleteRun", "one"), again], "a run started anew is audited anew"


async def test_a_database_of_another_version_is_refused(database_url: str) -> None:
    async with open_stores(database_url):
        pass
    await execute(database_url, "UPDATE burnish_schema SET version = 999")
    with pytest.raises(PortError) as refused:
        async with open_stores(database_url):
            pass
    assert refused.value.code is ErrorCode.STORE_UNAVAILABLE


async def test_a_database_with_tables_of_others_is_refused_and_left_alone(database_url: str) -> None:
    await execute(database_url, "CREATE TABLE audit (id integer)")
    with pytest.raises(PortError) as refused:
        async with open_stores(database_url):
            pass
    assert refused.value.code is ErrorCode.STORE_UNAVAILABLE
    tables = await execute(database_url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert tables == [("audit",)]


async def test_what_fails_is_logged_without_the_texts_it_was_about(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    planted = "a planted sentence of the skill"
    async with open_stores(database_url) as stores:
        await fill(stores, "r")
        await execute(database_url, "DROP TABLE checkpoints")
        with pytest.raises(PortError) as failed:
            await stores.checkpoints.save(checkpoint_of("r", planted))
    assert failed.value.code is ErrorCode.STORE_UNAVAILABLE
    assert "store.failed" in caplog.text
    assert planted not in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"password": "another-one-9f8e7d6c"},
        {"username": "nobody-known"},
        {"database": "no_such_database"},
        {"port": 1},
        {"query": {"ssl": "no-such-mode"}},
    ],
    ids=["password", "user", "database", "port", "ssl"],
)
async def test_a_server_that_lets_nobody_in_is_store_unavailable_and_the_password_is_not_logged(
    change: dict[str, object], database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = make_url(database_url).set(**change)  # type: ignore[arg-type]  # by name
    with pytest.raises(PortError) as refused:
        async with open_stores(url.render_as_string(hide_password=False)):
            pass
    assert refused.value.code is ErrorCode.STORE_UNAVAILABLE
    assert url.password is not None
    assert url.password not in caplog.text
    assert url.password[:-3] not in caplog.text
