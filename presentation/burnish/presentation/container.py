"""The composition root: which object stands behind which port. The only user of dependency-injector."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from secrets import randbits
from time import monotonic

from dependency_injector import containers, providers
from opentelemetry import metrics, trace

from burnish.application import behaviors
from burnish.application.candidate import judge_candidate
from burnish.application.evaluate_skill import EvaluateSkill, EvaluateSkillHandler
from burnish.application.gate_candidate_skill import GateCandidateSkill, GateCandidateSkillHandler
from burnish.application.journaled_ports import (
    JournaledGuidanceWriter,
    JournaledMemoryWriter,
    journaled,
)
from burnish.application.mediator import Mediator
from burnish.application.meta_skill_update import CountedMemory, MetaSkillUpdate, MetaSkillUpdateHandler
from burnish.application.optimizer import Optimizer
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
from burnish.application.passes import PassRunner
from burnish.application.port_traits import fingerprint_of_roles
from burnish.application.ports import AuditLog, CheckpointStore, Journal, KnowledgeMemory, RolloutRunner, RunStore
from burnish.application.record_keeping import KeepingPorts
from burnish.application.reflect_on_failures import ReflectOnFailures, ReflectOnFailuresHandler
from burnish.application.runs import (
    GetCheckpoint,
    GetCheckpointHandler,
    GetRun,
    GetRunHandler,
    ListCheckpoints,
    ListCheckpointsHandler,
    ListRuns,
    ListRunsHandler,
)
from burnish.application.slow_update import ComparedGuidance, SlowUpdate, SlowUpdateHandler
from burnish.application.telemetry import StageTelemetry
from burnish.application.train_skill import TrainingPorts, TrainSkill, TrainSkillHandler
from burnish.application.training_step import Judge
from burnish.infrastructure.optimizer.pure import NotConfiguredProposer, PureAggregator, PureSelector
from burnish.infrastructure.persistence.audit import InMemoryAuditLog
from burnish.infrastructure.persistence.in_memory import (
    InMemoryCheckpointStore,
    InMemoryJournal,
    InMemoryKnowledgeMemory,
    InMemoryRunStore,
)
from burnish.infrastructure.tasks.not_configured import NotConfiguredRunner

DEFAULT_WORKERS = 8
"""Rollouts that run at once when nobody says otherwise."""

DEFAULT_ANALYST_WORKERS = 16
"""Calls of analysts and mergers that run at once when nobody says otherwise."""


def utc_now() -> datetime:
    """The time of day, in UTC."""
    return datetime.now(UTC)


def draw_seed() -> int:
    """A seed nobody has chosen; never 0."""
    return randbits(31) or 1


class Container(containers.DeclarativeContainer):
    """Every binding of an app; override one before `wire`, or pass an object to `open_app`."""

    rollouts: providers.Dependency[RolloutRunner] = providers.Dependency(
        instance_of=RolloutRunner, default=providers.Singleton(NotConfiguredRunner)
    )
    proposer: providers.Dependency[PatchProposer] = providers.Dependency(
        instance_of=PatchProposer, default=providers.Singleton(NotConfiguredProposer)
    )
    aggregator: providers.Dependency[PatchAggregator] = providers.Dependency(
        instance_of=PatchAggregator, default=providers.Singleton(PureAggregator)
    )
    selector: providers.Dependency[EditSelector] = providers.Dependency(
        instance_of=EditSelector, default=providers.Singleton(PureSelector)
    )
    merger: providers.Provider[PatchMerger | None] = providers.Object(None)
    ranker: providers.Provider[EditRanker | None] = providers.Object(None)
    rate_chooser: providers.Provider[RateChooser | None] = providers.Object(None)
    rewriter: providers.Provider[SkillRewriter | None] = providers.Object(None)
    note_consolidator: providers.Provider[NoteConsolidator | None] = providers.Object(None)
    guidance_writer: providers.Dependency[GuidanceWriter] = providers.Dependency(
        instance_of=GuidanceWriter, default=providers.Singleton(ComparedGuidance)
    )
    memory_writer: providers.Dependency[MemoryWriter] = providers.Dependency(
        instance_of=MemoryWriter, default=providers.Singleton(CountedMemory)
    )
    checkpoints: providers.Dependency[CheckpointStore] = providers.Dependency(
        instance_of=CheckpointStore, default=providers.Singleton(InMemoryCheckpointStore)
    )
    runs: providers.Dependency[RunStore] = providers.Dependency(
        instance_of=RunStore, default=providers.Singleton(InMemoryRunStore)
    )
    memory: providers.Dependency[KnowledgeMemory] = providers.Dependency(
        instance_of=KnowledgeMemory, default=providers.Singleton(InMemoryKnowledgeMemory)
    )
    journal: providers.Dependency[Journal] = providers.Dependency(
        instance_of=Journal, default=providers.Singleton(InMemoryJournal)
    )
    audit_log: providers.Dependency[AuditLog] = providers.Dependency(
        instance_of=AuditLog, default=providers.Singleton(InMemoryAuditLog)
    )
    sinks = providers.Object(())
    workers = providers.Object(DEFAULT_WORKERS)
    analyst_workers = providers.Object(DEFAULT_ANALYST_WORKERS)
    judge: providers.Provider[Judge] = providers.Object(judge_candidate)
    secrets: providers.Provider[tuple[str, ...]] = providers.Object(())
    actor = providers.Object("host")
    clock: providers.Provider[Callable[[], datetime]] = providers.Object(utc_now)
    draw_seed: providers.Provider[Callable[[], int]] = providers.Object(draw_seed)
    timer: providers.Provider[Callable[[], float]] = providers.Object(monotonic)
    tracer = providers.Singleton(trace.get_tracer, "burnish")
    meter = providers.Singleton(metrics.get_meter, "burnish")

    telemetry = providers.Singleton(StageTelemetry, tracer, meter)
    passes = providers.Singleton(PassRunner, rollouts, workers=workers, secrets=secrets)
    mediator = providers.Singleton(
        Mediator,
        behaviors=providers.Factory(
            behaviors.in_order, tracer=tracer, meter=meter, audit_log=audit_log, clock=clock, actor=actor
        ),
        sinks=sinks,
    )
    training_ports = providers.Singleton(
        TrainingPorts,
        passes=passes,
        optimizer=providers.Factory(
            journaled,
            providers.Factory(
                Optimizer,
                proposer=proposer,
                aggregator=aggregator,
                selector=selector,
                merger=merger,
                ranker=ranker,
                rate_chooser=rate_chooser,
                rewriter=rewriter,
                note_consolidator=note_consolidator,
            ),
            secrets=secrets,
            analyst_workers=analyst_workers,
        ),
        judge=judge,
        memory=memory,
        journal=journal,
        keeping=providers.Factory(
            KeepingPorts, runs=runs, checkpoints=checkpoints, publisher=mediator, telemetry=telemetry, clock=clock
        ),
        sender=mediator,
        publisher=mediator,
        telemetry=telemetry,
        draw_seed=draw_seed,
        timer=timer,
        secrets=secrets,
        fingerprint=providers.Factory(
            fingerprint_of_roles,
            proposer,
            merger,
            ranker,
            rate_chooser,
            rewriter,
            note_consolidator,
            guidance_writer,
            memory_writer,
        ),
    )


@contextmanager
def assemble(base: Container | None = None, **bindings: object) -> Generator[Container]:
    """A container (`base`, or a new one) with these objects bound by name until the end; None leaves a binding alone."""
    container = Container() if base is None else base
    given = {name: providers.Object(bound) for name, bound in bindings.items() if bound is not None}
    with container.override_providers(**given):
        yield container


def wire(container: Container) -> Mediator:
    """Build the mediator and every handler now, so that an object that does not fit fails here and not later.

    Each call builds its own, so that a container may serve several apps; stores and other bindings they share.
    """
    for shared_by_one_app in (container.telemetry, container.passes, container.mediator, container.training_ports):
        shared_by_one_app.reset()
    mediator = container.mediator()
    mediator.register(
        [
            TrainSkill.handled_by(TrainSkillHandler(container.training_ports())),
            GateCandidateSkill.handled_by(GateCandidateSkillHandler()),
            ReflectOnFailures.handled_by(ReflectOnFailuresHandler(container.proposer())),
            SlowUpdate.handled_by(
                SlowUpdateHandler(JournaledGuidanceWriter(container.guidance_writer(), container.secrets()))
            ),
            MetaSkillUpdate.handled_by(
                MetaSkillUpdateHandler(
                    JournaledMemoryWriter(container.memory_writer(), container.secrets()), container.memory()
                )
            ),
            EvaluateSkill.handled_by(EvaluateSkillHandler(container.passes())),
            GetRun.handled_by(GetRunHandler(container.runs())),
            ListRuns.handled_by(ListRunsHandler(container.runs())),
            GetCheckpoint.handled_by(GetCheckpointHandler(container.checkpoints())),
            ListCheckpoints.handled_by(ListCheckpointsHandler(container.checkpoints())),
        ]
    )
    return mediator
