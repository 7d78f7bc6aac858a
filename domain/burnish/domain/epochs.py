"""Looking back over epochs: what changed between two skills, and the memory that grows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from burnish.domain.config import PairPolicy
from burnish.domain.rollouts import Rollout


@dataclass(frozen=True, slots=True)
class SlowUpdateAnalysis:
    """How paired items fared under two skills, and the guidance that follows for the newer one."""

    improved: int
    regressed: int
    persistent_fail: int
    stable_success: int
    guidance: str

    @property
    def total(self) -> int:
        """Number of paired items."""
        return self.improved + self.regressed + self.persistent_fail + self.stable_success


def is_of_interest(prior: Rollout, current: Rollout, policy: PairPolicy) -> bool:
    """Whether guidance is written from this pair; never from one without both answers."""
    if prior.error is not None or current.error is not None:
        return False
    if policy is PairPolicy.MIXED:
        return True
    return (prior.is_success != current.is_success) is (policy is PairPolicy.CHANGED)


def compare_epochs(prior: Iterable[Rollout], current: Iterable[Rollout]) -> SlowUpdateAnalysis:
    """Classify the items both skills have an answer for; of an item that appears twice the last rollout counts.

    Items with an error on either side are missing data and are left out (design, section 6); the rest is system A.
    """
    before = {rollout.item_id: rollout for rollout in prior}
    after = {rollout.item_id: rollout for rollout in current}
    pairs = [
        (before[item].is_success, after[item].is_success)
        for item in before
        if item in after and before[item].error is None and after[item].error is None
    ]
    improved, regressed = pairs.count((False, True)), pairs.count((True, False))
    persistent, stable = pairs.count((False, False)), pairs.count((True, True))
    return SlowUpdateAnalysis(
        improved=improved,
        regressed=regressed,
        persistent_fail=persistent,
        stable_success=stable,
        guidance=_guidance(improved, regressed, persistent, stable),
    )


def _guidance(improved: int, regressed: int, persistent: int, stable: int) -> str:
    total = improved + regressed + persistent + stable
    if total == 0:
        return "Slow update: no paired items found between prior and current rollouts."
    counts = (
        f"Slow update over {total} paired items: +{improved} improved, -{regressed} regressed, "
        f"{persistent} persistent failures, {stable} stable successes."
    )
    if regressed > improved:
        advice = "The skill is regressing more items than it improves: keep the rules that worked before, above all."
    elif improved == regressed == 0 and persistent > 0:
        advice = "No movement since the last epoch: try smaller rules that name one situation each."
    else:
        advice = "On balance, the current skill is moving forward; keep the direction."
    return f"{counts} {advice}"


def extend_memory(prior_memory: str, *, epoch: int, skill: str, score: float) -> str:
    """The cross-epoch memory with this epoch's entry at its end: number (1-based), score and length (system A)."""
    entry = f"## Epoch {epoch} (score {score:.4f})\nSkill length: {len(skill)} chars."
    kept = prior_memory.rstrip()
    return f"{kept}\n\n{entry}" if kept else entry
