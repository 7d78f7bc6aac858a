"""The model of each role, from checked settings: simulated, behind an API, or an agent's command line."""

from __future__ import annotations

import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict, cast

from pydantic import SecretStr

from burnish.infrastructure.agents.agent_settings import AgentSettings
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.models.claude_settings import HIGHEST_TEMPERATURE, ClaudeChatSettings
from burnish.infrastructure.models.extras import MissingExtraError
from burnish.infrastructure.models.metered import MeteredModel
from burnish.infrastructure.models.offline import OfflineModel
from burnish.infrastructure.models.openai_settings import OpenAIChatSettings
from burnish.infrastructure.models.qwen_settings import QwenChatSettings
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice
from burnish.infrastructure.simulation.coach import SimulatedCoach
from burnish.infrastructure.simulation.judge import SimulatedJudge
from burnish.presentation.model_facts import chosen_judge
from burnish.presentation.settings.environment import NO_KEY, AgentBackend, ApiBackend, Endpoint, Environment, Role
from burnish.presentation.settings.errors import SettingsError, shown
from burnish.presentation.settings.model_section import AGENT_BACKENDS, Backend, Effort, ModelSection, ThinkingMode
from burnish.presentation.settings.sections import TaskSettings
from burnish.presentation.text_files import read_text_file


class _Common(TypedDict):
    """What the settings of all APIs have."""

    model: str
    base_url: str | None
    api_key: str
    timeout_seconds: float
    max_retries: int
    max_concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None
    max_tokens: int | None
    temperature: float | None
    reasoning_effort: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSettings:
    """What the settings say about one role's model; its address and key are those of the role `place`."""

    place: Role
    backend: Backend
    name: str | None
    temperature: float | None
    max_tokens: int | None
    reasoning_effort: Effort | None
    thinking_mode: ThinkingMode
    timeout_seconds: float
    max_retries: int
    max_concurrency: int
    requests_per_minute: int | None
    tokens_per_minute: int | None


def role_settings(role: Role, settings: TaskSettings) -> RoleSettings:
    """The role's part of the section `model`."""
    model = settings.model
    if role is Role.TARGET:
        return RoleSettings(
            place=role,
            backend=model.target_backend,
            name=model.target,
            temperature=model.target_temperature,
            max_tokens=model.target_max_tokens,
            reasoning_effort=model.target_reasoning_effort,
            thinking_mode=model.target_qwen_chat_thinking_mode,
            timeout_seconds=model.target_timeout_seconds,
            max_retries=model.target_max_retries,
            max_concurrency=model.target_max_concurrency or settings.env.workers,
            requests_per_minute=model.target_requests_per_minute,
            tokens_per_minute=model.target_tokens_per_minute,
        )
    of_optimizer = RoleSettings(
        place=Role.OPTIMIZER,
        backend=model.optimizer_backend,
        name=model.optimizer,
        temperature=model.optimizer_temperature,
        max_tokens=model.optimizer_max_tokens,
        reasoning_effort=model.optimizer_reasoning_effort,
        thinking_mode=model.optimizer_qwen_chat_thinking_mode,
        timeout_seconds=model.optimizer_timeout_seconds,
        max_retries=model.optimizer_max_retries,
        max_concurrency=model.optimizer_max_concurrency or settings.gradient.analyst_workers,
        requests_per_minute=model.optimizer_requests_per_minute,
        tokens_per_minute=model.optimizer_tokens_per_minute,
    )
    if role is Role.OPTIMIZER:
        return of_optimizer
    judge = chosen_judge(settings)  # without a backend of its own it answers where the optimizer does
    return replace(
        of_optimizer,
        place=Role.OPTIMIZER if model.judge_backend is None else role,
        backend=judge.backend,
        name=judge.name,
        temperature=model.judge_temperature,
        max_tokens=model.judge_max_tokens,
        max_concurrency=settings.env.workers,
    )


async def connect_model(
    role: Role, settings: TaskSettings, base: Path, environment: Environment, stack: AsyncExitStack, *, offline: bool
) -> ChatModel:
    """The role's model; closed with the stack. Raises SettingsError for what it lacks.

    With `offline` nothing is connected, and neither address nor key nor SDK is needed.
    """
    of_role = role_settings(role, settings)
    if of_role.backend == "simulated":
        model = _simulate(role, settings.model, base)
    elif of_role.backend in AGENT_BACKENDS:
        model = _agent(role, of_role, settings.model, environment, offline=offline)
    else:
        try:
            model = _served(role, of_role, environment, offline=offline)
        except MissingExtraError as error:
            where = f"model.{of_role.place}_backend: {of_role.backend}"
            raise SettingsError((f"{where}: needs the extra {error.extra}: install burnish[{error.extra}]",)) from None
    stack.push_async_callback(model.aclose)
    return MeteredModel(model, role.value)


