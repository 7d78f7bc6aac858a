"""Ask the optimizer for edits, from rollouts made elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import MaxLen, MinLen

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.log import get_logger
from burnish.application.mediator import Command
from burnish.application.optimizer_ports import PatchProposer, ReflectionInput
from burnish.application.ports import PortError
from burnish.application.redaction import fit_to_keep
from burnish.application.result import ErrorCode, Result
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.domain.rollouts import Rollout, is_item_id

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectOnFailures(Command[Patch]):
    """Propose edits of a skill (not blank) from scored rollouts; without successes at least one must be a failure."""

    current_skill: Annotated[str, MinLen(1), MaxLen(MAX_SKILL_CHARACTERS)]
    rollouts: Annotated[tuple[Rollout, ...], MinLen(1)]
    meta_skill_memory: str = ""
    include_successes: bool = True

    def violations(self) -> tuple[str, ...]:
        """Item ids have a form, the skill is not blank, and there is something with an answer to reflect on."""
        broken = [
            f"rollouts.{index}.item_id"
            for index, rollout in enumerate(self.rollouts)
            if not is_item_id(rollout.item_id)
        ]
        if not self.current_skill.strip():
            broken.append("current_skill")
        answered = [rollout for rollout in self.rollouts if rollout.error is None]
        if not answered or (not self.include_successes and all(rollout.is_success for rollout in answered)):
            broken.append("rollouts")
        return tuple(broken)


class ReflectOnFailuresHandler:
    """Asks the proposer."""

    def __init__(self, proposer: PatchProposer) -> None:
        self._proposer = proposer

    async def handle(self, message: ReflectOnFailures, /) -> Result[Patch]:
        """The proposer's patch as it is, or the code of its failure."""
        reflection = ReflectionInput(
            current_skill=message.current_skill,
            rollouts=tuple(rollout for rollout in message.rollouts if rollout.error is None),
            meta_skill_memory=message.meta_skill_memory,
            include_successes=message.include_successes,
        )
        try:
            return Result.ok(await ask_proposer(self._proposer, reflection))
        except PortError as error:
            _log.exception("reflect.failed", code=error.code.value)
            return Result.fail(error.code, *error.fields)


async def ask_proposer(proposer: PatchProposer, reflection: ReflectionInput, secrets: Sequence[str] = ()) -> Patch:
    """The proposer's patch, its texts fit to be kept.

    Raises PortError with its code when the proposer raised, returned nothing, or no proper patch.
    """
    try:
        patch = await proposer.propose(reflection)
    except (Exception, asyncio.CancelledError) as error:
        pass_on_cancellation(error)
        if isinstance(error, PortError):
            raise
        raise PortError(ErrorCode.PROPOSER_CALL_FAILED) from error
    if patch is None:
        raise PortError(ErrorCode.PROPOSER_RETURNED_NULL)
    return fit_patch(checked_patch(patch), secrets)


def fit_patch(patch: Patch, secrets: Sequence[str]) -> Patch:
    """The patch with its texts fit to be kept."""
    edits = tuple(
        replace(edit, content=fit_to_keep(edit.content, secrets), target=fit_to_keep(edit.target, secrets))
        for edit in patch.edits
    )
    notes = tuple(fit_to_keep(note, secrets) for note in patch.notes)
    return Patch(edits, fit_to_keep(patch.reasoning, secrets), notes)


def checked_patch(patch: Patch) -> Patch:
    """The patch; PortError when it is none, whatever an untyped host's proposer, aggregator or selector says it is."""
    if not _is_patch(patch):
        raise PortError(ErrorCode.UNREADABLE_PATCH)
    return patch


def _is_patch(patch: object) -> bool:
    """Whether an untyped host handed over what it promised."""
    return (
        isinstance(patch, Patch)
        and isinstance(patch.reasoning, str)
        and isinstance(patch.edits, tuple)
        and isinstance(patch.notes, tuple)
        and all(isinstance(note, str) for note in patch.notes)
        and all(
            isinstance(edit, Edit)
            and isinstance(edit.op, EditOp)
            and isinstance(edit.content, str)
            and isinstance(edit.target, str)
            for edit in patch.edits
        )
    )
