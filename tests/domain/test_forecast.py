"""How many calls a run is expected to make, where it can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burnish.domain.config import PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.forecast import ItemCounts, RolloutStage, forecast_calls
from burnish.domain.gate import GateMode
from burnish.domain.ranges import Range, total

ITEMS = ItemCounts(train=40, val=20, test=30)
PLAIN = TrainSkillConfig(
    epochs=1,
    steps_per_epoch=4,
    train_batch_size=8,
    val_batch_size=20,
    patience=None,
    use_slow_update=False,
    use_meta_skill=False,
    promote_final=False,
    seed=7,
)


def stages(config: TrainSkillConfig, items: ItemCounts = ITEMS) -> dict[str, Range[int]]:
    """The rollouts of each stage that can have any."""
    forecast = forecast_calls(config, items)
    return {stage.value: each.rollouts for stage, each in forecast.stages.items() if each.rollouts.high}


def test_a_plain_run_has_baseline_train_and_candidates() -> None:
    forecast = forecast_calls(PLAIN, ITEMS, asks=1, by_model=False)
    assert stages(PLAIN) == {"baseline": Range(20, 20), "train": Range(32, 32), "candidates": Range(0, 80)}
    assert forecast.rollouts == Range(52, 132)
    assert forecast.optimizer_calls == Range(4, 8)  # one analyst a step, or one for failures and one for successes
    assert forecast.steps == Range(4, 4)


def test_without_a_baseline_nothing_is_scored_first() -> None:
    assert "baseline" not in stages(replace(PLAIN, evaluate_baseline=False))


def test_repeats_multiply_validation_only() -> None:
    assert stages(replace(PLAIN, repeats=3)) == {
        "baseline": Range(60, 60),
        "train": Range(32, 32),
        "candidates": Range(0, 240),
    }


@pytest.mark.parametrize(("batch", "items", "rollouts"), [(8, 40, 32), (8, 5, 20), (100, 40, 160)])
def test_a_batch_has_no_item_twice(batch: int, items: int, rollouts: int) -> None:
    forecast = stages(replace(PLAIN, train_batch_size=batch), replace(ITEMS, train=items))
    assert forecast["train"] == Range(rollouts, rollouts)


def test_the_selection_set_is_a_sample() -> None:
    assert stages(replace(PLAIN, val_batch_size=7))["baseline"] == Range(7, 7)
    assert stages(replace(PLAIN, val_batch_size=70))["baseline"] == Range(20, 20)


def test_an_unreadable_answer_is_asked_for_once_more() -> None:
    assert forecast_calls(PLAIN, ITEMS, by_model=False).optimizer_calls == Range(4, 16)


def test_where_only_failures_are_shown_there_may_be_none() -> None:
    config = replace(PLAIN, failure_only=True)
    assert forecast_calls(config, ITEMS, by_model=False).optimizer_calls == Range(0, 8)


def test_slow_updates_compare_from_the_second_epoch_on() -> None:
    forecast = stages(replace(PLAIN, epochs=3, use_slow_update=True, slow_update_samples=10))
    assert forecast["slow_update"] == Range(20, 40)
    assert forecast["rescore"] == Range(0, 40)
    assert "slow_update" not in stages(replace(PLAIN, use_slow_update=True))


def test_a_sample_for_slow_updates_is_no_larger_than_the_split() -> None:
    forecast = stages(replace(PLAIN, epochs=2, use_slow_update=True, slow_update_samples=100))
    assert forecast["slow_update"] == Range(40, 80)


def test_two_splits_try_candidates_on_the_train_items_too() -> None:
    assert stages(replace(PLAIN, gate_mode=GateMode.TWO_SPLIT))["held_in"] == Range(0, 32)
    gated = replace(PLAIN, epochs=2, gate_mode=GateMode.TWO_SPLIT, use_slow_update=True, slow_update_gate=True)
    assert stages(gated)["held_in"] == Range(0, 72)


@pytest.mark.parametrize(
    ("changes", "rollouts"),
    [
        ({}, None),
        ({"gate_mode": GateMode.TWO_SPLIT}, Range(0, 40)),
        ({"use_slow_update": True}, None),
        ({"use_slow_update": True, "epochs": 2}, Range(0, 40)),
        ({"use_slow_update": True, "epochs": 2, "slow_update_gate": True}, None),
        ({"gate_mode": GateMode.TWO_SPLIT, "repeats": 3}, Range(0, 40)),
    ],
)
def test_the_final_skill_is_scored_afresh_where_it_can_differ_from_the_best(
    changes: dict[str, object], rollouts: Range[int] | None
) -> None:
    config = replace(PLAIN, promote_final=True, **changes)  # type: ignore[arg-type]  # any field of the config
    assert stages(config).get("final") == rollouts


@pytest.mark.parametrize(
    ("changes", "high"),
    [
        ({}, 60),
        ({"use_slow_update": True, "epochs": 2}, 90),
        ({"gate_mode": GateMode.TWO_SPLIT}, 90),
        ({"gate_mode": GateMode.TWO_SPLIT, "steps_per_epoch": 1}, 60),
    ],
)
def test_the_test_split_is_scored_once_for_each_different_text(changes: dict[str, object], high: int) -> None:
    config = replace(PLAIN, eval_test=True, **changes)  # type: ignore[arg-type]  # any field of the config
    assert stages(config)["test"] == Range(30, high)


@pytest.mark.parametrize(
    ("patience", "steps", "slow_updates"),
    [(None, 12, 2), (13, 12, 2), (12, 12, 1), (8, 8, 0), (9, 9, 1), (1, 1, 0)],
)
def test_patience_may_end_a_run_early(patience: int | None, steps: int, slow_updates: int) -> None:
    forecast = forecast_calls(replace(PLAIN, epochs=3, patience=patience, use_slow_update=True), ITEMS)
    assert forecast.steps == Range(steps, 12)
    assert forecast.slow_updates == Range(slow_updates, 2)
    assert forecast.stages[RolloutStage.TRAIN].rollouts == Range(8 * steps, 96)


def test_blocks_are_counted_for_the_time() -> None:
    forecast = forecast_calls(replace(PLAIN, repeats=2, block_size=16), ITEMS)
    assert forecast.stages[RolloutStage.BASELINE].waits == Range(4, 4)
    assert forecast.stages[RolloutStage.TRAIN].waits == Range(4, 4)


def test_ranges_add_up() -> None:
    assert total([Range(1, 2), Range(10, 20)]) == Range(11, 22)
    assert total([]) == Range(0, 0)
    assert 2 in Range(1, 2)
    assert 3 not in Range(1, 2)


def test_a_run_of_any_length_is_forecast() -> None:
    forecast = forecast_calls(replace(PLAIN, epochs=10**9, steps_per_epoch=10**9, use_slow_update=True), ITEMS)
    assert forecast.steps == Range(10**18, 10**18)


# --- the optimizer's calls -------------------------------------------------------------------------------------------


def optimizer(config: TrainSkillConfig, *, asks: int = 1, by_model: bool = True) -> dict[str, tuple[int, int]]:
    """The calls of each of the optimizer's roles that can have any."""
    calls = forecast_calls(config, ITEMS, asks=asks, by_model=by_model).optimizer
    return {stage.value: (each.low, each.high) for stage, each in calls.items() if each.high}


