"""What a run tells its listeners while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from burnish.domain.edits import Edit, FailedEdit
from burnish.domain.epochs import SlowUpdateAnalysis
from burnish.domain.rollouts import BatchScore
from burnish.domain.runs import StepRecord, TrainingRun


class Stage(StrEnum):
    """The six stages of a step, and the passes outside of it."""

    BASELINE = "baseline"
    ROLLOUT = "rollout"
    REFLECT = "reflect"
    AGGREGATE = "aggregate"
    SELECT = "select"
    APPLY = "apply"
    GATE = "gate"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run begins; `seed` is the one in use, also when it was drawn."""

    skill_id: str
    seed: int
    total_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassScored(Event):
    """A pass over items ended: a rollout of the step, or a scoring outside of it; `skill` tells which one of several."""

    stage: Stage
    score: BatchScore
    skill: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflected(Event):
    """The optimizer answered, or failed with `code`."""

    proposed: int
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated(Event):
    """Equal edits were merged."""

    edits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected(Event):
    """Edits were clipped to the learning rate."""

    learning_rate: int
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Event):
    """Edits were applied to the current skill."""

    applied: tuple[Edit, ...]
    failed: tuple[FailedEdit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(Event):
    """A step, or a slow update that changed the skill, was decided; scores are those after the decision."""

    record: StepRecord
    current_score: float | None
    best_score: float | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run ended."""

    run: TrainingRun
