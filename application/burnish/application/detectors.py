"""Signs that something is wired wrongly. They warn; they never change a result."""

from __future__ import annotations

from enum import StrEnum

from burnish.application.passes import Pass
from burnish.domain.rollouts import OutcomeKey
from burnish.domain.runs import skill_hash

_FEWEST_ITEMS = 8
_FEWEST_SKILLS = 3
_ENOUGH = 2
"""Different ones that settle whether all are the same."""


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
    """Looks at the passes of one run over the selection set, and collects warnings. A look costs the pass's length."""

    def __init__(self) -> None:
        self._skills: set[str] = set()
        self._first: dict[OutcomeKey, str] = {}
        self._compared = 0
        self._skill_has_effect = False
        self._scores: set[tuple[float, float]] = set()
        self._predictions: set[str] = set()
        self._items = 0
        self._has_repeated = False

    @property
    def found(self) -> tuple[str, ...]:
        """The warnings so far, in the order of their names."""
        signs = {
            RunWarning.CONSTANT_SCORES: self._items >= _FEWEST_ITEMS
            and len(self._scores) == 1
            and len(self._predictions) > 1,
            RunWarning.REPEATED_CANDIDATE: self._has_repeated,
            RunWarning.SKILL_HAS_NO_EFFECT: not self._skill_has_effect
            and len(self._skills) >= _FEWEST_SKILLS
            and self._compared >= _FEWEST_ITEMS
            and any(self._first.values()),
        }
        return tuple(sorted(warning.value for warning, is_seen in signs.items() if is_seen))

    def look_at(self, skill: str, done: Pass) -> None:
        """Take a pass into account."""
        digest = skill_hash(skill)
        if digest in self._skills:
            self._has_repeated = True
            return
        self._skills.add(digest)
        for key, rollout in zip(done.keys, done.rollouts, strict=True):
            if rollout.error is not None:
                continue
            known = self._first.setdefault(key, rollout.prediction)
            self._compared += len(self._skills) > 1
            self._skill_has_effect = self._skill_has_effect or known != rollout.prediction
            self._items += 1
            if len(self._scores) < _ENOUGH:
                self._scores.add((rollout.hard, rollout.soft))
            if len(self._predictions) < _ENOUGH:
                self._predictions.add(rollout.prediction)
