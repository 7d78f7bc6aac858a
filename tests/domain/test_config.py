"""TrainSkillConfig: its defaults are public contract, and rules across fields are found by name."""

from dataclasses import asdict
from typing import get_args, get_type_hints

import pytest
from annotated_types import Ge, Le

from burnish.domain.config import AppendixSource, PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.gate import GateMetric, GateMode

DEFAULTS: dict[str, object] = {
    "epochs": 3,
    "steps_per_epoch": 5,
    "lr_start": 8,
    "lr_min": 1,
    "lr_scheduler": "cosine",
    "train_batch_size": 8,
    "val_batch_size": 16,
    "gate_metric": GateMetric.HARD,
    "gate_mode": GateMode.STRICT,
    "mixed_weight": 0.5,
    "patience": 6,
    "use_slow_update": True,
    "use_meta_skill": True,
    "seed": 0,
    "evaluate_baseline": True,
    "accumulation": 1,
    "lr_control_mode": RateControl.FIXED,
    "failure_only": False,
    "minibatch_size": 8,
    "merge_batch_size": 8,
    "update_mode": UpdateMode.PATCH,
    "max_skill_tokens": None,
    "one_shot_baseline": False,
    "slow_update_samples": 20,
    "slow_update_gate": False,
    "longitudinal_pair_policy": PairPolicy.MIXED,
    "use_skill_aware_reflection": False,
    "skill_aware_appendix_source": AppendixSource.BOTH,
    "skill_aware_consolidate_threshold": 0,
    "recall_meta_skill": False,
    "promote_final": True,
    "eval_test": False,
    "max_error_rate": 0.1,
    "repeats": 1,
    "block_size": 16,
}


def test_defaults_are_those_of_the_design() -> None:
    assert asdict(TrainSkillConfig()) == DEFAULTS


def test_defaults_break_no_rule() -> None:
    assert TrainSkillConfig().violations() == ()


def test_total_steps_are_all_steps_of_all_epochs() -> None:
    assert TrainSkillConfig().total_steps == 15
    assert TrainSkillConfig(epochs=2, steps_per_epoch=3).total_steps == 6


@pytest.mark.parametrize("scheduler", ["constant", "linear", "cosine", "COSINE", "Linear"])
def test_known_schedulers_ignore_case(scheduler: str) -> None:
    assert TrainSkillConfig(lr_scheduler=scheduler).violations() == ()


@pytest.mark.parametrize("scheduler", ["", " ", "cosine ", "exponential", "cos"])
def test_unknown_scheduler_is_a_violation(scheduler: str) -> None:
    assert TrainSkillConfig(lr_scheduler=scheduler).violations() == ("lr_scheduler",)


@pytest.mark.parametrize(
    ("floor", "start", "violations"), [(1, 1, ()), (8, 8, ()), (9, 8, ("lr_min",)), (2, 1, ("lr_min",))]
)
def test_lowest_learning_rate_must_not_exceed_the_first(floor: int, start: int, violations: tuple[str, ...]) -> None:
    assert TrainSkillConfig(lr_min=floor, lr_start=start).violations() == violations


def test_every_broken_rule_is_named() -> None:
    config = TrainSkillConfig(lr_min=9, lr_scheduler="none")
    assert set(config.violations()) == {"lr_min", "lr_scheduler"}


def test_other_settings_may_take_any_value_their_field_allows() -> None:
    config = TrainSkillConfig(patience=None, seed=7, gate_mode=GateMode.TWO_SPLIT, gate_metric=GateMetric.MIXED)
    assert config.violations() == ()


def limits_of(name: str) -> set[Ge | Le]:
    hint = get_type_hints(TrainSkillConfig, include_extras=True)[name]
    annotated = (hint, *get_args(hint))
    return {limit for part in annotated for limit in getattr(part, "__metadata__", ()) if isinstance(limit, (Ge, Le))}


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        *(
            (name, {Ge(1)})
            for name in (
                "epochs",
                "steps_per_epoch",
                "lr_start",
                "lr_min",
                "train_batch_size",
                "val_batch_size",
                "patience",
                "accumulation",
                "minibatch_size",
                "slow_update_samples",
                "repeats",
                "block_size",
            )
        ),
        ("merge_batch_size", {Ge(2)}),
        ("mixed_weight", {Ge(0), Le(1)}),
        ("max_error_rate", {Ge(0), Le(1)}),
        ("seed", {Ge(0)}),
    ],
)
def test_numbers_carry_their_limits(name: str, limits: set[Ge | Le]) -> None:
    assert limits_of(name) == limits
