"""The ports of the optimizer: who proposes, merges, ranks and rewrites, and what each of them gets to read.

On any of them an attribute `fingerprint` (str) is optional: it changes whenever the same request could be answered
differently. So is a method `usage_at_most`, which takes the arguments of the call and returns the most tokens it can use,
as `UsageNote`s: runs with a cap on tokens or money need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from burnish.domain.config import UpdateMode
from burnish.domain.edits import Patch
from burnish.domain.epochs import SlowUpdateAnalysis
from burnish.domain.rollouts import BatchScore, Rollout
from burnish.domain.step_memory import TriedStep


@runtime_checkable
class Pure(Protocol):
    """Optional on an optimizer port: it asks nobody, equal requests have equal answers, so nothing of it is journaled."""

    @property
    def is_pure(self) -> bool:
        """True."""
        ...


class Focus(StrEnum):
    """Which rollouts a proposer is shown: failures and successes are read by analysts of their own."""

    FAILURES = "failures"
    SUCCESSES = "successes"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionInput:
    """What the optimizer reads before it proposes edits; `rollouts` all have an answer, and are as `focus` says.

    `edit_budget` is the most edits this step will keep (None: no limit, or outside of a run). `update_mode` says what is
    wanted: edits, suggestions (`EditOp.SUGGEST`), or one whole new skill (`EditOp.REWRITE`). `tried` is what earlier steps
    of the epoch tried in vain. `seed` is this call's seed. `wants_notes`: execution lapses, failures that the skill as it is
    would have prevented, are wanted as the patch's notes and not as edits.
    """

    current_skill: str
    rollouts: tuple[Rollout, ...]
    meta_skill_memory: str = ""
    include_successes: bool = True
    edit_budget: int | None = None
    seed: int = 0
    focus: Focus = Focus.MIXED
    update_mode: UpdateMode = UpdateMode.PATCH
    tried: tuple[TriedStep, ...] = ()
    wants_notes: bool = False


@runtime_checkable
class PatchProposer(Protocol):
    """Reads rollouts and proposes edits."""

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        """Edits and, if they are wanted, notes, or an empty patch; None counts as a failure. May be called concurrently."""
        ...


@runtime_checkable
class PatchAggregator(Protocol):
    """Makes one patch of several, without a model."""

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        """The merged patch."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInput:
    """Patches to be made one. `focus` is what they were proposed from; in a final merge (mixed) the failures' comes first.

    `level` counts merges from 1. What is merged are edits, suggestions or whole skills, as `update_mode` says.
    """

    current_skill: str
    patches: tuple[Patch, ...]
    focus: Focus
    level: int = 1
    meta_skill_memory: str = ""
    update_mode: UpdateMode = UpdateMode.PATCH
    seed: int = 0


@runtime_checkable
class PatchMerger(Protocol):
    """Makes one patch of several by reading them."""

    async def merge(self, request: MergeInput, /) -> Patch:
        """The merged patch; its edits tell their support. May be called concurrently."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RateInput:
    """What the optimizer reads to decide how many of a step's merged edits are kept."""

    current_skill: str
    patch: Patch
    score: BatchScore
    meta_skill_memory: str = ""
    tried: tuple[TriedStep, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateDecision:
    """How many edits are kept, as the optimizer wants it (clamped later), and why; `confidence` in [0, 1] if it says."""

    learning_rate: int
    reasoning: str = ""
    confidence: float | None = None
    risks: str = ""


@runtime_checkable
class RateChooser(Protocol):
    """Decides how many edits a step keeps (autonomous learning rate)."""

    async def choose(self, request: RateInput, /) -> RateDecision:
        """The decision."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RankInput:
    """More edits than the budget allows, to be put in order."""

    current_skill: str
    patch: Patch
    budget: int
    meta_skill_memory: str = ""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Places (0-based) of the patch's edits, the best first, each at most once; places left out are not wanted."""

    places: tuple[int, ...]
    reasoning: str = ""


@runtime_checkable
class EditRanker(Protocol):
    """Puts edits in order by reading them."""

    async def rank(self, request: RankInput, /) -> Ranking:
        """The ranking."""
        ...


@runtime_checkable
class EditSelector(Protocol):
    """Clips a patch to a step's budget, without a model."""

    async def select(self, patch: Patch, k: int) -> Patch:
        """At most `k` of the patch's edits."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteInput:
    """A skill and the suggestions it is to be rewritten by."""

    current_skill: str
    suggestions: Patch
    meta_skill_memory: str = ""
    tried: tuple[TriedStep, ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A whole new skill; protected parts may be left out of it, they are put back."""

    skill: str
    summary: str = ""


@runtime_checkable
class SkillRewriter(Protocol):
    """Writes a skill anew from suggestions."""

    async def rewrite(self, request: RewriteInput, /) -> Rewrite:
        """The new skill."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesInput:
    """The notes of a skill's appendix, the newest last: too many of them. `threshold` is how many there may be."""

    current_skill: str
    notes: tuple[str, ...]
    threshold: int
    seed: int = 0


@runtime_checkable
class NoteConsolidator(Protocol):
    """Makes fewer notes of many."""

    async def consolidate(self, request: NotesInput, /) -> Sequence[str]:
        """The notes that are to stand in place of all; used only if they are fewer and none is blank."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochComparison:
    """What a writer of slow-update guidance reads: both epochs' skills and how each fared on the same items."""

    prior_skill: str
    current_skill: str
    prior_rollouts: tuple[Rollout, ...]
    current_rollouts: tuple[Rollout, ...]
    analysis: SlowUpdateAnalysis
    previous_guidance: str


@runtime_checkable
class GuidanceWriter(Protocol):
    """Writes the slow update's guidance for the skill's protected region."""

    async def write(self, comparison: EpochComparison, /) -> str:
        """The guidance; blank when there is nothing to say."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochSummary:
    """What a writer of the cross-epoch memory reads at the end of an epoch (1-based)."""

    epoch: int
    current_skill: str
    current_score: float
    prior_memory: str
    analysis: SlowUpdateAnalysis | None


@runtime_checkable
class MemoryWriter(Protocol):
    """Writes the optimizer's memory across epochs."""

    async def write(self, summary: EpochSummary, /) -> str:
        """The whole new memory."""
        ...
