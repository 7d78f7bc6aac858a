"""What a training run leaves behind: a record a step, checkpoints, and the result."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from burnish.domain.gate import GateAction
from burnish.domain.rollouts import BatchScore

RUN_ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_RUN_ID = re.compile(RUN_ID_PATTERN)


class StepReason(StrEnum):
    """Why a step ended as it did."""

    ACCEPTED = "accepted"
    """The gate let the candidate pass."""
    GATE = "gate"
    """The gate held the candidate back."""
    NO_PATCHES = "no_patches"
    """The optimizer answered, with no edits."""
    NO_EDITS = "no_edits"
    """Selection left no edit."""
    NO_CHANGE = "no_change"
    """The edits that could be applied left the text as it was."""
    TOO_LONG = "too_long"
    """The candidate would pass the longest skill allowed."""
    OPTIMIZER_FAILED = "optimizer_failed"
    """Every call to the optimizer failed; the record's code says how."""
    INCONCLUSIVE = "inconclusive"
    """Too many items had no answer: no decision."""
    FORCED = "forced"
    """A slow update that was not put to the gate."""
    NOTES = "notes"
    """Notes went into the skill's appendix, measured but not put to the gate."""


class StopReason(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"
    PATIENCE = "patience"
    BUDGET = "budget"
    CANCELLED = "cancelled"
    OPTIMIZER_FAILED = "optimizer_failed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step; its notes, if they would change the skill; or a slow update that would.

    Of a step, its own record comes first. That of notes has `notes_added` above 0 and the reason notes, too_long or
    inconclusive, that of a slow update the reason forced or inconclusive, or accepted and gate when gated.

    `step` and `epoch` count from 1. `action` is None for an inconclusive step; `code` is the failure code of one that
    went wrong. `proposed`, `selected`, `applied` and `failed` are numbers of edits. Scores are None when not measured: a
    candidate that was stopped early has no `candidate_score` but the `ceiling` it could still have reached.
    `skill_hash` and `skill_characters` are those of the current skill after the step; `compared_with` is the score the
    candidate had to beat: the current skill's on the same items, of a forced slow update and of notes the best's.
    `analysts` are calls of the proposer, `merged` the edits all of them came to; `fallbacks` names the roles (merge, rate,
    rank, consolidate) that failed, so that a rule was followed; `rate_reasoning` is the optimizer's, where it chose the
    learning rate. `lapses` are the notes the analysts came to, each once. In the record of notes, `notes_added` are those
    the appendix did not have, `notes_total` all of them in the skill that was measured, and `notes_consolidated` those that
    a consolidation saved.
    """

    step: int
    epoch: int
    action: GateAction | None
    reason: StepReason
    code: str | None = None
    learning_rate: int = 0
    proposed: int = 0
    selected: int = 0
    applied: int = 0
    failed: int = 0
    candidate_hard: float | None = None
    candidate_soft: float | None = None
    candidate_score: float | None = None
    ceiling: float | None = None
    held_in_score: float | None = None
    skill_hash: str = ""
    skill_characters: int = 0
    compared_with: float | None = None
    analysts: int = 0
    analysts_failed: int = 0
    merged: int = 0
    fallbacks: tuple[str, ...] = ()
    rate_reasoning: str = ""
    lapses: int = 0
    notes_added: int = 0
    notes_total: int = 0
    notes_consolidated: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether it gave the run another current skill."""
        return self.action in {GateAction.ACCEPT, GateAction.ACCEPT_NEW_BEST}

    @property
    def is_of_notes(self) -> bool:
        """Whether it tells what became of a step's notes, and not of its edits or of a slow update."""
        return self.notes_added > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The current skill after a gated step, accepted or not; `score` is its projected validation score."""

    run_id: str
    skill_id: str
    step: int
    epoch: int
    skill: str
    skill_hash: str
    score: float
    action: GateAction
    created_at: datetime
    memory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotal:
    """Tokens of a role's model calls in one stage of a run; `is_estimated` when a server left some of them untold."""

    role: str
    stage: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    is_estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCalls:
    """Calls that were made, or about to be, when their process ended: paid perhaps, at most as told here."""

    calls: int
    rollouts: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresOnTest:
    """The test split, scored once at the end."""

    initial: BatchScore
    best: BatchScore
    final: BatchScore
    one_shot: BatchScore | None = None
    """The initial skill, rewritten once by the optimizer: what the training loop has to beat. None: not asked, or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """A run as it ended, or as far as it came (`stop_reason` None: it is being trained).

    When nothing was accepted, `best_skill` is the initial skill, `best_score` is 0.0 and `has_accepted_any` is false
    (system A); `selected_score` is what to show: `best_score` if something was accepted, else `baseline_score`.
    """

    run_id: str
    skill_id: str
    best_skill: str
    best_score: float
    best_step: int
    baseline_score: float | None
    selected_score: float | None
    final_skill: str
    steps_executed: int
    consecutive_rejects: int
    has_accepted_any: bool
    steps: tuple[StepRecord, ...]
    stop_reason: StopReason | None
    seed: int = 0
    final_score: float | None = None
    promoted_final: bool = False
    test: ScoresOnTest | None = None
    memory: str = ""
    code: str | None = None
    """The failure code of a run that ended in one."""
    rollouts_saved: int = 0
    """Validation rollouts that were not needed, because their candidate could no longer pass the gate."""
    usage: tuple[UsageTotal, ...] = ()
    """Tokens by role and stage, of answers that are in the journal."""
    cap: str | None = None
    """The cap a run with stop reason `budget` has reached."""
    lost: LostCalls | None = None
    """Of earlier attempts at a run with a budget; no part of what the run used."""
    warnings: tuple[str, ...] = ()
    """Signs that something is wired wrongly; they change no result."""


def skill_hash(skill: str) -> str:
    """SHA-256 of the text in UTF-8: 64 lower-case hexadecimal digits."""
    return hashlib.sha256(skill.encode("utf-8", "surrogatepass")).hexdigest()


def is_run_id(text: str) -> bool:
    """Whether `text` may name a run or a skill: a letter or digit, then up to 127 letters, digits, dots, `_` and `-`."""
    return _RUN_ID.fullmatch(text) is not None
