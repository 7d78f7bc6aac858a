"""A run's settings under system B's flat names."""

from __future__ import annotations

from pathlib import PurePath

from burnish.presentation.settings.keys import KEYS, value_at
from burnish.presentation.settings.mapping import canonical
from burnish.presentation.settings.sections import TaskSettings

_RENAMED = {
    "model.backend": "model_backend",
    "model.target": "target_model",
    "model.optimizer": "optimizer_model",
    "optimizer.learning_rate": "edit_budget",
    "optimizer.min_learning_rate": "min_edit_budget",
    "env.name": "env",
}
"""Keys whose flat name is not their last part."""

_SHARED = frozenset(
    {
        *("model.target_backend", "model.optimizer_backend"),
        *("model.target_qwen_chat_thinking_mode", "model.optimizer_qwen_chat_thinking_mode"),
        *("model.codex_exec_path", "model.codex_exec_sandbox", "model.codex_exec_network_access"),
        *("model.codex_trace_to_optimizer", "model.claude_code_exec_path"),
        *("train.num_epochs", "train.steps_per_epoch", "train.batch_size", "train.accumulation", "train.seed"),
        "train.train_size",
        *("gradient.minibatch_size", "gradient.merge_batch_size", "gradient.analyst_workers", "gradient.failure_only"),
        *("optimizer.lr_scheduler", "optimizer.lr_control_mode", "optimizer.skill_update_mode"),
        *("optimizer.use_slow_update", "optimizer.slow_update_samples", "optimizer.slow_update_gate_with_selection"),
        *("optimizer.longitudinal_pair_policy", "optimizer.use_meta_skill"),
        *("optimizer.use_skill_aware_reflection", "optimizer.skill_aware_appendix_source"),
        "optimizer.skill_aware_consolidate_threshold",
        *("evaluation.use_gate", "evaluation.sel_env_num", "evaluation.test_env_num", "evaluation.eval_test"),
        *("evaluation.gate_metric", "evaluation.gate_mixed_weight"),
        *("env.skill_init", "env.split_dir", "env.data_path", "env.split_mode", "env.split_ratio", "env.split_seed"),
        "env.workers",
    }
)
"""Keys that system B has too, with the same last part; the others are burnish's own and keep their whole path."""


def flat_config(settings: TaskSettings, folder: PurePath) -> dict[str, object]:
    """Every key with the value in force; there is no key for a secret. `folder` is where the run is told to be."""
    values = {_flat(path): canonical(value_at(settings, path)) for path in KEYS}
    return {**values, "out_root": str(folder)}


def _flat(path: str) -> str:
    if path in _RENAMED:
        return _RENAMED[path]
    return path.rpartition(".")[2] if path in _SHARED else path
