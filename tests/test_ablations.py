"""The machinery of `bench/ablations.py`: statistics, the simulated world and optimizer, and the runs compared there."""

import json
from collections.abc import Iterable
from dataclasses import replace

import pytest
from fakes import ScriptedProposer, rollout, steps, training
from hypothesis import given
from hypothesis import strategies as st

from ablation_families import FORGETTING, FULL, HARM_AND_NOISE, Family, Forgetful, Method, accept_always, train
from ablations import Job, Row, Table, as_json, main, measure, run_job
from burnish.api import Edit, EditOp, Patch, ReflectionInput, Rollout, RolloutBatch, open_app
from burnish.application.candidate import judge_candidate
from burnish.application.optimizer_ports import EpochComparison, EpochSummary, Focus, MergeInput
from burnish.application.training_step import Judge
from burnish.domain.epochs import compare_epochs
from burnish.domain.regions import RegionKind, replace_region
from burnish.domain.step_memory import TriedStep
from burnish.presentation.container import assemble
from paired_differences import PairedDifference, paired_difference, t_quantile
from simulated_optimizer import KEEP_RULES, Analyst, Habits, Merger, RemovalMemory, RestatingGuidance
from simulated_world import ACTIONS, NoisyAgent, World, WorldSettings, blanket_line, read_skill, rule_line

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=30)
WORLD = World(HARM_AND_NOISE.world, 3)


def _wrong(case: str) -> str:
    return next(action for action in ACTIONS if action != WORLD.right[case])


def _failures(*cases: str) -> tuple[Rollout, ...]:
    return tuple(replace(rollout(f"train/{place}", 0.0), task_type=case) for place, case in enumerate(cases))


# --- statistics


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [(1, 12.7062), (2, 4.3027), (19, 2.0930), (30, 2.0423), (31, 2.0395), (40, 2.0211), (60, 2.0003), (120, 1.9799)],
)
def test_students_t_is_that_of_the_printed_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(degrees) == pytest.approx(quantile, abs=1e-4)


def test_students_t_falls_with_the_degrees_of_freedom() -> None:
    quantiles = [t_quantile(degrees) for degrees in range(1, 200)]

    assert quantiles == sorted(quantiles, reverse=True)
    assert quantiles[-1] > 1.96


def test_an_interval_is_the_one_computed_by_hand() -> None:
    difference = paired_difference([1.5, 2.5, 3.5, 4.5], [0.5, 0.5, 0.5, 0.5])  # 1, 2, 3, 4: deviation 1.29099

    assert difference.mean == pytest.approx(2.5)
    assert difference.half_width == pytest.approx(3.1824 * 1.2909944 / 2)
    assert difference.is_better
    assert not difference.is_worse


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_swapping_the_methods_turns_the_interval_around(pairs: list[tuple[float, float]]) -> None:
    one, other = [first for first, _ in pairs], [second for _, second in pairs]
    forth, back = paired_difference(one, other), paired_difference(other, one)

    assert forth.mean == pytest.approx(-back.mean)
    assert forth.half_width == pytest.approx(back.half_width)
    assert (forth.is_worse, forth.is_better) == (back.is_better, back.is_worse)


@given(SCORES, st.sampled_from([-0.5, 0.0, 0.25]))
def test_what_all_seeds_share_does_not_widen_the_interval(scores: list[float], shift: float) -> None:
    difference = paired_difference([score + shift for score in scores], scores)

    assert difference.mean == pytest.approx(shift)
    assert difference.half_width == pytest.approx(0, abs=1e-9)


def test_a_single_pair_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least 2 pairs, not 1"):
        paired_difference([0.5], [0.4])
    with pytest.raises(ValueError, match="at least 1 degree of freedom, not 0"):
        t_quantile(0)


# --- the world


def test_the_quality_of_a_skill_is_the_weighted_mean_of_its_cases() -> None:
    world = World(WorldSettings(cases=2, train_items=4, validation_items=4), 0)
    one, other = world.cases
    skill = rule_line(one, world.right[one])

    assert world.weights == pytest.approx({one: 0.5, other: 0.5})
    assert world.quality(skill) == pytest.approx(0.5 * 0.92 + 0.5 * 0.30)


