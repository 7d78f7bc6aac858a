"""The two-split gate: no loss on validation or on the step's train items, and a gain on one of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import START, STEPS, CatalogRunner, ScriptedProposer, ScriptedRunner, append, stated, steps, training

from burnish.application.gate_candidate_skill import GateCandidateSkill
from burnish.domain.gate import GateAction, GateEvaluation, GateMode
from burnish.domain.runs import TrainingRun
from burnish.presentation.app import open_app

TWO_SPLIT = replace(STEPS, gate_mode=GateMode.TWO_SPLIT)
BOTH = "# Skill\n\nval=0.5 train=0.5"


async def trained(candidate: str, runner: CatalogRunner | ScriptedRunner, *more: str) -> TrainingRun:
    proposer = ScriptedProposer(append(candidate), *map(append, more))
    config = replace(TWO_SPLIT, steps_per_epoch=1 + len(more))
    async with open_app(rollouts=runner, proposer=proposer) as app:
        return (await app.send(training(config, initial_skill=BOTH))).value


@pytest.mark.parametrize(
    ("candidate", "action"),
    [
        ("val=0.6 train=0.6", GateAction.ACCEPT_NEW_BEST),
        ("val=0.6 train=0.5", GateAction.ACCEPT_NEW_BEST),
        ("val=0.5 train=0.6", GateAction.ACCEPT),
        ("val=0.5 train=0.5", GateAction.REJECT),
        ("val=0.6 train=0.4", GateAction.REJECT),
        ("val=0.4 train=0.9", GateAction.REJECT),
    ],
)
@pytest.mark.parametrize("kind", [CatalogRunner, ScriptedRunner])
async def test_what_passes(candidate: str, action: GateAction, kind: type[CatalogRunner | ScriptedRunner]) -> None:
    run = await trained(candidate, kind())
    assert run.steps[0].action is action


async def test_the_candidate_is_tried_on_the_train_items_of_the_step() -> None:
    for runner in (CatalogRunner(train=30), ScriptedRunner()):
        run = await trained("val=0.6 train=0.7", runner)
        first, again = runner.skills("train")
        assert sorted(runner.asked(first, "train")) in ([], sorted(runner.asked(again, "train")))
        assert len(runner.asked(again, "train")) == 4
        assert run.steps[0].held_in_score == 0.7


async def test_its_train_items_are_asked_for_the_same_purpose_and_with_the_same_seed() -> None:
    runner = CatalogRunner(train=30)
    await trained("val=0.6 train=0.7", runner)
    first, again = runner.skills("train")
    of_first = [call.batch for call in runner.calls if call.skill == first and call.batch.split == "train"]
    of_again = [call.batch for call in runner.calls if call.skill == again and call.batch.split == "train"]
    assert of_first == of_again


async def test_nothing_is_spent_on_train_items_when_validation_has_already_lost() -> None:
    runner = CatalogRunner()
    run = await trained("val=0.4 train=0.9", runner)
    assert runner.skills("train") == [BOTH]
    assert (run.steps[0].action, run.steps[0].held_in_score) == (GateAction.REJECT, None)


async def test_a_gain_on_train_items_only_changes_the_current_skill_but_not_the_best() -> None:
    run = await trained("val=0.5 train=0.6", CatalogRunner())
    assert (run.has_accepted_any, run.best_skill, run.best_score) == (True, BOTH, 0.5)
    assert run.final_skill == f"{BOTH}\n\nval=0.5 train=0.6"
    assert (run.selected_score, run.final_score, run.consecutive_rejects) == (0.5, 0.5, 0)


async def test_train_scores_are_compared_over_common_items_only() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if item_id.startswith("val"):
            return 0.5
        if item_id == "train/0":
            if "new" in skill:
                return 1.0
            raise TimeoutError
        return 0.5 if "new" not in skill else 0.4

    proposer = ScriptedProposer(append("new"))
    config = replace(TWO_SPLIT, max_error_rate=0.5)
    async with open_app(rollouts=CatalogRunner(attempt), proposer=proposer) as app:
        run = (await app.send(training(config, initial_skill=BOTH))).value
    assert run.steps[0].action is GateAction.REJECT
    assert run.steps[0].held_in_score == pytest.approx(0.4)


async def test_train_items_without_enough_answers_decide_nothing() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if "val=0.6" in skill and item_id == "train/0":
            raise TimeoutError
        return stated(skill, item_id)

    run = await trained("val=0.6 train=0.6", CatalogRunner(attempt))
    assert (run.steps[0].action, run.steps[0].reason, run.final_skill) == (None, "inconclusive", BOTH)


async def test_an_unmeasured_initial_skill_is_still_compared_on_the_train_items() -> None:
    proposer = ScriptedProposer(append("val=0.6 train=0.4"), append("val=0.6 train=0.5"))
    config = replace(TWO_SPLIT, evaluate_baseline=False, steps_per_epoch=2)
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(config, initial_skill=BOTH))).value
    assert [record.action for record in run.steps] == [GateAction.REJECT, GateAction.ACCEPT_NEW_BEST]


async def test_strict_runs_spend_nothing_on_train_items_and_record_no_such_score() -> None:
    runner = CatalogRunner()
    async with open_app(rollouts=runner, proposer=ScriptedProposer(append("score=0.6"))) as app:
        run = (await app.send(training(steps(1)))).value
    assert runner.skills("train") == [START]
    assert (run.steps[0].action, run.steps[0].held_in_score) == (GateAction.ACCEPT_NEW_BEST, None)


async def test_equal_means_of_other_order_are_a_tie() -> None:
    scores = [0.1, 0.2, 0.3, 0.7]

    def attempt(skill: str, item_id: str) -> float:
        place = int(item_id.partition("/")[2])
        if item_id.startswith("train"):
            return 0.9 if "new" in skill else 0.5
        return scores[::-1][place] if "new" in skill else scores[place]

    proposer = ScriptedProposer(append("new"))
    async with open_app(rollouts=CatalogRunner(attempt), proposer=proposer) as app:
        run = (await app.send(training(TWO_SPLIT))).value
    assert run.steps[0].action is GateAction.ACCEPT


# --- the gate as a message of its own --------------------------------------------------------------------------------

EVALUATION = GateEvaluation("new", 0.5, 0.5, "now", 0.5, "top", 0.8, best_step=1, global_step=4)


@pytest.mark.parametrize(
    ("evaluation", "action"),
    [
        (EVALUATION, GateAction.REJECT),
        (replace(EVALUATION, candidate_hard=0.6), GateAction.ACCEPT),
        (replace(EVALUATION, candidate_hard=0.8), GateAction.ACCEPT),
        (replace(EVALUATION, candidate_hard=0.9), GateAction.ACCEPT_NEW_BEST),
        (
            replace(EVALUATION, mode=GateMode.TWO_SPLIT, candidate_held_in_hard=0.6, current_held_in_score=0.5),
            GateAction.ACCEPT,
        ),
        (
            replace(
                EVALUATION,
                mode=GateMode.TWO_SPLIT,
                candidate_hard=0.9,
                candidate_held_in_hard=0.4,
                current_held_in_score=0.5,
            ),
            GateAction.REJECT,
        ),
    ],
)
async def test_a_decision_is_a_successful_answer_also_when_it_rejects(
    evaluation: GateEvaluation, action: GateAction
) -> None:
    async with open_app() as app:
        result = (await app.send(GateCandidateSkill(evaluation))).value
    assert result.action is action
    accepted, new_best = action is not GateAction.REJECT, action is GateAction.ACCEPT_NEW_BEST
    assert (result.current_skill, result.best_skill) == ("new" if accepted else "now", "new" if new_best else "top")
    assert (result.best_step, result.best_score) == ((4, 0.9) if new_best else (1, 0.8))
    assert result.candidate_score == evaluation.candidate_hard
