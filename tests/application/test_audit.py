"""Every command leaves an audit entry: who, what, when, outcome, a digest; never its text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fakes import (
    START,
    STEPS,
    Barrier,
    CatalogRunner,
    FailingAuditLog,
    RaisingProposer,
    ScriptedProposer,
    Telescope,
    append,
    steps,
    training,
)

from burnish.application.evaluate_skill import EvaluateSkill
from burnish.application.gate_candidate_skill import GateCandidateSkill
from burnish.application.ports import AuditEntry
from burnish.application.reflect_on_failures import ReflectOnFailures
from burnish.application.runs import GetCheckpoint, GetRun, ListCheckpoints, ListRuns
from burnish.domain.gate import GateEvaluation
from burnish.domain.rollouts import Rollout
from burnish.infrastructure.persistence.audit import InMemoryAuditLog, verify
from burnish.presentation.app import open_app

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
EPOCHS = replace(STEPS, epochs=2, use_slow_update=True, use_meta_skill=True)


def entries(audit_log: InMemoryAuditLog) -> list[AuditEntry]:
    return [record.entry for record in audit_log.records]


def outcomes(audit_log: InMemoryAuditLog) -> list[tuple[str, str, str]]:
    return [(entry.action, entry.subject, entry.outcome) for entry in entries(audit_log)]


async def test_an_entry_says_who_did_what_when_to_which_run() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(
        rollouts=CatalogRunner(), proposer=ScriptedProposer(), audit_log=audit_log, clock=lambda: NOW, actor="ada"
    ) as app:
        await app.send(training(run_id="r-17"))
    (entry,) = entries(audit_log)
    assert replace(entry, digest="") == AuditEntry(
        at=NOW, actor="ada", action="TrainSkill", subject="r-17", outcome="ok", digest=""
    )
    assert len(entry.digest) == 64


async def test_commands_of_a_run_are_audited_before_the_run_itself() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), audit_log=audit_log) as app:
        await app.send(training(EPOCHS))
    assert [action for action, _, _ in outcomes(audit_log)] == [
        "MetaSkillUpdate",
        "SlowUpdate",
        "MetaSkillUpdate",
        "TrainSkill",
    ]
    assert {(subject, outcome) for _, subject, outcome in outcomes(audit_log)} == {("run", "ok")}


async def test_refused_and_failed_commands_are_audited_with_their_code() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(audit_log=audit_log) as app:
        await app.send(training(run_id="refused", config=replace(STEPS, epochs=0)))
        await app.send(training(run_id="failed"))
        await app.send(EvaluateSkill(skill="", split="val"))
        await app.send(GateCandidateSkill(GateEvaluation("", 0.0, 0.0, "", 0.0, "", 0.0, 0, 0)))
        await app.send(ReflectOnFailures(current_skill="s", rollouts=(Rollout("a", 0.0, 0.0),)))
    assert outcomes(audit_log) == [
        ("TrainSkill", "refused", "request.invalid"),
        ("TrainSkill", "failed", "skill_training.rollout.not_configured"),
        ("EvaluateSkill", "", "skill_training.rollout.not_configured"),
        ("GateCandidateSkill", "", "ok"),
        ("ReflectOnFailures", "", "skill_training.reflect.not_configured"),
    ]


async def test_a_command_refused_for_text_no_encoding_can_hold_is_audited_too() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(audit_log=audit_log) as app:
        await app.send(training(initial_skill="\ud800"))
        await app.send(training(initial_skill="\ud801"))
    first, second = entries(audit_log)
    assert first.outcome == second.outcome == "request.invalid"
    assert first.digest != second.digest


async def test_text_in_the_place_of_a_run_id_is_not_kept() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(audit_log=audit_log) as app:
        await app.send(training(run_id="password=PLANTED hunter2"))
    assert [entry.subject for entry in entries(audit_log)] == [""]
    assert "PLANTED" not in repr(audit_log.records)


async def test_a_cancelled_command_is_audited_as_aborted() -> None:
    audit_log, barrier = InMemoryAuditLog(), Barrier()
    async with open_app(
        rollouts=CatalogRunner(before=barrier), proposer=ScriptedProposer(), audit_log=audit_log
    ) as app:
        task = asyncio.create_task(app.send(training()))
        await barrier.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert outcomes(audit_log) == [("TrainSkill", "run", "aborted")]


async def test_queries_are_not_audited() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(audit_log=audit_log) as app:
        await app.send(GetRun("a"))
        await app.send(GetRun("not an id"))
        await app.send(GetCheckpoint("a"))
        await app.send(ListCheckpoints("a"))
        await app.send(ListRuns())
    assert audit_log.records == ()


@pytest.mark.parametrize("error", [OSError("disk full"), asyncio.CancelledError(), KeyError("x")])
async def test_an_audit_log_that_fails_changes_no_answer_and_is_counted(
    error: BaseException, telescope: Telescope, caplog: pytest.LogCaptureFixture
) -> None:
    proposer = ScriptedProposer(append("score=0.6"))
    async with open_app(
        rollouts=CatalogRunner(), proposer=proposer, audit_log=FailingAuditLog(error), container=telescope.container
    ) as app:
        trained = await app.send(training())
        refused = await app.send(training(run_id=""))
    assert trained.value.best_score == 0.6
    assert refused.failure is not None
    assert refused.failure.fields == ("run_id",)
    assert telescope.sums("burnish.audit.write_failures") == {(): 2}
    assert caplog.text.count("audit.write_failed") == 2


async def test_a_clock_that_fails_changes_no_answer_either(telescope: Telescope) -> None:
    def broken() -> datetime:
        raise OSError("no clock")

    async with open_app(clock=broken, container=telescope.container) as app:
        result = await app.send(GateCandidateSkill(GateEvaluation("", 0.5, 0.5, "", 0.0, "", 0.0, 0, 0)))
    assert result.is_ok
    assert telescope.sums("burnish.audit.write_failures") == {(): 1}


async def test_the_texts_of_a_run_are_in_no_entry() -> None:
    audit_log = InMemoryAuditLog()
    proposer = ScriptedProposer(append("PLANTED score=0.6"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, audit_log=audit_log) as app:
        result = await app.send(training(EPOCHS, initial_skill=f"{START} PLANTED"))
    assert "PLANTED" in result.value.best_skill
    assert "PLANTED" not in repr(audit_log.records)


async def test_the_digest_tells_equal_commands_from_others() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(
        rollouts=CatalogRunner(), proposer=RaisingProposer(RuntimeError("down")), audit_log=audit_log
    ) as app:
        for skill in ("one", "one", "two"):
            await app.send(training(steps(1, patience=1), initial_skill=skill))
    first, again, other = (entry.digest for entry in entries(audit_log))
    assert first == again != other


async def test_concurrent_commands_leave_an_unbroken_chain() -> None:
    audit_log = InMemoryAuditLog()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), audit_log=audit_log) as app:
        await asyncio.gather(*(app.send(training(EPOCHS, run_id=f"r{number}")) for number in range(10)))
    assert len(audit_log.records) == 40
    assert verify(audit_log.records, audit_log.anchor) is None
