"""What earlier steps of an epoch tried in vain, so that the optimizer does not propose it again."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.domain.edits import Edit, FailedEdit
from burnish.domain.rollouts import OutcomeKey, Outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedStep:
    """A step (1-based) whose edits were not kept, or not all of them.

    `rejected` are edits that were applied and whose candidate the gate held back; `lost` and `gained` count the validation
    items, of those asked before it was decided, on which that candidate did worse or better than the current skill.
    `failed` are edits that could not be applied, with the reason.
    """

    step: int
    rejected: tuple[Edit, ...] = ()
    lost: int = 0
    gained: int = 0
    failed: tuple[FailedEdit, ...] = ()


def lost_and_gained(candidate: Outcomes, current: Outcomes) -> tuple[int, int]:
    """On how many items both have answers for the candidate scores worse, and on how many better (hard, then soft)."""
    shared: list[OutcomeKey] = [key for key in candidate if key in current]
    scores = [((candidate[key].hard, candidate[key].soft), (current[key].hard, current[key].soft)) for key in shared]
    return sum(new < old for new, old in scores), sum(new > old for new, old in scores)
