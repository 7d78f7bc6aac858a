"""The sections of a task file: every key, its default, its kind and its range."""

import pytest
from pydantic import ValidationError

from burnish.presentation.settings.fields import Kind
from burnish.presentation.settings.keys import KEYS, SECTIONS, value_at
from burnish.presentation.settings.sections import EnvSection, TaskSettings

DEFAULTS: dict[str, object] = {
    "model.backend": None,
    "model.target_backend": "openai_chat",
    "model.target": None,
    "model.target_temperature": None,
    "model.target_max_tokens": None,
    "model.target_reasoning_effort": None,
    "model.target_qwen_chat_thinking_mode": "server_default",
    "model.target_timeout_seconds": 120.0,
    "model.target_max_retries": 5,
    "model.target_max_concurrency": None,
    "model.target_requests_per_minute": None,
    "model.target_tokens_per_minute": None,
    "model.optimizer_backend": "openai_chat",
    "model.optimizer": None,
    "model.optimizer_temperature": None,
    "model.optimizer_max_tokens": None,
    "model.optimizer_reasoning_effort": None,
    "model.optimizer_qwen_chat_thinking_mode": "server_default",
    "model.optimizer_timeout_seconds": 300.0,
    "model.optimizer_max_retries": 5,
    "model.optimizer_max_concurrency": None,
    "model.optimizer_requests_per_minute": None,
    "model.optimizer_tokens_per_minute": None,
    "model.codex_exec_path": "codex",
    "model.codex_exec_sandbox": "workspace-write",
    "model.codex_exec_network_access": False,
    "model.codex_trace_to_optimizer": True,
    "model.claude_code_exec_path": "claude",
    "model.claude_code_exec_tools": "Skill,Read,Glob,Grep,Edit,Write",
    "model.judge_backend": None,
    "model.judge": None,
    "model.judge_temperature": None,
    "model.judge_max_tokens": 1024,
    "model.simulated.knowledge": "",
    "model.simulated.useful": 0.7,
    "model.simulated.useless": 0.2,
    "model.simulated.harmful": 0.1,
    "model.simulated.noise": 0.0,
    "model.simulated.seed": 0,
    "train.num_epochs": 4,
    "train.steps_per_epoch": None,
    "train.batch_size": 40,
    "train.accumulation": 1,
    "train.patience": None,
    "train.seed": 42,
    "train.train_size": 0,
    "gradient.minibatch_size": 8,
    "gradient.merge_batch_size": 8,
    "gradient.analyst_workers": 16,
    "gradient.failure_only": False,
    "gradient.trajectory_view": "full",
    "gradient.obs_chars": 0,
    "optimizer.learning_rate": 4,
    "optimizer.min_learning_rate": 2,
    "optimizer.lr_scheduler": "cosine",
    "optimizer.lr_control_mode": "fixed",
    "optimizer.skill_update_mode": "patch",
    "optimizer.use_slow_update": True,
    "optimizer.slow_update_samples": 20,
    "optimizer.slow_update_gate_with_selection": False,
    "optimizer.longitudinal_pair_policy": "mixed",
    "optimizer.use_skill_aware_reflection": False,
    "optimizer.skill_aware_appendix_source": "both",
    "optimizer.skill_aware_consolidate_threshold": 0,
    "optimizer.use_meta_skill": True,
    "optimizer.recall_meta_skill": False,
    "optimizer.max_skill_tokens": None,
    "optimizer.prompts": None,
    "evaluation.use_gate": True,
    "evaluation.sel_env_num": 0,
    "evaluation.test_env_num": 0,
    "evaluation.eval_test": True,
    "evaluation.one_shot_baseline": True,
    "evaluation.gate_metric": "hard",
    "evaluation.gate_mixed_weight": 0.5,
    "evaluation.gate_mode": "strict",
    "evaluation.evaluate_baseline": True,
    "evaluation.promote_final": True,
    "evaluation.max_error_rate": 0.1,
    "evaluation.repeats": 1,
    "evaluation.block_size": 16,
    "env.name": "",
    "env.skill_init": "",
    "env.split_dir": "",
    "env.data_path": "",
    "env.task": None,
    "env.fields": {},
    "env.check_near_duplicates": 0.0,
    "env.split_mode": "ratio",
    "env.split_ratio": "2:1:7",
    "env.split_seed": 42,
    "env.scorer": "exact_match",
    "env.scorer_function": None,
    "env.field_weights": {},
    "env.judge_rubric": "",
    "env.judge_repeats": 1,
    "env.judge_pass_mark": 0.7,
    "env.prompt": "{question}",
    "env.answer_instruction": None,
    "env.show_reference": True,
    "env.workers": 8,
    "budget.max_rollouts": None,
    "budget.max_tokens": None,
    "budget.max_usd": None,
    "budget.max_minutes": None,
    "budget.prices": {},
}
OPERATION = {
    "model.backend",
    "model.target_timeout_seconds",
    "model.target_max_retries",
    "model.target_max_concurrency",
    "model.target_requests_per_minute",
    "model.target_tokens_per_minute",
    "model.optimizer_timeout_seconds",
    "model.optimizer_max_retries",
    "model.optimizer_max_concurrency",
    "model.optimizer_requests_per_minute",
    "model.optimizer_tokens_per_minute",
    "model.codex_exec_path",
    "model.claude_code_exec_path",
    "gradient.analyst_workers",
    "env.check_near_duplicates",
    "env.workers",
    "budget.max_rollouts",
    "budget.max_tokens",
    "budget.max_usd",
    "budget.max_minutes",
    "budget.prices",
}


