"""The app a host opens: bring your ports, send messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from burnish.application.mediator import Mediator, Message
from burnish.application.optimizer_ports import (
    EditRanker,
    EditSelector,
    GuidanceWriter,
    MemoryWriter,
    NoteConsolidator,
    PatchAggregator,
    PatchMerger,
    PatchProposer,
    RateChooser,
    SkillRewriter,
)
from burnish.application.ports import (
    AuditLog,
    CheckpointStore,
    Clock,
    EventSink,
    Journal,
    KnowledgeMemory,
    RolloutRunner,
    RunStore,
)
from burnish.application.result import Result
from burnish.presentation.container import Container, assemble, wire

R = TypeVar("R")

_OPTIONAL_ROLES: Mapping[str, type] = {
    "merger": PatchMerger,
    "ranker": EditRanker,
    "rate_chooser": RateChooser,
    "rewriter": SkillRewriter,
    "note_consolidator": NoteConsolidator,
}


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
    merger: PatchMerger | None = None,
    ranker: EditRanker | None = None,
    rate_chooser: RateChooser | None = None,
    rewriter: SkillRewriter | None = None,
    note_consolidator: NoteConsolidator | None = None,
    guidance_writer: GuidanceWriter | None = None,
    memory_writer: MemoryWriter | None = None,
    checkpoints: CheckpointStore | None = None,
    runs: RunStore | None = None,
    memory: KnowledgeMemory | None = None,
    audit_log: AuditLog | None = None,
    journal: Journal | None = None,
    sinks: Sequence[EventSink] = (),
    clock: Clock | None = None,
    workers: int | None = None,
    analyst_workers: int | None = None,
    actor: str | None = None,
    secrets: Sequence[str] = (),
    container: Container | None = None,
) -> AsyncGenerator[App]:
    """Open an app with the ports you bring; stores not given live in memory, a missing runner or proposer says so.

    Roles of the optimizer that are not given are played by rules, or by nobody, see `Optimizer`.
    `workers` bounds the rollouts that run at once (8), `analyst_workers` the calls that read them (16), `actor` is the name
    audit entries carry; texts in `secrets` are masked in whatever comes back from runner and optimizer. Reads no
    environment, and touches neither logging nor OpenTelemetry's providers. With a `container`, its bindings are used as
    they are and the parameters given here override them for this app. Raises ValueError for a number of workers below 1,
    and TypeError or dependency-injector's error, at once, when an object does not fit its port.
    """
    for name, number in (("workers", workers), ("analyst_workers", analyst_workers)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
    ports: dict[str, object] = {
        "rollouts": rollouts,
        "proposer": proposer,
        "aggregator": aggregator,
        "selector": selector,
        "merger": merger,
        "ranker": ranker,
        "rate_chooser": rate_chooser,
        "rewriter": rewriter,
        "note_consolidator": note_consolidator,
        "guidance_writer": guidance_writer,
        "memory_writer": memory_writer,
        "checkpoints": checkpoints,
        "runs": runs,
        "memory": memory,
        "audit_log": audit_log,
        "journal": journal,
    }
    _refuse_misfits(ports, sinks, clock)
    with assemble(
        container,
        **ports,
        sinks=tuple(sinks) or None,
        clock=clock,
        workers=workers,
        analyst_workers=analyst_workers,
        actor=actor,
        secrets=tuple(secrets) or None,
    ) as bound:
        app = App(wire(bound))
    yield app


def _refuse_misfits(ports: Mapping[str, object], sinks: Sequence[object], clock: object) -> None:
    """Raise TypeError; whether an object has its port's methods is checked by the container, where a class would pass."""
    for name, port in ports.items():
        if isinstance(port, type):
            raise TypeError(
                f"{name} must be an object, and {port.__name__} is a class: did you mean {port.__name__}()?"
            )
        role = _OPTIONAL_ROLES.get(name)
        if role is not None and port is not None and not isinstance(port, role):
            raise TypeError(f"{name} must be a {role.__name__}, and an object of type {type(port).__name__} is none")
    for sink in sinks:
        if isinstance(sink, type) or not isinstance(sink, EventSink):
            raise TypeError(
                f"a sink must have `async emit(event)`, and an object of type {type(sink).__name__} has not"
            )
    if clock is not None and not callable(clock):
        raise TypeError(f"the clock must be callable, and an object of type {type(clock).__name__} is not")
