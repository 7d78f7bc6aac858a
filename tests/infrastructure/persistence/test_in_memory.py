"""What only the stores in memory do: keep the best and the last 64 checkpoints of a run."""

from __future__ import annotations

from datetime import UTC, datetime

from burnish.domain.gate import GateAction
from burnish.domain.runs import Checkpoint
from burnish.infrastructure.persistence.in_memory import InMemoryCheckpointStore


def checkpoint(step: int, score: float = 0.5, run_id: str = "r") -> Checkpoint:
    return Checkpoint(
        run_id=run_id,
        skill_id="s",
        step=step,
        epoch=1,
        skill="",
        skill_hash="",
        score=score,
        action=GateAction.REJECT,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


async def kept_after(*checkpoints: Checkpoint) -> list[int]:
    store = InMemoryCheckpointStore()
    for each in checkpoints:
        await store.save(each)
    return [each.step for each in await store.list("r")]


async def test_the_last_sixty_four_are_kept_and_the_best_beside_them() -> None:
    kept = await kept_after(*(checkpoint(step, 0.9 if step == 3 else 0.5) for step in range(1, 101)))
    assert kept == [3, *range(37, 101)]


async def test_a_best_among_the_last_costs_no_place() -> None:
    kept = await kept_after(*(checkpoint(step, 0.9 if step == 99 else 0.5) for step in range(1, 101)))
    assert kept == list(range(37, 101))


async def test_a_former_best_goes_when_there_is_a_better_one() -> None:
    scores = {1: 0.6, 70: 0.7}
    kept = await kept_after(*(checkpoint(step, scores.get(step, 0.5)) for step in range(1, 151)))
    assert kept == [70, *range(87, 151)]


async def test_the_earliest_of_equally_good_ones_is_the_one_beside_the_last() -> None:
    kept = await kept_after(*(checkpoint(step) for step in range(1, 101)))
    assert kept == [1, *range(37, 101)]


async def test_the_limit_is_each_runs_own() -> None:
    others = [checkpoint(step, run_id="other") for step in range(1, 101)]
    kept = await kept_after(*others, *(checkpoint(step) for step in range(1, 65)))
    assert kept == list(range(1, 65))
