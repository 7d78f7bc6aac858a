"""The section `model` of a task file: the models of all roles, and what stands in for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field, ValidationInfo, field_validator

from burnish.presentation.settings.fields import (
    MAX_COUNT,
    Positive,
    Seconds,
    Section,
    Seed,
    Share,
    Text,
    Workers,
    aliases,
    identity,
    operation,
    planned,
    rule,
)

MAX_MODEL_NAME = 256


def bad_model_name(name: str) -> str | None:
    """What is wrong with a model's name, or None."""
    if name.strip() != name or not name.isprintable() or not 1 <= len(name) <= MAX_MODEL_NAME:
        return f"must be a model's name: 1 to {MAX_MODEL_NAME} printable characters, no white space at its ends"
    return None


_CHATS = "openai_chat, openai_compatible, claude_chat, qwen_chat"
_BACKENDS = f"{_CHATS} or simulated"
_TARGET_BACKENDS = f"{_CHATS}, codex_exec, claude_code_exec or simulated"
_EFFORTS = "none, minimal, low, medium, high, xhigh or max; null: not sent"

BACKEND_NAMES = {
    "azure_openai": "openai_chat",
    "claude": "claude_chat",
    "codex": "codex_exec",
    "qwen": "qwen_chat",
}
"""System B's other names of backends."""

_LATER = ("minimax_chat", "copilot_chat", "cursor_exec", "copilot_exec")

Backend = Literal[
    "openai_chat",
    "openai_compatible",
    "claude_chat",
    "qwen_chat",
    "codex_exec",
    "claude_code_exec",
    "simulated",
]
AGENT_BACKENDS: frozenset[Backend] = frozenset({"codex_exec", "claude_code_exec"})
"""Agents' command lines, which try items and do not optimize."""

TargetBackend = Annotated[Backend, planned(*_LATER, instead=_TARGET_BACKENDS), aliases(BACKEND_NAMES)]
OptimizerBackend = Annotated[
    Literal["openai_chat", "openai_compatible", "claude_chat", "qwen_chat", "simulated"],
    planned(*_LATER, instead=_BACKENDS),
    aliases(BACKEND_NAMES),
]
ROLES_OF_BACKEND: Mapping[str, tuple[str, str]] = {
    **{name: (name, name) for name in ("openai_chat", "openai_compatible", "claude_chat", "simulated")},
    **{name: (name, "openai_chat") for name in ("qwen_chat", "codex_exec", "claude_code_exec")},
}
"""What model.backend makes of the agent and of the optimizer (system B; its codex can optimize too)."""