def test_every_wording_of_a_rule_means_the_same_to_the_agent() -> None:
    first, *others = [read_skill(rule_line("07", "defer", wording)) for wording in range(3)]

    assert first.rules == {"07": frozenset({"defer"})}
    assert others == [first, first]


def test_wrong_rules_contradictions_blankets_and_long_skills_do_harm() -> None:
    skill = WORLD.initial_skill
    case = next(iter(read_skill(skill).rules))
    long = "\n".join([skill, *(f"- Remark {number}." for number in range(20))])

    for harmed in (
        skill.replace(WORLD.right[case], _wrong(case)),
        f"{skill}\n{rule_line(case, _wrong(case))}",
        f"{skill}\n{blanket_line(_wrong(case))}",
        long,
    ):
        assert WORLD.success(harmed, case) < WORLD.success(skill, case)


async def test_the_agent_is_right_as_often_as_the_quality_says_and_always_in_the_same_places() -> None:
    world = World(replace(HARM_AND_NOISE.world, train_items=4000), 5)
    batch = RolloutBatch("train", item_ids=tuple(await NoisyAgent(world).item_ids("train")))
    answers = await NoisyAgent(world).run(world.initial_skill, batch)

    assert sum(answer.hard for answer in answers) / 4000 == pytest.approx(world.quality(world.initial_skill), abs=0.03)
    assert await NoisyAgent(world).run(world.initial_skill, batch) == answers
    assert await NoisyAgent(world).run(world.initial_skill, replace(batch, repeat="1")) != answers


# --- the optimizer


def _reflection(*cases: str, skill: str = "", tried: Iterable[TriedStep] = (), memory: str = "") -> ReflectionInput:
    return ReflectionInput(
        current_skill=skill,
        rollouts=_failures(*cases),
        focus=Focus.FAILURES,
        tried=tuple(tried),
        meta_skill_memory=memory,
        seed=1,
    )


async def test_an_analyst_gives_an_idea_up_that_it_is_shown_as_rejected() -> None:
    analyst = Analyst(WORLD, Habits())
    first = await analyst.propose(_reflection("04"))
    again = await analyst.propose(_reflection("04"))
    later = await analyst.propose(_reflection("04", tried=[TriedStep(step=1, rejected=first.edits)]))

    assert again == first
    assert WORLD.ideas["04"][0] in first.edits[0].content
    assert WORLD.ideas["04"][1] in later.edits[0].content


async def test_an_analyst_that_remembers_what_removals_did_leaves_other_rules_alone() -> None:
    analyst = Analyst(WORLD, Habits(overwriting=1.0, full_page=1))
    skill = f"# Skill\n\n{rule_line('01', 'defer')}"

    assert (await analyst.propose(_reflection("04", skill=skill))).edits[0].op is EditOp.REPLACE
    assert (await analyst.propose(_reflection("04", skill=skill, memory=KEEP_RULES))).edits[0].op is EditOp.APPEND


async def test_a_merger_keeps_one_edit_a_case_the_one_with_most_support() -> None:
    patches = [
        Patch((Edit(EditOp.APPEND, rule_line("04", action, place), support_count=support),))
        for place, (action, support) in enumerate([("defer", 2), ("answer", 3), ("defer", 2)])
    ]
    merged = await Merger().merge(MergeInput(current_skill="", patches=tuple(patches), focus=Focus.FAILURES))

    assert [(edit.content, edit.support_count) for edit in merged.edits] == [(rule_line("04", "defer"), 4)]


async def test_guidance_restates_a_rule_that_went_and_was_missed() -> None:
    prior_skill = rule_line("04", "defer")
    prior = tuple(replace(failure, hard=1.0) for failure in _failures("04"))
    comparison = EpochComparison(
        prior_skill=prior_skill,
        current_skill="# Skill",
        prior_rollouts=prior,
        current_rollouts=_failures("04"),
        analysis=compare_epochs(prior, _failures("04")),
        previous_guidance="",
    )

    assert await RestatingGuidance(WORLD).write(comparison) == prior_skill
    assert not await RestatingGuidance(WORLD).write(replace(comparison, current_skill=rule_line("04", "answer")))


