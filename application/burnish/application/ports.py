"""The ports of the application: what it needs from the world outside, as protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol, runtime_checkable

from burnish.application.events import Event
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.domain.runs import Checkpoint, StepRecord, TrainingRun


class PortError(Exception):
    """An adapter's failure with a code of the catalogue; any other exception gets the code of its port.

    `fields` name what it is about (an item id, a setting). The text goes to the log only.
    """

    def __init__(self, code: ErrorCode, *fields: str) -> None:
        super().__init__(code.value, *fields)
        self.code = code
        self.fields = fields


class UnknownCallError(PortError):
    """A recording holds no answer to a call; `nearest` is the key of the recorded call that is most like it."""

    def __init__(self, nearest: str | None, *fields: str) -> None:
        super().__init__(ErrorCode.REPLAY_UNKNOWN_CALL, *fields)
        self.nearest = nearest


class NotConfiguredError(PortError):
    """A port that nobody brought was used: the run ends at once with this code."""


# --- the agent -------------------------------------------------------------------------------------------------------


@runtime_checkable
class RolloutRunner(Protocol):
    """Tries the agent with a skill on items and scores what comes back."""

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        """One rollout an item; an item without an answer is a rollout with `error` set.

        With `batch.item_ids` exactly those, in any order; without, at most `batch.size`. May be called concurrently.
        """
        ...


@runtime_checkable
class ItemCatalog(Protocol):
    """Optional on the same object as the runner: it knows its items, so burnish plans, fans out and caches by item."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same skill and item could be answered or scored differently."""
        ...

    async def item_ids(self, split: str) -> Sequence[str]:
        """All items of the split (train, val or test), in a stable order; empty when there are none."""
        ...


@runtime_checkable
class ItemFingerprints(Protocol):
    """Optional on the same object as the runner: it tells when an item changes, whatever its id."""

    def item_fingerprint(self, split: str, item_id: str) -> str:
        """A digest of all that an item consists of."""
        ...


@runtime_checkable
class ItemBlocks(Protocol):
    """Optional on the same object as a catalog: it takes several items a call, and their answers are kept together."""

    @property
    def items_a_call(self) -> int:
        """The most items of one call, at least 1."""
        ...


# --- stores ----------------------------------------------------------------------------------------------------------


@runtime_checkable
class CheckpointStore(Protocol):
    """Keeps snapshots of a run for inspection, one a step: a second save of the same step replaces the first."""

    async def save(self, checkpoint: Checkpoint) -> None:
        """Keep it."""
        ...

    async def get(self, run_id: str, step: int) -> Checkpoint | None:
        """The snapshot of that step (1-based), or None."""
        ...

    async def best(self, run_id: str) -> Checkpoint | None:
        """The one with the highest score, the earliest among equals, as the run's own best; None without any."""
        ...

    async def list(self, run_id: str) -> Sequence[Checkpoint]:
        """What is kept of the run, by step."""
        ...


class ClaimOutcome(StrEnum):
    """What became of the wish to train a run."""

    CLAIMED = "claimed"
    ACTIVE = "active"
    OTHER_IDENTITY = "other_identity"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Whether a run may be trained now; the names of identity keys that differ; the run as it was left, if it was."""

    outcome: ClaimOutcome
    differing: tuple[str, ...] = ()
    known: TrainingRun | None = None


@runtime_checkable
class RunStore(Protocol):
    """Keeps runs: who trains which, and what has become of them."""

    async def claim(self, run_id: str, identity: Mapping[str, str]) -> Claim:
        """Take the run unless it is being trained, finished well, or has another identity; a new one is noted."""
        ...

    async def release(self, run_id: str) -> None:
        """Give a claimed run back."""
        ...

    async def save(self, run: TrainingRun) -> None:
        """Keep how far the run has come; the records of its steps are those given to `append`."""
        ...

    async def append(self, run_id: str, position: int, record: StepRecord) -> None:
        """Keep the run's record number `position` (from 0); the same one again changes nothing."""
        ...

    async def get(self, run_id: str) -> TrainingRun | None:
        """The run, or None."""
        ...

    async def list(self) -> Sequence[TrainingRun]:
        """All runs, in the order they were first claimed."""
        ...

    async def delete(self, run_id: str) -> None:
        """Drop the run and its records."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One answer of the outside world: what was asked, as canonical JSON, and what came back, as JSON.

    `is_error` marks an answer that says there was none; `step` is the run's step (1-based) when it came;
    `usage` tells what the model calls behind it used.
    """

    key: str
    answer: str
    is_error: bool = False
    step: int = 0
    usage: tuple[UsageNote, ...] = ()


@runtime_checkable
class Journal(Protocol):
    """Keeps the answers a run has had, so that nothing is asked twice and a run can be run again from them."""

    async def find(self, run_id: str, key: str) -> JournalEntry | None:
        """The answer kept under the key, or None."""
        ...

    async def append(self, run_id: str, entry: JournalEntry) -> None:
        """Keep an answer: it is durable when this returns. One that is there already stays."""
        ...

    async def forget_errors(self, run_id: str, *, from_step: int) -> int:
        """Drop the errors of this and later steps, so that they are asked again; returns how many there were."""
        ...

    async def count(self, run_id: str) -> int:
        """How many answers are kept of the run."""
        ...

    async def entries(self, run_id: str) -> Sequence[JournalEntry]:
        """All answers of the run, by key."""
        ...

    async def delete(self, run_id: str) -> None:
        """Drop everything kept of the run."""
        ...


@runtime_checkable
class KnowledgeMemory(Protocol):
    """Keeps texts by key, across runs."""

    async def remember(self, key: str, content: str, kind: str) -> None:
        """Keep `content` under `key`, replacing what was there."""
        ...

    async def recall(self, key: str) -> str | None:
        """What is kept under `key`, or None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what, when, with which outcome. Inputs appear as digests only.

    `subject` is the run's id, empty when there is none or it has not the form of one. `outcome` is `ok`, a failure code,
    or `aborted`.
    """

    at: datetime
    actor: str
    action: str
    subject: str
    outcome: str
    digest: str
    position: str = ""


@runtime_checkable
class AuditLog(Protocol):
    """An append-only record of commands."""

    async def append(self, entry: AuditEntry) -> None:
        """Add an entry at the end."""
        ...


@runtime_checkable
class EventSink(Protocol):
    """Listens to what happens in runs."""

    async def emit(self, event: Event) -> None:
        """Take note; a failure is logged and changes nothing."""
        ...


class Clock(Protocol):
    """Tells the time."""

    def __call__(self) -> datetime:
        """Now, with a time zone."""
        ...
