"""The settings of a training run that are part of its identity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from annotated_types import Ge, Le

from burnish.domain.gate import GateMetric, GateMode
from burnish.domain.schedule import SCHEDULERS


class UpdateMode(StrEnum):
    """What the optimizer is asked for in a step (system B)."""

    PATCH = "patch"
    """Bounded edits."""
    REWRITE_FROM_SUGGESTIONS = "rewrite_from_suggestions"
    """Suggestions, from which the skill is then rewritten."""
    FULL_REWRITE_MINIBATCH = "full_rewrite_minibatch"
    """A whole new skill."""


class RateControl(StrEnum):
    """Who decides how many edits a step keeps (system B's `lr_control_mode`)."""

    FIXED = "fixed"
    """The schedule."""
    AUTONOMOUS = "autonomous"
    """The optimizer."""
    NONE = "none"
    """Nobody: all are kept."""


class PairPolicy(StrEnum):
    """Which pairs of rollouts the slow update's guidance is written from (system B's `longitudinal_pair_policy`)."""

    MIXED = "mixed"
    """All of the sample."""
    CHANGED = "changed"
    """Those that improved or regressed; further train items are tried until there are as many as the sample has."""
    UNCHANGED = "unchanged"
    """Those that failed or succeeded twice."""


class AppendixSource(StrEnum):
    """Whose notes go into a skill's appendix (system B's `skill_aware_appendix_source`)."""

    BOTH = "both"
    """Those of all analysts."""
    FAILURE_ONLY = "failure_only"
    """Those of analysts who read failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSkillConfig:
    """How a skill is trained; the first dozen settings are system A's, the rest system B's.

    Two runs with equal configurations, items, models and seed make the same decisions.
    """

    epochs: Annotated[int, Ge(1)] = 3
    """Passes over the train items; the epoch boundary runs after each."""
    steps_per_epoch: Annotated[int, Ge(1)] = 5
    """Rollout, reflect, apply, gate cycles in an epoch."""
    lr_start: Annotated[int, Ge(1)] = 8
    """Most edits in the first step."""
    lr_min: Annotated[int, Ge(1)] = 1
    """Most edits in the last step; not above `lr_start`."""
    lr_scheduler: str = "cosine"
    """constant, linear or cosine, ignoring case."""
    train_batch_size: Annotated[int, Ge(1)] = 8
    """Train items rolled out in a step."""
    val_batch_size: Annotated[int, Ge(1)] = 16
    """Validation items that score a candidate: one sample, drawn once a run."""
    gate_metric: GateMetric = GateMetric.HARD
    gate_mode: GateMode = GateMode.STRICT
    mixed_weight: Annotated[float, Ge(0), Le(1)] = 0.5
    """Share of the soft score in the mixed metric."""
    patience: Annotated[int, Ge(1)] | None = 6
    """Rejected steps in a row that end the run; None: never."""
    use_slow_update: bool = True
    """From the second epoch on, compare both epochs' skills and write guidance into the skill's protected region."""
    use_meta_skill: bool = True
    """Keep a memory for the optimizer across epochs."""
    seed: Annotated[int, Ge(0)] = 0
    """0: a seed is drawn, recorded in the result, and used from then on."""
    evaluate_baseline: bool = True
    """Score the initial skill before the first candidate; without it the first gain above 0 is accepted."""

    accumulation: Annotated[int, Ge(1)] = 1
    """Batches a step: `train_batch_size` times this many items are tried before the optimizer reads them."""
    lr_control_mode: RateControl = RateControl.FIXED
    """Who decides how many edits a step keeps; a whole rewrite has no such number."""
    failure_only: bool = False
    """Show the optimizer failures only."""
    minibatch_size: Annotated[int, Ge(1)] = 8
    """Rollouts in one call of an analyst."""
    merge_batch_size: Annotated[int, Ge(2)] = 8
    """Patches in one call of the merger."""
    update_mode: UpdateMode = UpdateMode.PATCH
    max_skill_tokens: Annotated[int, Ge(1)] | None = None
    """Candidates that are longer, and longer than the current skill, are refused; None: no limit but the general one."""
    slow_update_samples: Annotated[int, Ge(1)] = 20
    """Train items both epochs' skills are compared on."""
    slow_update_gate: bool = False
    """Put the slow update's guidance through the gate instead of forcing it in."""
    longitudinal_pair_policy: PairPolicy = PairPolicy.MIXED
    use_skill_aware_reflection: bool = False
    """Tell execution lapses from defects of the skill: lapses become notes in its appendix."""
    skill_aware_appendix_source: AppendixSource = AppendixSource.BOTH
    skill_aware_consolidate_threshold: Annotated[int, Ge(0)] = 0
    """Notes above which the optimizer is asked for fewer; 0: never."""
    recall_meta_skill: bool = False
    """Start with the memory of the latest run of the same skill."""
    promote_final: bool = True
    """When the final skill is not the best one, score both afresh and promote it if it wins."""
    eval_test: bool = False
    """Score initial, best and final skill on the test split once, at the end."""
    one_shot_baseline: bool = False
    """With `eval_test`, also score what the optimizer writes when it rewrites the initial skill once."""
    max_error_rate: Annotated[float, Ge(0), Le(1)] = 0.1
    """Share of unanswered items of a batch above which its step is inconclusive."""
    repeats: Annotated[int, Ge(1)] = 1
    """Times each validation item is asked."""
    block_size: Annotated[int, Ge(1)] = 16
    """Validation items between two checks whether the candidate can still pass the gate."""

    @property
    def total_steps(self) -> int:
        """Steps of a run that nothing ends early."""
        return self.epochs * self.steps_per_epoch

    def violations(self) -> tuple[str, ...]:
        """Fields that break a rule a single field's constraint cannot state."""
        broken: list[str] = []
        if self.lr_scheduler.lower() not in SCHEDULERS:
            broken.append("lr_scheduler")
        if self.lr_min > self.lr_start:
            broken.append("lr_min")
        return tuple(broken)