ThinkingMode = Literal["server_default", "enabled", "disabled"]
Rate = Annotated[int, Ge(1), Le(MAX_COUNT)]
_CONCURRENCY = "requests in flight at once; null: as many as workers"
_THINKING = "whether a Qwen model thinks: server_default, enabled or disabled"
ModelName = Annotated[str, rule(bad_model_name)]
Temperature = Annotated[float, Ge(0), Le(2)]
Retries = Annotated[int, Ge(0), Le(20)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class SimulatedSection(Section):
    """`model.simulated`: the coach and the apprentice that stand in for models; read by the simulated backend only."""

    knowledge: Text = identity("", "file with the right rules, which the coach draws its useful edits from")
    useful: Share = identity(0.7, "share of the coach's edits that help")
    useless: Share = identity(0.2, "share of its edits that change nothing")
    harmful: Share = identity(0.1, "share of its edits that do harm; the three shares add up to 1")
    noise: Share = identity(0.0, "chance that the apprentice slips")
    seed: Seed = identity(0, "decides which edits and which slips come up")

    @field_validator("harmful")
    @classmethod
    def _shares_add_up(cls, harmful: float, info: ValidationInfo) -> float:
        shares = (info.data.get("useful"), info.data.get("useless"), harmful)
        if None not in shares and not math.isclose(math.fsum(share or 0.0 for share in shares), 1.0, abs_tol=1e-9):
            raise ValueError("useful, useless and harmful must add up to 1")
        return harmful


class ModelSection(Section):
    """`model`: the agent's model (target) and the optimizer's; what a role's backend does not use is ignored."""

    backend: Annotated[Backend, planned(*_LATER, instead=_TARGET_BACKENDS), aliases(BACKEND_NAMES)] | None = operation(
        None, "sets the backends of both roles where the same file does not"
    )
    target_backend: TargetBackend = identity("openai_chat", "the agent's: see docs/models.md")
    target: ModelName | None = identity(
        None, "the agent's model; null: the environment's, else the backend's usual one"
    )
    target_temperature: Temperature | None = identity(
        None, "how freely it answers, 0 to 2; null: the server's own setting"
    )
    target_max_tokens: Positive | None = identity(None, "longest answer, in tokens; null: the server's own limit")
    target_reasoning_effort: Effort | None = identity(None, _EFFORTS)
    target_qwen_chat_thinking_mode: ThinkingMode = identity("server_default", _THINKING)
    target_timeout_seconds: Seconds = operation(120.0, "longest wait for one answer")
    target_max_retries: Retries = operation(5, "further attempts after a passing failure")
    target_max_concurrency: Workers | None = operation(None, _CONCURRENCY)
    target_requests_per_minute: Rate | None = operation(None, "requests begun in a minute; null: no limit")
    target_tokens_per_minute: Rate | None = operation(None, "tokens used in a minute; null: no limit")
    optimizer_backend: OptimizerBackend = identity("openai_chat", "the optimizer's: see docs/models.md")
    optimizer: ModelName | None = identity(
        None, "the optimizer's model; null: the environment's, else the backend's usual one"
    )
    optimizer_temperature: Temperature | None = identity(
        None, "how freely it answers, 0 to 2; null: the server's own setting"
    )
    optimizer_max_tokens: Positive | None = identity(None, "longest answer, in tokens; null: 4096")
    optimizer_reasoning_effort: Effort | None = identity(None, _EFFORTS)
    optimizer_qwen_chat_thinking_mode: ThinkingMode = identity("server_default", _THINKING)
    optimizer_timeout_seconds: Seconds = operation(300.0, "longest wait for one answer")
    optimizer_max_retries: Retries = operation(5, "further attempts after a passing failure")
    optimizer_max_concurrency: Workers | None = operation(None, _CONCURRENCY)
    optimizer_requests_per_minute: Rate | None = operation(None, "requests begun in a minute; null: no limit")
    optimizer_tokens_per_minute: Rate | None = operation(None, "tokens used in a minute; null: no limit")
    codex_exec_path: Text = operation("codex", "the command codex_exec starts")
    codex_exec_sandbox: Literal["read-only", "workspace-write", "danger-full-access"] = identity(
        "workspace-write", "what its commands may do: read-only, workspace-write or danger-full-access"
    )
    codex_exec_network_access: bool = identity(default=False, description="let them use the network in workspace-write")
    codex_trace_to_optimizer: bool = identity(default=True, description="show the optimizer what an agent did")
    claude_code_exec_path: Text = operation("claude", "the command claude_code_exec starts")
    claude_code_exec_tools: Text = identity("Skill,Read,Glob,Grep,Edit,Write", "the tools it may use without asking")
    judge_backend: OptimizerBackend | None = identity(
        None, "of scorer llm_judge, as target_backend; null: the optimizer's"
    )
    judge: ModelName | None = identity(None, "the judge's model; null: the optimizer's, or its backend's environment")
    judge_temperature: Temperature | None = identity(
        None, "how freely it grades, 0 to 2; null: the server's own setting"
    )
    judge_max_tokens: Positive = identity(1_024, "longest grade with its reason, in tokens")
    simulated: SimulatedSection = Field(default_factory=SimulatedSection)