def nested(path: str, value: object) -> dict[str, object]:
    tree: dict[str, object] = {}
    *sections, last = path.split(".")
    inner = tree
    for section in sections:
        following: dict[str, object] = {}
        inner[section] = following
        inner = following
    inner[last] = value
    return tree


def test_the_keys_are_these() -> None:
    assert list(KEYS) == list(DEFAULTS)
    assert SECTIONS == ("model", "model.simulated", "train", "gradient", "optimizer", "evaluation", "env", "budget")


@pytest.mark.parametrize(("path", "default"), DEFAULTS.items())
def test_default(path: str, default: object) -> None:
    value = value_at(TaskSettings(), path)
    assert (value, type(value)) == (default, type(default))
    assert KEYS[path].default == default


@pytest.mark.parametrize("path", DEFAULTS)
def test_every_key_declares_its_kind_and_describes_itself_in_one_line(path: str) -> None:
    assert KEYS[path].kind is (Kind.OPERATION if path in OPERATION else Kind.IDENTITY)
    assert 5 <= len(KEYS[path].description) <= 80
    assert KEYS[path].description.isprintable()


@pytest.mark.parametrize("path", DEFAULTS)
def test_every_default_is_accepted_when_written_out(path: str) -> None:
    assert TaskSettings.model_validate(nested(path, DEFAULTS[path])) == TaskSettings()


@pytest.mark.parametrize("path", [path for path, default in DEFAULTS.items() if type(default) is int])
@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 10**30, [1]])
def test_whole_numbers_take_nothing_else(path: str, value: object) -> None:
    with pytest.raises(ValidationError):
        TaskSettings.model_validate(nested(path, value))


@pytest.mark.parametrize("path", [path for path, default in DEFAULTS.items() if type(default) is float])
@pytest.mark.parametrize("value", [True, "0.5", None, -0.1, float("nan"), float("inf"), 10**400])
def test_numbers_are_finite_and_in_range(path: str, value: object) -> None:
    with pytest.raises(ValidationError):
        TaskSettings.model_validate(nested(path, value))


