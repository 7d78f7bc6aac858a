"""Which pairs of rollouts the slow update's guidance is written from."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import STEPS, CatalogRunner, ScriptedGuidance, ScriptedProposer, append, training

from burnish.domain.config import PairPolicy, TrainSkillConfig
from burnish.presentation.app import open_app

TRAIN = 30


def scored(skill: str, item_id: str) -> float:
    """Of the train items every third is solved by the second epoch's skill only, every fifth by the first one's only."""
    if not item_id.startswith("train"):
        return 0.5 + 0.1 * skill.count("new")
    number, is_second = int(item_id.rpartition("/")[2]), skill.count("new") > 1
    if number % 3 == 0:
        return float(is_second)
    if number % 5 == 0:
        return float(not is_second)
    return float(number % 2)


CONFIG = replace(
    STEPS, epochs=2, steps_per_epoch=1, use_slow_update=True, slow_update_samples=6, train_batch_size=4, seed=3
)


async def compared(config: TrainSkillConfig) -> tuple[list[str], list[int], int]:
    """The items guidance was written from, the sizes of the passes behind it, and how many pairs had changed."""
    runner = CatalogRunner(scored, train=TRAIN)
    writer = ScriptedGuidance("Be new.")
    answers = ScriptedProposer(*[append("new") for _ in range(9)])
    async with open_app(rollouts=runner, proposer=answers, guidance_writer=writer) as app:
        assert (await app.send(training(config))).is_ok
    (comparison,) = writer.comparisons
    assert [r.item_id for r in comparison.prior_rollouts] == [r.item_id for r in comparison.current_rollouts]
    changed = comparison.analysis.improved + comparison.analysis.regressed
    asked = [len(batch.item_ids) for batch in runner.batches("train", repeat="slow/2")]
    return [rollout.item_id for rollout in comparison.prior_rollouts], asked, changed


async def test_all_pairs_of_the_sample_are_looked_at_by_default() -> None:
    items, asked, _ = await compared(CONFIG)
    assert len(items) == len(set(items)) == 6
    assert sum(asked) == 2 * 6


async def test_unchanged_pairs_are_those_of_the_sample_that_ended_alike() -> None:
    items, asked, changed = await compared(replace(CONFIG, longitudinal_pair_policy=PairPolicy.UNCHANGED))
    assert changed == 0
    assert 0 < len(items) < 6
    assert sum(asked) == 2 * 6


async def test_changed_pairs_are_topped_up_from_further_items_until_there_are_enough() -> None:
    items, asked, changed = await compared(replace(CONFIG, longitudinal_pair_policy=PairPolicy.CHANGED))
    assert changed == len(items) == len(set(items)) == 6
    assert 2 * 6 < sum(asked) < 2 * TRAIN


async def test_changed_pairs_end_with_the_items() -> None:
    config = replace(CONFIG, longitudinal_pair_policy=PairPolicy.CHANGED, slow_update_samples=20)
    items, asked, changed = await compared(config)
    assert changed == len(items) < 20
    assert sum(asked) == 2 * TRAIN


@pytest.mark.parametrize("policy", PairPolicy)
async def test_the_pairs_do_not_depend_on_who_answers_first(policy: PairPolicy) -> None:
    config = replace(CONFIG, longitudinal_pair_policy=policy)
    assert await compared(config) == await compared(config)
