"""The optimizer of a run: its roles, how many of its calls run at once, and what a failed call amounts to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.log import get_logger
from burnish.application.optimizer_ports import (
    EditRanker,
    EditSelector,
    NoteConsolidator,
    PatchAggregator,
    PatchMerger,
    PatchProposer,
    RateChooser,
    SkillRewriter,
)
from burnish.application.ports import NotConfiguredError, PortError
from burnish.application.result import ENDING_CODES, ErrorCode
from burnish.domain.config import RateControl, TrainSkillConfig, UpdateMode

T = TypeVar("T")

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Who does what in a step. The first three are always there; without the others, rules do their work or none.

    Without a merger equal edits become one; without a ranker the edits with most support are kept.
    """

    proposer: PatchProposer
    aggregator: PatchAggregator
    selector: EditSelector
    merger: PatchMerger | None = None
    ranker: EditRanker | None = None
    rate_chooser: RateChooser | None = None
    rewriter: SkillRewriter | None = None
    note_consolidator: NoteConsolidator | None = None

    def missing_roles(self, config: TrainSkillConfig) -> tuple[str, ...]:
        """Names of the roles that these settings need, and that nobody plays."""
        needed = {
            "rate_chooser": config.lr_control_mode is RateControl.AUTONOMOUS
            and config.update_mode is not UpdateMode.FULL_REWRITE_MINIBATCH,
            "rewriter": config.update_mode is UpdateMode.REWRITE_FROM_SUGGESTIONS,
            "note_consolidator": config.use_skill_aware_reflection and config.skill_aware_consolidate_threshold > 0,
        }
        return tuple(role for role, is_needed in needed.items() if is_needed and getattr(self, role) is None)


@dataclass(slots=True)
class StepNotes:
    """What went wrong in a step without ending it: roles whose rule was followed instead, and the code that ends it."""

    fallbacks: list[str] = field(default_factory=list[str])
    code: str | None = None


async def or_code(call: Awaitable[T]) -> T | ErrorCode:
    """A role's answer, or the code of its failure.

    Raises PortError, which ends the run, for a port nobody configured and for a call that was not made or not kept.
    """
    try:
        return await call
    except NotConfiguredError:
        raise
    except (Exception, asyncio.CancelledError) as error:
        pass_on_cancellation(error)
        code = error.code if isinstance(error, PortError) else ErrorCode.PROPOSER_CALL_FAILED
        if code in ENDING_CODES:
            raise
        _log.exception("optimizer.call_failed", code=code.value)
        return code


async def together(calls: Sequence[Awaitable[T]]) -> list[T]:
    """The answers of calls that begin in this order and run side by side; of several errors the first one's is raised."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if not isinstance(answer, BaseException)]
