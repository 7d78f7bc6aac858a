"""Grow the optimizer's memory across epochs, and keep it where later runs find it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le, MaxLen

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.log import get_logger
from burnish.application.mediator import Command
from burnish.application.optimizer_ports import EpochSummary, MemoryWriter
from burnish.application.ports import KnowledgeMemory
from burnish.application.result import ErrorCode, Result
from burnish.domain.epochs import SlowUpdateAnalysis, extend_memory
from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.domain.runs import is_run_id

_log = get_logger(__name__)

MEMORY_KIND = "SkillTrainingMetaMemory"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaSkillUpdate(Command[str]):
    """Add an epoch (1-based) to the memory; answered with the whole new memory."""

    run_id: str
    skill_id: str
    epoch: Annotated[int, Ge(1)]
    current_skill: Annotated[str, MaxLen(MAX_SKILL_CHARACTERS)]
    current_score: Annotated[float, Ge(0), Le(1)]
    prior_memory: str = ""
    analysis: SlowUpdateAnalysis | None = None
    is_in_run: bool = False
    replayed: bool = False

    @property
    def position(self) -> str:
        """Its epoch, when a run sends it."""
        return f"epoch {self.epoch}" if self.is_in_run else ""

    def violations(self) -> tuple[str, ...]:
        """Run and skill ids have a form."""
        return tuple(name for name in ("run_id", "skill_id") if not is_run_id(getattr(self, name)))


class CountedMemory:
    """The default writer: number, score and length of every epoch (system A)."""

    is_pure = True

    async def write(self, summary: EpochSummary) -> str:
        """The prior memory with this epoch's entry."""
        return extend_memory(
            summary.prior_memory, epoch=summary.epoch, skill=summary.current_skill, score=summary.current_score
        )


def memory_key(skill_id: str, run_id: str = "") -> str:
    """Where a run's memory is kept; without a run, where the latest of the skill is."""
    return f"skill-training/meta/{skill_id}/{run_id}" if run_id else f"skill-training/meta/{skill_id}"


class MetaSkillUpdateHandler:
    """Lets the configured writer extend the memory, and keeps it for this run and as the skill's latest."""

    def __init__(self, writer: MemoryWriter, memory: KnowledgeMemory) -> None:
        self._writer = writer
        self._memory = memory

    async def handle(self, message: MetaSkillUpdate, /) -> Result[str]:
        """The new memory, or `skill_training.meta.persist_failed`; an epoch that yields nothing leaves the prior one.

        Raises TypeError when the writer's answer is no text.
        """
        text = await self._writer.write(
            EpochSummary(
                epoch=message.epoch,
                current_skill=message.current_skill,
                current_score=message.current_score,
                prior_memory=message.prior_memory,
                analysis=message.analysis,
            )
        )
        if not isinstance(text, str):
            raise TypeError(f"a memory writer returns a str, not {type(text).__name__}")
        if not text.strip():
            return Result.ok(message.prior_memory)
        try:
            await self._memory.remember(memory_key(message.skill_id, message.run_id), text, MEMORY_KIND)
            await self._memory.remember(memory_key(message.skill_id), text, MEMORY_KIND)
        except (Exception, asyncio.CancelledError) as error:
            pass_on_cancellation(error)
            _log.exception("meta.persist_failed", run_id=message.run_id, epoch=message.epoch)
            return Result.fail(ErrorCode.MEMORY_PERSIST_FAILED)
        return Result.ok(text)
