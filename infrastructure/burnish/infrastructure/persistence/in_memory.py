"""Stores that live as long as the process: checkpoints, runs, memory, journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burnish.application.ports import Claim, ClaimOutcome, JournalEntry
from burnish.domain.runs import Checkpoint, StepRecord, StopReason, TrainingRun

KEPT_CHECKPOINTS = 64
"""Checkpoints of a run that stay in memory beside its best one: the latest."""

ENDED_WELL = frozenset({StopReason.COMPLETED, StopReason.PATIENCE})
"""A run that stopped at a cap is not over: it goes on when the cap is raised."""


class InMemoryCheckpointStore:
    """Keeps the best and the last 64 checkpoints of each run."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[int, Checkpoint]] = {}

    async def save(self, checkpoint: Checkpoint) -> None:
        """Keep it; drops the oldest that is neither the best nor among the last 64."""
        kept = self._runs.setdefault(checkpoint.run_id, {})
        kept[checkpoint.step] = checkpoint
        best = _best(kept)
        latest = set(sorted(kept)[-KEPT_CHECKPOINTS:])
        for step in [step for step in kept if step not in latest and step != best.step]:
            del kept[step]

    async def get(self, run_id: str, step: int) -> Checkpoint | None:
        """The snapshot of that step, or None."""
        return self._runs.get(run_id, {}).get(step)

    async def best(self, run_id: str) -> Checkpoint | None:
        """The highest score, the earliest among equals."""
        kept = self._runs.get(run_id)
        return _best(kept) if kept else None

    async def list(self, run_id: str) -> Sequence[Checkpoint]:
        """By step."""
        kept = self._runs.get(run_id, {})
        return [kept[step] for step in sorted(kept)]


def _best(kept: Mapping[int, Checkpoint]) -> Checkpoint:
    return max(kept.values(), key=lambda checkpoint: (checkpoint.score, -checkpoint.step))


def differing_keys(known: Mapping[str, str], identity: Mapping[str, str]) -> tuple[str, ...]:
    """The names under which two identities disagree."""
    return tuple(name for name in sorted({*known, *identity}) if known.get(name) != identity.get(name))


class InMemoryRunStore:
    """Keeps runs, and who is training which."""

    def __init__(self) -> None:
        self._identities: dict[str, dict[str, str]] = {}
        self._runs: dict[str, TrainingRun] = {}
        self._active: set[str] = set()

    async def claim(self, run_id: str, identity: Mapping[str, str]) -> Claim:
        """Take the run unless it is active, of another identity, or has ended well."""
        if run_id in self._active:
            return Claim(outcome=ClaimOutcome.ACTIVE)
        known = self._identities.setdefault(run_id, dict(identity))
        if differing := differing_keys(known, identity):
            return Claim(outcome=ClaimOutcome.OTHER_IDENTITY, differing=differing)
        run = await self.get(run_id)
        if run is not None and run.stop_reason in ENDED_WELL:
            return Claim(outcome=ClaimOutcome.FINISHED, known=run)
        self._active.add(run_id)
        return Claim(outcome=ClaimOutcome.CLAIMED, known=run)

    async def release(self, run_id: str) -> None:
        """Let others claim it."""
        self._active.discard(run_id)

    async def save(self, run: TrainingRun) -> None:
        """Replace what was kept of the run."""
        self._runs[run.run_id] = run

    async def append(self, run_id: str, position: int, record: StepRecord) -> None:
        """Nothing to do here: the saved run carries its records."""

    async def get(self, run_id: str) -> TrainingRun | None:
        """The run as it was last saved."""
        return self._runs.get(run_id)

    async def list(self) -> Sequence[TrainingRun]:
        """In the order they were first claimed."""
        return [self._runs[run_id] for run_id in self._identities if run_id in self._runs]

    async def delete(self, run_id: str) -> None:
        """Forget the run."""
        self._runs.pop(run_id, None)
        self._identities.pop(run_id, None)


class InMemoryKnowledgeMemory:
    """Keeps the latest text of every key."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def remember(self, key: str, content: str, kind: str) -> None:
        """Replace what was there."""
        self._texts[key] = content

    async def recall(self, key: str) -> str | None:
        """The text, or None."""
        return self._texts.get(key)


class InMemoryJournal:
    """Lives as long as the process: a run that is started again in it goes on where it was."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, JournalEntry]] = {}

    async def find(self, run_id: str, key: str) -> JournalEntry | None:
        """The answer kept under the key, or None."""
        return self._runs.get(run_id, {}).get(key)

    async def append(self, run_id: str, entry: JournalEntry) -> None:
        """Keep an answer; one that is there already stays."""
        self._runs.setdefault(run_id, {}).setdefault(entry.key, entry)

    async def forget_errors(self, run_id: str, *, from_step: int) -> int:
        """Drop the errors of this and later steps; returns how many there were."""
        kept = self._runs.get(run_id, {})
        errors = [key for key, entry in kept.items() if entry.is_error and entry.step >= from_step]
        for key in errors:
            del kept[key]
        return len(errors)

    async def count(self, run_id: str) -> int:
        """How many answers are kept of the run."""
        return len(self._runs.get(run_id, {}))

    async def entries(self, run_id: str) -> Sequence[JournalEntry]:
        """All answers of the run, by key."""
        kept = self._runs.get(run_id, {})
        return [kept[key] for key in sorted(kept)]

    async def delete(self, run_id: str) -> None:
        """Drop everything kept of the run."""
        self._runs.pop(run_id, None)
