"""A runner that lists its items and takes several a call: blocks of them, and one entry of the journal a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import CatalogRunner, ScriptedProposer, append, steps, training

from burnish.application.journal_keys import kind_of
from burnish.application.passes import PassRunner
from burnish.application.ports import ItemBlocks, PortError
from burnish.application.result import ErrorCode
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.infrastructure.persistence.in_memory import InMemoryJournal
from burnish.presentation.app import open_app

KEYS = tuple((f"val-{number}", "0") for number in range(5))


class Blocks(CatalogRunner):
    """Answers a batch of the catalog's items; notes which ones were asked together."""

    items_a_call = 2
    contents = ""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[tuple[str, ...]] = []

    def item_fingerprint(self, split: str, item_id: str) -> str:
        return f"{item_id}{self.contents}"

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        self.together.append(batch.item_ids)
        return [Rollout(item, 1.0, 1.0) for item in reversed(batch.item_ids)]


async def test_neighbours_of_a_repeat_are_asked_together() -> None:
    runner = Blocks()
    assert isinstance(runner, ItemBlocks)
    done = await PassRunner(runner, workers=1).ask_items("skill", "val", (*KEYS, ("val-0", "1")), seed=1)
    assert runner.together == [("val-0", "val-1"), ("val-2", "val-3"), ("val-4",), ("val-0",)]
    assert done.keys == (*KEYS, ("val-0", "1"))
    assert [rollout.item_id for rollout in done.rollouts] == [item for item, _ in done.keys]


async def test_block_without_an_answer_is_missing_data() -> None:
    class Failing(Blocks):
        async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
            if "val-2" in batch.item_ids:
                raise ConnectionError
            return await super().run(skill, batch)

    done = await PassRunner(Failing(), workers=4).ask_items("skill", "val", KEYS, seed=1)
    assert [rollout.error is None for rollout in done.rollouts] == [True, True, False, False, True]
    assert done.keys == KEYS


async def test_block_of_other_items_is_refused() -> None:
    class Lazy(Blocks):
        async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
            return (await super().run(skill, batch))[:1]

    with pytest.raises(PortError) as caught:
        await PassRunner(Lazy(), workers=1).ask_items("skill", "val", KEYS, seed=1)
    assert caught.value.code is ErrorCode.ROLLOUT_WRONG_ITEMS


async def test_run_keeps_an_entry_a_block_and_asks_none_twice() -> None:
    journal = InMemoryJournal()
    config = replace(steps(2), val_batch_size=4, block_size=4)
    for runner in (first := Blocks(), again := Blocks()):
        proposer = ScriptedProposer(append("score=0.9"))
        async with open_app(rollouts=runner, proposer=proposer, journal=journal) as app:
            assert (await app.send(training(config))).is_ok
    assert again.together == []
    entries = await journal.entries("run")
    assert [kind_of(entry.key) for entry in entries].count("batch") == len(first.together)


async def test_changed_item_is_asked_again() -> None:
    journal = InMemoryJournal()
    asked: list[int] = []
    for contents in ("", "", "changed"):
        runner = Blocks()
        runner.contents = contents
        async with open_app(rollouts=runner, proposer=ScriptedProposer(), journal=journal) as app:
            await app.send(training())
        asked.append(len(runner.together))
    assert asked[0] == asked[2] > asked[1] == 0
