"""The evolver for hosts without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TypeVar

from burnish.presentation.evolver.evolver import Evolver, StepResult
from burnish.presentation.evolver.host import EvolverHost
from burnish.presentation.evolver.parameters import EvolverParameters
from burnish.presentation.evolver.refusal import EvolverError

T = TypeVar("T")


class BlockingEvolver:
    """`Evolver`, whose methods return when they are done; inside a running event loop they are refused."""

    def __init__(self, parameters: EvolverParameters | Mapping[str, object] | None = None) -> None:
        self._evolver = Evolver(parameters)

    def setup(self, ctx: EvolverHost) -> None:
        """See `Evolver.setup`."""
        _run(self._evolver.setup(ctx))

    def step(self, ctx: EvolverHost) -> StepResult:
        """See `Evolver.step`."""
        return _run(self._evolver.step(ctx))

    def finalize(self, ctx: EvolverHost) -> StepResult:
        """See `Evolver.finalize`."""
        return _run(self._evolver.finalize(ctx))

    def next_step_ends_epoch(self, ctx: EvolverHost) -> bool:
        """See `Evolver.next_step_ends_epoch`."""
        return _run(self._evolver.next_step_ends_epoch(ctx))


def _run(call: Coroutine[object, object, T]) -> T:
    if _is_in_event_loop():
        call.close()
        raise EvolverError("BlockingEvolver: an event loop is running in this thread: use Evolver, and await it")
    return asyncio.run(call)


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
