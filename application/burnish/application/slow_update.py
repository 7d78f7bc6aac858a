"""Compare two epochs' skills on the same items, and write guidance for the newer one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import Ge, MaxLen, MinLen

from burnish.application.mediator import Command
from burnish.application.optimizer_ports import EpochComparison, GuidanceWriter
from burnish.application.result import Result
from burnish.domain.epochs import SlowUpdateAnalysis, compare_epochs
from burnish.domain.regions import MAX_SKILL_CHARACTERS, without_markers
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import is_run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowUpdate(Command[SlowUpdateAnalysis]):
    """Classify paired items of the prior and the current skill; the texts are for writers that read them."""

    prior_rollouts: Annotated[tuple[Rollout, ...], MinLen(1)]
    current_rollouts: Annotated[tuple[Rollout, ...], MinLen(1)]
    prior_skill: Annotated[str, MaxLen(MAX_SKILL_CHARACTERS)] = ""
    current_skill: Annotated[str, MaxLen(MAX_SKILL_CHARACTERS)] = ""
    previous_guidance: str = ""
    run_id: str = ""
    epoch: Annotated[int, Ge(0)] = 0
    replayed: bool = False

    @property
    def position(self) -> str:
        """Its epoch, in a run."""
        return f"epoch {self.epoch}" if self.epoch else ""

    def violations(self) -> tuple[str, ...]:
        """A run's id, if there is one, has a form."""
        return () if not self.run_id or is_run_id(self.run_id) else ("run_id",)


class ComparedGuidance:
    """The default writer: the guidance that follows from the counts alone."""

    is_pure = True

    async def write(self, comparison: EpochComparison) -> str:
        """The analysis's own guidance."""
        return comparison.analysis.guidance


class SlowUpdateHandler:
    """Compares, and lets the configured writer put the guidance into words."""

    def __init__(self, guidance: GuidanceWriter) -> None:
        self._guidance = guidance

    async def handle(self, message: SlowUpdate, /) -> Result[SlowUpdateAnalysis]:
        """The analysis; without paired items the writer is not asked. Guidance never carries marker strings."""
        analysis = compare_epochs(message.prior_rollouts, message.current_rollouts)
        if analysis.total == 0:
            return Result.ok(analysis)
        guidance = await self._guidance.write(
            EpochComparison(
                prior_skill=message.prior_skill,
                current_skill=message.current_skill,
                prior_rollouts=message.prior_rollouts,
                current_rollouts=message.current_rollouts,
                analysis=analysis,
                previous_guidance=message.previous_guidance,
            )
        )
        return Result.ok(replace(analysis, guidance=without_markers(guidance)))
