"""How many calls a run makes, known before it is started: a range for each stage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from burnish.domain.config import PairPolicy, TrainSkillConfig
from burnish.domain.gate import GateMode
from burnish.domain.optimizer_forecast import OptimizerStage, calls_a_step, calls_around_steps
from burnish.domain.ranges import NOTHING, Range, total
from burnish.domain.rollouts import TEST, TRAIN, VALIDATION


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
    NOTES = "notes"
    """A skill with new notes, on the selection set."""
    FINAL = "final"
    """Final and best skill afresh on the selection set."""
    TEST = "test"
    """Initial, best, final and perhaps once rewritten skill on the test items."""


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
    """The calls of a run, by stage; `steps` and `slow_updates` (ends of epochs that compare two) say how often.

    `asks` is how often one answer of the optimizer is asked for at most.
    """

    steps: Range[int]
    slow_updates: Range[int]
    stages: Mapping[RolloutStage, StageForecast]
    optimizer: Mapping[OptimizerStage, Range[int]]
    asks: int

    @property
    def rollouts(self) -> Range[int]:
        """All calls of the agent."""
        return total(stage.rollouts for stage in self.stages.values())

    @property
    def optimizer_calls(self) -> Range[int]:
        """All calls of the optimizer."""
        return total(self.optimizer.values())


def forecast_calls(
    config: TrainSkillConfig, items: ItemCounts, *, asks: int = 2, by_model: bool = True
) -> CallForecast:
    """The calls of a run whose runner lists its items, and that ends completed or by patience.

    `high` is never passed: a call that the journal can answer, an early stop and an early end only make it fewer. `low` is
    not undercut as long as every call is answered: each step is undecided by nothing but the gate, no candidate is made, and
    a run with patience ends as early as it can. `asks` is how often the optimizer is asked for one answer at most: once
    more when the first cannot be read. `by_model`: whether models merge, rank, and write guidance and memory.
    """
    epochs, steps = config.epochs, config.total_steps
    batch = min(config.train_batch_size * config.accumulation, items.train)
    validation = min(config.val_batch_size, items.val)
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

    noted = steps if config.use_skill_aware_reflection else 0
    gated_guidance = slow.high if config.slow_update_gate else 0
    held_in = steps + gated_guidance * (2 if noted else 1)  # a skill with notes has not been tried on the step's items
    baseline = int(config.evaluate_baseline)
    stages = {
        RolloutStage.BASELINE: on_validation(Range(baseline, baseline)),
        RolloutStage.TRAIN: on_train(ran),
        RolloutStage.CANDIDATES: on_validation(Range(0, steps)),
        RolloutStage.HELD_IN: on_train(Range(0, held_in * two_split)),
        RolloutStage.SLOW_UPDATE: _compared(config, slow, items.train),
        RolloutStage.RESCORE: on_validation(Range(0, slow.high)),
        RolloutStage.NOTES: on_validation(Range(0, noted)),
        RolloutStage.FINAL: StageForecast(
            split=VALIDATION,
            items=validation,
            passes=Range(0, 2 * (config.promote_final and _may_part(config, epochs))),
        ),
        RolloutStage.TEST: StageForecast(split=TEST, items=items.test, passes=_tested(config, slow.high + noted)),
    }
    step = calls_a_step(config, batch, asks=asks, by_model=by_model)
    optimizer = {stage: Range(ran.low * calls.low, ran.high * calls.high) for stage, calls in step.items()}
    optimizer |= calls_around_steps(config, slow, asks=asks, by_model=by_model)
    return CallForecast(steps=ran, slow_updates=slow, stages=stages, optimizer=optimizer, asks=asks)


def _slow_updates(config: TrainSkillConfig) -> Range[int]:
    """Ends of epochs at which two epochs are compared: from the second on, never that of the epoch patience ends."""
    if not config.use_slow_update:
        return NOTHING
    all_of_them = config.epochs - 1
    if config.patience is None or config.patience > config.total_steps:
        return Range(all_of_them, all_of_them)
    last_epoch = math.ceil(config.patience / config.steps_per_epoch)
    return Range(max(last_epoch - 2, 0), all_of_them)


def _compared(config: TrainSkillConfig, slow: Range[int], train: int) -> StageForecast:
    """Both skills on the samples; where only changes are of interest, perhaps on all train items, in several samples."""
    size = min(config.slow_update_samples, train)
    if config.longitudinal_pair_policy is not PairPolicy.CHANGED:
        return StageForecast(split=TRAIN, items=size, passes=Range(slow.low, 2 * slow.high))
    blocks = math.ceil(train / size) if size else 1
    return StageForecast(split=TRAIN, items=train, passes=Range(0, 2 * slow.high), blocks=blocks)


def _may_part(config: TrainSkillConfig, epochs: int) -> bool:
    """Whether current and best skill can differ: where something is forced in, or where a tie on validation can pass."""
    is_forced = config.use_slow_update and epochs > 1 and not config.slow_update_gate
    return is_forced or config.use_skill_aware_reflection or config.gate_mode == GateMode.TWO_SPLIT


def _tested(config: TrainSkillConfig, forced: int) -> Range[int]:
    """Different texts among initial, best and final skill: no more than there were changes, and one; and a rewrite.

    `forced` changes may come beside those of the steps.
    """
    if not config.eval_test:
        return NOTHING
    names = 3 if _may_part(config, config.epochs) else 2
    return Range(1, min(names, 1 + config.total_steps + forced) + config.one_shot_baseline)
