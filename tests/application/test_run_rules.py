"""What decided nothing: which steps of a failed run are asked about again, and when a pass has too few answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import STEPS, CatalogRunner, ScriptedProposer, append, training

from burnish.application.result import ErrorCode
from burnish.application.run_rules import first_undecided_step
from burnish.domain.gate import GateAction
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import StepReason, StepRecord, StopReason, TrainingRun
from burnish.presentation.app import open_app

LETTERS = {
    "a": StepReason.ACCEPTED,
    "g": StepReason.GATE,
    "n": StepReason.NO_PATCHES,
    "i": StepReason.INCONCLUSIVE,
    "o": StepReason.OPTIMIZER_FAILED,
    "f": StepReason.FORCED,
}


def ended(
    reasons: str, stop: StopReason | None = StopReason.FAILED, code: ErrorCode | None = ErrorCode.RUN_INCONCLUSIVE
) -> TrainingRun:
    """A run with a record a letter; one in brackets is a slow update's, after the step before it."""
    records: list[StepRecord] = []
    step, is_slow = 0, False
    for letter in reasons:
        if letter in "()":
            is_slow = letter == "("
            continue
        step += not is_slow
        records.append(StepRecord(step, 1, GateAction.REJECT, LETTERS[letter]))
    return TrainingRun(
        run_id="run",
        skill_id="skill",
        best_skill="",
        best_score=0.0,
        best_step=0,
        baseline_score=None,
        selected_score=None,
        final_skill="",
        steps_executed=step,
        consecutive_rejects=0,
        has_accepted_any=False,
        steps=tuple(records),
        stop_reason=stop,
        code=None if code is None else code.value,
    )


@pytest.mark.parametrize(
    ("reasons", "first"),
    [
        ("agiii", 3),
        ("aoo", 2),
        ("gioio", 2),
        ("iii", 1),
        ("iiia", None),
        ("ag", None),
        ("ag(i)", None),
        ("ag(i)iii", 3),
        ("agi(f)ii", 3),
        ("agi(i)ii", 3),
        ("ioa(f)io", 4),
    ],
)
def test_the_trailing_steps_that_decided_nothing_are(reasons: str, first: int | None) -> None:
    assert first_undecided_step(ended(reasons)) == first


@pytest.mark.parametrize("stop", [None, *StopReason])
def test_only_those_of_a_run_that_ended_in_a_failure(stop: StopReason | None) -> None:
    expected = 2 if stop in {StopReason.FAILED, StopReason.OPTIMIZER_FAILED} else None
    assert first_undecided_step(ended("aii", stop)) == expected


@pytest.mark.parametrize(
    ("code", "first"),
    [
        (ErrorCode.RUN_INCONCLUSIVE, 0),
        (ErrorCode.RUN_NOTHING_WORKED, 0),
        (ErrorCode.STORE_UNAVAILABLE, None),
        (ErrorCode.ROLLOUT_INVALID_SCORE, None),
        (None, None),
    ],
)
def test_without_a_step_it_is_the_baseline_if_that_is_what_failed(code: ErrorCode | None, first: int | None) -> None:
    assert first_undecided_step(ended("", code=code)) == first


async def test_how_a_pass_is_cut_into_blocks_decides_nothing_about_the_share_of_errors() -> None:
    """0.29 of 100 items is 28.999… in floating point: 29 missing ones are as many as may be."""
    config = replace(STEPS, val_batch_size=100, max_error_rate=0.29)

    def attempt(skill: str, item_id: str) -> Rollout:
        is_missing = item_id.startswith("val") and int(item_id[4:]) < 29 and "better" in skill
        return Rollout(item_id, 0.9 if "better" in skill else 0.1, 0.5, error="model.timeout" if is_missing else None)

    for block_size in (1, 50, 100):
        runner = CatalogRunner(attempt, val=100)
        async with open_app(rollouts=runner, proposer=ScriptedProposer(append("better"))) as app:
            run = (await app.send(training(replace(config, block_size=block_size)))).value
        assert [record.reason for record in run.steps] == [StepReason.ACCEPTED]
