"""Answers that stay away are missing data: they change no decision, are loud when there are many, and can be asked again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from child_processes import Parent
from fakes import STEPS, CatalogRunner, ScriptedProposer, append, training
from killed_runs import AFTER, JOURNAL, SMALL, asked_in, kept_in, results_of, train
from scripted_server import Body, Reply, ScriptedServer, failure
from ticket_server import OPTIMIZER, OVER_HTTP, TARGET, ticket_models

from burnish.application.runs import GetRun
from burnish.domain.config import TrainSkillConfig
from burnish.domain.gate import GateAction, GateMetric, GateMode, project_score
from burnish.domain.rollouts import Rollout, mean
from burnish.domain.runs import StepRecord
from burnish.infrastructure.simulation.draws import draw
from burnish.presentation.app import open_app
from burnish.presentation.cli import run

RETRIES = 2
SEEDS = range(20)
VAL, TRAIN, STEPS_A_RUN = 20, 10, 12


# --- decisions with missing answers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Who scores what, and which question stays without an answer; both follow from the texts alone."""

    seed: int
    failing: float
    """The chance of an attempt to fail; a question has `RETRIES` more attempts."""

    def score(self, skill: str, item: str) -> tuple[float, float]:
        version = skill.rpartition("v")[2]
        better = min(0.4, 0.04 * int(version))
        hard = float(draw("hard", self.seed, version, item) < 0.3 + better)
        return hard, round(draw("soft", self.seed, version, item), 1)

    def is_missing(self, skill: str, item: str) -> bool:
        return all(draw("late", self.seed, skill, item, attempt) < self.failing for attempt in range(RETRIES + 1))

    def attempt(self, skill: str, item: str) -> Rollout:
        if self.is_missing(skill, item):
            raise TimeoutError
        return Rollout(item, *self.score(skill, item))


class WithoutErrors:
    """What a run must decide, told by the error-free scores of the items that count.

    The rule: a pass with more than `max_error_rate` of its items missing decides nothing (no action). Otherwise the gate's
    decision is that of an error-free run whose selection set holds only the items that candidate, current and best all
    have answers for, and whose train batch, in two-split mode, those that candidate and current have answers for.
    """

    def __init__(self, world: World, config: TrainSkillConfig) -> None:
        self._world = world
        self._config = config
        self._val = [f"val/{number}" for number in range(VAL)]
        self._train = [f"train/{number}" for number in range(TRAIN)]

    def decide(self, current: str, best: str, candidate: str) -> GateAction | None:
        if any(self._is_inconclusive(*tried) for tried in ((current, self._train), (candidate, self._val))):
            return None
        paired = self._answered(self._val, candidate, current, best)
        score, now, top = (self._mean(skill, paired) for skill in (candidate, current, best))
        accepted = score > now
        if self._config.gate_mode is GateMode.TWO_SPLIT and score >= now:
            if self._is_inconclusive(candidate, self._train):
                return None
            paired = self._answered(self._train, candidate, current)
            held_in, before = self._mean(candidate, paired), self._mean(current, paired)
            accepted = held_in >= before and (score > now or held_in > before)
        if not accepted:
            return GateAction.REJECT
        return GateAction.ACCEPT_NEW_BEST if score > top else GateAction.ACCEPT

    def _is_inconclusive(self, skill: str, items: list[str]) -> bool:
        missing = sum(self._world.is_missing(skill, item) for item in items)
        return missing / len(items) > self._config.max_error_rate

    def _answered(self, items: list[str], *skills: str) -> list[str]:
        return [item for item in items if not any(self._world.is_missing(skill, item) for skill in skills)]

    def _mean(self, skill: str, items: list[str]) -> float:
        scores = [self._world.score(skill, item) for item in items]
        hard, soft = mean(hard for hard, _ in scores), mean(soft for _, soft in scores)
        return project_score(hard, soft, self._config.gate_metric, self._config.mixed_weight)


async def decided(world: World, config: TrainSkillConfig) -> tuple[tuple[StepRecord, ...], list[tuple[str, str]]]:
    """The records of a run in this world, and before each step the current and the best skill."""
    proposer = ScriptedProposer(*(append(f"v{number}") for number in range(1, STEPS_A_RUN + 1)))
    runner = CatalogRunner(world.attempt, train=TRAIN, val=VAL)
    async with open_app(rollouts=runner, proposer=proposer) as app:
        await app.send(training(config, initial_skill="v0"))
        return (await app.send(GetRun("run"))).value.steps


@pytest.mark.parametrize("mode", GateMode)
@pytest.mark.parametrize("failing", [0.3, 0.45, 0.6])
async def test_decisions_are_those_of_a_run_without_errors_on_the_paired_items(failing: float, mode: GateMode) -> None:
    config = replace(
        STEPS,
        steps_per_epoch=STEPS_A_RUN,
        train_batch_size=TRAIN,
        val_batch_size=VAL,
        block_size=VAL,
        max_error_rate=0.1,
        gate_mode=mode,
    )
    missing = {True: 0, False: 0}
    seen: list[GateAction | None] = []
    for seed in SEEDS:
        world = World(seed=seed, failing=failing)
        chosen = replace(config, gate_metric=list(GateMetric)[seed % 3])
        expected = WithoutErrors(world, chosen)
        current = best = "v0"
        proposed = 0
        records = await decided(world, chosen)
        for record in records:
            proposed += record.proposed
            candidate = f"{current}\n\nv{proposed}" if record.proposed else current
            assert record.action == expected.decide(current, best, candidate), (seed, record)
            seen.append(record.action)
            if record.action in {GateAction.ACCEPT, GateAction.ACCEPT_NEW_BEST}:
                current = candidate
            if record.action is GateAction.ACCEPT_NEW_BEST:
                best = candidate
    print(failing, mode, {a: seen.count(a) for a in set(seen)}, missing)
