"""How many calls of the optimizer a step makes, known before a run is started: a range for each role."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum

from burnish.domain.config import PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.ranges import NOTHING, Range

_MOST_COUNTED = 4_096
"""Analysts of a step up to which merges are counted exactly; with more, each but one may be merged."""


class OptimizerStage(StrEnum):
    """What the optimizer is asked for."""

    REFLECT = "reflect"
    """What analysts propose."""
    MERGE = "merge"
    RATE = "rate"
    RANK = "rank"
    REWRITE = "rewrite"
    CONSOLIDATE = "consolidate"
    """Fewer notes for the appendix."""
    GUIDANCE = "guidance"
    """The slow update's."""
    MEMORY = "memory"
    ONE_SHOT = "one_shot"
    """The initial skill, rewritten in one call."""


def calls_a_step(
    config: TrainSkillConfig, rollouts: int, *, asks: int, by_model: bool
) -> Mapping[OptimizerStage, Range[int]]:
    """Calls in one step with so many rollouts.

    Failures and successes are read apart, so there may be one minibatch more than if all ended alike. `by_model`: whether
    models merge and rank. Each answer is asked for at most `asks` times.
    """
    analysts = _analysts(config, rollouts)
    is_whole = config.update_mode is UpdateMode.FULL_REWRITE_MINIBATCH
    merges = _merges(analysts.high, config) if by_model else 0
    ranks = by_model and not is_whole and config.lr_control_mode is not RateControl.NONE
    rates = not is_whole and config.lr_control_mode is RateControl.AUTONOMOUS
    rewrites = config.update_mode is UpdateMode.REWRITE_FROM_SUGGESTIONS
    consolidates = config.use_skill_aware_reflection and config.skill_aware_consolidate_threshold > 0
    return {
        OptimizerStage.REFLECT: Range(analysts.low, analysts.high * asks),
        OptimizerStage.MERGE: Range(0, merges * asks),
        OptimizerStage.RATE: Range(0, rates * asks),
        OptimizerStage.RANK: Range(0, ranks * asks),
        OptimizerStage.REWRITE: Range(0, rewrites * asks),
        OptimizerStage.CONSOLIDATE: Range(0, consolidates * asks),
    }


def calls_around_steps(
    config: TrainSkillConfig, slow_updates: Range[int], *, asks: int, by_model: bool
) -> Mapping[OptimizerStage, Range[int]]:
    """Calls at the ends of epochs and of the run. Guidance is asked for only where there are pairs of interest."""
    patience = config.patience
    ended = config.epochs
    if patience is not None and patience <= config.total_steps:
        ended = math.ceil(patience / config.steps_per_epoch) - 1  # of the epoch that patience ends, nothing follows
    all_pairs = config.longitudinal_pair_policy is PairPolicy.MIXED
    one_shot = config.eval_test and config.one_shot_baseline
    writes_memory = by_model and config.use_meta_skill
    return {
        OptimizerStage.GUIDANCE: Range(slow_updates.low * all_pairs, slow_updates.high * asks) if by_model else NOTHING,
        OptimizerStage.MEMORY: Range(ended, config.epochs * asks) if writes_memory else NOTHING,
        OptimizerStage.ONE_SHOT: Range(1, asks) if one_shot else NOTHING,
    }


def _analysts(config: TrainSkillConfig, rollouts: int) -> Range[int]:
    """Minibatches of a step: fewest when all rollouts end alike, most when a few fall on the other side."""
    size = config.minibatch_size
    alike = math.ceil(rollouts / size)
    if config.failure_only:
        return Range(0, alike)
    return Range(alike, (rollouts - 2) // size + 2 if rollouts > 1 else alike)


def _merges(analysts: int, config: TrainSkillConfig) -> int:
    """The most merges of so many patches, however they fall on the two sides."""
    if analysts < 2:
        return 0
    if analysts > _MOST_COUNTED:
        return analysts - 1
    group = config.merge_batch_size
    trees = [_tree(patches, group) for patches in range(analysts + 1)]
    if config.failure_only:
        return trees[analysts]
    return max(trees[side] + trees[analysts - side] + (0 < side < analysts) for side in range(analysts + 1))


def _tree(patches: int, group: int) -> int:
    """Merges of a tree; groups of one pass as they are."""
    merges = 0
    while patches > 1:
        merges += patches // group + (patches % group > 1)
        patches = math.ceil(patches / group)
    return merges
