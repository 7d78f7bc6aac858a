"""Which models a task asks for, once the environment has been heard."""

from __future__ import annotations

from types import MappingProxyType
from typing import cast

from burnish.presentation.settings.environment import ApiBackend, Environment, Role
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.settings.model_section import AGENT_BACKENDS, Backend, bad_model_name


def fill_models(loaded: LoadedTask, environment: Environment) -> LoadedTask:
    """The task with the models named that its file leaves to the environment, so that they are part of the identity.

    A simulated role needs none, an agent has its own, and a name that is nowhere stays null: `Environment.endpoint`
    refuses it. Raises SettingsError for an unusable name.
    """
    model, sources, names = loaded.settings.model, dict(loaded.sources), dict[str, str]()
    roles: list[tuple[Role, Backend, str | None]] = [
        (Role.TARGET, model.target_backend, model.target),
        (Role.OPTIMIZER, model.optimizer_backend, model.optimizer),
    ]
    if model.judge_backend is not None:  # without, it is the optimizer's
        roles.append((Role.JUDGE, model.judge_backend, model.judge))
    for role, backend, name in roles:
        if backend == "simulated" or backend in AGENT_BACKENDS or name is not None:
            continue
        found = environment.model(role, cast("ApiBackend", backend))
        if found.value is None:
            continue
        complaint = bad_model_name(found.value)
        if complaint is not None:
            raise SettingsError((f"environment: {found.name}: {complaint}",))
        names[role.value] = found.value
        sources[f"model.{role}"] = found.name
    filled = loaded.settings.model_copy(update={"model": model.model_copy(update=names)})
    return LoadedTask(filled, MappingProxyType(sources), loaded.base_dir)
