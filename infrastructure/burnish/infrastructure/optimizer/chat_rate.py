"""The rate chooser: a chat model decides how many changes a step makes."""

from __future__ import annotations

from typing import Final

from burnish.application.optimizer_ports import RateDecision, RateInput
from burnish.domain.rollouts import BatchScore
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.answer_forms import RATE_FORM, read_rate
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

PURPOSE: Final = "learning_rate"


class ChatRateChooser(ChatRole[RateInput, RateDecision]):
    """Asks a model once, and once more when its answer names no number. ValueError when `max_tokens` is below 1."""

    def __init__(self, model: ChatModel, *, prompts: Prompts | None = None, max_tokens: int = 4_096) -> None:
        self._instructions = (load_prompts() if prompts is None else prompts).system(PromptName.LEARNING_RATE)
        self._max_tokens = max_tokens
        super().__init__(model, self._instructions, max_tokens=max_tokens)

    async def choose(self, request: RateInput, /) -> RateDecision:
        """The number as the model wants it, 0 for a negative one, not clamped; without edits 0 and no call.

        Raises PortError: UNREADABLE_PATCH when both answers name no number, PROPOSER_CALL_FAILED when the model gives none.
        """
        return await self._answer(request) or RateDecision(learning_rate=0)

    def _question(self, request: RateInput) -> Question[RateDecision] | None:
        edits = request.patch.edits
        if not edits:
            return None
        return Question(
            purpose=PURPOSE,
            system=self._instructions,
            user=together(
                skill_sections(request.current_skill),
                memory_section(request.meta_skill_memory),
                tried_section(request.tried),
                f"# How the agent fared in this step\n\n{_fared(request.score)}",
                f"# Proposed changes: {len(edits)}\n\n{changes_block(edits)}",
            ),
            form=RATE_FORM,
            read=read_rate,
            max_tokens=self._max_tokens,
            seed=request.seed,
        )


def _fared(score: BatchScore) -> str:
    missing = f" {score.missing} more stayed without an answer." if score.missing else ""
    items = "item" if score.scored == 1 else "items"
    return f"Mean score over {score.scored} {items}: hard {score.hard:.3f}, soft {score.soft:.3f} of 1.{missing}"