@pytest.mark.parametrize("path", [path for path, default in DEFAULTS.items() if type(default) is bool])
@pytest.mark.parametrize("value", [0, 1, "true", "yes", None])
def test_switches_are_true_or_false(path: str, value: object) -> None:
    with pytest.raises(ValidationError):
        TaskSettings.model_validate(nested(path, value))


@pytest.mark.parametrize("path", [path for path, default in DEFAULTS.items() if type(default) is str])
@pytest.mark.parametrize("value", [1, True, b"fixed", "\0", "\ud800"])
def test_texts_are_storable_texts(path: str, value: object) -> None:
    with pytest.raises(ValidationError):
        TaskSettings.model_validate(nested(path, value))


@pytest.mark.parametrize(
    ("path", "bounds"),
    [
        ("train.num_epochs", (1, 1_000_000_000)),
        ("train.steps_per_epoch", (1, 1_000_000_000)),
        ("train.patience", (1, 1_000_000_000)),
        ("train.seed", (0, 2**63 - 1)),
        ("train.train_size", (0, 1_000_000_000)),
        ("gradient.analyst_workers", (1, 1024)),
        ("optimizer.min_learning_rate", (1, 4)),
        ("evaluation.gate_mixed_weight", (0.0, 1.0)),
        ("evaluation.max_error_rate", (0.0, 1.0)),
        ("model.target_temperature", (0.0, 2.0)),
        ("model.target_max_tokens", (1, 1_000_000_000)),
        ("model.target_timeout_seconds", (0.001, 86_400.0)),
        ("model.target_max_retries", (0, 20)),
        ("model.simulated.noise", (0.0, 1.0)),
        ("env.workers", (1, 1024)),
    ],
)
def test_range(path: str, bounds: tuple[float, float]) -> None:
    low, high = bounds
    for inside in bounds:
        assert value_at(TaskSettings.model_validate(nested(path, inside)), path) == inside
    for outside in (low - 1, high + 1):
        with pytest.raises(ValidationError):
            TaskSettings.model_validate(nested(path, outside))


def test_unknown_keys_are_refused_in_every_section() -> None:
    for section in ("", *(f"{name}." for name in SECTIONS)):
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            TaskSettings.model_validate(nested(f"{section}unheard_of", 1))


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        TaskSettings().train.seed = 1  # pyright: ignore[reportAttributeAccessIssue]  that is the point


@pytest.mark.parametrize(
    ("section", "mode"),
    [
        ({}, "ratio"),
        ({"split_mode": None}, "ratio"),
        ({"data_path": "items.jsonl"}, "ratio"),
        ({"split_dir": "items"}, "split_dir"),
        ({"split_dir": "items", "split_mode": None}, "split_dir"),
        ({"split_dir": "items", "split_mode": "split_dir"}, "split_dir"),
        ({"split_dir": "items", "split_mode": "ratio"}, "ratio"),
    ],
)
def test_split_mode_follows_split_dir_unless_it_is_set(section: dict[str, object], mode: str) -> None:
    assert EnvSection.model_validate(section).split_mode == mode


@pytest.mark.parametrize(("written", "meant"), [("Cosine", "cosine"), ("LINEAR", "linear"), ("constant", "constant")])
def test_a_scheduler_is_known_in_any_case(written: str, meant: str) -> None:
    settings = TaskSettings.model_validate(nested("optimizer.lr_scheduler", written))
    assert settings.optimizer.lr_scheduler == meant


def test_the_three_shares_of_the_simulated_coach_may_be_rounded_but_add_up_to_one() -> None:
    thirds = {"useful": 1 / 3, "useless": 1 / 3, "harmful": 1 / 3}
    assert TaskSettings.model_validate({"model": {"simulated": thirds}}).model.simulated.useful == 1 / 3


def test_settings_of_a_backend_not_in_use_are_no_error() -> None:
    model = {"target_backend": "openai_chat", "optimizer_backend": "openai_chat", "simulated": {"noise": 0.5}}
    assert TaskSettings.model_validate({"model": model}).model.simulated.noise == 0.5
