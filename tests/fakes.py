"""Fakes of the ports, for tests that send messages through a real app.

Skills say in their own text how well they do: the last `score=0.5`, or `val=0.5` for one split, counts (see `stated`).
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from dependency_injector import providers
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from burnish.application.events import Event
from burnish.application.optimizer_ports import EpochComparison, EpochSummary, ReflectionInput
from burnish.application.ports import AuditEntry
from burnish.application.train_skill import TrainSkill
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.presentation.container import Container

Attempt = Callable[[str, str], "Rollout | float"]
"""Skill and item id to a rollout, or to its score; may raise."""

AnyEvent = TypeVar("AnyEvent", bound=Event)

START = "# Skill\n\nscore=0.2"

STEPS = TrainSkillConfig(
    epochs=1,
    steps_per_epoch=1,
    lr_start=4,
    lr_scheduler="constant",
    train_batch_size=4,
    val_batch_size=4,
    patience=None,
    use_slow_update=False,
    use_meta_skill=False,
    promote_final=False,
    seed=7,
)
"""One step and nothing around it; tests replace what they are about."""


def steps(number: int, **changes: object) -> TrainSkillConfig:
    """An epoch of so many steps; other settings by name."""
    return replace(STEPS, steps_per_epoch=number, **changes)  # type: ignore[arg-type]  # as wrong as tests need them


def training(
    config: TrainSkillConfig = STEPS, *, run_id: str = "run", skill_id: str = "skill", initial_skill: str = START
) -> TrainSkill:
    """The command to train."""
    return TrainSkill(run_id, skill_id, initial_skill, config)


def append(*contents: str) -> Patch:
    """A patch that adds paragraphs at the end."""
    return Patch(tuple(Edit(EditOp.APPEND, content) for content in contents))


def stated(skill: str, item_id: str) -> float:
    """The score the skill states last for the item's split, or for all of them; 0.0 when it states none."""
    split = re.split(r"[-/]", item_id)[0]
    found = re.findall(rf"(?:score|{split})=([-\w.]+)", skill)
    return float(found[-1]) if found else 0.0


def rollout(item_id: str, hard: float, soft: float | None = None, *, error: str | None = None) -> Rollout:
    """A scored attempt; soft is as hard when not given."""
    return Rollout(item_id, hard, hard if soft is None else soft, error=error)


@dataclass(frozen=True, slots=True)
class Call:
    """What a runner was asked."""

    skill: str
    batch: RolloutBatch


class _Runner:
    """What both runners share: scoring, and a memory of the calls."""

    def __init__(self, attempt: Attempt = stated) -> None:
        self.attempt = attempt
        self.calls: list[Call] = []

    def batches(self, split: str, *, repeat: str | None = None) -> list[RolloutBatch]:
        """The batches asked of a split, perhaps of one repeat only."""
        found = [call.batch for call in self.calls if call.batch.split == split]
        return [batch for batch in found if repeat is None or batch.repeat == repeat]

    def skills(self, split: str, *, repeat: str | None = None) -> list[str]:
        """The skills tried on a split, each once, in the order they were first tried."""
        found = [call.skill for call in self.calls if call.batch.split == split]
        if repeat is not None:
            found = [c.skill for c in self.calls if c.batch.split == split and c.batch.repeat == repeat]
        return list(dict.fromkeys(found))

    def asked(self, skill: str, split: str, *, repeat: str | None = None) -> list[str]:
        """The items a skill was tried on in a split, in the order of asking."""
        return [
            item
            for call in self.calls
            if call.skill == skill and call.batch.split == split and repeat in {None, call.batch.repeat}
            for item in call.batch.item_ids
        ]

    def _attempt(self, skill: str, item_id: str) -> Rollout:
        answer = self.attempt(skill, item_id)
        return answer if isinstance(answer, Rollout) else rollout(item_id, answer)


class ScriptedRunner(_Runner):
    """A plain runner: it chooses items by seed when it is not told which ones."""

    def __init__(self, attempt: Attempt = stated, *, items: int = 100) -> None:
        super().__init__(attempt)
        self._items = items

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        self.calls.append(Call(skill, batch))
        chosen = batch.item_ids or tuple(
            f"{batch.split}-{number}" for number in random.Random(batch.seed).sample(range(self._items), batch.size)
        )
        return [self._attempt(skill, item_id) for item_id in chosen]


