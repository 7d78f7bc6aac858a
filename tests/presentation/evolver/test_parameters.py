"""The evolver's parameters and its manifest."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from evolver_host import Host
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.schedule import learning_rate
from burnish.presentation.evolver import (
    BlockingEvolver,
    Evolver,
    EvolverError,
    EvolverParameters,
    load_manifest,
    read_parameters,
)

DEFAULTS = {
    "file": "ADAPTER.md",
    "minibatch_size": 8,
    "merge_batch_size": 8,
    "analyst_workers": 16,
    "failure_only": False,
    "learning_rate": 4,
    "min_learning_rate": 2,
    "lr_scheduler": "cosine",
    "total_steps": None,
    "steps_per_epoch": None,
    "use_gate": True,
    "gate_metric": "hard",
    "gate_mixed_weight": 0.5,
    "success_score": 1.0,
    "use_slow_update": True,
    "slow_update_samples": 20,
    "slow_update_gate": False,
    "use_meta_skill": True,
    "prompt_env": "",
    "obs_chars": 0,
    "trajectory_view": "full",
    "codex_trace_to_optimizer": True,
    "promote_final": True,
    "max_tokens": None,
    "temperature": None,
    "seed": 42,
}


def refusal(**values: object) -> str:
    with pytest.raises(EvolverError) as caught:
        Evolver(values)
    assert "\n" not in caught.value.line
    return caught.value.line


def test_defaults_are_those_of_the_contract() -> None:
    assert EvolverParameters().model_dump() == DEFAULTS


def test_manifest_holds_the_defaults() -> None:
    manifest = load_manifest()
    assert manifest.params == DEFAULTS
    assert manifest.needs == ("validation_data",)
    module, _, name = manifest.entry.partition(":")
    assert getattr(import_module(module), name) is Evolver
    Evolver(manifest.params)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("lerning_rate", 3, "unknown parameter: did you mean learning_rate?"),
        ("use_gates", True, "unknown parameter: did you mean use_gate?"),
        ("zzz", 3, "unknown parameter: there are file, "),
        ("learning_rate", "4", 'must be a whole number, not "4"'),
        ("learning_rate", 0, "must be at least 1, not 0"),
        ("learning_rate", 1.5, "must be a whole number, not 1.5"),
        ("use_gate", 1, "must be true or false, not 1"),
        ("merge_batch_size", 1, "must be at least 2, not 1"),
        ("analyst_workers", 0, "must be at least 1, not 0"),
        ("total_steps", -1, "must be at least 0, not -1"),
        ("gate_metric", "harder", 'must be hard, soft or mixed, not "harder"'),
        ("lr_scheduler", "step", 'must be constant, linear or cosine, not "step"'),
        ("trajectory_view", None, "must be full or paper, not null"),
        ("success_score", 1.1, "must be at most 1"),
        ("gate_mixed_weight", float("nan"), "must be a finite number, not NaN"),
        ("temperature", -0.1, "must be at least 0"),
        ("max_tokens", 0, "must be at least 1, not 0"),
        ("file", "../ADAPTER.md", "must name a file inside adapter/"),
        ("file", "/etc/passwd", "must name a file inside adapter/"),
        ("file", "", "must name a file inside adapter/"),
        ("file", "a\nb", "must name a file inside adapter/"),
        ("seed", [1], "must be a whole number, not a list or an object"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(name: str, value: object, told: str) -> None:
    line = refusal(**{name: value})
    assert line.startswith(f"params.{name}: ")
    assert told in line


def test_floor_above_the_start_is_refused() -> None:
    told = "params.min_learning_rate: must be at most learning_rate (1), not 2"
    assert refusal(learning_rate=1) == told
    assert read_parameters({"learning_rate": 1, "min_learning_rate": 1}).learning_rate == 1


def test_several_problems_are_counted() -> None:
    assert refusal(learning_rate=0, seed=-1).endswith("(and 1 more)")


def test_unknown_prompts_are_refused_at_setup_naming_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(EvolverError, match=r'prompt_env: there are no prompts of the name "officeqa": there are ""'):
        BlockingEvolver({"prompt_env": "officeqa"}).setup(Host(tmp_path))


@pytest.mark.parametrize("total_steps", [None, 0])
def test_schedule_without_a_length_is_constant(total_steps: int | None) -> None:
    parameters = read_parameters({"total_steps": total_steps})
    config = parameters.config(validation_tasks=1)
    rates = [learning_rate(config.lr_scheduler, step, parameters.schedule_steps, 4, 2) for step in range(50)]
    assert set(rates) == {4}


def test_limits_of_answers_are_each_calls_own_unless_they_are_set() -> None:
    assert read_parameters().limits.merge != read_parameters().limits.analyst
    limits = read_parameters({"max_tokens": 777, "obs_chars": 5, "trajectory_view": "paper"}).limits
    assert (limits.analyst, limits.merge, limits.memory) == (777, 777, 777)
    assert (limits.obs_chars, limits.trajectory_view) == (5, "paper")


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)


@given(name=st.sampled_from([*DEFAULTS, "other"]), value=VALUES)
def test_any_value_is_taken_or_refused_in_one_line(name: str, value: object) -> None:
    try:
        parameters = read_parameters({name: value})
    except EvolverError as error:
        _assert_one_line(error)
    else:
        assert parameters.config(validation_tasks=1).violations() == ()


def _assert_one_line(error: EvolverError) -> None:
    assert error.line.isprintable()
    assert error.line.startswith("params.")