def _agent(
    role: Role, of_role: RoleSettings, section: ModelSection, environment: Environment, *, offline: bool
) -> ChatModel:
    backend = cast("AgentBackend", of_role.backend)
    is_codex = backend == "codex_exec"
    path = section.codex_exec_path if is_codex else section.claude_code_exec_path
    environ = environment.for_agent(role, backend)
    settings = AgentSettings(
        agent="codex" if is_codex else "claude-code",
        command=path,
        environ=environ,
        model=of_role.name,
        reasoning_effort=of_role.reasoning_effort,
        sandbox=section.codex_exec_sandbox,
        network_access=section.codex_exec_network_access,
        tools=section.claude_code_exec_tools,
        shows_trace=section.codex_trace_to_optimizer,
        timeout_seconds=of_role.timeout_seconds,
        max_retries=of_role.max_retries,
        max_concurrency=of_role.max_concurrency,
        requests_per_minute=of_role.requests_per_minute,
    )
    if offline:
        return OfflineModel(settings.fingerprint)
    found = shutil.which(path, path=environ.get("PATH"))
    if found is None:
        key = f"model.{backend}_path"
        raise SettingsError((f"{key}: there is no command {shown(path)}: install the agent, or set the path of it",))
    from burnish.infrastructure.agents.agent_model import AgentModel  # noqa: PLC0415 - for calls only

    return AgentModel(replace(settings, command=str(Path(found).absolute())))


def _simulate(role: Role, section: ModelSection, base: Path) -> ChatModel:
    simulated = section.simulated
    if role is Role.TARGET:
        return SimulatedApprentice(noise=simulated.noise, seed=simulated.seed)
    if role is Role.JUDGE:
        return SimulatedJudge()
    if not simulated.knowledge:
        raise SettingsError(
            ("model.simulated.knowledge: names no file: the simulated optimizer needs the right rules",)
        )
    path = base / simulated.knowledge
    knowledge = read_text_file(path, "model.simulated.knowledge")
    try:
        return SimulatedCoach(
            knowledge,
            useful=simulated.useful,
            useless=simulated.useless,
            harmful=simulated.harmful,
            seed=simulated.seed,
        )
    except ValueError as error:
        raise SettingsError((f"model.simulated.knowledge: {path}: holds no rule lines to teach from",)) from error


def _served(role: Role, of_role: RoleSettings, environment: Environment, *, offline: bool) -> ChatModel:
    backend = cast("ApiBackend", of_role.backend)
    endpoint = (
        Endpoint(base_url=None, api_key=SecretStr(NO_KEY), model=of_role.name or "")
        if offline
        else environment.endpoint(of_role.place, backend, of_role.name)
    )
    if backend == "claude_chat" and of_role.temperature is not None and of_role.temperature > HIGHEST_TEMPERATURE:
        most = f"must be at most {HIGHEST_TEMPERATURE:g} for claude_chat"
        raise SettingsError((f"model.{role}_temperature: {most}, not {of_role.temperature:g}",))
    common = _Common(
        model=endpoint.model,
        base_url=endpoint.base_url,
        api_key=endpoint.api_key.get_secret_value(),
        timeout_seconds=of_role.timeout_seconds,
        max_retries=of_role.max_retries,
        max_concurrency=of_role.max_concurrency,
        requests_per_minute=of_role.requests_per_minute,
        tokens_per_minute=of_role.tokens_per_minute,
        max_tokens=of_role.max_tokens,
        temperature=of_role.temperature,
        reasoning_effort=of_role.reasoning_effort,
    )
    # Each client is imported where it is made: its libraries are for calls only.
    match backend:
        case "claude_chat":
            claude = ClaudeChatSettings(**common, is_token=endpoint.is_token)
            if offline:
                return OfflineModel(claude.fingerprint)
            from burnish.infrastructure.models.claude_chat import ClaudeChatModel  # noqa: PLC0415

            return ClaudeChatModel(claude)
        case "qwen_chat":
            qwen = QwenChatSettings(**common, thinking_mode=of_role.thinking_mode)
            if offline:
                return OfflineModel(qwen.fingerprint)
            from burnish.infrastructure.models.qwen_chat import QwenChatModel  # noqa: PLC0415

            return QwenChatModel(qwen)
        case _:
            is_openai = backend == "openai_chat"
            openai = OpenAIChatSettings(
                **common,
                token_parameter="max_completion_tokens" if is_openai else "max_tokens",
                is_openai=is_openai,
                azure=endpoint.azure,
            )
            if offline:
                return OfflineModel(openai.fingerprint)
            from burnish.infrastructure.models.openai_chat import OpenAIChatModel  # noqa: PLC0415

            return OpenAIChatModel(openai)