class CatalogRunner(_Runner):
    """A runner that lists its items: `train/0`, `train/1`, …; counts how many calls run at once."""

    def __init__(
        self,
        attempt: Attempt = stated,
        *,
        train: int = 4,
        val: int = 4,
        test: int = 0,
        fingerprint: str = "catalog",
        before: Callable[[RolloutBatch], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(attempt)
        sizes = {"train": train, "val": val, "test": test}
        self.items = {split: tuple(f"{split}/{number}" for number in range(size)) for split, size in sizes.items()}
        self.at_once = 0
        self.most_at_once = 0
        self._fingerprint = fingerprint
        self._before = before

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    async def item_ids(self, split: str) -> Sequence[str]:
        return self.items.get(split, ())

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        self.calls.append(Call(skill, batch))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self._before is not None:
                await self._before(batch)
            return [self._attempt(skill, item_id) for item_id in batch.item_ids]
        finally:
            self.at_once -= 1


class Scramble:
    """Lets calls end in another order than they began in: each gives way to others a random number of times."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    async def __call__(self, batch: RolloutBatch | None = None) -> None:
        for _ in range(self._random.randrange(9)):
            await asyncio.sleep(0)


class Barrier:
    """Holds whoever comes by until it is opened; `reached` tells that so many did."""

    def __init__(self, expected: int = 1) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self._missing = expected

    async def __call__(self, batch: RolloutBatch | None = None) -> None:
        self._missing -= 1
        if self._missing <= 0:
            self.reached.set()
        await self.opened.wait()


class ScriptedProposer:
    """Gives its answers one after another, then empty patches; an exception is raised, anything else returned."""

    def __init__(self, *answers: object) -> None:
        self.reflections: list[ReflectionInput] = []
        self._answers = answers

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        self.reflections.append(reflection)
        place = len(self.reflections) - 1
        answer = self._answers[place] if place < len(self._answers) else Patch()
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value]  # untyped hosts return what they like


class RaisingProposer:
    """Fails every time."""

    def __init__(self, error: BaseException) -> None:
        self.asked = 0
        self._error = error

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        self.asked += 1
        raise self._error


class ScriptedSelector:
    """Answers with one object, whatever it is given."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def select(self, patch: Patch, k: int) -> Patch:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer  # type: ignore[return-value]  # untyped hosts return what they like


class ScriptedAggregator:
    """Answers with one object, whatever it is given."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer  # type: ignore[return-value]  # untyped hosts return what they like


class ScriptedGuidance:
    """Writes the same guidance for every slow update, or fails."""

    def __init__(self, *texts: str | BaseException) -> None:
        self.comparisons: list[EpochComparison] = []
        self._texts = texts

    async def write(self, comparison: EpochComparison) -> str:
        self.comparisons.append(comparison)
        text = self._texts[min(len(self.comparisons), len(self._texts)) - 1]
        if isinstance(text, BaseException):
            raise text
        return text


class ScriptedMemoryWriter:
    """Writes numbered memories, or what it was told to."""

    def __init__(self, answer: object = None) -> None:
        self.summaries: list[EpochSummary] = []
        self._answer = answer

    async def write(self, summary: EpochSummary) -> str:
        self.summaries.append(summary)
        if isinstance(self._answer, BaseException):
            raise self._answer
        if self._answer is not None:
            return self._answer  # type: ignore[return-value]  # untyped hosts return what they like
        return f"{summary.prior_memory}<{summary.epoch}>"


class RecordingSink:
    """Keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[AnyEvent]) -> list[AnyEvent]:
        """The events of one type."""
        return [event for event in self.events if isinstance(event, kind)]


class FailingSink:
    """Fails at every event."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def emit(self, event: Event) -> None:
        raise self._error


class FailingAuditLog:
    """Keeps nothing."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def append(self, entry: AuditEntry) -> None:
        raise self._error


class FailingMemory:
    """A memory that fails at what it is told to fail at: `remember`, `recall`."""

    def __init__(self, error: BaseException, *, at: str) -> None:
        self.texts: dict[str, str] = {}
        self._error = error
        self._at = at

    async def remember(self, key: str, content: str, kind: str) -> None:
        if self._at == "remember":
            raise self._error
        self.texts[key] = content

    async def recall(self, key: str) -> str | None:
        if self._at == "recall":
            raise self._error
        return self.texts.get(key)


class TickingClock:
    """A minute later each time it is asked."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(minutes=1)
        return self._now


@dataclass(slots=True)
class Telescope:
    """OpenTelemetry providers of a test's own, and what they saw."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    tracers: TracerProvider = field(default_factory=TracerProvider)
    container: Container = field(init=False)
    meters: MeterProvider = field(init=False)

    def __post_init__(self) -> None:
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])
        self.container = Container()
        self.container.override_providers(
            tracer=providers.Object(self.tracers.get_tracer("test")),
            meter=providers.Object(self.meters.get_meter("test")),
        )

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        """The spans that ended, perhaps of one name only."""
        return [span for span in self.exporter.get_finished_spans() if name in {None, span.name}]

    def sums(self, name: str) -> dict[tuple[tuple[str, object], ...], float]:
        """The values of a counter by its attributes, sorted by name."""
        found: dict[tuple[tuple[str, object], ...], float] = {}
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in (metric for metric in scope.metrics if metric.name == name):
                    for point in metric.data.data_points:
                        key = tuple(sorted((point.attributes or {}).items()))
                        found[key] = float(getattr(point, "value", getattr(point, "count", 0)))
        return found

    def close(self) -> None:
        """Shut the providers down."""
        self.tracers.shutdown()
        self.meters.shutdown()


def by_table(table: Mapping[tuple[str, str], float], *, word: str = r"v\d+") -> Attempt:
    """Scores by the last version named in the skill (`v3`) and the item id; an item that is not in the table fails."""

    def attempt(skill: str, item_id: str) -> float:
        return table[re.findall(word, skill)[-1], item_id]

    return attempt
