"""How many calls a run makes, known before it is started: a range for each stage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Generic, TypeVar

from burnish.domain.config import TrainSkillConfig
from burnish.domain.gate import GateMode
from burnish.domain.rollouts import TEST, TRAIN, VALIDATION

Number = TypeVar("Number", int, float, Decimal)


@dataclass(frozen=True, slots=True)
class Range(Generic[Number]):
    """From `low` to `high`, both included."""

    low: Number
    high: Number

    def __add__(self, other: Range[Number]) -> Range[Number]:
        """The range of the sum."""
        return Range(self.low + other.low, self.high + other.high)

    def __contains__(self, value: Number) -> bool:
        """Whether it covers the value."""
        return self.low <= value <= self.high


NOTHING = Range(0, 0)


def total(ranges: Iterable[Range[int]]) -> Range[int]:
    """The range of the sum of all."""
    return sum(ranges, NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCounts:
    """Items of each split that are in use."""

    train: int
    val: int
    test: int


class RolloutStage(StrEnum):
    """What rollouts are for."""

    BASELINE = "baseline"
    """The initial skill on the selection set."""
    TRAIN = "train"
    """The current skill on a step's train items."""
    CANDIDATES = "candidates"
    """What a step's edits made of it, on the selection set."""
    HELD_IN = "held_in"
    """The same on the step's train items (two-split gate)."""
    SLOW_UPDATE = "slow_update"
    """Both epochs' skills on sampled train items."""
    RESCORE = "rescore"
    """A skill with new guidance, on the selection set."""
    FINAL = "final"
    """Final and best skill afresh on the selection set."""
    TEST = "test"
    """Initial, best and final skill on the test items."""


class OptimizerStage(StrEnum):
    """What the optimizer is asked for."""

    REFLECT = "reflect"
    """Edits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageForecast:
    """Passes of a stage, each over `items` items of `split`, `repeats` times, in `blocks` blocks with a wait between them.

    A pass that stops early counts in `high` only.
    """

    split: str
    items: int
    passes: Range[int]
    repeats: int = 1
    blocks: int = 1

    @property
    def rollouts(self) -> Range[int]:
        """Calls of the agent."""
        size = self.items * self.repeats
        return Range(self.passes.low * size, self.passes.high * size)

    @property
    def waits(self) -> Range[int]:
        """Blocks whose rollouts run side by side."""
        return Range(self.passes.low * self.blocks, self.passes.high * self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallForecast:
    """The calls of a run, by stage; `steps` and `slow_updates` (ends of epochs that compare two) say how often."""

    steps: Range[int]
    slow_updates: Range[int]
    stages: Mapping[RolloutStage, StageForecast]
    optimizer: Mapping[OptimizerStage, Range[int]]

    @property
    def rollouts(self) -> Range[int]:
        """All calls of the agent."""
        return total(stage.rollouts for stage in self.stages.values())

    @property
    def optimizer_calls(self) -> Range[int]:
        """All calls of the optimizer."""
        return total(self.optimizer.values())


def forecast_calls(config: TrainSkillConfig, items: ItemCounts, *, asks: int = 2) -> CallForecast:
    """The calls of a run whose runner lists its items, and that ends completed or by patience.

    `high` is never passed: a call that the journal can answer, an early stop and an early end only make it fewer. `low` is
    not undercut as long as every call is answered: each step is undecided by nothing but the gate, no candidate is made, and
    a run with patience ends as early as it can. `asks` is how often the optimizer is asked for one answer at most: once
    more when the first cannot be read.
    """
    epochs, steps = config.epochs, config.total_steps
    batch, validation = min(config.train_batch_size, items.train), min(config.val_batch_size, items.val)
    two_split = config.gate_mode == GateMode.TWO_SPLIT
    ran = Range(min(config.patience or steps, steps), steps)
    slow = _slow_updates(config)
    blocks = config.repeats * math.ceil(validation / config.block_size)

    def on_train(passes: Range[int], size: int = batch) -> StageForecast:
        return StageForecast(split=TRAIN, items=size, passes=passes)

    def on_validation(passes: Range[int]) -> StageForecast:
        return StageForecast(
            split=VALIDATION, items=validation, passes=passes, repeats=config.repeats, blocks=max(blocks, 1)
        )

    gated_guidance = slow.high if config.slow_update_gate else 0
    baseline = int(config.evaluate_baseline)
    stages = {
        RolloutStage.BASELINE: on_validation(Range(baseline, baseline)),
        RolloutStage.TRAIN: on_train(ran),
        RolloutStage.CANDIDATES: on_validation(Range(0, steps)),
        RolloutStage.HELD_IN: on_train(Range(0, (steps + gated_guidance) * two_split)),
        RolloutStage.SLOW_UPDATE: on_train(
            Range(slow.low, 2 * slow.high), min(config.slow_update_samples, items.train)
        ),
        RolloutStage.RESCORE: on_validation(Range(0, slow.high)),
        RolloutStage.FINAL: StageForecast(
            split=VALIDATION,
            items=validation,
            passes=Range(0, 2 * (config.promote_final and _may_part(config, epochs))),
        ),
        RolloutStage.TEST: StageForecast(split=TEST, items=items.test, passes=_tested(config, slow.high)),
    }
    step = optimizer_calls_a_step(config, asks=asks)
    optimizer = {stage: Range(ran.low * calls.low, ran.high * calls.high) for stage, calls in step.items()}
    return CallForecast(steps=ran, slow_updates=slow, stages=stages, optimizer=optimizer)


def optimizer_calls_a_step(config: TrainSkillConfig, *, asks: int = 2) -> Mapping[OptimizerStage, Range[int]]:
    """Calls of the optimizer in one step: one for edits, none when only failures may be shown and there are none."""
    return {OptimizerStage.REFLECT: Range(0 if config.failure_only else 1, asks)}


def _slow_updates(config: TrainSkillConfig) -> Range[int]:
    """Ends of epochs at which two epochs are compared: from the second on, never that of the epoch patience ends."""
    if not config.use_slow_update:
        return NOTHING
    all_of_them = config.epochs - 1
    if config.patience is None or config.patience > config.total_steps:
        return Range(all_of_them, all_of_them)
    last_epoch = math.ceil(config.patience / config.steps_per_epoch)
    return Range(max(last_epoch - 2, 0), all_of_them)


def _may_part(config: TrainSkillConfig, epochs: int) -> bool:
    """Whether current and best skill can differ: after a forced slow update, or where a tie on validation can pass."""
    is_forced = config.use_slow_update and epochs > 1 and not config.slow_update_gate
    return is_forced or config.gate_mode == GateMode.TWO_SPLIT


def _tested(config: TrainSkillConfig, slow_updates: int) -> Range[int]:
    """Different texts among initial, best and final skill: no more than there were changes, and one."""
    if not config.eval_test:
        return NOTHING
    names = 3 if _may_part(config, config.epochs) else 2
    return Range(1, min(names, 1 + config.total_steps + slow_updates))
