"""Simulated models that take their time and fail at times: when depends on the question and the attempt, not on order."""

from __future__ import annotations

import asyncio
import random

from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice
from burnish.infrastructure.simulation.coach import SimulatedCoach
from burnish.infrastructure.simulation.draws import draw
from burnish.presentation.cli import run

LONGEST_SECONDS = 0.003


def train_unsteadily(
    arguments: list[str], seed: int, failing: float, retries: int, seed_of_waits: int | None = None
) -> int:
    """In a child: run a command with such models."""
    make_unsteady(seed=seed, failing=failing, retries=retries, seed_of_waits=seed_of_waits)
    return run(arguments)


def make_unsteady(*, seed: int, failing: float, retries: int = 0, seed_of_waits: int | None = None) -> None:
    """For the rest of the process: every attempt fails with this chance, perhaps after a random wait."""
    waits = None if seed_of_waits is None else random.Random(seed_of_waits)
    target, optimizer = SimulatedApprentice.complete, SimulatedCoach.complete

    async def weather(role: str, request: ChatRequest) -> None:
        for attempt in range(retries + 1):
            if waits is not None:
                await asyncio.sleep(waits.uniform(0, LONGEST_SECONDS))
            if draw("fails", seed, role, request.user, request.system, request.seed, attempt) >= failing:
                return
        raise ChatError(ChatErrorCode.TIMEOUT, attempts=retries + 1)

    async def unsteady_target(self: SimulatedApprentice, request: ChatRequest) -> ChatAnswer:
        await weather("target", request)
        return await target(self, request)

    async def unsteady_optimizer(self: SimulatedCoach, request: ChatRequest) -> ChatAnswer:
        await weather("optimizer", request)
        return await optimizer(self, request)

    SimulatedApprentice.complete = unsteady_target  # type: ignore[method-assign]  # in a child: it ends with the patch
    SimulatedCoach.complete = unsteady_optimizer  # type: ignore[method-assign]  # as above
