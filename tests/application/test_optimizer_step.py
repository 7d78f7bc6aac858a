"""The optimizer's step: analysts, merges, learning rate, ranking and rewrites, and what happens when one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest
from fakes import STEPS, CatalogRunner, Scramble, ScriptedAggregator, ScriptedProposer, append, training

from burnish.application.optimizer_ports import (
    Focus,
    MergeInput,
    Ranking,
    RankInput,
    RateDecision,
    RateInput,
    ReflectionInput,
    Rewrite,
    RewriteInput,
)
from burnish.domain.config import RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.edits import Edit, EditOp, EditSource, Patch
from burnish.domain.rollouts import RolloutBatch
from burnish.domain.runs import StepReason, TrainingRun
from burnish.presentation.app import open_app

T = TypeVar("T")

MIXED_ITEMS = {f"train/{number}": float(number % 2) for number in range(8)}
"""Half of the train items fail, half succeed, whatever the skill says."""


def half_solved(skill: str, item_id: str) -> float:
    if item_id in MIXED_ITEMS:
        return MIXED_ITEMS[item_id]
    return min(1.0, 0.1 * skill.count("better"))


@dataclass
class Team:
    """An optimizer of many roles; each does what its function says, and remembers what it was asked."""

    propose_: Callable[[ReflectionInput], Patch | None] = lambda _: append("- better")
    merge_: Callable[[MergeInput], Patch] | None = None
    choose_: Callable[[RateInput], RateDecision] | None = None
    rank_: Callable[[RankInput], Ranking] | None = None
    rewrite_: Callable[[RewriteInput], Rewrite] | None = None
    reflections: list[ReflectionInput] = field(default_factory=list[ReflectionInput])
    merges: list[MergeInput] = field(default_factory=list[MergeInput])
    rates: list[RateInput] = field(default_factory=list[RateInput])
    ranks: list[RankInput] = field(default_factory=list[RankInput])
    rewrites: list[RewriteInput] = field(default_factory=list[RewriteInput])

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        self.reflections.append(reflection)
        return self.propose_(reflection)

    async def merge(self, request: MergeInput) -> Patch:
        self.merges.append(request)
        assert self.merge_ is not None
        return self.merge_(request)

    async def choose(self, request: RateInput) -> RateDecision:
        self.rates.append(request)
        assert self.choose_ is not None
        return self.choose_(request)

    async def rank(self, request: RankInput) -> Ranking:
        self.ranks.append(request)
        assert self.rank_ is not None
        return self.rank_(request)

    async def rewrite(self, request: RewriteInput) -> Rewrite:
        self.rewrites.append(request)
        assert self.rewrite_ is not None
        return self.rewrite_(request)


CONFIG = replace(STEPS, train_batch_size=8, minibatch_size=2, merge_batch_size=2, lr_start=4)


async def train(
    team: Team, config: TrainSkillConfig = CONFIG, *, initial_skill: str = "# Skill\n", **ports: object
) -> TrainingRun:
    given: dict[str, object] = {
        "merger": team if team.merge_ else None,
        "rate_chooser": team if team.choose_ else None,
        "ranker": team if team.rank_ else None,
        "rewriter": team if team.rewrite_ else None,
        **ports,
    }
    runner = CatalogRunner(half_solved, train=8, val=4, test=4)
    async with open_app(rollouts=runner, proposer=team, **given) as app:  # type: ignore[arg-type]  # by name
        result = await app.send(training(config, initial_skill=initial_skill))
    return result.value


def raising(_: object) -> Patch:
    raise ConnectionError


def fixed(answer: T) -> Callable[[object], T]:
    """Always this answer."""

    def give(_: object) -> T:
        return answer

    return give


# --- reflect ---------------------------------------------------------------------------------------------------------


async def test_failures_and_successes_are_read_by_analysts_of_their_own_in_minibatches() -> None:
    team = Team()
    run = await train(team)
    assert [request.focus for request in team.reflections] == [Focus.FAILURES] * 2 + [Focus.SUCCESSES] * 2
    read = [rollout.item_id for request in team.reflections for rollout in request.rollouts]
    assert sorted(read) == sorted(MIXED_ITEMS)
    assert {len(request.rollouts) for request in team.reflections} == {2}
    assert len({request.seed for request in team.reflections}) == 4
    assert (run.steps[0].analysts, run.steps[0].analysts_failed, run.steps[0].proposed) == (4, 0, 4)


async def test_successes_are_not_read_when_only_failures_are_wanted() -> None:
    team = Team()
    await train(team, replace(CONFIG, failure_only=True))
    assert [request.focus for request in team.reflections] == [Focus.FAILURES] * 2


async def test_partial_credit_is_read_by_the_analysts_of_failures() -> None:
    def partly_solved(skill: str, item_id: str) -> float:
        return 0.3 if item_id == "train/0" else half_solved(skill, item_id)

    team = Team()
    runner = CatalogRunner(partly_solved, train=8)
    async with open_app(rollouts=runner, proposer=team) as app:
        assert (await app.send(training(replace(CONFIG, minibatch_size=8)))).is_ok
    focus_of = {rollout.item_id: request.focus for request in team.reflections for rollout in request.rollouts}
    assert focus_of["train/0"] is Focus.FAILURES
    assert focus_of["train/1"] is Focus.SUCCESSES


async def test_the_order_in_which_answers_come_changes_no_minibatch_and_no_merge() -> None:
    @dataclass
    class Slow(Team):
        seed: int = 0

        async def propose(self, reflection: ReflectionInput) -> Patch | None:
            await Scramble(self.seed)()
            return await super().propose(reflection)

        async def merge(self, request: MergeInput) -> Patch:
            await Scramble(self.seed + request.level)()
            return await super().merge(request)

    async def asked(seed: int) -> tuple[set[ReflectionInput], set[MergeInput], TrainingRun]:
        team = Slow(propose_=by_minibatch, merge_=union, seed=seed)
        runner = CatalogRunner(half_solved, train=16, before=Scramble(seed))
        async with open_app(rollouts=runner, proposer=team, merger=team, workers=16) as app:
            run = (await app.send(training(replace(CONFIG, train_batch_size=16, steps_per_epoch=2)))).value
        return set(team.reflections), set(team.merges), run

    in_order = await asked(0)
    assert len(in_order[1]) > 4
    for seed in (1, 2, 3):
        assert await asked(seed) == in_order


async def test_an_analyst_that_fails_costs_its_own_edits_only() -> None:
    answers = iter([raising, fixed(append("- better")), raising, raising])

    def propose(request: ReflectionInput) -> Patch:
        return next(answers)(request)

    run = await train(Team(propose_=propose))
    assert (run.steps[0].analysts, run.steps[0].analysts_failed) == (4, 3)
    assert run.steps[0].reason is StepReason.ACCEPTED


async def test_a_step_fails_when_all_its_analysts_failed_and_asks_nobody_further() -> None:
    team = Team(propose_=raising, merge_=raising)
    aggregator = ScriptedAggregator(append("never"))
    config = replace(CONFIG, steps_per_epoch=2)
    runner = CatalogRunner(half_solved, train=8)
    async with open_app(rollouts=runner, proposer=team, merger=team, aggregator=aggregator) as app:
        result = await app.send(training(config))
    assert result.failure is not None
    assert result.failure.code == "skill_training.run.nothing_worked"
    assert team.merges == []


@pytest.mark.parametrize(
    ("control", "budgets"),
    [(RateControl.FIXED, [4, 3, 2]), (RateControl.NONE, [None] * 3), (RateControl.AUTONOMOUS, [4] * 3)],
)
async def test_an_analyst_may_propose_as_much_as_this_step_may_keep(
    control: RateControl, budgets: list[int | None]
) -> None:
    team = Team(choose_=lambda _: RateDecision(learning_rate=1))
    config = replace(
        CONFIG, lr_control_mode=control, lr_scheduler="linear", lr_min=2, steps_per_epoch=3, failure_only=True
    )
    await train(team, replace(config, minibatch_size=8))
    assert [request.edit_budget for request in team.reflections] == budgets


async def test_accumulated_batches_are_read_together() -> None:
    team = Team()
    run = await train(team, replace(CONFIG, train_batch_size=2, accumulation=3, minibatch_size=8))
    assert sum(len(request.rollouts) for request in team.reflections) == 6
    assert len(run.steps) == 1


async def test_accumulated_batches_of_a_plain_runner_count_shared_items_once() -> None:
    class Plain:
        def __init__(self) -> None:
            self.inner = CatalogRunner(half_solved, train=8)

        async def run(self, skill: str, batch: RolloutBatch) -> Sequence[object]:
            items = batch.item_ids or [f"{batch.split}/{(batch.seed + n) % 4}" for n in range(min(batch.size, 3))]
            return await self.inner.run(skill, replace(batch, item_ids=tuple(items)))

    team = Team()
    config = replace(CONFIG, train_batch_size=3, accumulation=4, minibatch_size=8)
    async with open_app(rollouts=Plain(), proposer=team) as app:  # type: ignore[arg-type]  # an untyped host's
        assert (await app.send(training(config))).is_ok
    read = [rollout.item_id for request in team.reflections for rollout in request.rollouts]
    assert len(read) == len(set(read)) > 3


# --- aggregate -------------------------------------------------------------------------------------------------------


def by_minibatch(request: ReflectionInput) -> Patch:
    """Another edit for each minibatch, named by its items."""
    return append(" ".join(sorted(rollout.item_id for rollout in request.rollouts)) + " better")


def union(request: MergeInput) -> Patch:
    return Patch(tuple(edit for patch in request.patches for edit in patch.edits))


async def test_patches_are_merged_in_trees_and_the_failures_come_first() -> None:
    team = Team(propose_=by_minibatch, merge_=union)
    run = await train(team, replace(CONFIG, minibatch_size=1))
    shapes = [(merge.focus, merge.level, len(merge.patches)) for merge in team.merges]
    assert sorted(shapes, key=str) == sorted(
        [
            (Focus.FAILURES, 1, 2),
            (Focus.FAILURES, 1, 2),
            (Focus.FAILURES, 2, 2),
            (Focus.SUCCESSES, 1, 2),
            (Focus.SUCCESSES, 1, 2),
            (Focus.SUCCESSES, 2, 2),
            (Focus.MIXED, 3, 2),
        ],
        key=str,
    )
    final = team.merges[-1]
    assert [{edit.source for edit in patch.edits} for patch in final.patches] == [
        {EditSource.FAILURE},
        {EditSource.SUCCESS},
    ]
    assert (run.steps[0].merged, run.steps[0].fallbacks) == (8, ())


async def test_equal_edits_become_one_before_a_model_is_asked() -> None:
    team = Team(merge_=union)
    run = await train(team, replace(CONFIG, failure_only=True))
    assert team.merges == []
    assert run.steps[0].merged == 1


@pytest.mark.parametrize("merge", [raising, fixed(Patch()), fixed(Patch((Edit(EditOp.SUGGEST, "x"),)))])
async def test_a_merge_that_fails_or_is_empty_discards_nothing(merge: Callable[[MergeInput], Patch]) -> None:
    team = Team(propose_=by_minibatch, merge_=merge)
    run = await train(team)
    assert (run.steps[0].proposed, run.steps[0].merged, run.steps[0].fallbacks) == (4, 4, ("merge",))
    assert run.steps[0].reason is StepReason.ACCEPTED


# --- select ----------------------------------------------------------------------------------------------------------


def many(_: ReflectionInput) -> Patch:
    return append(*(f"- {number} better" for number in range(6)))


ONE_CALL = replace(CONFIG, failure_only=True, minibatch_size=8, lr_start=2)


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


@pytest.mark.parametrize("has_merger", [True, False])
async def test_whole_rewrites_leave_what_is_protected_alone(has_merger: bool) -> None:  # noqa: FBT001 - a parameter
    draft = Patch((Edit(EditOp.REWRITE, "# New\n\nbetter"),))
    team = Team(propose_=fixed(draft), merge_=fixed(draft) if has_merger else None)
    run = await train(team, FULL, initial_skill=f"---\nname: s\n---\n# Old\n\n{LOCKED}\n")
    assert run.best_skill == f"---\nname: s\n---\n# New\n\nbetter\n\n{LOCKED}\n"


async def test_without_a_merger_the_first_draft_from_failures_is_taken() -> None:
    drafts = iter(f"# Draft {number} better\n" for number in range(9))
    run = await train(Team(propose_=lambda _: Patch((Edit(EditOp.REWRITE, next(drafts)),))), FULL)
    assert run.best_skill == "# Draft 0 better\n"


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


# --- concurrency -----------------------------------------------------------------------------------------------------


async def test_no_more_analysts_are_asked_at_once_than_allowed() -> None:
    @dataclass
    class Counting:
        now: int = 0
        most: int = 0
        wait: Callable[[], Awaitable[None]] | None = None

        async def propose(self, reflection: ReflectionInput) -> Patch:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(5):
                await asyncio.sleep(0)
            self.now -= 1
            return append("- better")

    for workers in (1, 3):
        proposer = Counting()
        runner = CatalogRunner(half_solved, train=8)
        async with open_app(rollouts=runner, proposer=proposer, analyst_workers=workers) as app:
            assert (await app.send(training(replace(CONFIG, minibatch_size=1)))).is_ok
        assert proposer.most == workers
