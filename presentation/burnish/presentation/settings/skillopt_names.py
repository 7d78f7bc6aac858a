"""SkillOpt's keys and flags, each with the setting that does the same here, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from burnish.presentation.settings.errors import listed
from burnish.presentation.settings.keys import KEYS


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillOptName:
    """A setting of SkillOpt (system B).

    `path` is its key in a structured file ("train.num_epochs"; without a section: a flag only), `flag` its flat name, which
    is the command line's too (`--num_epochs`). `renamed` are the settings that do the same under other names, `option` the
    option of ours that does; `remark` says what is different. `reason` says why there is none, as long as there is none.
    """

    path: str
    flag: str
    renamed: tuple[str, ...] = ()
    option: str = ""
    remark: str = ""
    reason: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The settings that do the same; none for a name that is refused, or an option of the command line."""
        if self.path in KEYS:
            return (self.path,)
        return self.renamed if all(key in KEYS for key in self.renamed) else ()

    @property
    def is_supported(self) -> bool:
        """Whether there is a setting or an option that does the same."""
        return bool(self.keys or self.option)

    @property
    def remedy(self) -> str:
        """What to write instead of the name."""
        if self.keys:
            return f"set {listed(self.keys, 'and')}"
        return (self.remark or f"say {self.option} on the command line") if self.option else self.reason


def by_flag(flag: str) -> SkillOptName | None:
    """The setting of this flat name."""
    return _BY_FLAG.get(flag)


def by_path(path: str) -> SkillOptName | None:
    """The setting a path in a task file means: its own, or that of its last name, wherever that stands."""
    return _BY_PATH.get(path) or _BY_FLAG.get(name := path.rpartition(".")[2]) or _BY_LAST_NAME.get(name)


_BOTH = ("target", "optimizer")
_SEEN = "a key on a command line or in a file is seen by others: set the environment variable {}_API_KEY"
_ADDRESS = "addresses come from the environment: set {}_BASE_URL"
_AZURE = "what is about Azure comes from the environment: set {}AZURE_OPENAI_{}"
_AGENT = "an agent is started anew for each item, by its command line, and never asks: remove it"
_MINIMAX = "there is no MiniMax backend: use openai_compatible with OPENAI_COMPATIBLE_BASE_URL, _API_KEY and _MODEL"
_COPILOT = "there is no Copilot backend: use openai_compatible"
_CURSOR = "there is no Cursor backend: use openai_compatible"
_THINKING = "say it in words: set {} to enabled or disabled"
_DENSITY = "a score here is what items measure, nothing else: remove it"
_NO_BENCHMARK = "belongs to SkillOpt's {}, which is no built-in task: map its items with env.prompt and env.scorer"
_NO_JUDGE = "belongs to SkillOpt's own judge: name a scorer in env.scorer"
_ONE_LIMIT = "one limit holds for all of the optimizer's answers: set model.optimizer_max_tokens"
_ONE_EFFORT = "one effort holds for all of the optimizer's calls: set model.optimizer_reasoning_effort"
_RETIRED = "has no effect in SkillOpt either: remove it"

