"""Neither results nor calls depend on the number of workers or on the order in which answers come in."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from fakes import CatalogRunner, RecordingSink, Scramble, ScriptedProposer, TickingClock, append, rollout, training

from burnish.application.events import Event
from burnish.application.optimizer_ports import ReflectionInput
from burnish.application.result import Failure
from burnish.application.runs import ListCheckpoints
from burnish.domain.config import TrainSkillConfig
from burnish.domain.gate import GateMetric, GateMode
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import Checkpoint, TrainingRun
from burnish.infrastructure.persistence.audit import AuditRecord, InMemoryAuditLog
from burnish.presentation.app import open_app

CONFIG = TrainSkillConfig(
    epochs=3,
    steps_per_epoch=4,
    train_batch_size=6,
    val_batch_size=12,
    gate_metric=GateMetric.MIXED,
    gate_mode=GateMode.TWO_SPLIT,
    patience=None,
    max_error_rate=0.4,
    block_size=3,
    repeats=2,
    eval_test=True,
    seed=5,
)


def by_hash(skill: str, item_id: str) -> Rollout:
    """Scores nobody could guess; one item in twenty has no answer."""
    digest = hashlib.sha256(f"{skill}|{item_id}".encode()).digest()
    if digest[0] < 13:
        raise TimeoutError
    return rollout(item_id, digest[1] / 255, digest[2] / 255)


async def everything(
    workers: int, seed: int
) -> tuple[TrainingRun, list[Event], list[ReflectionInput], list[str], list[Checkpoint], list[AuditRecord]]:
    """All that is left of a run: result, events, what the optimizer read, calls, checkpoints, audit."""
    runner, sink, audit_log = (
        CatalogRunner(by_hash, train=15, val=20, test=5, before=Scramble(seed)),
        RecordingSink(),
        InMemoryAuditLog(),
    )
    proposer = ScriptedProposer(*(append(f"rule {number}", f"other {number}") for number in range(12)))
    async with open_app(
        rollouts=runner, proposer=proposer, sinks=(sink,), audit_log=audit_log, clock=TickingClock(), workers=workers
    ) as app:
        run = (await app.send(training(CONFIG))).value
        checkpoints = (await app.send(ListCheckpoints("run"))).value
    calls = sorted(f"{call.skill} {call.batch}" for call in runner.calls)
    return run, sink.events, proposer.reflections, calls, list(checkpoints), list(audit_log.records)


async def test_one_worker_and_many_leave_the_same_behind() -> None:
    alone = await everything(workers=1, seed=0)
    run, _, _, calls, checkpoints, _ = alone
    assert {record.reason for record in run.steps} >= {"accepted", "gate"}
    assert len(calls) == len(set(calls))
    assert checkpoints
    for workers, seed in ((4, 1), (64, 2), (64, 3)):
        assert await everything(workers=workers, seed=seed) == alone


@pytest.mark.parametrize("fails", ["val/3", "val/1"])
async def test_the_failure_that_is_told_does_not_depend_on_which_came_first(fails: str) -> None:
    def attempt(skill: str, item_id: str) -> float:
        return 2.0 if item_id in {fails, "val/3", "train/0"} else 0.5

    failures: set[Failure | None] = set()
    for workers, seed in ((1, 0), (4, 1), (64, 2), (64, 3)):
        runner = CatalogRunner(attempt, before=Scramble(seed))
        async with open_app(rollouts=runner, proposer=ScriptedProposer(), workers=workers) as app:
            failures.add((await app.send(training(replace(CONFIG, eval_test=False, val_batch_size=4)))).failure)
    (failure,) = failures
    assert failure is not None
    assert (failure.code, failure.fields) == ("skill_training.rollout.invalid_score", (fails,))
