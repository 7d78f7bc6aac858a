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
        form = _form(body)
        request = ChatRequest(system=system, user=user, purpose=_purpose(form, user), schema_name=form)
        answer = asyncio.run(models[str(body["model"])].complete(request))
        return completion(answer.text)

    return respond


def _form(body: Body) -> str:
    """The name of the schema that the answer must match; none is asked of a target."""
    asked = cast("dict[str, dict[str, str]]", body.get("response_format") or {})
    return asked.get("json_schema", {}).get("name", "patch")


def _purpose(form: str, user: str) -> str:
    """The purpose of a request, which does not travel with it, from what does."""
    if form in ("guidance", "memory", "learning_rate"):
        return form
    if form == "ranking":
        return "rank"
    if "\n<proposal>\n" in user:
        return "merge"
    return "rewrite" if "\n<changes>\n" in user else "reflect"
