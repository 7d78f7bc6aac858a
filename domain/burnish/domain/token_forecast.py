"""How many tokens a run uses, known before it is started: calls times the sizes of prompts and answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from burnish.domain.config import TrainSkillConfig
from burnish.domain.forecast import CallForecast, RolloutStage, StageForecast
from burnish.domain.optimizer_forecast import OptimizerStage
from burnish.domain.ranges import NOTHING, Range, total
from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.domain.schedule import learning_rate
from burnish.domain.text_size import CHARACTERS_A_TOKEN

LONGEST_SKILL = MAX_SKILL_CHARACTERS // CHARACTERS_A_TOKEN
"""In tokens."""

GUIDANCE_TOKENS = 100
"""Of a slow update's guidance, with its markers: the default writer's has fewer."""

NOTE_TOKENS = 40
"""Of a note in the appendix."""

NOTES_AN_ANALYST = 2
"""The most notes that an analyst usually has."""

APPENDIX_TOKENS = 25
"""Of an appendix without notes: its markers and its heading."""

MEMORY_TOKENS = 100
"""Of an epoch in the optimizer's memory, as a model writes it."""

COMPARED_TOKENS = 48_000
"""Of all trajectories that guidance is written from."""


EXACT = Range(1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSizes:
    """What is assumed of a role's model.

    `answer` is the length of one answer, in tokens; `off` by how much a count by characters may be wrong (1.0, 1.0: not at
    all, as for simulated models, which count by characters themselves). `limits` has the longest answer of each stage of
    the optimizer whose answers are not of that length.
    """

    answer: Range[int]
    off: Range[float] = EXACT
    limits: Mapping[OptimizerStage, int] = field(default_factory=dict[OptimizerStage, int])

    def prompts(self, counted: Range[int]) -> Range[int]:
        """The range of what the model may call the prompts' tokens."""
        return Range(math.floor(counted.low * self.off.low), math.ceil(counted.high * self.off.high))

    def answers(self, calls: Range[int]) -> Range[int]:
        """Tokens of so many answers."""
        return Range(calls.low * self.answer.low, calls.high * self.answer.high)

    def answer_of(self, stage: OptimizerStage) -> Range[int]:
        """The length of one answer of the optimizer."""
        longest = self.limits.get(stage, self.answer.high)
        return Range(min(self.answer.low, longest), longest)

    def answers_by_stage(self, calls: Mapping[OptimizerStage, Range[int]]) -> Range[int]:
        """Tokens of all answers of the optimizer."""
        sizes = {stage: self.answer_of(stage) for stage in calls}
        return total(
            Range(asked.low * sizes[stage].low, asked.high * sizes[stage].high) for stage, asked in calls.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSizes:
    """Tokens of a task's prompts with the initial skill, counted by characters.

    `rollouts` has the prompt of every item, by split; `reflect` is an optimizer's prompt without rollouts, `shown` what each
    train item adds to it, solved with a short answer or failed with a long one. `edit` is the most an edit usually adds to
    the skill, `complaint` what a second question about one answer adds to the first.
    """

    rollouts: Mapping[str, Sequence[int]]
    reflect: int
    shown: Sequence[Range[int]]
    edit: int
    complaint: int
    target: ModelSizes
    optimizer: ModelSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTokens:
    """Tokens a role reads (prompt) and writes (completion)."""

    prompt: Range[int]
    completion: Range[int]

    @property
    def all(self) -> Range[int]:
        """Both."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenForecast:
    """The tokens of a run, by role; a judge's are none where no model scores."""

    target: RoleTokens
    optimizer: RoleTokens
    judge: RoleTokens = RoleTokens(prompt=NOTHING, completion=NOTHING)

    @property
    def all(self) -> Range[int]:
        """Of all roles."""
        return self.target.all + self.optimizer.all + self.judge.all


def forecast_tokens(config: TrainSkillConfig, calls: CallForecast, sizes: PromptSizes) -> TokenForecast:
    """The tokens of the forecast calls.

    `low` is the fewest calls with the skill as short as it is now; `high` the most calls with a skill that takes up every
    edit it may, each of the assumed length. Items are exact: what cannot be known is which of them a sample holds.
    """
    growth = _Growth(config, sizes.edit, _analysts(calls))
    added = _added(config, calls, growth)
    asked = total(
        _prompts(config, name, stage, sizes.rollouts[stage.split], added[name]) for name, stage in calls.stages.items()
    )
    read = _reflections(config, calls, sizes, growth)
    return TokenForecast(
        target=RoleTokens(prompt=sizes.target.prompts(asked), completion=sizes.target.answers(calls.rollouts)),
        optimizer=RoleTokens(
            prompt=sizes.optimizer.prompts(read), completion=sizes.optimizer.answers_by_stage(calls.optimizer)
        ),
    )


def drawn(sizes: Sequence[int], draws: int) -> Range[int]:
    """The sum over that many draws without replacement, again and again: whole turns are exact, the rest is any of them."""
    if not sizes or draws <= 0:
        return NOTHING
    turns, rest = divmod(draws, len(sizes))
    ordered, whole = sorted(sizes), turns * sum(sizes)
    return Range(whole + sum(ordered[:rest]), whole + sum(ordered[len(ordered) - rest :]))


class _Growth:
    """How many tokens longer the skill may be after each step than at the start, within its limit."""

    def __init__(self, config: TrainSkillConfig, edit: int, analysts: int) -> None:
        steps, floor = config.total_steps, config.lr_min
        slowest = math.ceil(LONGEST_SKILL / (edit * floor)) if edit else 0  # steps until no more fits
        budgets = (
            learning_rate(config.lr_scheduler, step, steps, config.lr_start, floor)
            for step in range(min(steps, slowest))
        )
        self._after = [min(edit * edits, LONGEST_SKILL) for edits in accumulate(budgets, initial=0)]
        self._guided = 2 * config.steps_per_epoch if config.use_slow_update else steps + 1
        self._noted = analysts * NOTES_AN_ANALYST * NOTE_TOKENS if config.use_skill_aware_reflection else 0

    def over(self, steps: range) -> int:
        """The sum over the skills after these steps; the skill after step 0 is the initial one."""
        known = steps[: _below(steps, len(self._after))]
        guided = len(steps) - _below(steps, self._guided)
        grown = sum(self._after[step] for step in known) + (len(steps) - len(known)) * self._after[-1]
        return grown + guided * GUIDANCE_TOKENS + self.notes_over(steps)

    def notes_over(self, steps: range) -> int:
        """The part of it that is in the appendix."""
        if not self._noted:
            return 0
        rising = _below(steps, math.ceil(LONGEST_SKILL / self._noted))  # until no more fits
        return self._noted * sum(steps[:rising]) + (len(steps) - rising) * LONGEST_SKILL + len(steps) * APPENDIX_TOKENS


def _analysts(calls: CallForecast) -> int:
    """The most calls of analysts in a step, each answered at once."""
    return calls.optimizer[OptimizerStage.REFLECT].high // max(calls.steps.high * calls.asks, 1)


def _below(steps: range, limit: int) -> int:
    return len(range(steps.start, min(steps.stop, limit), steps.step))


def _added(config: TrainSkillConfig, calls: CallForecast, growth: _Growth) -> Mapping[RolloutStage, int]:
    """The most tokens by which the skill has grown, summed over the passes of each stage."""
    steps, end, passes = config.total_steps, config.steps_per_epoch, calls.stages
    candidates, last = growth.over(range(1, steps + 1)), growth.over(range(steps, steps + 1))
    guided = growth.over(range(2 * end, steps + 1, end)) if calls.slow_updates.high else 0
    noted = int(config.use_skill_aware_reflection)
    return {
        RolloutStage.BASELINE: 0,
        RolloutStage.TRAIN: growth.over(range(steps)),
        RolloutStage.CANDIDATES: candidates,
        RolloutStage.HELD_IN: candidates + (1 + noted) * guided if passes[RolloutStage.HELD_IN].passes.high else 0,
        RolloutStage.SLOW_UPDATE: 2 * guided,
        RolloutStage.RESCORE: guided,
        RolloutStage.NOTES: candidates * noted,
        RolloutStage.FINAL: passes[RolloutStage.FINAL].passes.high * last,
        RolloutStage.TEST: max(passes[RolloutStage.TEST].passes.high - 1, 0) * last,
    }


def _prompts(
    config: TrainSkillConfig, name: RolloutStage, stage: StageForecast, sizes: Sequence[int], added: int
) -> Range[int]:
    """Tokens of a stage's prompts."""
    if name is RolloutStage.TRAIN:
        with_initial = _planned(config, sizes, stage)
    else:
        once = drawn(sizes, stage.items)
        times = Range(stage.passes.low * stage.repeats, stage.passes.high * stage.repeats)
        with_initial = Range(times.low * once.low, times.high * once.high)
    return with_initial + Range(0, added * stage.items * stage.repeats)


def _planned(config: TrainSkillConfig, sizes: Sequence[int], stage: StageForecast) -> Range[int]:
    """The sum over the train items of all steps: an epoch takes its items in turns."""
    epochs, rest = divmod(stage.passes.low, config.steps_per_epoch)
    epoch = drawn(sizes, config.steps_per_epoch * stage.items)
    return Range(epochs * epoch.low + drawn(sizes, rest * stage.items).low, config.epochs * epoch.high)


def _reflections(config: TrainSkillConfig, calls: CallForecast, sizes: PromptSizes, growth: _Growth) -> Range[int]:
    """Tokens of the optimizer's prompts: every question shows the skill, analysts' ones a step's rollouts once in all."""
    asked, train = calls.optimizer, calls.stages[RolloutStage.TRAIN]
    reflect = asked[OptimizerStage.REFLECT]
    solved = _planned(config, [size.low for size in sizes.shown], train).low
    failed = _planned(config, [size.high for size in sizes.shown], train).high
    steps, analysts = config.total_steps, _analysts(calls)
    longest = max((size.high for size in sizes.shown), default=0)
    step = config.lr_start * sizes.edit
    patches = analysts * step
    compared = min(2 * config.slow_update_samples * longest, COMPARED_TOKENS)
    more = {
        OptimizerStage.REFLECT: config.steps_per_epoch * step // 2,
        OptimizerStage.MERGE: min(patches, config.merge_batch_size * step),
        OptimizerStage.RATE: patches,
        OptimizerStage.RANK: patches,
        OptimizerStage.REWRITE: patches,
        OptimizerStage.CONSOLIDATE: growth.notes_over(range(steps, steps + 1)),
        OptimizerStage.GUIDANCE: sizes.reflect + compared,
        OptimizerStage.MEMORY: 0,
        OptimizerStage.ONE_SHOT: config.minibatch_size * longest,
    }
    grown = growth.over(range(steps)) // max(steps, 1)
    carried = grown + config.use_meta_skill * MEMORY_TOKENS * config.epochs + sizes.complaint * (calls.asks - 1)
    high = sum(each.high * (sizes.reflect + carried + more[stage]) for stage, each in asked.items())
    return Range(reflect.low * sizes.reflect + solved * bool(reflect.low), high + calls.asks * failed)
