"""An evolution as JSON, for the next call to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import TypeAdapter

from burnish.application.evolution import Evolution
from burnish.application.journaling import Codec
from burnish.application.training_state import ScoredSkill
from burnish.domain.rollouts import Outcome

_Outcomes: TypeAlias = tuple[tuple[str, str, float, float], ...]
"""Item, repeat, hard and soft score of each answered item: JSON has no pairs as keys."""

_SKILLS = ("current", "best", "baseline")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEvolution:
    """The evolution, its skills' outcomes apart."""

    evolution: Evolution
    outcomes: Mapping[str, _Outcomes | None]

    @staticmethod
    def of(evolution: Evolution) -> KeptEvolution:
        """What to keep of it."""
        state = evolution.state
        skills: dict[str, ScoredSkill | None] = {name: getattr(state, name) for name in _SKILLS}
        bare = {name: None if skill is None else ScoredSkill(skill.text) for name, skill in skills.items()}
        return KeptEvolution(
            evolution=replace(evolution, state=replace(state, **bare)),  # type: ignore[arg-type]  # the fields' own
            outcomes={name: _listed(skill) for name, skill in skills.items()},
        )

    @property
    def whole(self) -> Evolution:
        """The evolution again."""
        state = self.evolution.state
        skills: dict[str, ScoredSkill | None] = {name: getattr(state, name) for name in _SKILLS}
        scored = {name: _scored(skill, self.outcomes.get(name)) for name, skill in skills.items()}
        return replace(self.evolution, state=replace(state, **scored))  # type: ignore[arg-type]  # the fields' own


EVOLUTION = Codec(lambda: TypeAdapter(KeptEvolution))


def _listed(skill: ScoredSkill | None) -> _Outcomes | None:
    if skill is None or skill.outcomes is None:
        return None
    return tuple((item, repeat, scores.hard, scores.soft) for (item, repeat), scores in skill.outcomes.items())


def _scored(skill: ScoredSkill | None, outcomes: _Outcomes | None) -> ScoredSkill | None:
    if skill is None or outcomes is None:
        return skill
    return replace(skill, outcomes={(item, repeat): Outcome(hard, soft) for item, repeat, hard, soft in outcomes})
