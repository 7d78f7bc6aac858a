"""A scripted OpenAI-compatible server for the ticket-routing example: its target obeys the rules it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

from scripted_server import Body, Reply, completion

from burnish.infrastructure.models.chat import ChatModel, ChatRequest
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice
from burnish.infrastructure.simulation.coach import SimulatedCoach

EXAMPLE = Path(__file__).parent.parent / "examples" / "ticket-routing"
TARGET = "scripted-target"
OPTIMIZER = "scripted-optimizer"

OVER_HTTP = (
    "model.target_backend=openai_compatible",
    "model.optimizer_backend=openai_compatible",
    f"model.target={TARGET}",
    f"model.optimizer={OPTIMIZER}",
)
"""Options that send the example's questions to a server."""


def ticket_models(*, useful: float = 0.7, useless: float = 0.2, harmful: float = 0.1) -> Callable[[Body], Reply]:
    """Answers for both roles, told apart by the name of the model that is asked for."""
    knowledge = (EXAMPLE / "house_rules.md").read_text(encoding="utf-8")
    models: dict[str, ChatModel] = {
        TARGET: SimulatedApprentice(),
        OPTIMIZER: SimulatedCoach(knowledge, useful=useful, useless=useless, harmful=harmful),
    }

    def respond(body: Body) -> Reply:
        messages = cast("list[dict[str, str]]", body["messages"])
        system, user = (message["content"] for message in messages)
        request = ChatRequest(system=system, user=user, purpose="scripted")
        answer = asyncio.run(models[str(body["model"])].complete(request))
        return completion(answer.text)

    return respond
