"""Caps that could not be kept, refused before anything is asked: every call must say beforehand what it uses at most."""

from __future__ import annotations

from burnish.presentation.model_facts import unpriced_models
from burnish.presentation.settings.errors import SettingsError, shown
from burnish.presentation.settings.model_section import AGENT_BACKENDS
from burnish.presentation.settings.sections import TaskSettings


def refuse_unbounded_caps(settings: TaskSettings, *, offline: bool = False) -> None:
    """Raise SettingsError when tokens or dollars are capped, and the agent's answers have no limit or a model no price.

    Offline nothing is used, so that answers need no limit; but dollars are counted there too. The optimizer's answers
    always have a limit.
    """
    budget, problems = settings.budget, list[str]()
    caps = {"budget.max_tokens": budget.max_tokens, "budget.max_usd": budget.max_usd}
    if (agent := settings.model.target_backend) in AGENT_BACKENDS and not offline:
        remedy = f"nothing limits what {agent} uses for an item: cap budget.max_rollouts or budget.max_minutes instead"
        problems += [f"{key}: cannot be kept: {remedy}" for key, cap in caps.items() if cap is not None]
    elif settings.model.target_max_tokens is None and not offline:
        remedy = "without it nothing limits the agent's answers: set it to the longest one, in tokens"
        problems += [f"{key}: needs model.target_max_tokens: {remedy}" for key, cap in caps.items() if cap is not None]
    if budget.max_usd is not None:
        models = dict.fromkeys(unpriced_models(settings).values())
        problems += [
            f"budget.max_usd: no price is known for the model {shown(model)}: add it to budget.prices"
            for model in models
        ]
    if problems:
        raise SettingsError(tuple(problems))
