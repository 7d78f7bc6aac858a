"""What every driver of the stores promises: runs and their claims, checkpoints, memory. A new driver joins `drivers`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import uuid4

import pytest
from store_drivers import Driver, Stores, drivers

from burnish.application.ports import AuditLog, CheckpointStore, Claim, ClaimOutcome, Journal, KnowledgeMemory, RunStore
from burnish.domain.gate import GateAction
from burnish.domain.rollouts import BatchScore
from burnish.domain.runs import Checkpoint, StepReason, StepRecord, StopReason, TrainingRun
from burnish.domain.runs import ScoresOnTest as SplitScores  # pytest collects what is called Test…

ODD_TEXT = "line\r\nend \u2028 nul \x00 quote ' \" \\ % :name \U0001f642 e\u0301"
IDENTITY = {"skill_id": "s", "config.seed": "1"}


@pytest.fixture
def run_id() -> str:
    """A run nobody else writes to, also on a server that is shared."""
    return f"run-{uuid4().hex}"


def name_of(driver: Driver) -> str:
    return driver.name


@pytest.fixture(params=drivers(), ids=name_of)
async def stores(request: pytest.FixtureRequest, tmp_path: Path, run_id: str) -> AsyncIterator[Stores]:
    driver: Driver = request.param
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(driver.open(tmp_path))
        yield opened
        await opened.runs.delete(run_id)


def checkpoint(run_id: str, step: int, score: float, **changes: object) -> Checkpoint:
    plain = Checkpoint(
        run_id=run_id,
        skill_id="s",
        step=step,
        epoch=1,
        skill=f"skill {step}",
        skill_hash=f"{step:064d}",
        score=score,
        action=GateAction.REJECT,
        created_at=datetime(2026, 1, 1, 12, 30, 15, 123456, tzinfo=UTC),
        memory="",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # by name


def run(run_id: str, *steps: StepRecord, stop: StopReason | None = None, **changes: object) -> TrainingRun:
    plain = TrainingRun(
        run_id=run_id,
        skill_id="s",
        best_skill="best",
        best_score=0.1 + 0.2,
        best_step=1,
        baseline_score=1 / 3,
        selected_score=None,
        final_skill="final",
        steps_executed=len(steps),
        consecutive_rejects=0,
        has_accepted_any=True,
        steps=steps,
        stop_reason=stop,
        seed=2**31 - 1,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # by name


def record(step: int, **changes: object) -> StepRecord:
    plain = StepRecord(step=step, epoch=1, action=GateAction.REJECT, reason=StepReason.GATE)
    return replace(plain, **changes)  # type: ignore[arg-type]  # by name


async def keep(store: RunStore, kept: TrainingRun, *, since: int = 0) -> None:
    """As the loop does it: the records that are new, then the run."""
    for position in range(since, len(kept.steps)):
        await store.append(kept.run_id, position, kept.steps[position])
    await store.save(kept)


async def test_each_store_fits_its_port(stores: Stores) -> None:
    assert isinstance(stores.runs, RunStore)
    assert isinstance(stores.checkpoints, CheckpointStore)
    assert isinstance(stores.memory, KnowledgeMemory)
    assert isinstance(stores.audit_log, AuditLog)
    assert isinstance(stores.journal, Journal)


# --- checkpoints -----------------------------------------------------------------------------------------------------


async def test_a_checkpoint_is_found_by_run_and_step(stores: Stores, run_id: str) -> None:
    store, kept = stores.checkpoints, checkpoint(run_id, 3, 0.1 + 0.2, skill=ODD_TEXT, memory=ODD_TEXT)
    await store.save(kept)
    assert await store.get(run_id, 3) == kept
    assert await store.get(run_id, 4) is None
    assert await store.get(f"{run_id}x", 3) is None


async def test_a_checkpoints_time_keeps_its_moment(stores: Stores, run_id: str) -> None:
    at = datetime(2026, 7, 1, 9, 0, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    await stores.checkpoints.save(checkpoint(run_id, 1, 0.5, created_at=at))
    found = await stores.checkpoints.get(run_id, 1)
    assert found is not None
    assert (found.created_at, found.created_at.utcoffset()) == (at, timedelta(hours=5, minutes=30))


async def test_checkpoints_are_listed_by_step_whatever_the_order_they_came_in(stores: Stores, run_id: str) -> None:
    for step in (10, 9, 2, 1):
        await stores.checkpoints.save(checkpoint(run_id, step, 0.5))
    assert [each.step for each in await stores.checkpoints.list(run_id)] == [1, 2, 9, 10]
    assert list(await stores.checkpoints.list(f"{run_id}x")) == []


async def test_a_second_checkpoint_of_a_step_replaces_the_first(stores: Stores, run_id: str) -> None:
    later = checkpoint(run_id, 1, 0.2, skill="later", action=GateAction.ACCEPT)
    await stores.checkpoints.save(checkpoint(run_id, 1, 0.9))
    await stores.checkpoints.save(later)
    assert list(await stores.checkpoints.list(run_id)) == [later]
    assert await stores.checkpoints.best(run_id) == later


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (4, 3, 2, 1), (3, 1, 4, 2)])
async def test_the_best_checkpoint_is_the_earliest_with_the_highest_score(
    stores: Stores, run_id: str, order: tuple[int, ...]
) -> None:
    scores = {1: 0.2, 2: 0.7, 3: 0.7, 4: 0.1}
    for step in order:
        await stores.checkpoints.save(checkpoint(run_id, step, scores[step]))
    best = await stores.checkpoints.best(run_id)
    assert best is not None
    assert (best.step, best.score) == (2, 0.7)


async def test_scores_a_hair_apart_are_told_apart(stores: Stores, run_id: str) -> None:
    await stores.checkpoints.save(checkpoint(run_id, 1, 0.3))
    await stores.checkpoints.save(checkpoint(run_id, 2, 0.1 + 0.2))
    best = await stores.checkpoints.best(run_id)
    assert best is not None
    assert best.step == 2


async def test_without_a_checkpoint_there_is_no_best(stores: Stores, run_id: str) -> None:
    assert await stores.checkpoints.best(run_id) is None


async def test_the_best_and_the_latest_checkpoints_are_there_after_hundreds(stores: Stores, run_id: str) -> None:
    for step in range(1, 201):
        await stores.checkpoints.save(checkpoint(run_id, step, 0.9 if step == 7 else 0.5))
    best = await stores.checkpoints.best(run_id)
    assert best is not None
    assert best.step == 7
    assert {7, *range(137, 201)} <= {each.step for each in await stores.checkpoints.list(run_id)}


async def test_runs_do_not_see_each_others_checkpoints(stores: Stores, run_id: str) -> None:
    await stores.checkpoints.save(checkpoint(run_id, 1, 0.1))
    await stores.checkpoints.save(checkpoint(f"{run_id}-other", 1, 0.9))
    assert [each.run_id for each in await stores.checkpoints.list(run_id)] == [run_id]
    best = await stores.checkpoints.best(run_id)
    assert best is not None
    assert best.score == 0.1


# --- runs ------------------------------------------------------------------------------------------------------------


async def test_a_run_nobody_knows_is_claimed(stores: Stores, run_id: str) -> None:
    assert await stores.runs.claim(run_id, IDENTITY) == Claim(outcome=ClaimOutcome.CLAIMED)
    await stores.runs.release(run_id)


async def test_a_claimed_run_is_active_until_it_is_released(stores: Stores, run_id: str) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    for identity in (IDENTITY, {"other": "identity"}):
        assert (await stores.runs.claim(run_id, identity)).outcome is ClaimOutcome.ACTIVE
    await stores.runs.release(run_id)
    assert (await stores.runs.claim(run_id, IDENTITY)).outcome is ClaimOutcome.CLAIMED
    await stores.runs.release(run_id)


async def test_a_run_that_is_not_claimed_may_be_released(stores: Stores, run_id: str) -> None:
    await stores.runs.release(run_id)
    assert (await stores.runs.claim(run_id, IDENTITY)).outcome is ClaimOutcome.CLAIMED
    await stores.runs.release(run_id)


async def test_another_identity_is_refused_with_the_names_that_differ(stores: Stores, run_id: str) -> None:
    await stores.runs.claim(run_id, {"a": "1", "b": "2", "c": "3"})
    await stores.runs.release(run_id)
    claim = await stores.runs.claim(run_id, {"a": "1", "c": "4", "d": "5"})
    assert (claim.outcome, claim.differing) == (ClaimOutcome.OTHER_IDENTITY, ("b", "c", "d"))
    assert (await stores.runs.claim(run_id, {"c": "3", "b": "2", "a": "1"})).outcome is ClaimOutcome.CLAIMED
    await stores.runs.release(run_id)


@pytest.mark.parametrize("stop", [StopReason.COMPLETED, StopReason.PATIENCE])
async def test_a_run_that_ended_well_is_handed_out_instead_of_claimed(
    stores: Stores, run_id: str, stop: StopReason
) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    finished = run(run_id, record(1), stop=stop)
    await keep(stores.runs, finished)
    await stores.runs.release(run_id)
    claim = await stores.runs.claim(run_id, IDENTITY)
    assert (claim.outcome, claim.known) == (ClaimOutcome.FINISHED, finished)
    assert (await stores.runs.claim(run_id, IDENTITY)).outcome is ClaimOutcome.FINISHED


@pytest.mark.parametrize(
    "stop", [None, *(stop for stop in StopReason if stop not in {StopReason.COMPLETED, StopReason.PATIENCE})]
)
async def test_a_run_that_did_not_end_well_is_claimed_again_with_what_is_known(
    stores: Stores, run_id: str, stop: StopReason | None
) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    left = run(run_id, record(1), record(2), stop=stop)
    await keep(stores.runs, left)
    await stores.runs.release(run_id)
    claim = await stores.runs.claim(run_id, IDENTITY)
    assert (claim.outcome, claim.known) == (ClaimOutcome.CLAIMED, left)
    await stores.runs.release(run_id)


async def test_a_run_comes_back_as_it_was_saved(stores: Stores, run_id: str) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    score = BatchScore(0.1 + 0.2, 1 / 3, 3, 1)
    full = record(
        1,
        action=GateAction.ACCEPT_NEW_BEST,
        reason=StepReason.ACCEPTED,
        learning_rate=4,
        proposed=5,
        selected=4,
        applied=3,
        failed=1,
        candidate_hard=0.1 + 0.2,
        candidate_soft=1 / 3,
        candidate_score=0.5,
        held_in_score=0.0,
        skill_hash="f" * 64,
        skill_characters=17,
        compared_with=0.25,
    )
    undecided = record(2, action=None, reason=StepReason.INCONCLUSIVE, code="skill_training.rollout.call_failed")
    cut_short, forced = record(3, ceiling=0.125), record(3, reason=StepReason.FORCED, action=GateAction.ACCEPT)
    saved = run(
        run_id,
        full,
        undecided,
        cut_short,
        forced,
        stop=StopReason.COMPLETED,
        best_skill=ODD_TEXT,
        final_skill="",
        memory=ODD_TEXT,
        final_score=0.7,
        promoted_final=True,
        test=SplitScores(initial=score, best=score, final=score),
        code="skill_training.run.inconclusive",
        rollouts_saved=12,
        warnings=("a", "b"),
    )
    await keep(stores.runs, saved)
    assert await stores.runs.get(run_id) == saved
    await stores.runs.release(run_id)


async def test_records_are_added_to_those_that_are_there(stores: Stores, run_id: str) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    for number in range(1, 13):
        await keep(stores.runs, run(run_id, *(record(step) for step in range(1, number + 1))), since=number - 1)
    found = await stores.runs.get(run_id)
    assert found is not None
    assert [each.step for each in found.steps] == list(range(1, 13))
    await stores.runs.release(run_id)


async def test_a_record_that_is_there_already_changes_nothing(stores: Stores, run_id: str) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    kept = run(run_id, record(1), record(2))
    await keep(stores.runs, kept)
    await keep(stores.runs, kept)
    found = await stores.runs.get(run_id)
    assert found == kept
    await stores.runs.release(run_id)


async def test_a_run_that_was_only_claimed_is_not_found(stores: Stores, run_id: str) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    assert await stores.runs.get(run_id) is None
    assert run_id not in [each.run_id for each in await stores.runs.list()]
    await stores.runs.release(run_id)


async def test_runs_are_listed_in_the_order_they_were_first_claimed(stores: Stores, run_id: str) -> None:
    names = [f"{run_id}-{letter}" for letter in "cab"]
    for name in (*names, names[0]):
        await stores.runs.claim(name, IDENTITY)
        await stores.runs.release(name)
    for name in sorted(names):
        await stores.runs.save(run(name))
    assert [each.run_id for each in await stores.runs.list() if each.run_id in names] == names
    for name in names:
        await stores.runs.delete(name)


async def test_a_deleted_run_is_gone_and_may_be_another_one(stores: Stores, run_id: str) -> None:
    await stores.runs.claim(run_id, IDENTITY)
    await keep(stores.runs, run(run_id, record(1), stop=StopReason.COMPLETED))
    await stores.runs.release(run_id)
    await stores.runs.delete(run_id)
    assert await stores.runs.get(run_id) is None
    assert await stores.runs.claim(run_id, {"another": "identity"}) == Claim(outcome=ClaimOutcome.CLAIMED)
    await stores.runs.release(run_id)


# --- memory ----------------------------------------------------------------------------------------------------------


async def test_a_text_is_recalled_under_its_key_only(stores: Stores, run_id: str) -> None:
    key = f"skill-training/meta/{run_id}"
    await stores.memory.remember(key, ODD_TEXT, "kind")
    assert await stores.memory.recall(key) == ODD_TEXT
    for other in (f"{key}/x", key[:-1], key.upper(), f"{key}%"):
        assert await stores.memory.recall(other) is None


async def test_a_later_text_replaces_the_earlier_also_by_an_empty_one(stores: Stores, run_id: str) -> None:
    for text in ("first", "x" * 300_000, ""):
        await stores.memory.remember(run_id, text, "kind")
        assert await stores.memory.recall(run_id) == text
