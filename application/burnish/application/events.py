"""What a run tells its listeners while it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum

from burnish.domain.edits import Edit, FailedEdit, Patch
from burnish.domain.epochs import SlowUpdateAnalysis
from burnish.domain.rollouts import BatchScore, Rollout
from burnish.domain.runs import StepRecord, TrainingRun

_DETAIL = {"detail": True}
"""Marks a field with what the others sum up: whole texts and rollouts, for those who keep them."""


class Stage(StrEnum):
    """The six stages of a step, the writing of its notes, and the passes outside of it."""

    BASELINE = "baseline"
    ROLLOUT = "rollout"
    REFLECT = "reflect"
    AGGREGATE = "aggregate"
    SELECT = "select"
    APPLY = "apply"
    GATE = "gate"
    NOTES = "notes"
    SLOW_UPDATE = "slow_update"
    META_SKILL = "meta_skill"
    PROMOTE_FINAL = "promote_final"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a run; `step` and `epoch` count from 1 and are 0 outside of steps."""

    run_id: str
    step: int = 0
    epoch: int = 0
    replayed: bool = False

    def summary(self) -> dict[str, object]:
        """Its fields by name, without the details."""
        return {item.name: getattr(self, item.name) for item in fields(self) if not item.metadata}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run begins; `seed` is the one in use, also when it was drawn."""

    skill_id: str
    seed: int
    total_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassScored(Event):
    """A pass over items ended: a rollout of the step, a candidate at the gate, or a scoring outside of steps.

    `skill` tells which one of several; `text` is the skill that was tried.
    """

    stage: Stage
    score: BatchScore
    skill: str = ""
    text: str = field(default="", repr=False, metadata=_DETAIL)
    rollouts: tuple[Rollout, ...] = field(default=(), repr=False, metadata=_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflected(Event):
    """The optimizer answered, or failed with `code`; `notes` are those that were wanted."""

    proposed: int
    code: str | None = None
    notes: tuple[str, ...] = ()
    patches: tuple[Patch, ...] = field(default=(), repr=False, metadata=_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated(Event):
    """Equal edits were merged."""

    edits: int
    patch: Patch | None = field(default=None, repr=False, metadata=_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Event):
    """Edits were clipped to the learning rate; `reasoning` is the selector's."""

    learning_rate: int
    edits: tuple[Edit, ...]
    reasoning: str = field(default="", repr=False, metadata=_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Event):
    """Edits were applied to the current skill, which made the candidate of it."""

    applied: tuple[Edit, ...]
    failed: tuple[FailedEdit, ...]
    candidate: str = field(default="", repr=False, metadata=_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(Event):
    """A step, its notes, or a slow update was decided; scores and the current skill are those after it."""

    record: StepRecord
    current_score: float | None
    best_score: float | None
    skill: str = field(default="", repr=False, metadata=_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowUpdated(Event):
    """Two epochs' skills were compared, or that failed with `code`."""

    analysis: SlowUpdateAnalysis | None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdated(Event):
    """The cross-epoch memory grew, or that failed with `code`."""

    characters: int
    code: str | None = None
    memory: str = field(default="", repr=False, metadata=_DETAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run ended."""

    run: TrainingRun
