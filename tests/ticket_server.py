"""A scripted OpenAI-compatible server for the ticket-routing example: its target obeys the rules it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

from scripted_server import Body, Reply, completion

from burnish.infrastructure.models.chat import ChatModel, ChatRequest
from burnish.infrastructure.optimizer.prompt_texts import PromptName, load_prompts
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice
from burnish.infrastructure.simulation.coach import SimulatedCoach

EXAMPLE = Path(__file__).parent.parent / "examples" / "ticket-routing"
TARGET = "scripted-target"
OPTIMIZER = "scripted-optimizer"

_PURPOSES = {
    PromptName.ANALYST_ERROR: "reflect",
    PromptName.ANALYST_SUCCESS: "reflect",
    PromptName.ANALYST_MIXED: "reflect",
    PromptName.MERGE_FAILURES: "merge",
    PromptName.MERGE_SUCCESSES: "merge",
    PromptName.MERGE_FINAL: "merge",
    PromptName.RANK: "rank",
    PromptName.LEARNING_RATE: "learning_rate",
    PromptName.REWRITE: "rewrite",
    PromptName.CONSOLIDATE_NOTES: "consolidate",
    PromptName.SLOW_UPDATE: "guidance",
    PromptName.META_MEMORY: "memory",
}

OVER_HTTP = (
    "model.target_backend=openai_compatible",
    "model.optimizer_backend=openai_compatible",
    f"model.target={TARGET}",
    f"model.optimizer={OPTIMIZER}",
)
"""Options that send the example's questions to a server."""


def ticket_models(
    *, useful: float = 0.7, useless: float = 0.2, harmful: float = 0.1, noise: float = 0.0
) -> Callable[[Body], Reply]:
    """Answers for both roles, told apart by the name of the model that is asked for; `noise` is the agent's."""
    knowledge = (EXAMPLE / "house_rules.md").read_text(encoding="utf-8")
    models: dict[str, ChatModel] = {
        TARGET: SimulatedApprentice(noise=noise),
        OPTIMIZER: SimulatedCoach(knowledge, useful=useful, useless=useless, harmful=harmful),
    }

    def respond(body: Body) -> Reply:
        return completion(asyncio.run(models[str(body["model"])].complete(request_in(body))).text)

    return respond


def request_in(body: Body) -> ChatRequest:
    """The request behind what a server was sent."""
    messages = cast("list[dict[str, str]]", body["messages"])
    system, user = (message["content"] for message in messages)
    format_ = cast("dict[str, dict[str, str]]", body.get("response_format", {}))
    return ChatRequest(
        system=system,
        user=user,
        purpose=purpose_of(system),
        schema_name=format_.get("json_schema", {}).get("name", "answer"),
        seed=cast("int | None", body.get("seed")),
    )


def purpose_of(system: str) -> str:
    """What the optimizer is asked for, told by the prompt; `rollout` when it is no prompt of the optimizer's."""
    texts = load_prompts().texts
    return next((purpose for name, purpose in _PURPOSES.items() if system.startswith(texts[name])), "rollout")
