"""Score a skill on a split, without training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, MaxLen, MinLen

from burnish.application.mediator import Command
from burnish.application.passes import PassRunner
from burnish.application.result import ErrorCode, Result
from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.domain.rollouts import BatchScore, RolloutBatch, batch_seed, sample_items


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateSkill(Command[BatchScore]):
    """Try a skill on a split.

    `size` bounds the number of items (None: all of a runner that lists its items, 16 of a plain one); `seed` draws them.
    """

    skill: Annotated[str, MaxLen(MAX_SKILL_CHARACTERS)]
    split: Annotated[str, MinLen(1)]
    size: Annotated[int, Ge(1)] | None = None
    seed: Annotated[int, Ge(0)] = 0


class EvaluateSkillHandler:
    """Runs one pass over the split."""

    _PLAIN_SIZE = 16

    def __init__(self, passes: PassRunner) -> None:
        self._passes = passes

    async def handle(self, message: EvaluateSkill, /) -> Result[BatchScore]:
        """Means over the answered items; `skill_training.rollout.call_failed` when there are none."""
        seed = batch_seed(message.seed, "evaluate")
        if self._passes.lists_items:
            items = await self._passes.item_ids(message.split)
            chosen = sample_items(items, message.size or len(items), seed=seed)
            keys = tuple((item, "0") for item in chosen)
            done = await self._passes.ask_items(message.skill, message.split, keys, seed=seed)
        else:
            batch = RolloutBatch(message.split, size=message.size or self._PLAIN_SIZE, seed=seed)
            done = await self._passes.ask_batch(message.skill, batch)
        return Result.ok(done.score) if done.answered else Result.fail(ErrorCode.ROLLOUT_CALL_FAILED)
