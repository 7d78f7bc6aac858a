"""Whether a task's models can be asked: address, key, model, and answers in JSON; each at the price of one short call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Final, cast

from burnish.application.usage import UsageNote, collecting_usage
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest
from burnish.presentation.checks import Check, failed, ok, warning
from burnish.presentation.connecting import connect_model, role_settings
from burnish.presentation.model_facts import LLM_JUDGE
from burnish.presentation.settings.environment import ApiBackend, Environment, Role
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.settings.model_section import AGENT_BACKENDS

_ROLES: Final = (Role.TARGET, Role.OPTIMIZER)
_LONGEST_WAIT_SECONDS: Final = 30.0
_PLAIN_TOKENS: Final = 16
_JSON_TOKENS: Final = 64
_SCHEMA: Final = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
_MODES: Final = ("its schema is followed by the server", "JSON mode, without a schema", "no JSON mode")
"""How JSON was got, by the number of requests it took: each refusal makes the next one weaker."""


async def check_models(loaded: LoadedTask, environment: Environment) -> tuple[tuple[Check, ...], tuple[UsageNote, ...]]:
    """What came of asking the target a word and the optimizer a JSON object, and what that used."""
    with collecting_usage() as usage:
        roles = (*_ROLES, *((Role.JUDGE,) if loaded.settings.env.scorer == LLM_JUDGE else ()))
        checks = [check for role in roles for check in await _check_role(role, _impatient(loaded), environment)]
    return tuple(checks), tuple(usage)


def _impatient(loaded: LoadedTask) -> LoadedTask:
    """The task with one attempt a call, and short waits."""
    model = loaded.settings.model
    changed = {
        "target_max_retries": 0,
        "optimizer_max_retries": 0,
        "target_timeout_seconds": min(model.target_timeout_seconds, _LONGEST_WAIT_SECONDS),
        "optimizer_timeout_seconds": min(model.optimizer_timeout_seconds, _LONGEST_WAIT_SECONDS),
    }
    settings = loaded.settings.model_copy(update={"model": model.model_copy(update=changed)})
    return LoadedTask(settings, loaded.sources, loaded.base_dir)


async def _check_role(role: Role, loaded: LoadedTask, environment: Environment) -> Sequence[Check]:
    of_role = role_settings(role, loaded.settings)
    backend, name = of_role.backend, of_role.name
    if backend == "simulated":
        return [warning(f"{role} model", "simulated: its scores say nothing about any real model")]
    async with AsyncExitStack() as stack:
        try:
            model = await connect_model(role, loaded.settings, loaded.base_dir, environment, stack, offline=False)
        except SettingsError as error:
            return [failed(f"{role} model", line) for line in error.lines]
        if backend in AGENT_BACKENDS:
            return [ok(f"{role} agent", f"{backend}: its command is there; it was not asked, that takes many tokens")]
        address, key = _where(of_role.place, cast("ApiBackend", backend), environment)
        try:
            answer = await model.complete(_request(role))
        except ChatError as error:
            return list(_explained(role, error.code, name or "", address, key))
    checks = [ok(f"{role} endpoint", address), ok(f"{role} key", "accepted"), ok(f"{role} model", f"{name} answers")]
    return checks if role is Role.TARGET else [*checks, _json_check(answer)]


def _request(role: Role) -> ChatRequest:
    if role is Role.TARGET:
        return ChatRequest(
            system="You answer with one word.", user="Say ok.", purpose="doctor", max_tokens=_PLAIN_TOKENS
        )
    return ChatRequest(
        system="You answer in JSON, with nothing around it.",
        user='Answer with {"ok": true}.',
        purpose="doctor",
        max_tokens=_JSON_TOKENS,
        json_schema=_SCHEMA,
    )


def _where(role: Role, backend: ApiBackend, environment: Environment) -> tuple[str, str]:
    """The address as people know it, and the name of the variable with its key."""
    address, key = environment.address_and_key(role, backend)
    return address.value or "the provider's own address", key.name


def _json_check(answer: ChatAnswer) -> Check:
    name = "JSON answers"
    mode = _MODES[min(answer.attempts, len(_MODES)) - 1]
    try:
        is_right = isinstance(json.loads(answer.text), dict)
    except ValueError:
        is_right = False
    if not is_right:
        return warning(name, f"{mode}, and its answer is no JSON object: edits may be lost, use a stronger optimizer")
    if answer.attempts > 1:
        return warning(name, f"{mode}: the server refuses more, so edits may be lost; nothing needs to be set")
    return ok(name, mode)


def _explained(role: Role, code: ChatErrorCode, model: str, address: str, key: str) -> Iterator[Check]:
    """What is known to be right up to where it went wrong, and the remedy."""
    endpoint, key_name, model_name = f"{role} endpoint", f"{role} key", f"{role} model"
    match code:
        case ChatErrorCode.CONNECTION:
            yield failed(
                endpoint, f"{address} cannot be reached: start the server, or correct the address", is_outside=True
            )
            return
        case ChatErrorCode.TIMEOUT:
            yield failed(
                endpoint,
                f"{address} did not answer in {_LONGEST_WAIT_SECONDS:.0f} seconds: is it still loading the model?",
                is_outside=True,
            )
            return
        case ChatErrorCode.UNREADABLE:
            yield failed(endpoint, f"{address} does not speak the API: should the address end in /v1?", is_outside=True)
            return
        case _:
            yield ok(endpoint, address)
    match code:
        case ChatErrorCode.REFUSED_KEY:
            yield failed(key_name, f"is refused: set {key} to one that is allowed to ask {model}", is_outside=True)
            return
        case ChatErrorCode.RATE_LIMITED:
            yield warning(model_name, "asks to wait: lower env.workers, or look after the account's limits")
            return
        case ChatErrorCode.SERVER_ERROR:
            yield failed(model_name, "the server failed: read its log, or try again later", is_outside=True)
            return
        case _:
            yield ok(key_name, "accepted")
    match code:
        case ChatErrorCode.NOT_FOUND:
            yield failed(
                model_name,
                f"there is no {model} there, or no such path: correct model.{role}, or end the address in /v1",
                is_outside=True,
            )
        case ChatErrorCode.BAD_REQUEST:
            yield failed(
                model_name,
                f"{model} does not take the request: look at model.{role}_temperature and _reasoning_effort",
                is_outside=True,
            )
        case ChatErrorCode.TRUNCATED:
            yield ok(model_name, f"{model} answers, at more length than was asked for")
        case _:
            yield warning(model_name, f"{model} gave no text ({code.value}): ask it something by hand")
