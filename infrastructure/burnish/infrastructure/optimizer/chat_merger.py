"""The patch merger: a chat model makes one patch of several."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from burnish.application.optimizer_ports import Focus, MergeInput
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, EditSource, Patch
from burnish.domain.runs import skill_hash
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.asking import Question
from burnish.infrastructure.optimizer.chat_role import ChatRole
from burnish.infrastructure.optimizer.json_finding import UnreadableAnswerError
from burnish.infrastructure.optimizer.prompt_sections import memory_section, patch_block, skill_sections, together
from burnish.infrastructure.optimizer.prompt_texts import PromptName, Prompts
from burnish.infrastructure.optimizer.update_answers import ANSWERS, instructions

PURPOSE: Final = "merge"

_MERGES: Final = {
    Focus.FAILURES: PromptName.MERGE_FAILURES,
    Focus.SUCCESSES: PromptName.MERGE_SUCCESSES,
    Focus.MIXED: PromptName.MERGE_FINAL,
}


class ChatPatchMerger(ChatRole[MergeInput, Patch]):
    """Asks a model once, and once more when its answer is unreadable or holds nothing.

    An answer has at most `max_tokens`, one with a whole skill at most `rewrite_tokens`; ValueError when either is below 1.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompts: Prompts | None = None,
        max_tokens: int = 8_192,
        rewrite_tokens: int = 16_384,
    ) -> None:
        self._instructions = instructions(prompts, _MERGES)
        self._max_tokens = max_tokens
        self._rewrite_tokens = rewrite_tokens
        super().__init__(model, *self._instructions.values(), max_tokens=max_tokens, rewrite_tokens=rewrite_tokens)

    async def merge(self, request: MergeInput, /) -> Patch:
        """One patch; an empty one, without a call, when none of the patches has an edit.

        Each edit has as support what the model says, from 1 to the sum of all supports, else the sum of those of equal
        edits; the request's level as merge level; and its source. Raises PortError: UNREADABLE_PATCH when both answers
        are unreadable or empty, PROPOSER_CALL_FAILED when the model gives none.
        """
        patch = await self._answer(request)
        if patch is None:
            return Patch()
        return replace(patch, edits=tuple(_counted(edit, request) for edit in patch.edits))

    def _question(self, request: MergeInput) -> Question[Patch] | None:
        blocks = [patch_block(patch) for patch in request.patches if patch.edits]
        if not blocks:
            return None
        answer = ANSWERS[request.update_mode]
        is_whole = request.update_mode is UpdateMode.FULL_REWRITE_MINIBATCH
        return Question(
            purpose=PURPOSE,
            system=self._instructions[request.focus, request.update_mode],
            user=together(
                skill_sections(request.current_skill, if_empty=answer.if_empty),
                memory_section(request.meta_skill_memory),
                f"# Proposals: {len(blocks)}, at merge level {request.level}\n\n" + "\n\n".join(blocks),
            ),
            form=answer.form,
            read=partial(_read, request=request),
            max_tokens=self._rewrite_tokens if is_whole else self._max_tokens,
            seed=request.seed,
        )


def _read(text: str, request: MergeInput) -> Patch:
    """The merged patch; an empty one would throw away what was proposed, and is refused."""
    patch = ANSWERS[request.update_mode].read(text, request.current_skill)
    if not patch.edits:
        raise UnreadableAnswerError("it holds nothing, though there was something to merge")
    return patch


def _counted(edit: Edit, request: MergeInput) -> Edit:
    """The edit with its support, level, source and skill."""
    given = [other for patch in request.patches for other in patch.edits]
    alike = [
        other for other in given if (other.op, other.target, other.content) == (edit.op, edit.target, edit.content)
    ]
    everything = sum(map(_support, given))
    told = edit.support_count
    if edit.op is EditOp.REWRITE:
        told = everything
    elif told is None:
        told = sum(map(_support, alike))
    sources = {other.source for other in alike or given}
    return replace(
        edit,
        support_count=min(max(told, 1), everything),
        merge_level=request.level,
        source=EditSource.SUCCESS if sources == {EditSource.SUCCESS} else EditSource.FAILURE,
        skill_version=skill_hash(request.current_skill),
    )


def _support(edit: Edit) -> int:
    return max(edit.support_count or 1, 1)
