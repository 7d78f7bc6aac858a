"""Faults of wiring are warned of, and warnings change no result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fakes import STEPS, CatalogRunner, ScriptedProposer, append, training

from burnish.application.detectors import Detectors, RunWarning
from burnish.application.passes import Pass
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import TrainingRun
from burnish.presentation.app import open_app

ITEMS = 8


def a_pass(
    predict: Callable[[int], str], score: Callable[[int], float], *, items: int = ITEMS, missing: int = 0
) -> Pass:
    """A pass over the first items; the first `missing` ones have no answer."""
    keys = tuple((f"val/{number}", "0") for number in range(items))
    rollouts = tuple(
        Rollout(
            item, score(number), 0.0, prediction=predict(number), error="model.timeout" if number < missing else None
        )
        for number, (item, _) in enumerate(keys)
    )
    return Pass(keys=keys, rollouts=rollouts)


def changing(skill: str) -> Pass:
    """What a skill that reaches the prompt leads to."""
    return a_pass(lambda number: f"{skill} {number}", lambda number: number % 2)


def found(*looks: tuple[str, Pass]) -> tuple[str, ...]:
    detectors = Detectors()
    for skill, done in looks:
        detectors.look_at(skill, done)
    return detectors.found


def test_a_healthy_run_has_no_warning() -> None:
    assert found(*((skill, changing(skill)) for skill in "abcde")) == ()
    assert found() == ()


# --- the same candidate again ----------------------------------------------------------------------------------------


def test_a_text_that_was_scored_before_is_warned_of() -> None:
    assert found(("a", changing("a")), ("b", changing("b")), ("a", changing("a"))) == ("repeated_candidate",)


def test_a_text_that_differs_in_one_sign_is_another() -> None:
    assert found(("a", changing("a")), ("a ", changing("b"))) == ()


# --- a skill that does not reach the prompt --------------------------------------------------------------------------


def test_the_same_predictions_for_different_skills_are_warned_of() -> None:
    same = a_pass(str, lambda number: number % 2)
    assert found(("a", same), ("b", same), ("c", same)) == ("skill_has_no_effect",)


def test_two_skills_are_too_few_to_say_that_a_skill_has_no_effect() -> None:
    same = a_pass(str, lambda number: number % 2)
    assert found(("a", same), ("b", same)) == ()


def test_few_items_are_too_few_to_say_that_a_skill_has_no_effect() -> None:
    same = a_pass(str, lambda number: number % 2, items=3)
    assert found(("a", same), ("b", same), ("c", same)) == ()


def test_one_prediction_that_differs_shows_that_a_skill_has_an_effect() -> None:
    same = a_pass(str, lambda number: number % 2)
    other = a_pass(lambda number: str(number) if number else "other", lambda number: number % 2)
    assert found(("a", same), ("b", other), ("c", same), ("d", same)) == ()


def test_a_runner_that_tells_no_predictions_is_not_blamed() -> None:
    silent = a_pass(lambda number: "", lambda number: number % 2)
    assert found(("a", silent), ("b", silent), ("c", silent)) == ()


def test_answers_that_stayed_away_say_nothing_about_an_effect() -> None:
    same = a_pass(str, lambda number: number % 2)
    lost = replace(same, rollouts=tuple(replace(each, prediction="", error="x") for each in same.rollouts))
    assert found(("a", same), ("b", lost), ("c", same)) == ("skill_has_no_effect",)
    assert found(("a", lost), ("b", lost), ("c", lost)) == ()


# --- a scorer that does not look -------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_one_score_for_different_predictions_is_warned_of(score: float) -> None:
    assert found(("a", a_pass(str, lambda number: score))) == ("constant_scores",)


def test_one_score_for_one_prediction_is_no_fault_of_the_scorer() -> None:
    assert found(("a", a_pass(lambda number: "yes", lambda number: 1.0))) == ()


def test_another_score_takes_the_warning_back() -> None:
    constant = a_pass(str, lambda number: 0.0)
    assert found(("a", constant), ("b", changing("b"))) == ()


def test_few_items_are_too_few_to_blame_the_scorer() -> None:
    assert found(("a", a_pass(str, lambda number: 0.0, items=ITEMS - 1))) == ()
    assert found(("a", a_pass(str, lambda number: 0.0, missing=1))) == ()


# --- in a run --------------------------------------------------------------------------------------------------------


def healthy(skill: str, item_id: str) -> Rollout:
    good = len(skill) % 7 > int(item_id[-1]) % 7
    return Rollout(item_id, float(good), 0.5, prediction=f"{len(skill)} {item_id}")


def deaf(skill: str, item_id: str) -> Rollout:
    return Rollout(item_id, float(int(item_id[-1]) % 2), 0.5, prediction=item_id)


def blind(skill: str, item_id: str) -> Rollout:
    return Rollout(item_id, 0.5, 0.5, prediction=f"{len(skill)} {item_id}")


CONFIG = replace(STEPS, epochs=1, steps_per_epoch=4, val_batch_size=ITEMS, block_size=3)
DIFFERENT = tuple(append(text) for text in ("one", "three", "five more", "seven"))
BACK_AND_FORTH = (append("one"), Patch((Edit(EditOp.APPEND, "one"),)), append("two"), append("one"))


async def trained(
    attempt: Callable[[str, str], Rollout], patches: tuple[Patch, ...], config: TrainSkillConfig = CONFIG
) -> TrainingRun:
    runner = CatalogRunner(attempt, val=ITEMS)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(*patches)) as app:
        return (await app.send(training(config))).value


RUNS = {
    "healthy": (healthy, DIFFERENT, ()),
    "no effect": (deaf, DIFFERENT, (RunWarning.SKILL_HAS_NO_EFFECT,)),
    "constant": (blind, DIFFERENT, (RunWarning.CONSTANT_SCORES,)),
    "repeated": (blind, BACK_AND_FORTH, (RunWarning.CONSTANT_SCORES, RunWarning.REPEATED_CANDIDATE)),
}


@pytest.mark.parametrize(("attempt", "patches", "warnings"), RUNS.values(), ids=RUNS.keys())
async def test_a_run_carries_its_warnings_and_decides_as_it_would_without_them(
    attempt: Callable[[str, str], Rollout],
    patches: tuple[Patch, ...],
    warnings: tuple[RunWarning, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = await trained(attempt, patches)
    assert run.warnings == tuple(warning.value for warning in warnings)

    def look_away(_self: Detectors, _skill: str, _done: object) -> None:
        """See nothing."""

    monkeypatch.setattr(Detectors, "look_at", look_away)
    unwatched = await trained(attempt, patches)
    assert unwatched.warnings == ()
    assert replace(run, warnings=()) == unwatched


async def test_slow_updates_and_promotions_are_no_repeated_candidates() -> None:
    run = await trained(healthy, DIFFERENT, replace(CONFIG, epochs=2, use_slow_update=True, promote_final=True))
    assert run.warnings == ()


@pytest.mark.parametrize("warning", RunWarning)
def test_every_warning_has_a_meaning_for_people(warning: RunWarning) -> None:
    assert len(warning.meaning) > 20