async def test_the_memory_speaks_of_removals_once_they_were_followed_by_regressions() -> None:
    first = EpochSummary(
        epoch=1, current_skill=rule_line("04", "defer"), current_score=0.5, prior_memory="", analysis=None
    )
    memory = await RemovalMemory().write(first)
    prior, current = (rollout("train/0", 1.0),), (rollout("train/0", 0.0),)
    guided = replace_region("# Skill", RegionKind.SLOW_UPDATE, rule_line("04", "defer"))
    second = replace(first, epoch=2, current_skill=guided, prior_memory=memory)

    assert KEEP_RULES not in memory
    assert KEEP_RULES not in await RemovalMemory().write(second)
    assert KEEP_RULES in await RemovalMemory().write(replace(second, analysis=compare_epochs(prior, current)))


async def test_a_forgetful_proposer_is_shown_nothing_that_was_tried() -> None:
    inner = ScriptedProposer()
    await Forgetful(inner).propose(_reflection("04", tried=[TriedStep(step=1)]))

    assert [reflection.tried for reflection in inner.reflections] == [()]


# --- the runs


async def _shipped(proposal: Patch, judge: Judge) -> str:
    with assemble(judge=judge) as container:
        async with open_app(
            container=container, rollouts=NoisyAgent(WORLD), proposer=ScriptedProposer(proposal)
        ) as app:
            config = steps(1, val_batch_size=240, failure_only=True, minibatch_size=99, train_batch_size=60)
            result = await app.send(training(config, initial_skill=WORLD.initial_skill))
    return result.value.best_skill


async def test_without_the_gate_a_harmful_proposal_is_shipped() -> None:
    harm = blanket_line(_wrong(WORLD.cases[0]))
    proposal = Patch((Edit(EditOp.APPEND, harm),))
    gated, ungated = await _shipped(proposal, judge_candidate), await _shipped(proposal, accept_always)

    assert gated == WORLD.initial_skill
    assert harm in ungated
    assert WORLD.quality(ungated) < WORLD.quality(gated)


def _short(family: Family) -> Family:
    return replace(family, config=replace(family.config, epochs=min(family.config.epochs, 3), steps_per_epoch=4))


@pytest.mark.parametrize("family", [HARM_AND_NOISE, FORGETTING], ids=lambda family: family.name)
async def test_every_run_comes_out_the_same_again(family: Family) -> None:
    for method in (FULL, *family.ablations):
        assert await train(_short(family), method, 2) == await train(_short(family), method, 2)


def test_a_table_has_a_row_a_method_paired_with_the_full_one() -> None:
    family = replace(_short(HARM_AND_NOISE), ablations=(Method(name="the same"), HARM_AND_NOISE.ablations[-1]))
    table = measure(family, seeds=2, worlds=1)
    full, same, ungated = table.rows

    assert [row.method for row in table.rows] == ["full method", "the same", "without the gate"]
    assert full.difference is None
    assert same.difference == PairedDifference(0.0, 0.0)
    assert ungated.difference is not None
    assert ungated.difference.mean == pytest.approx(ungated.quality - full.quality)


def test_no_two_seeds_share_a_world() -> None:
    family = _short(FORGETTING)
    first, second = (run_job(Job(family, FULL, seed, 2)) for seed in (0, 1))

    assert len({one.initial_quality for one in (*first, *second)}) == 4


def test_rows_are_judged_by_their_whole_interval() -> None:
    verdicts = [
        Row("row", 0.5, PairedDifference(mean, half_width)).verdict
        for mean, half_width in [(-0.05, 0.02), (0.05, 0.02), (-0.01, 0.02), (-0.05, 0.04)]
    ]

    assert verdicts == ["worse", "better", "not significant", "worse, TOO WIDE"]


def test_machines_read_the_same_numbers() -> None:
    row = Row("without", 0.4, PairedDifference(-0.1, 0.02))
    read = json.loads(as_json([Table("family", 0.3, (Row("full method", 0.5), row))], seeds=2, worlds=1, seconds=1.0))

    assert read["families"][0]["rows"] == [
        {"method": "full method", "quality": 0.5},
        {"method": "without", "quality": 0.4, "difference": -0.1, "half_width": 0.02, "verdict": "worse"},
    ]


def test_a_single_seed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--seeds", "1"])

    assert ended.value.code == 2
    assert "--seeds: must be at least 2, not 1" in capsys.readouterr().err
