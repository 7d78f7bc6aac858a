"""Signs that something is wired wrongly. They warn; they never change a result."""

from __future__ import annotations

from enum import StrEnum

from burnish.application.passes import Pass
from burnish.domain.runs import skill_hash

_FEWEST_ITEMS = 8
_FEWEST_SKILLS = 3


class RunWarning(StrEnum):
    """What looks wrong; the values are stable."""

    REPEATED_CANDIDATE = "repeated_candidate"
    SKILL_HAS_NO_EFFECT = "skill_has_no_effect"
    CONSTANT_SCORES = "constant_scores"

    @property
    def meaning(self) -> str:
        """What was seen, in one line for people."""
        return _MEANINGS[self]


_MEANINGS = {
    RunWarning.REPEATED_CANDIDATE: "the optimizer's edits led to a text that was scored before",
    RunWarning.SKILL_HAS_NO_EFFECT: "different skills, the same prediction on every item: does the skill reach the prompt?",
    RunWarning.CONSTANT_SCORES: "different predictions, the same score on every item: does the scorer look at them?",
}


class Detectors:
    """Looks at the passes of one run over the selection set, and collects warnings."""

    def __init__(self) -> None:
        self._predictions: dict[str, dict[object, str]] = {}
        self._scores: set[tuple[float, float]] = set()
        self._different: set[str] = set()
        self._items = 0
        self._found: set[RunWarning] = set()

    @property
    def found(self) -> tuple[str, ...]:
        """The warnings so far, in the order of their names."""
        return tuple(sorted(warning.value for warning in self._found))

    def look_at(self, skill: str, done: Pass) -> None:
        """Take a pass into account."""
        digest = skill_hash(skill)
        if digest in self._predictions:
            self._found.add(RunWarning.REPEATED_CANDIDATE)
            return
        pairs = [(key, rollout) for key, rollout in zip(done.keys, done.rollouts, strict=True) if rollout.error is None]
        self._predictions[digest] = {key: rollout.prediction for key, rollout in pairs}
        self._scores |= {(rollout.hard, rollout.soft) for _, rollout in pairs}
        self._different |= {rollout.prediction for _, rollout in pairs}
        self._items += len(pairs)
        self._check()

    def _check(self) -> None:
        if self._items >= _FEWEST_ITEMS and len(self._scores) == 1 and len(self._different) > 1:
            self._found.add(RunWarning.CONSTANT_SCORES)
        else:
            self._found.discard(RunWarning.CONSTANT_SCORES)
        seen = list(self._predictions.values())
        common = set(seen[0]).intersection(*seen[1:])
        same = all(len({predictions[key] for predictions in seen}) == 1 for key in common)
        if len(seen) >= _FEWEST_SKILLS and len(common) >= _FEWEST_ITEMS and same and any(seen[0].values()):
            self._found.add(RunWarning.SKILL_HAS_NO_EFFECT)
        else:
            self._found.discard(RunWarning.SKILL_HAS_NO_EFFECT)
