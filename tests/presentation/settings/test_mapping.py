"""From settings to a run's configuration, its identity, and the effective file."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burnish.domain.config import AppendixSource, PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.gate import GateMetric, GateMode
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.fields import Kind
from burnish.presentation.settings.keys import KEYS, value_at
from burnish.presentation.settings.layers import merge
from burnish.presentation.settings.loading import LoadedTask, load_task
from burnish.presentation.settings.mapping import canonical, effective_yaml, identity_items, to_config
from burnish.presentation.settings.sections import TaskSettings
from burnish.presentation.settings.yaml_text import Scalar, Value

PROPERTY = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

# Keys whose only accepted value is their default.
FIXED = {
    "evaluation.use_gate",
}
CHOICES: dict[str, list[Scalar]] = {
    "model.backend": [None, "openai_chat", "qwen_chat", "simulated"],
    "model.target_backend": ["openai_chat", "openai_compatible", "claude_chat", "codex_exec", "simulated"],
    "model.optimizer_backend": ["openai_chat", "openai_compatible", "qwen_chat", "simulated"],
    "model.judge_backend": [None, "openai_chat", "claude_chat", "simulated"],
    "model.target_qwen_chat_thinking_mode": ["server_default", "enabled", "disabled"],
    "model.optimizer_qwen_chat_thinking_mode": ["server_default", "enabled", "disabled"],
    "model.target_reasoning_effort": [None, "none", "low", "max"],
    "model.optimizer_reasoning_effort": [None, "minimal", "high"],
    "model.codex_exec_sandbox": ["read-only", "workspace-write", "danger-full-access"],
    "optimizer.lr_scheduler": ["constant", "linear", "cosine"],
    "evaluation.gate_metric": ["hard", "soft", "mixed"],
    "evaluation.gate_mode": ["strict", "two_split"],
    "optimizer.lr_control_mode": ["fixed", "autonomous", "none"],
    "optimizer.skill_update_mode": ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"],
    "optimizer.longitudinal_pair_policy": ["mixed", "changed", "unchanged"],
    "optimizer.skill_aware_appendix_source": ["both", "failure_only"],
    "gradient.trajectory_view": ["full", "paper"],
    "env.split_ratio": ["2:1:7", "1:1:1", "8:1:999999"],
    "env.scorer": ["exact_match", "f1", "contains", "regex", "numeric", "anls"],
    "env.scorer_function": [None],
    "env.name": ["", "ticket-routing", "7", "null", "1e5"],
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
POSITIVE = st.integers(1, 10**9)
SHARES = st.floats(0, 1)
DOLLARS = st.floats(0, 1_000_000)


def price(prompt: float, completion: float) -> dict[str, Value]:
    return {"prompt": prompt, "completion": completion}


PRICES: st.SearchStrategy[dict[str, Value]] = st.dictionaries(
    st.sampled_from(["gpt-4.1", "yes", "org/model:7b", '"', "a, b: {c}", "é"]),
    st.builds(price, DOLLARS, DOLLARS),
    max_size=3,
)
FIELDS: st.SearchStrategy[dict[str, Value]] = st.dictionaries(
    st.sampled_from(["id", "question", "answer"]), st.sampled_from(["q", "yes", "a b"]), max_size=3
)
RANGES: dict[str, st.SearchStrategy[Value]] = {
    **{key: st.sampled_from(choices) for key, choices in CHOICES.items()},
    **{
        f"model.{role}": st.none() | st.sampled_from(["m", "yes", "org/model:7b", "3.5"])
        for role in ("target", "optimizer")
    },
    **{f"model.{role}_temperature": st.none() | st.floats(0, 2) for role in ("target", "optimizer")},
    "gradient.minibatch_size": POSITIVE,
    "train.accumulation": POSITIVE,
    "gradient.merge_batch_size": st.integers(2, 1_000_000_000),
    "gradient.obs_chars": st.integers(0, 1_000_000_000),
    "optimizer.max_skill_tokens": st.none() | POSITIVE,
    "optimizer.prompts": st.none() | TEXTS,
    "budget.max_rollouts": st.none() | st.integers(0, 1_000_000_000),
    "budget.max_tokens": st.none() | st.integers(0, 10**15),
    "budget.max_usd": st.none() | st.floats(0, 1e9),
    "budget.max_minutes": st.none() | st.floats(0, 1e9),
    **{f"model.{role}_max_tokens": st.none() | POSITIVE for role in ("target", "optimizer")},
    **{f"model.{role}_timeout_seconds": st.floats(1e-9, 86_400) for role in ("target", "optimizer")},
    **{f"model.{role}_max_retries": st.integers(0, 20) for role in ("target", "optimizer")},
    **{f"model.{role}_max_concurrency": st.none() | st.integers(1, 1024) for role in ("target", "optimizer")},
    **{f"model.{role}_requests_per_minute": st.none() | POSITIVE for role in ("target", "optimizer")},
    **{f"model.{role}_tokens_per_minute": st.none() | POSITIVE for role in ("target", "optimizer")},
    **{f"model.{name}": TEXTS for name in ("codex_exec_path", "claude_code_exec_path", "claude_code_exec_tools")},
    "model.simulated.noise": SHARES,
    "model.simulated.seed": st.integers(0, 2**63 - 1),
    "model.simulated.knowledge": TEXTS,
    "train.num_epochs": POSITIVE,
    "train.steps_per_epoch": st.none() | POSITIVE,
    "train.batch_size": POSITIVE,
    "train.patience": st.none() | POSITIVE,
    "train.seed": st.integers(0, 2**63 - 1),
    "train.train_size": st.integers(0, 10**9),
    "gradient.analyst_workers": st.integers(1, 1024),
    "optimizer.learning_rate": st.integers(50, 100),
    "optimizer.min_learning_rate": st.integers(1, 50),
    "optimizer.slow_update_samples": POSITIVE,
    "optimizer.skill_aware_consolidate_threshold": st.integers(0, 10**9),
    "evaluation.sel_env_num": st.integers(0, 10**9),
    "evaluation.test_env_num": st.integers(0, 10**9),
    "evaluation.gate_mixed_weight": SHARES,
    "evaluation.max_error_rate": SHARES,
    "evaluation.repeats": POSITIVE,
    "evaluation.block_size": POSITIVE,
    "env.field_weights": st.just({}),
    "env.judge_rubric": st.just(""),
    "env.judge_repeats": st.integers(1, 100),
    "env.judge_pass_mark": SHARES,
    "model.judge": st.none() | st.sampled_from(["m", "yes", "org/model:7b", "3.5"]),
    "model.judge_temperature": st.none() | st.floats(0, 2),
    "model.judge_max_tokens": POSITIVE,
    "env.task": st.none() | TEXTS,
    "env.fields": FIELDS,
    "env.check_near_duplicates": SHARES,
    "env.skill_init": TEXTS,
    "env.split_dir": TEXTS,
    "env.data_path": TEXTS,
    "env.split_seed": st.integers(0, 2**63 - 1),
    "env.prompt": TEXTS,
    "env.answer_instruction": st.none() | TEXTS,
    "env.workers": st.integers(1, 1024),
    "budget.prices": PRICES,
    **{key: st.booleans() for key, entry in KEYS.items() if isinstance(entry.default, bool) and key not in FIXED},
}
# Set together, or derived.
TOGETHER = {"model.simulated.useful", "model.simulated.useless", "model.simulated.harmful", "env.split_mode"}


def make(values: Mapping[str, Value]) -> TaskSettings:
    tree: dict[str, Value] = {}
    for path, value in values.items():
        below: Value = value
        for name in reversed(path.split(".")):
            below = {name: below}
        assert isinstance(below, dict)
        tree = merge(tree, below)
    return TaskSettings.model_validate(tree)


@st.composite
def task_settings(draw: st.DrawFn) -> TaskSettings:
    chosen = draw(st.sets(st.sampled_from(sorted(RANGES)), max_size=12))
    chosen |= {"optimizer.learning_rate"} if "optimizer.min_learning_rate" in chosen else set()
    values = {path: draw(RANGES[path]) for path in sorted(chosen)}
    useful = draw(st.sampled_from([0.7, 0.25, 1.0]))
    values |= {"model.simulated.useful": useful, "model.simulated.harmful": 0.0, "model.simulated.useless": 1 - useful}
    return make(values)


def test_every_key_has_a_strategy_here() -> None:
    assert set(KEYS) == set(RANGES) | FIXED | TOGETHER


def test_defaults_map_to_system_b_s_defaults() -> None:
    assert to_config(TaskSettings(), 400, val_items=200) == TrainSkillConfig(
        epochs=4,
        steps_per_epoch=10,
        lr_start=4,
        lr_min=2,
        lr_scheduler="cosine",
        train_batch_size=40,
        val_batch_size=200,
        gate_metric=GateMetric.HARD,
        gate_mode=GateMode.STRICT,
        mixed_weight=0.5,
        patience=None,
        use_slow_update=True,
        use_meta_skill=True,
        seed=42,
        evaluate_baseline=True,
        accumulation=1,
        lr_control_mode=RateControl.FIXED,
        failure_only=False,
        minibatch_size=8,
        merge_batch_size=8,
        update_mode=UpdateMode.PATCH,
        slow_update_samples=20,
        slow_update_gate=False,
        longitudinal_pair_policy=PairPolicy.MIXED,
        use_skill_aware_reflection=False,
        skill_aware_appendix_source=AppendixSource.BOTH,
        skill_aware_consolidate_threshold=0,
        recall_meta_skill=False,
        promote_final=True,
        eval_test=True,
        one_shot_baseline=True,
        max_error_rate=0.1,
        repeats=1,
        block_size=16,
    )


@pytest.mark.parametrize(
    ("key", "value", "field", "mapped"),
    [
        ("train.num_epochs", 7, "epochs", 7),
        ("train.steps_per_epoch", 3, "steps_per_epoch", 3),
        ("train.batch_size", 5, "train_batch_size", 5),
        ("train.patience", 2, "patience", 2),
        ("train.seed", 0, "seed", 0),
        ("gradient.failure_only", True, "failure_only", True),
        ("optimizer.learning_rate", 9, "lr_start", 9),
        ("optimizer.min_learning_rate", 1, "lr_min", 1),
        ("optimizer.lr_scheduler", "linear", "lr_scheduler", "linear"),
        ("optimizer.use_slow_update", False, "use_slow_update", False),
        ("optimizer.slow_update_samples", 3, "slow_update_samples", 3),
        ("optimizer.slow_update_gate_with_selection", True, "slow_update_gate", True),
        ("optimizer.use_meta_skill", False, "use_meta_skill", False),
        ("optimizer.recall_meta_skill", True, "recall_meta_skill", True),
        ("optimizer.use_skill_aware_reflection", True, "use_skill_aware_reflection", True),
        (
            "optimizer.skill_aware_appendix_source",
            "failure_only",
            "skill_aware_appendix_source",
            AppendixSource.FAILURE_ONLY,
        ),
        ("optimizer.skill_aware_consolidate_threshold", 9, "skill_aware_consolidate_threshold", 9),
        ("evaluation.sel_env_num", 12, "val_batch_size", 12),
        ("evaluation.eval_test", False, "eval_test", False),
        ("evaluation.gate_metric", "mixed", "gate_metric", GateMetric.MIXED),
        ("evaluation.gate_mixed_weight", 0.25, "mixed_weight", 0.25),
        ("evaluation.gate_mode", "two_split", "gate_mode", GateMode.TWO_SPLIT),
        ("evaluation.evaluate_baseline", False, "evaluate_baseline", False),
        ("evaluation.promote_final", False, "promote_final", False),
        ("evaluation.max_error_rate", 0.3, "max_error_rate", 0.3),
        ("evaluation.repeats", 3, "repeats", 3),
        ("evaluation.block_size", 4, "block_size", 4),
    ],
)
def test_a_key_maps_to_its_field(key: str, value: Scalar, field: str, mapped: object) -> None:
    config = to_config(make({key: value}), 400, val_items=200)
    changed = {name: now for name, now in asdict(config).items() if now != getattr(DEFAULT_CONFIG, name)}
    # The number of steps follows from the batch size.
    changed.pop("steps_per_epoch" if key == "train.batch_size" else "", None)
    assert changed == {field: mapped}


DEFAULT_CONFIG = to_config(TaskSettings(), 400, val_items=200)


@pytest.mark.parametrize(
    ("items", "batch_size", "steps"), [(1, 40, 1), (40, 40, 1), (41, 40, 2), (80, 40, 2), (400, 40, 10), (7, 1, 7)]
)
def test_an_epoch_sees_every_train_item_once(items: int, batch_size: int, steps: int) -> None:
    assert to_config(make({"train.batch_size": batch_size}), items, val_items=1).steps_per_epoch == steps


@pytest.mark.parametrize(("wanted", "there", "used"), [(0, 30, 30), (10, 30, 10), (30, 30, 30), (50, 30, 30)])
def test_validation_items_in_use(wanted: int, there: int, used: int) -> None:
    assert to_config(make({"evaluation.sel_env_num": wanted}), 10, val_items=there).val_batch_size == used


def test_train_size_must_match_what_is_there() -> None:
    assert to_config(make({"train.train_size": 92}), 92, val_items=1).steps_per_epoch == 3
    with pytest.raises(SettingsError) as caught:
        to_config(make({"train.train_size": 400}), 92, val_items=1)
    assert caught.value.lines == ("train.train_size: is 400, but there are 92 train items: write that, or 0",)


@pytest.mark.parametrize(("train_items", "val_items"), [(0, 1), (1, 0)])
def test_a_run_without_items_is_a_bug_of_the_caller(train_items: int, val_items: int) -> None:
    with pytest.raises(ValueError, match="a run needs items"):
        to_config(TaskSettings(), train_items, val_items=val_items)


@PROPERTY
@given(task_settings(), st.integers(1, 10_000), st.integers(1, 10_000))
def test_whatever_is_accepted_here_is_accepted_by_the_domain(task: TaskSettings, train: int, val: int) -> None:
    task = task.model_copy(update={"train": task.train.model_copy(update={"train_size": 0})})
    config = to_config(task, train, val_items=val)
    assert config.violations() == ()
    assert config.steps_per_epoch >= 1
    assert 1 <= config.val_batch_size <= val
    if task.train.steps_per_epoch is None:
        assert config.steps_per_epoch == math.ceil(train / (config.train_batch_size * config.accumulation))


def test_the_identity_holds_every_identity_key_as_json() -> None:
    items = identity_items(make({"env.prompt": "é {question}", "model.target_temperature": 1}))
    assert list(items) == [path for path, key in KEYS.items() if key.kind is Kind.IDENTITY]
    assert items["env.prompt"] == '"\\u00e9 {question}"'
    assert items["model.target_temperature"] == "1.0"
    assert (items["train.patience"], items["train.seed"], items["evaluation.use_gate"]) == ("null", "42", "true")


@PROPERTY
@given(task_settings(), task_settings())
def test_identities_differ_exactly_where_identity_keys_differ(one: TaskSettings, other: TaskSettings) -> None:
    first, second = identity_items(one), identity_items(other)
    for path, text in first.items():
        assert (text == second[path]) == (value_at(one, path) == value_at(other, path)), path
        assert json.loads(text) == canonical(value_at(one, path))


def test_operation_keys_do_not_change_the_identity() -> None:
    changed: dict[str, Scalar] = {"env.workers": 1, "gradient.analyst_workers": 1, "model.target_timeout_seconds": 1.0}
    assert identity_items(make(changed)) == identity_items(TaskSettings())


def test_minus_zero_is_zero() -> None:
    assert identity_items(make({"model.target_temperature": -0.0}))["model.target_temperature"] == "0.0"


@PROPERTY
@given(task_settings())
def test_the_effective_file_loads_back_to_the_same_settings(tmp_path: Path, task: TaskSettings) -> None:
    file = tmp_path / "effective.yaml"
    text = effective_yaml(LoadedTask(task, {}, tmp_path))
    file.write_text(text, encoding="utf-8")
    again = load_task(file)
    assert again.settings == task
    assert set(again.sources.values()) == {str(file)}
    assert effective_yaml(again) == text
    assert TaskSettings.model_validate(yaml.safe_load(text)) == task


def test_the_effective_file_is_stable_and_readable(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("env: {prompt: \"Q: {question}\\nA:\", name: 'no'}\nmodel: {target: org/model}\n")
    lines = effective_yaml(load_task(file)).splitlines()
    assert len(lines) == len(KEYS) + 8
    assert lines[:4] == ["model:", "  backend: null", "  target_backend: openai_chat", "  target: org/model"]
    assert "    noise: 0.0" in lines
    assert '  name: "no"' in lines
    assert '  prompt: "Q: {question}\\nA:"' in lines
