"""A candidate's pass ends early when it can no longer pass the gate, which saves calls and changes no decision."""

from __future__ import annotations

from dataclasses import replace

from fakes import STEPS, CatalogRunner, ScriptedProposer, append, by_table, rollout, training
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.gate import GateAction, GateMetric, GateMode
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import StepReason, TrainingRun
from burnish.presentation.app import open_app

VAL = 6
BLOCKS = replace(STEPS, val_batch_size=VAL, block_size=2)
Table = dict[tuple[str, str], float]


def table_of(*rows: list[float]) -> Table:
    """Validation scores of v0, v1, …, a row each, an item after another; train items are all half solved."""
    scores = {
        (f"v{version}", f"val/{item}"): score for version, row in enumerate(rows) for item, score in enumerate(row)
    }
    return scores | {(f"v{version}", f"train/{item}"): 0.5 for version in range(len(rows)) for item in range(4)}


async def trained(runner: CatalogRunner, versions: int, **changes: object) -> TrainingRun:
    config = replace(BLOCKS, steps_per_epoch=versions, **changes)  # type: ignore[arg-type]  # by name
    proposer = ScriptedProposer(*(append(f"v{version}") for version in range(1, versions + 1)))
    async with open_app(rollouts=runner, proposer=proposer) as app:
        return (await app.send(training(config, initial_skill="v0"))).value


async def test_a_hopeless_candidate_is_given_up_after_the_block_that_shows_it() -> None:
    table = table_of([1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 0, 0, 0, 1, 1])
    runner = CatalogRunner(by_table(table), val=VAL)
    run = await trained(runner, 2)
    tie, worse = run.steps
    for record in (tie, worse):
        assert (record.action, record.reason, record.candidate_score) == (GateAction.REJECT, StepReason.GATE, None)
        assert (record.candidate_hard, record.candidate_soft, record.compared_with) == (None, None, 4 / 6)
    assert (tie.ceiling, worse.ceiling) == (4 / 6, 3 / 6)
    asked = {skill: len(runner.asked(skill, "val")) for skill in runner.skills("val")}
    assert list(asked.values()) == [6, 2, 4]
    assert run.rollouts_saved == 6


async def test_a_block_that_began_is_finished() -> None:
    table = table_of([1] * VAL, [0] * VAL)
    runner = CatalogRunner(by_table(table), val=VAL)
    await trained(runner, 1, block_size=4)
    assert [len(runner.asked(skill, "val")) for skill in runner.skills("val")] == [6, 4]


async def test_a_candidate_that_still_can_pass_is_scored_to_the_end() -> None:
    table = table_of([1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1])
    runner = CatalogRunner(by_table(table), val=VAL)
    run = await trained(runner, 1)
    assert (run.steps[0].action, run.steps[0].candidate_score, run.steps[0].ceiling) == ("accept_new_best", 4 / 6, None)


async def test_the_initial_skill_is_scored_to_the_end_whatever_it_scores() -> None:
    runner = CatalogRunner(by_table(table_of([0] * VAL, [0] * VAL)), val=VAL)
    await trained(runner, 1, block_size=1)
    assert len(runner.asked("v0", "val")) == VAL


async def test_repeats_count_as_what_is_still_to_come() -> None:
    table = table_of([1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1])
    runner = CatalogRunner(by_table(table), val=VAL)
    run = await trained(runner, 1, repeats=2)
    candidate = runner.skills("val")[1]
    assert runner.asked(candidate, "val", repeat="0") == [f"val/{item}" for item in range(6)]
    assert runner.asked(candidate, "val", repeat="1") == [f"val/{item}" for item in range(4)]
    assert (run.steps[0].action, run.steps[0].ceiling) == (GateAction.REJECT, 3 / 12)


async def test_in_two_split_mode_a_tie_on_validation_is_not_hopeless() -> None:
    def attempt(skill: str, item_id: str) -> Rollout:
        if item_id.startswith("train"):
            return rollout(item_id, 1.0 if "v1" in skill else 0.5)
        return rollout(item_id, 0.5)

    runner = CatalogRunner(attempt, val=VAL)
    run = await trained(runner, 1, gate_mode=GateMode.TWO_SPLIT, block_size=1)
    assert run.steps[0].action is GateAction.ACCEPT


SCORES = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])
PAIRS = st.tuples(SCORES, SCORES)
ROWS = st.lists(st.lists(PAIRS, min_size=VAL, max_size=VAL), min_size=3, max_size=4)
MISSING = st.sets(st.tuples(st.integers(0, 3), st.integers(0, VAL - 1)), max_size=6)
ANYTHING = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def scored_by(rows: list[list[tuple[float, float]]], missing: set[tuple[int, int]]) -> CatalogRunner:
    def attempt(skill: str, item_id: str) -> Rollout:
        version, item = int(skill.rpartition("v")[2]), int(item_id.partition("/")[2])
        error = "x" if (version, item) in missing and item_id.startswith("val") else None
        return rollout(item_id, *rows[version][item], error=error)

    return CatalogRunner(attempt, val=VAL)


@ANYTHING
@given(metric=st.sampled_from(GateMetric), mode=st.sampled_from(GateMode), rows=ROWS)
async def test_stopping_early_changes_no_decision(
    metric: GateMetric, mode: GateMode, rows: list[list[tuple[float, float]]]
) -> None:
    careful, *hasty = [
        await trained(
            scored_by(rows, set()), len(rows) - 1, block_size=size, gate_metric=metric, gate_mode=mode, mixed_weight=0.3
        )
        for size in (1000, 1, 4)
    ]
    assert all(record.ceiling is None for record in careful.steps)
    for run in hasty:
        assert [record.action for record in run.steps] == [record.action for record in careful.steps]
        assert run.best_skill == careful.best_skill
        assert (run.best_score, run.final_skill) == (careful.best_score, careful.final_skill)


@ANYTHING
@given(metric=st.sampled_from(GateMetric), rows=ROWS, missing=MISSING)
async def test_stopping_early_accepts_the_same_candidates_also_with_missing_items(
    metric: GateMetric, rows: list[list[tuple[float, float]]], missing: set[tuple[int, int]]
) -> None:
    careful, hasty = [
        await trained(
            scored_by(rows, missing - {(0, 0)}), len(rows) - 1, block_size=size, gate_metric=metric, max_error_rate=1.0
        )
        for size in (1000, 1)
    ]
    assert accepted_in(hasty) == accepted_in(careful)
    assert hasty.final_skill == careful.final_skill


def accepted_in(run: TrainingRun) -> list[tuple[int, GateAction | None]]:
    kept = {GateAction.ACCEPT, GateAction.ACCEPT_NEW_BEST}
    return [(record.step, record.action) for record in run.steps if record.action in kept]
