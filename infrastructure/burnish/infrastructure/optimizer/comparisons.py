"""Two epochs' rollouts of the same items as text for the optimizer: what regressed, what stayed wrong, what improved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from burnish.application.optimizer_ports import EpochComparison
from burnish.domain.epochs import SlowUpdateAnalysis
from burnish.domain.rollouts import Rollout
from burnish.infrastructure.optimizer.trajectories import TrajectoryLimits, attempt, tagged


@dataclass(frozen=True, slots=True)
class Pair:
    """An item's attempts with the prior and with the current skill, both with an answer."""

    prior: Rollout
    current: Rollout

    @property
    def change(self) -> str:
        """Which of the four categories of `compare_epochs` it belongs to."""
        if self.prior.is_success:
            return STABLE if self.current.is_success else REGRESSED
        return IMPROVED if self.current.is_success else PERSISTENT


REGRESSED: Final = "regressed"
PERSISTENT: Final = "persistent"
IMPROVED: Final = "improved"
STABLE: Final = "stable"

COMPARED_TOKENS: Final = 48_000
"""Of all trajectories in one comparison."""

_FEWEST_TOKENS: Final = 100

_TITLES: Final = {
    REGRESSED: "Regressed: right with the prior skill, wrong with the current one",
    PERSISTENT: "Persistent: wrong with both skills",
    IMPROVED: "Improved: wrong with the prior skill, right with the current one",
}


def pairs_of(comparison: EpochComparison) -> tuple[Pair, ...]:
    """The pairs that `compare_epochs` counts, in its order."""
    before = {rollout.item_id: rollout for rollout in comparison.prior_rollouts}
    after = {rollout.item_id: rollout for rollout in comparison.current_rollouts}
    return tuple(
        Pair(before[item], after[item])
        for item in before
        if item in after and before[item].error is None and after[item].error is None
    )


def counted(analysis: SlowUpdateAnalysis) -> str:
    """The counts, in a sentence."""
    return (
        f"Of {analysis.total} items, {analysis.improved} improved, {analysis.regressed} regressed,"
        f" {analysis.persistent_fail} failed both times, {analysis.stable_success} succeeded both times."
    )


def show_pairs(pairs: Sequence[Pair], limits: TrajectoryLimits) -> str:
    """Every item that changed or stayed wrong, with both attempts, regressed ones first; of the others the ids only.

    All trajectories together are cut to about `COMPARED_TOKENS`, however many items there are.
    """
    trajectories = 2 * sum(pair.change != STABLE for pair in pairs)
    share = max(COMPARED_TOKENS // max(trajectories, 1), _FEWEST_TOKENS)
    limits = replace(limits, tokens=min(limits.tokens, share))
    sections = [
        f"## {title}\n\n" + "\n\n".join(_show(pair, limits) for pair in pairs if pair.change == change)
        for change, title in _TITLES.items()
        if any(pair.change == change for pair in pairs)
    ]
    stable = [pair.current.item_id for pair in pairs if pair.change == STABLE]
    if stable:
        sections.append(f"## Stable: right with both skills\n\n{', '.join(stable)}")
    return "\n\n".join(sections)


def _show(pair: Pair, limits: TrajectoryLimits) -> str:
    lines = [f"item: {pair.current.item_id}", "with the prior skill:", *attempt(pair.prior, limits)]
    return tagged(pair.change, [*lines, "with the current skill:", *attempt(pair.current, limits)])