_SAME = {
    "model": (
        "optimizer_backend target_backend codex_exec_path codex_exec_sandbox codex_exec_network_access "
        "codex_trace_to_optimizer claude_code_exec_path"
    ),
    "train": "num_epochs train_size batch_size accumulation seed",
    "gradient": "minibatch_size merge_batch_size analyst_workers failure_only",
    "optimizer": (
        "lr_scheduler lr_control_mode skill_update_mode use_slow_update slow_update_samples "
        "slow_update_gate_with_selection longitudinal_pair_policy use_meta_skill "
        "use_skill_aware_reflection skill_aware_appendix_source skill_aware_consolidate_threshold"
    ),
    "evaluation": "sel_env_num test_env_num eval_test gate_metric gate_mixed_weight",
    "env": "skill_init split_mode split_ratio split_seed split_dir data_path workers",
}
_REFUSED: Mapping[str, Mapping[str, str]] = {
    "model": {
        "rewrite_reasoning_effort": _ONE_EFFORT,
        "rewrite_max_completion_tokens": _ONE_LIMIT,
        **{f"codex_exec_{name}": _AGENT for name in ("profile", "approval_policy", "use_sdk", "web_search")},
        "codex_exec_full_auto": _RETIRED,
        **{f"claude_code_exec_{name}": _AGENT for name in ("profile", "use_sdk", "max_thinking_tokens")},
        **dict.fromkeys(("cursor_exec_path", "cursor_exec_sandbox"), _CURSOR),
        **{f"copilot_exec_{name}": _COPILOT for name in ("path", "home", "allow_all_tools")},
        **{f"copilot_chat_{name}": _COPILOT for name in ("optimizer_model", "target_model", "timeout")},
        "azure_endpoint": _AZURE.format("", "ENDPOINT"),
        "azure_api_version": _AZURE.format("", "API_VERSION"),
        "azure_api_key": _SEEN.format("AZURE_OPENAI"),
        **{
            f"minimax_{name}": _MINIMAX
            for name in ("region", "base_url", "api_key", "model", "temperature", "max_tokens", "enable_thinking")
        },
        **{f"{role}_minimax_{name}": _MINIMAX for role in _BOTH for name in ("base_url", "api_key")},
    },
    "gradient": {"max_analyst_rounds": _RETIRED},
    "evaluation": {
        "use_semantic_density": _DENSITY,
        "semantic_density_weight": _DENSITY,
        "leading_words": _DENSITY,
    },
    "env": {
        "split_output_dir": "splits are dealt out anew, and alike, from env.split_seed: nothing is written",
        "limit": "splits are not cut unseen: set evaluation.sel_env_num, evaluation.test_env_num, train.steps_per_epoch",
        "mode": _NO_BENCHMARK.format("SpreadsheetBench"),
        "max_turns": "an agent answers in one turn: remove it",
        "data_root": _NO_BENCHMARK.format("SpreadsheetBench"),
        "image_detail": _NO_BENCHMARK.format("DocVQA"),
        "max_tool_turns": _NO_BENCHMARK.format("OfficeQA"),
        "search_mode": _NO_BENCHMARK.format("OfficeQA"),
        "data_dirs": _NO_BENCHMARK.format("OfficeQA"),
        "search_api_url": _NO_BENCHMARK.format("OfficeQA"),
        "shuffle_choices": _NO_BENCHMARK.format("LiveMathematicianBench"),
        "use_theorem": _NO_BENCHMARK.format("LiveMathematicianBench"),
        "use_sketch": _NO_BENCHMARK.format("LiveMathematicianBench"),
        "max_steps": _NO_BENCHMARK.format("ALFWorld"),
        "judge_model": _NO_JUDGE,
        "judge_max_completion_tokens": _NO_JUDGE,
        "judge_retries": _NO_JUDGE,
    },
}


