"""The skill rewriter: a chat model writes a skill anew from suggestions."""

from __future__ import annotations

from functools import partial
from typing import Final

from burnish.application.optimizer_ports import Rewrite, RewriteInput
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.answer_forms import WHOLE_SKILL_FORM, read_whole_skill
from burnish.infrastructure.optimizer.asking import Question
from burnish.infrastructure.optimizer.chat_role import ChatRole
from burnish.infrastructure.optimizer.prompt_sections import (
    changes_block,
    memory_section,
    skill_sections,
    together,
    tried_section,
)
from burnish.infrastructure.optimizer.prompt_texts import PromptName, Prompts, load_prompts

PURPOSE: Final = "rewrite"


class ChatSkillRewriter(ChatRole[RewriteInput, Rewrite]):
    """Asks a model once, and once more when its answer holds no skill. ValueError when `max_tokens` is below 1."""

    def __init__(self, model: ChatModel, *, prompts: Prompts | None = None, max_tokens: int = 16_384) -> None:
        texts = load_prompts() if prompts is None else prompts
        self._instructions = texts.system(PromptName.REWRITE, PromptName.WHOLE_SKILL)
        self._max_tokens = max_tokens
        super().__init__(model, self._instructions, max_tokens=max_tokens)

    async def rewrite(self, request: RewriteInput, /) -> Rewrite:
        """The new skill, its protected parts left out or those of the current one, which it is without suggestions.

        Raises PortError: UNREADABLE_PATCH when both answers hold no skill, PROPOSER_CALL_FAILED when the model gives none.
        """
        return await self._answer(request) or Rewrite(skill=request.current_skill)

    def _question(self, request: RewriteInput) -> Question[Rewrite] | None:
        suggestions = request.suggestions.edits
        if not suggestions:
            return None
        return Question(
            purpose=PURPOSE,
            system=self._instructions,
            user=together(
                skill_sections(request.current_skill),
                memory_section(request.meta_skill_memory),
                tried_section(request.tried),
                f"# Suggestions: {len(suggestions)}\n\n{changes_block(suggestions)}",
            ),
            form=WHOLE_SKILL_FORM,
            read=partial(read_whole_skill, skill=request.current_skill),
            max_tokens=self._max_tokens,
            seed=request.seed,
        )