ONE_STEP = replace(PLAIN, steps_per_epoch=1)


@pytest.mark.parametrize(
    ("batch", "size", "analysts"),
    [(8, 8, (1, 2)), (9, 8, (2, 2)), (10, 8, (2, 3)), (1, 8, (1, 1)), (8, 1, (8, 8)), (8, 3, (3, 4)), (5, 2, (3, 3))],
)
def test_analysts_read_failures_and_successes_apart(batch: int, size: int, analysts: tuple[int, int]) -> None:
    config = replace(ONE_STEP, train_batch_size=batch, minibatch_size=size)
    assert optimizer(config, by_model=False)["reflect"] == analysts
    seen = {
        -(-failures // size) + -(-(batch - failures) // size) for failures in range(batch + 1)
    }  # however the rollouts fall
    assert (min(seen), max(seen)) == analysts


@pytest.mark.parametrize(("analysts", "group", "merges"), [(2, 2, 1), (3, 2, 2), (8, 8, 3), (9, 8, 3), (4, 2, 3)])
def test_merges_are_trees_on_both_sides_and_a_last_one(analysts: int, group: int, merges: int) -> None:
    config = replace(ONE_STEP, train_batch_size=analysts, minibatch_size=1, merge_batch_size=group)
    assert optimizer(config)["merge"] == (0, merges)


def test_accumulated_batches_are_one_step_s_rollouts() -> None:
    config = replace(ONE_STEP, accumulation=3, minibatch_size=1)
    assert stages(config)["train"] == Range(24, 24)
    assert optimizer(config)["reflect"] == (24, 24)


@pytest.mark.parametrize(
    ("changes", "roles"),
    [
        ({}, {"reflect", "merge", "rank"}),
        ({"lr_control_mode": RateControl.AUTONOMOUS}, {"reflect", "merge", "rank", "rate"}),
        ({"lr_control_mode": RateControl.NONE}, {"reflect", "merge"}),
        ({"update_mode": UpdateMode.REWRITE_FROM_SUGGESTIONS}, {"reflect", "merge", "rank", "rewrite"}),
        ({"update_mode": UpdateMode.FULL_REWRITE_MINIBATCH}, {"reflect", "merge"}),
        ({"eval_test": True, "one_shot_baseline": True}, {"reflect", "merge", "rank", "one_shot"}),
        (
            {"epochs": 2, "use_slow_update": True, "use_meta_skill": True},
            {"reflect", "merge", "rank", "guidance", "memory"},
        ),
    ],
)
def test_each_role_is_counted_where_it_has_work(changes: dict[str, object], roles: set[str]) -> None:
    assert set(optimizer(replace(ONE_STEP, **changes))) == roles  # type: ignore[arg-type]  # any field of the config


def test_the_ends_of_epochs_are_counted() -> None:
    config = replace(PLAIN, epochs=3, use_slow_update=True, use_meta_skill=True)
    counted = optimizer(config, asks=2)
    assert (counted["guidance"], counted["memory"]) == ((2, 4), (3, 6))
    changed = optimizer(replace(config, longitudinal_pair_policy=PairPolicy.CHANGED))
    assert changed["guidance"] == (0, 2)
    assert optimizer(replace(config, patience=5))["memory"] == (1, 3)


def test_only_changes_may_take_all_train_items() -> None:
    config = replace(PLAIN, epochs=2, use_slow_update=True, slow_update_samples=10)
    changed = stages(replace(config, longitudinal_pair_policy=PairPolicy.CHANGED))
    assert changed["slow_update"] == Range(0, 80)


def test_a_one_shot_rewrite_is_scored_too() -> None:
    config = replace(PLAIN, eval_test=True)
    assert stages(replace(config, one_shot_baseline=True))["test"].high == stages(config)["test"].high + 30
