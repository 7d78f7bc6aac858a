"""Messages that break a rule are answered with the paths of their fields, and nothing else happens."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from fakes import STEPS, CatalogRunner, ScriptedProposer, rollout, training

from burnish.application.evaluate_skill import EvaluateSkill
from burnish.application.gate_candidate_skill import GateCandidateSkill
from burnish.application.mediator import Message
from burnish.application.meta_skill_update import MetaSkillUpdate
from burnish.application.reflect_on_failures import ReflectOnFailures
from burnish.application.result import ErrorCode
from burnish.application.runs import GetCheckpoint, GetRun, ListCheckpoints
from burnish.application.slow_update import SlowUpdate
from burnish.domain.config import TrainSkillConfig
from burnish.domain.gate import GateEvaluation, GateMetric, GateMode
from burnish.domain.rollouts import Rollout
from burnish.presentation.app import open_app

T = TypeVar("T")

TOO_LONG = "x" * 262_145
LONGEST = "x" * 262_144
EVALUATION = GateEvaluation("a", 0.5, 0.5, "b", 0.4, "c", 0.4, best_step=1, global_step=2)
REFLECT = ReflectOnFailures(current_skill="skill", rollouts=(rollout("a", 0.0),))
SLOW = SlowUpdate(prior_rollouts=(rollout("a", 0.0),), current_rollouts=(rollout("a", 1.0),))
META = MetaSkillUpdate(run_id="run", skill_id="skill", epoch=1, current_skill="skill", current_score=0.5)


async def refused_fields(message: Message[Any]) -> tuple[str, ...] | None:
    """The paths a message was refused for; None when it was not refused."""
    runner, proposer = CatalogRunner(), ScriptedProposer()
    async with open_app(rollouts=runner, proposer=proposer) as app:
        failure = (await app.send(message)).failure
    if failure is None or failure.code is not ErrorCode.INVALID_REQUEST:
        return None
    assert (runner.calls, proposer.reflections) == ([], [])
    return failure.fields


def wrong(message: T, **changes: object) -> T:
    """The message or setting with other values, also of types it does not allow."""
    return replace(message, **changes)  # type: ignore[type-var]  # every T here is a dataclass


@pytest.mark.parametrize(
    "run_id", ["", " ", ".hidden", "-dash", "a b", "a/b", "../up", "run\n", "é", "a" * 129, "a\x00"]
)
async def test_an_id_without_the_form_of_one_is_refused_everywhere(run_id: str) -> None:
    for message in (
        training(run_id=run_id),
        wrong(META, run_id=run_id),
        GetRun(run_id),
        GetCheckpoint(run_id),
        ListCheckpoints(run_id),
    ):
        assert await refused_fields(message) == ("run_id",), message
    assert await refused_fields(training(skill_id=run_id)) == ("skill_id",)
    assert await refused_fields(wrong(META, skill_id=run_id)) == ("skill_id",)


@pytest.mark.parametrize("run_id", ["a", "0", "Run-1.2_b", "a" * 128])
async def test_an_id_with_the_form_of_one_is_let_through(run_id: str) -> None:
    for message in (training(run_id=run_id, skill_id=run_id), wrong(META, run_id=run_id, skill_id=run_id)):
        assert await refused_fields(message) is None


@pytest.mark.parametrize(
    ("skill", "fields"),
    [
        ("", None),
        (LONGEST, None),
        ("<!-- LOCKED_START -->a<!-- LOCKED_END -->", None),
        (TOO_LONG, ("initial_skill",)),
        ("<!-- LOCKED_START -->", ("initial_skill",)),
        ("<!-- APPENDIX_END -->", ("initial_skill",)),
        ("<!-- LOCKED_END --><!-- LOCKED_START -->", ("initial_skill",)),
        (
            "<!-- LOCKED_START --><!-- APPENDIX_START --><!-- APPENDIX_END --><!-- LOCKED_END -->",
            ("initial_skill",),
        ),
        ("a lone surrogate: \ud800", ("initial_skill",)),
    ],
)
async def test_an_initial_skill_has_a_length_and_balanced_markers(skill: str, fields: tuple[str, ...] | None) -> None:
    assert await refused_fields(training(initial_skill=skill)) == fields


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            (name, value)
            for name in ("epochs", "steps_per_epoch", "lr_start", "lr_min", "train_batch_size", "val_batch_size")
            for value in (0, -1, "3", True, 3.0, None)
        ],
        *[("patience", value) for value in (0, -1, "3", True, 3.0)],
        *[("seed", value) for value in (-1, "3", True, 0.0, None)],
        *[
            (name, value)
            for name in ("mixed_weight", "max_error_rate")
            for value in (-0.1, 1.1, math.nan, math.inf, -math.inf, "0.5", True, None)
        ],
        *[("gate_metric", value) for value in ("hard", "best", GateMode.STRICT, None)],
        *[("gate_mode", value) for value in ("strict", GateMetric.HARD, 0)],
        *[("lr_scheduler", value) for value in ("", "  ", "step", " cosine", 3, None)],
        *[
            (name, value)
            for name in ("use_slow_update", "use_meta_skill", "evaluate_baseline", "promote_final", "eval_test")
            for value in (1, "yes", None)
        ],
        ("repeats", 0),
        ("block_size", 0),
        ("slow_update_samples", 0),
        ("failure_only", "no"),
        *[(name, value) for name in ("accumulation", "minibatch_size") for value in (0, "2", 1.5)],
        ("merge_batch_size", 1),
        ("max_skill_tokens", 0),
        ("lr_control_mode", "fixed"),
        ("lr_control_mode", "free"),
        ("update_mode", "patch"),
        ("longitudinal_pair_policy", "all"),
        ("update_mode", "rewrite"),
        ("one_shot_baseline", 1),
        ("recall_meta_skill", 0),
        ("slow_update_gate", 1),
    ],
)
async def test_a_setting_is_checked_and_never_coerced(name: str, value: object) -> None:
    assert await refused_fields(training(wrong(STEPS, **{name: value}))) == (f"config.{name}",)


@pytest.mark.parametrize("scheduler", ["cosine", "Linear", "CONSTANT"])
async def test_a_scheduler_is_named_in_any_case(scheduler: str) -> None:
    assert await refused_fields(training(replace(STEPS, lr_scheduler=scheduler))) is None


async def test_the_defaults_of_a_configuration_are_valid() -> None:
    assert await refused_fields(training(TrainSkillConfig())) is None


async def test_a_whole_number_will_do_for_a_share() -> None:
    assert await refused_fields(training(wrong(STEPS, mixed_weight=1))) is None


async def test_the_lowest_learning_rate_may_not_exceed_the_first() -> None:
    assert await refused_fields(training(replace(STEPS, lr_start=2, lr_min=3))) == ("config.lr_min",)
    assert await refused_fields(training(replace(STEPS, lr_start=2, lr_min=2))) is None


async def test_all_broken_rules_are_named_at_once_in_the_order_of_the_alphabet() -> None:
    message = training(
        replace(STEPS, lr_min=9, lr_scheduler="step"),
        run_id="",
        initial_skill="<!-- LOCKED_END -->",
    )
    assert await refused_fields(message) == (
        "config.lr_min",
        "config.lr_scheduler",
        "initial_skill",
        "run_id",
    )
    assert await refused_fields(training(replace(STEPS, patience=0, epochs=0))) == ("config.epochs", "config.patience")


@pytest.mark.parametrize("config", [None, {"epochs": 3}, "default", TrainSkillConfig])
async def test_a_configuration_of_another_type_is_refused_as_a_whole(config: object) -> None:
    assert await refused_fields(wrong(training(), config=config)) == ("config",)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            (name, value)
            for name in (
                "candidate_hard",
                "candidate_soft",
                "current_score",
                "best_score",
                "mixed_weight",
                "candidate_held_in_hard",
                "candidate_held_in_soft",
                "current_held_in_score",
            )
            for value in (-0.1, 1.1, math.nan, math.inf, "0.5", True, None)
        ],
        *[
            (name, value)
            for name in ("candidate_skill", "current_skill", "best_skill")
            for value in (TOO_LONG, None, b"")
        ],
        ("global_step", -1),
        ("best_step", -1),
        ("best_step", 3),
        ("best_step", "1"),
        ("metric", "hard"),
        ("mode", "two_split"),
    ],
)
async def test_a_gate_evaluation_is_checked_field_by_field(name: str, value: object) -> None:
    if name == "global_step":
        evaluation = wrong(EVALUATION, global_step=value, best_step=0)
    else:
        evaluation = wrong(EVALUATION, **{name: value})
    assert await refused_fields(GateCandidateSkill(evaluation)) == (f"evaluation.{name}",)


async def test_a_gate_evaluation_at_the_limits_is_let_through() -> None:
    extreme = replace(EVALUATION, candidate_skill=LONGEST, candidate_hard=1.0, current_score=0.0, best_step=2)
    assert await refused_fields(GateCandidateSkill(extreme)) is None


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"current_skill": ""}, ("current_skill",)),
        ({"current_skill": " \n\t"}, ("current_skill",)),
        ({"current_skill": TOO_LONG}, ("current_skill",)),
        ({"rollouts": ()}, ("rollouts",)),
        ({"rollouts": None}, ("rollouts",)),
        ({"rollouts": [rollout("a", 0.0)]}, ("rollouts",)),
        ({"rollouts": ({"item_id": "a"},)}, ("rollouts.0",)),
        (
            {"rollouts": (rollout("a", 0.0), rollout("b", 1.5, 0.5), rollout("c", 0.0, -0.1))},
            ("rollouts.1.hard", "rollouts.2.soft"),
        ),
        ({"rollouts": (rollout("a", math.nan),)}, ("rollouts.0.hard", "rollouts.0.soft")),
        ({"rollouts": (Rollout("a", True, 0.0),)}, ("rollouts.0.hard",)),
        ({"rollouts": (rollout("", 0.0),)}, ("rollouts.0.item_id",)),
        ({"rollouts": (rollout("a", 0.0), rollout("b\x07", 0.0))}, ("rollouts.1.item_id",)),
        ({"rollouts": (rollout("a" * 257, 0.0),)}, ("rollouts.0.item_id",)),
        ({"rollouts": (rollout("a", 1.0),), "include_successes": False}, ("rollouts",)),
        ({"rollouts": (rollout("a", 0.0, error="x"),)}, ("rollouts",)),
        ({"rollouts": (rollout("a", 0.0, error="x"), rollout("b", 1.0)), "include_successes": False}, ("rollouts",)),
        ({"rollouts": (rollout("a", 1.0), rollout("b", 0.99)), "include_successes": False}, None),
        ({"rollouts": (rollout("a", 1.0),)}, None),
        ({"rollouts": (rollout("an id: with / blanks", 0.0),)}, None),
        ({"include_successes": 1}, ("include_successes",)),
        ({"meta_skill_memory": None}, ("meta_skill_memory",)),
    ],
)
async def test_a_reflection_needs_a_skill_and_something_to_reflect_on(
    changes: dict[str, object], fields: tuple[str, ...] | None
) -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        failure = (await app.send(wrong(REFLECT, **changes))).failure
    assert (None if failure is None else failure.fields) == fields


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"prior_rollouts": ()}, ("prior_rollouts",)),
        ({"prior_rollouts": (), "current_rollouts": ()}, ("current_rollouts", "prior_rollouts")),
        ({"current_rollouts": (rollout("a", 2.0),)}, ("current_rollouts.0.hard", "current_rollouts.0.soft")),
        ({"current_skill": TOO_LONG}, ("current_skill",)),
        ({"run_id": "../up"}, ("run_id",)),
        ({"run_id": ""}, None),
    ],
)
async def test_a_slow_update_needs_rollouts_of_both_epochs(
    changes: dict[str, object], fields: tuple[str, ...] | None
) -> None:
    assert await refused_fields(wrong(SLOW, **changes)) == fields


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"epoch": 0}, ("epoch",)),
        ({"epoch": True}, ("epoch",)),
        ({"current_score": math.nan}, ("current_score",)),
        ({"current_score": 1.01}, ("current_score",)),
        ({"current_skill": TOO_LONG}, ("current_skill",)),
        ({"current_skill": ""}, None),
        ({"analysis": "improved"}, ("analysis",)),
    ],
)
async def test_a_memory_update_is_checked_and_may_be_about_an_empty_skill(
    changes: dict[str, object], fields: tuple[str, ...] | None
) -> None:
    assert await refused_fields(wrong(META, **changes)) == fields


async def test_an_evaluation_names_a_split_and_sensible_numbers() -> None:
    wrong_one = wrong(EvaluateSkill(skill="", split="val"), split="", size=0, seed=-1, skill=TOO_LONG)
    assert await refused_fields(wrong_one) == ("seed", "size", "skill", "split")


async def test_the_value_that_was_refused_appears_nowhere_in_the_answer() -> None:
    async with open_app() as app:
        result = await app.send(training(run_id="a planted run id", initial_skill="<!-- LOCKED_END --> planted"))
    assert "planted" not in repr(result)
