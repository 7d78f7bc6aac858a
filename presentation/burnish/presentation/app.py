"""The app a host opens: bring your ports, send messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from burnish.application.mediator import Mediator, Message
from burnish.application.ports import (
    AuditLog,
    CheckpointStore,
    Clock,
    EditSelector,
    EventSink,
    KnowledgeMemory,
    PatchAggregator,
    PatchProposer,
    RolloutRunner,
    RunStore,
)
from burnish.application.result import Result
from burnish.presentation.container import Container, assemble, wire

R = TypeVar("R")


class App:
    """Answers messages; may be used concurrently. Several apps in one process know nothing of each other."""

    def __init__(self, mediator: Mediator) -> None:
        self._mediator = mediator

    async def send(self, message: Message[R], /) -> Result[R]:
        """The answer; expected failures are results with a code, not exceptions."""
        return await self._mediator.send(message)


@asynccontextmanager
async def open_app(
    *,
    rollouts: RolloutRunner | None = None,
    proposer: PatchProposer | None = None,
    aggregator: PatchAggregator | None = None,
    selector: EditSelector | None = None,
    checkpoints: CheckpointStore | None = None,
    runs: RunStore | None = None,
    memory: KnowledgeMemory | None = None,
    audit_log: AuditLog | None = None,
    sinks: Sequence[EventSink] = (),
    clock: Clock | None = None,
    workers: int | None = None,
    actor: str | None = None,
    container: Container | None = None,
) -> AsyncGenerator[App]:
    """Open an app with the ports you bring; stores not given live in memory, a missing runner or proposer says so.

    `workers` bounds the rollouts that run at once (8), `actor` is the name audit entries carry. Reads no environment,
    and touches neither logging nor OpenTelemetry's providers. With a `container`, its bindings are used as they are and
    the parameters given here override them. Raises ValueError for `workers` below 1, and at once when an object does not
    fit its port.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    bound = assemble(
        container,
        rollouts=rollouts,
        proposer=proposer,
        aggregator=aggregator,
        selector=selector,
        checkpoints=checkpoints,
        runs=runs,
        memory=memory,
        audit_log=audit_log,
        sinks=tuple(sinks) or None,
        clock=clock,
        workers=workers,
        actor=actor,
    )
    yield App(wire(bound))
