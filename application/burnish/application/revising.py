"""Stage 5 of a step, apply: from the chosen edits to the candidate skill."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.application.optimizer import Optimizer, StepNotes, or_code
from burnish.application.optimizer_ports import RewriteInput, SkillRewriter
from burnish.application.result import ErrorCode
from burnish.application.training_state import TrainingState
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, FailedEdit, Patch, apply_patch
from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.domain.rollouts import batch_seed
from burnish.domain.text_size import estimated_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """The candidate and what became of each edit; of a rewrite from suggestions, of the suggestions."""

    skill: str
    applied: tuple[Edit, ...] = ()
    failed: tuple[FailedEdit, ...] = ()
    is_too_long: bool = False


async def revise(state: TrainingState, chosen: Patch, optimizer: Optimizer, notes: StepNotes) -> Revision:
    """Apply the edits, or have the skill rewritten from suggestions; protected parts stay as they are either way."""
    current = state.current.text
    patch = chosen
    if state.config.update_mode is UpdateMode.REWRITE_FROM_SUGGESTIONS and chosen.edits:
        rewritten: str | ErrorCode = ErrorCode.OPTIMIZER_ROLE_NOT_CONFIGURED
        if optimizer.rewriter is not None:
            rewritten = await or_code(_rewrite(state, chosen, optimizer.rewriter))
        if isinstance(rewritten, ErrorCode):
            notes.code = rewritten.value
            return Revision(skill=current)
        patch = Patch((Edit(EditOp.REWRITE, rewritten),))
    report = apply_patch(current, patch)
    applied, failed = report.applied, report.failed
    if patch is not chosen:  # records tell what became of what was chosen
        reasons = [edit.reason for edit in failed]
        applied = () if reasons else chosen.edits
        failed = tuple(FailedEdit(edit, reason) for reason in reasons for edit in chosen.edits)
    return Revision(
        skill=report.content,
        applied=applied,
        failed=failed,
        is_too_long=is_too_long(report.content, current, state.config.max_skill_tokens),
    )


async def _rewrite(state: TrainingState, chosen: Patch, rewriter: SkillRewriter) -> str:
    request = RewriteInput(
        current_skill=state.current.text,
        suggestions=chosen,
        meta_skill_memory=state.memory,
        tried=state.tried,
        seed=batch_seed(state.seed, "rewrite", state.epoch, state.step),
    )
    return (await rewriter.rewrite(request)).skill


def is_too_long(candidate: str, current: str, max_tokens: int | None) -> bool:
    """Whether no skill may be so long; under a limit of the run's own, a skill that is too long already may shrink."""
    if len(candidate) > MAX_SKILL_CHARACTERS:
        return True
    return max_tokens is not None and max_tokens < estimated_tokens(candidate) > estimated_tokens(current)
