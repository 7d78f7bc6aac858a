"""An optimizer of many roles for tests: each does what its function says, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fakes import STEPS, CatalogRunner, append, training

from burnish.application.optimizer_ports import (
    MergeInput,
    Ranking,
    RankInput,
    RateDecision,
    RateInput,
    ReflectionInput,
    Rewrite,
    RewriteInput,
)
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Patch
from burnish.domain.runs import TrainingRun
from burnish.presentation.app import open_app

T = TypeVar("T")

MIXED_ITEMS = {f"train/{number}": float(number % 2) for number in range(8)}
"""Half of the train items fail, half succeed, whatever the skill says."""


def half_solved(skill: str, item_id: str) -> float:
    if item_id in MIXED_ITEMS:
        return MIXED_ITEMS[item_id]
    return min(1.0, 0.1 * skill.count("better"))


@dataclass
class Team:
    """An optimizer of many roles; each does what its function says, and remembers what it was asked."""

    propose_: Callable[[ReflectionInput], Patch | None] = lambda _: append("- better")
    merge_: Callable[[MergeInput], Patch] | None = None
    choose_: Callable[[RateInput], RateDecision] | None = None
    rank_: Callable[[RankInput], Ranking] | None = None
    rewrite_: Callable[[RewriteInput], Rewrite] | None = None
    reflections: list[ReflectionInput] = field(default_factory=list[ReflectionInput])
    merges: list[MergeInput] = field(default_factory=list[MergeInput])
    rates: list[RateInput] = field(default_factory=list[RateInput])
    ranks: list[RankInput] = field(default_factory=list[RankInput])
    rewrites: list[RewriteInput] = field(default_factory=list[RewriteInput])

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        self.reflections.append(reflection)
        return self.propose_(reflection)

    async def merge(self, request: MergeInput) -> Patch:
        self.merges.append(request)
        assert self.merge_ is not None
        return self.merge_(request)

    async def choose(self, request: RateInput) -> RateDecision:
        self.rates.append(request)
        assert self.choose_ is not None
        return self.choose_(request)

    async def rank(self, request: RankInput) -> Ranking:
        self.ranks.append(request)
        assert self.rank_ is not None
        return self.rank_(request)

    async def rewrite(self, request: RewriteInput) -> Rewrite:
        self.rewrites.append(request)
        assert self.rewrite_ is not None
        return self.rewrite_(request)


CONFIG = replace(STEPS, train_batch_size=8, minibatch_size=2, merge_batch_size=2, lr_start=4)


async def train(
    team: Team, config: TrainSkillConfig = CONFIG, *, initial_skill: str = "# Skill\n", **ports: object
) -> TrainingRun:
    given: dict[str, object] = {
        "merger": team if team.merge_ else None,
        "rate_chooser": team if team.choose_ else None,
        "ranker": team if team.rank_ else None,
        "rewriter": team if team.rewrite_ else None,
        **ports,
    }
    runner = CatalogRunner(half_solved, train=8, val=4, test=4)
    async with open_app(rollouts=runner, proposer=team, **given) as app:  # type: ignore[arg-type]  # by name
        result = await app.send(training(config, initial_skill=initial_skill))
    return result.value


def raising(_: object) -> Patch:
    raise ConnectionError


def fixed(answer: T) -> Callable[[object], T]:
    """Always this answer."""

    def give(_: object) -> T:
        return answer

    return give


def many(_: ReflectionInput) -> Patch:
    return append(*(f"- {number} better" for number in range(6)))


ONE_CALL = replace(CONFIG, failure_only=True, minibatch_size=8, lr_start=2)
