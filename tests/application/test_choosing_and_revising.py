"""Learning rate, ranking, rewrites, limits and memory of a step, and what happens when one of them fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from fakes import CatalogRunner, ScriptedProposer, append, training
from optimizer_team import CONFIG, ONE_CALL, Team, fixed, many, raising, train

from burnish.application.optimizer_ports import (
    Ranking,
    RankInput,
    RateDecision,
    ReflectionInput,
    Rewrite,
    RewriteInput,
)
from burnish.domain.config import RateControl, UpdateMode
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.runs import StepReason
from burnish.presentation.app import open_app

# --- select ----------------------------------------------------------------------------------------------------------


async def test_a_model_ranks_only_when_there_is_too_much() -> None:
    team = Team(propose_=many, rank_=lambda _: Ranking(places=(5, 1, 5, 99, -1, 0)))
    run = await train(team, ONE_CALL)
    assert run.best_skill == "# Skill\n\n\n- 5 better\n\n- 1 better"
    (request,) = team.ranks
    assert (request.budget, len(request.patch.edits)) == (2, 6)
    few = Team(rank_=raising)  # type: ignore[arg-type]  # never asked
    await train(few, ONE_CALL)
    assert few.ranks == []


@pytest.mark.parametrize("rank", [raising, fixed(Ranking(places=())), fixed(Ranking(places=(17, -2)))])
async def test_a_ranking_that_fails_or_names_nothing_leaves_it_to_the_rule(
    rank: Callable[[RankInput], Ranking],
) -> None:
    run = await train(Team(propose_=many, rank_=rank), ONE_CALL)
    assert run.best_skill == "# Skill\n\n\n- 0 better\n\n- 1 better"
    assert run.steps[0].fallbacks == ("rank",)


@pytest.mark.parametrize(("wanted", "kept"), [(3, 3), (99, 6), (0, 0), (-5, 0)])
async def test_the_optimizer_may_choose_the_learning_rate_within_what_there_is(wanted: int, kept: int) -> None:
    team = Team(propose_=many, choose_=lambda _: RateDecision(learning_rate=wanted, reasoning="because"))
    run = await train(team, replace(ONE_CALL, lr_control_mode=RateControl.AUTONOMOUS))
    (record,) = run.steps
    assert (record.learning_rate, record.selected, record.rate_reasoning) == (kept, kept, "because")
    assert record.reason is (StepReason.ACCEPTED if kept else StepReason.NO_EDITS)
    (request,) = team.rates
    assert (request.score.hard, request.score.scored, len(request.patch.edits)) == (0.5, 8, 6)


async def test_without_a_choice_the_schedule_holds() -> None:
    team = Team(propose_=many, choose_=raising)  # type: ignore[arg-type]  # raises
    run = await train(team, replace(ONE_CALL, lr_control_mode=RateControl.AUTONOMOUS))
    assert (run.steps[0].learning_rate, run.steps[0].fallbacks) == (2, ("rate",))


async def test_without_a_learning_rate_all_edits_are_kept_and_nobody_ranks_them() -> None:
    team = Team(propose_=many, rank_=fixed(Ranking(places=(0,))), choose_=fixed(RateDecision(learning_rate=1)))
    run = await train(team, replace(ONE_CALL, lr_control_mode=RateControl.NONE))
    assert (run.steps[0].learning_rate, run.steps[0].applied) == (6, 6)
    assert (team.ranks, team.rates) == ([], [])


@pytest.mark.parametrize(
    ("changes", "role"),
    [
        ({"lr_control_mode": RateControl.AUTONOMOUS}, "rate_chooser"),
        ({"update_mode": UpdateMode.REWRITE_FROM_SUGGESTIONS}, "rewriter"),
    ],
)
async def test_a_role_that_nobody_plays_is_named_before_anything_is_asked(
    changes: dict[str, object], role: str
) -> None:
    runner = CatalogRunner()
    async with open_app(rollouts=runner, proposer=ScriptedProposer()) as app:
        result = await app.send(training(replace(CONFIG, **changes)))  # type: ignore[arg-type]  # by name
    assert result.failure is not None
    assert result.failure.code == "skill_training.optimizer.role_not_configured"
    assert result.failure.fields == (role,)
    assert runner.calls == []


@pytest.mark.parametrize("role", ["merger", "ranker", "rate_chooser", "rewriter"])
async def test_an_object_that_does_not_fit_its_role_is_refused_at_once(role: str) -> None:
    with pytest.raises(TypeError, match=role):
        async with open_app(**{role: object()}):  # type: ignore[arg-type]  # on purpose
            pass


# --- rewrites --------------------------------------------------------------------------------------------------------

LOCKED = "<!-- LOCKED_START -->\nkeep\n<!-- LOCKED_END -->"


def suggest(_: ReflectionInput) -> Patch:
    return Patch((Edit(EditOp.SUGGEST, "Say it better.", target="Clarify"), Edit(EditOp.APPEND, "no suggestion")))


SUGGESTIONS = replace(ONE_CALL, update_mode=UpdateMode.REWRITE_FROM_SUGGESTIONS)


async def test_a_skill_is_rewritten_from_suggestions_and_what_is_protected_stays() -> None:
    team = Team(propose_=suggest, rewrite_=lambda _: Rewrite(skill="# New\n\nbetter"))
    run = await train(team, SUGGESTIONS, initial_skill=f"# Old\n\n{LOCKED}\n")
    assert run.best_skill == f"# New\n\nbetter\n\n{LOCKED}\n"
    (request,) = team.rewrites
    assert [edit.op for edit in request.suggestions.edits] == [EditOp.SUGGEST]
    assert (run.steps[0].selected, run.steps[0].applied, run.steps[0].failed) == (1, 1, 0)


@pytest.mark.parametrize(
    ("rewrite", "reason"),
    [
        (fixed(Rewrite(skill="  ")), StepReason.NO_CHANGE),
        (fixed(Rewrite(skill="# Old\n")), StepReason.NO_CHANGE),
        (fixed(Rewrite(skill=f"# New\n\n{LOCKED}\n")), StepReason.NO_CHANGE),
    ],
)
async def test_a_rewrite_that_is_of_no_use_is_a_recorded_reject(
    rewrite: Callable[[RewriteInput], Rewrite], reason: StepReason
) -> None:
    run = await train(
        Team(propose_=suggest, rewrite_=rewrite), replace(SUGGESTIONS, patience=9), initial_skill="# Old\n"
    )
    assert run.steps[0].reason is reason


async def test_a_rewrite_that_fails_is_a_failure_of_the_optimizer() -> None:
    answers: Iterator[Callable[[RewriteInput], object]] = iter([raising, fixed(Rewrite(skill="# better\n"))])

    def rewrite(request: RewriteInput) -> Rewrite:
        answer = next(answers)(request)
        assert isinstance(answer, Rewrite)
        return answer

    run = await train(Team(propose_=suggest, rewrite_=rewrite), replace(SUGGESTIONS, steps_per_epoch=2))
    assert [record.reason for record in run.steps] == [StepReason.OPTIMIZER_FAILED, StepReason.ACCEPTED]


FULL = replace(CONFIG, update_mode=UpdateMode.FULL_REWRITE_MINIBATCH)


async def test_whole_rewrites_are_merged_and_have_no_learning_rate() -> None:
    drafts = iter(f"# Draft {number} better\n" for number in range(9))
    team = Team(
        propose_=lambda _: Patch((Edit(EditOp.REWRITE, next(drafts)),)),
        merge_=lambda request: request.patches[-1],
    )
    run = await train(team, FULL)
    assert run.best_skill == "# Draft 3 better\n"
    assert {request.edit_budget for request in team.reflections} == {1}
    assert (run.steps[0].learning_rate, run.steps[0].selected, run.steps[0].merged) == (1, 1, 1)


async def test_without_a_merger_the_first_draft_from_failures_is_taken() -> None:
    drafts = iter(f"# Draft {number} better\n" for number in range(9))
    run = await train(Team(propose_=lambda _: Patch((Edit(EditOp.REWRITE, next(drafts)),))), FULL)
    assert run.best_skill == "# Draft 0 better\n"


@pytest.mark.parametrize("has_merger", [True, False])
async def test_whole_rewrites_leave_what_is_protected_alone(has_merger: bool) -> None:  # noqa: FBT001 - a parameter
    draft = Patch((Edit(EditOp.REWRITE, "# New\n\nbetter"),))
    team = Team(propose_=fixed(draft), merge_=fixed(draft) if has_merger else None)
    run = await train(team, FULL, initial_skill=f"---\nname: s\n---\n# Old\n\n{LOCKED}\n")
    assert run.best_skill == f"---\nname: s\n---\n# New\n\nbetter\n\n{LOCKED}\n"


# --- limits ----------------------------------------------------------------------------------------------------------


async def test_a_candidate_over_the_limit_of_the_run_is_refused_but_a_long_skill_may_shrink() -> None:
    long = Team(propose_=lambda _: append("- better " * 50))
    run = await train(long, replace(ONE_CALL, max_skill_tokens=100, patience=9))
    assert run.steps[0].reason is StepReason.TOO_LONG
    shrink = Team(propose_=lambda _: Patch((Edit(EditOp.REPLACE, "better", target="x" * 100),)))
    run = await train(shrink, replace(ONE_CALL, max_skill_tokens=1), initial_skill="x" * 400)
    assert run.steps[0].reason is StepReason.ACCEPTED


# --- step memory -----------------------------------------------------------------------------------------------------


async def test_what_was_tried_in_vain_is_shown_to_later_steps_of_the_epoch_only() -> None:
    answers: list[Patch] = [
        append("- worse"),
        Patch((Edit(EditOp.REPLACE, "x", target="nowhere"), *append("- better").edits)),
        append("- better still"),
        append("- and better"),
    ]
    team = Team(propose_=lambda _: answers[len(team.reflections) - 1])
    config = replace(ONE_CALL, epochs=2, steps_per_epoch=2, patience=None)
    await train(team, config)
    first, second, third, _ = (request.tried for request in team.reflections)
    assert first == ()
    (tried,) = second
    assert ([edit.content for edit in tried.rejected], tried.lost, tried.gained) == (["- worse"], 0, 0)
    assert third == ()
    config = replace(ONE_CALL, steps_per_epoch=3, patience=None)
    team = Team(propose_=lambda _: answers[len(team.reflections) - 1])
    await train(team, config)
    missed = team.reflections[2].tried[1]
    assert (missed.rejected, [failed.reason for failed in missed.failed]) == (
        (),
        ["target not found in current skill document"],
    )


async def test_what_a_rejected_candidate_lost_and_gained_is_told_in_items() -> None:
    def scored(skill: str, item_id: str) -> float:
        if item_id.startswith("val"):
            number = int(item_id.rpartition("/")[2])
            return float(number >= 3) if "new" in skill else float(number < 3)
        return 0.0

    team = Team(propose_=lambda _: append("new"))
    runner = CatalogRunner(scored, train=8, val=5)
    config = replace(ONE_CALL, steps_per_epoch=2, val_batch_size=5, patience=None)
    async with open_app(rollouts=runner, proposer=team) as app:
        assert (await app.send(training(config))).is_ok
    (tried,) = team.reflections[1].tried
    assert (tried.lost, tried.gained) == (3, 2)


# --- one-shot baseline -----------------------------------------------------------------------------------------------


async def test_a_rewrite_in_one_call_is_scored_beside_the_trained_skill() -> None:
    def propose(request: ReflectionInput) -> Patch:
        if request.update_mode is UpdateMode.FULL_REWRITE_MINIBATCH:
            return Patch((Edit(EditOp.REWRITE, "better better better"),))
        return append("- better")

    team = Team(propose_=propose)
    run = await train(team, replace(ONE_CALL, eval_test=True, one_shot_baseline=True))
    assert run.test is not None
    assert run.test.one_shot is not None
    assert (run.test.initial.hard, run.test.best.hard, round(run.test.one_shot.hard, 6)) == (0.0, 0.1, 0.3)
    assert team.reflections[-1].current_skill == "# Skill\n"


@pytest.mark.parametrize("answer", [raising, fixed(append("no rewrite")), fixed(Patch())])
async def test_a_one_shot_rewrite_that_fails_changes_nothing_else(answer: Callable[[ReflectionInput], Patch]) -> None:
    def propose(request: ReflectionInput) -> Patch:
        return answer(request) if request.update_mode is UpdateMode.FULL_REWRITE_MINIBATCH else append("- better")

    run = await train(Team(propose_=propose), replace(ONE_CALL, eval_test=True, one_shot_baseline=True))
    assert run.test is not None
    assert run.test.one_shot is None
    assert run.test.best.hard == 0.1