def _names() -> Iterator[SkillOptName]:
    yield SkillOptName(
        path="model.backend",
        flag="backend",
        remark="qwen_chat and agents become the target; the optimizer is openai_chat then",
    )
    for short, key in {
        **dict.fromkeys(("codex_path", "codex_cli_bin", "codex_bin"), "model.codex_exec_path"),
        **dict.fromkeys(("codex_sandbox", "sandbox"), "model.codex_exec_sandbox"),
        **dict.fromkeys(("codex_exec_reasoning_effort", "claude_code_exec_effort"), "model.target_reasoning_effort"),
    }.items():
        yield SkillOptName(path=f"model.{short}", flag=short, renamed=(key,))
    yield SkillOptName(path="model.optimizer", flag="optimizer_model", renamed=("model.optimizer",))
    yield SkillOptName(path="model.target", flag="target_model", renamed=("model.target",))
    yield SkillOptName(
        path="model.reasoning_effort",
        flag="reasoning_effort",
        renamed=("model.target_reasoning_effort", "model.optimizer_reasoning_effort"),
    )
    for role in ("", "optimizer_", "target_"):
        yield from _azure(role)
        for backend in ("qwen_chat", "openai_compatible"):
            yield from _server(role, backend)
    for section, names in _SAME.items():
        yield from (SkillOptName(path=f"{section}.{name}", flag=name) for name in names.split())
    yield SkillOptName(path="train.steps_per_epoch", flag="steps_per_epoch", remark="holds; SkillOpt works it out anew")
    yield SkillOptName(path="optimizer.learning_rate", flag="edit_budget")
    yield SkillOptName(path="optimizer.min_learning_rate", flag="min_edit_budget")
    yield SkillOptName(path="optimizer.meta_learning_rate", flag="meta_edit_budget", reason=_RETIRED)
    yield SkillOptName(path="evaluation.use_gate", flag="use_gate", remark="true only; false is refused")
    yield SkillOptName(
        path="env.name",
        flag="env",
        remark="names the task and its run folder; what it asks is set by its data and scorer",
    )
    yield SkillOptName(
        path="env.out_root",
        flag="out_root",
        option="--out-root",
        remark="name the run folder on the command line (--out-root)",
    )
    yield SkillOptName(
        path="env.exec_timeout",
        flag="exec_timeout",
        renamed=("model.target_timeout_seconds",),
        remark="the longest wait for one answer",
    )
    yield SkillOptName(
        path="env.max_completion_tokens", flag="max_completion_tokens", renamed=("model.target_max_tokens",)
    )
    yield SkillOptName(path="env.max_api_workers", flag="max_api_workers", renamed=("env.workers",))
    for section, reasons in _REFUSED.items():
        for name, reason in reasons.items():
            yield SkillOptName(path=f"{section}.{name}", flag=name, reason=reason)
    yield SkillOptName(
        path="config", flag="config", option="--config", remark="the same as TASK.yaml without an option"
    )
    yield SkillOptName(path="cfg-options", flag="cfg-options", option="--cfg-options")
    yield SkillOptName(path="skill", flag="skill", option="--skill", remark="of burnish eval")
    yield SkillOptName(
        path="split",
        flag="split",
        option="--split",
        remark="of burnish eval, one split at a time: val for valid_seen, test for valid_unseen",
    )


def _azure(role: str) -> Iterator[SkillOptName]:
    names = ("endpoint", "api_version", "api_key", "auth_mode", "ad_scope", "managed_identity_client_id")
    for name in names:
        flag, prefix = f"{role}azure_openai_{name}", role.upper()
        reason = _SEEN.format(f"{prefix}AZURE_OPENAI") if name == "api_key" else _AZURE.format(prefix, name.upper())
        yield SkillOptName(path=f"model.{flag}", flag=flag, reason=reason)


def _server(role: str, backend: str) -> Iterator[SkillOptName]:
    """The names of a backend that is a server with OpenAI's API."""
    prefix = f"{role.upper()}{backend.upper()}"
    reasons = {"base_url": _ADDRESS.format(prefix), "api_key": _SEEN.format(prefix)}
    renamed = ("temperature", "timeout_seconds", "max_tokens")
    if backend == "qwen_chat":
        modes = tuple(f"model.{each}_qwen_chat_thinking_mode" for each in _roles(role))
        reasons["enable_thinking"] = _THINKING.format(listed(modes, "and"))
        yield SkillOptName(
            path=f"model.{role}qwen_chat_thinking_mode", flag=f"{role}qwen_chat_thinking_mode", renamed=modes
        )
    else:
        yield SkillOptName(
            path=f"model.{role}{backend}_model",
            flag=f"{role}{backend}_model",
            renamed=tuple(f"model.{each}" for each in _roles(role)),
        )
    for name, reason in reasons.items():
        flag = f"{role}{backend}_{name}"
        yield SkillOptName(path=f"model.{flag}", flag=flag, reason=reason)
    for name in renamed:
        flag = f"{role}{backend}_{name}"
        keys = tuple(f"model.{each}_{name}" for each in _roles(role))
        yield SkillOptName(path=f"model.{flag}", flag=flag, renamed=keys)


def _roles(prefix: str) -> tuple[str, ...]:
    return (prefix.rstrip("_"),) if prefix else _BOTH


SKILLOPT_NAMES = tuple(_names())
"""All of them: SkillOpt's default.yaml, the keys of its benchmarks, and the flags of its train and eval scripts."""

_BY_FLAG: Mapping[str, SkillOptName] = MappingProxyType({name.flag: name for name in SKILLOPT_NAMES})
_BY_PATH: Mapping[str, SkillOptName] = MappingProxyType({name.path: name for name in SKILLOPT_NAMES})
_BY_LAST_NAME: Mapping[str, SkillOptName] = MappingProxyType(
    {name.path.rpartition(".")[2]: name for name in SKILLOPT_NAMES}
)
