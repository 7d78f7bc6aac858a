"""The edit ranker: a chat model puts proposed changes in order."""

from __future__ import annotations

from functools import partial
from typing import Final

from burnish.application.optimizer_ports import Ranking, RankInput
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.answer_forms import RANKING_FORM, read_ranking
from burnish.infrastructure.optimizer.asking import Question
from burnish.infrastructure.optimizer.chat_role import ChatRole
from burnish.infrastructure.optimizer.prompt_sections import changes_block, memory_section, skill_sections, together
from burnish.infrastructure.optimizer.prompt_texts import PromptName, Prompts, load_prompts

PURPOSE: Final = "rank"


class ChatEditRanker(ChatRole[RankInput, Ranking]):
    """Asks a model once, and once more when its answer names no place. ValueError when `max_tokens` is below 1."""

    def __init__(self, model: ChatModel, *, prompts: Prompts | None = None, max_tokens: int = 4_096) -> None:
        self._instructions = (load_prompts() if prompts is None else prompts).system(PromptName.RANK)
        self._max_tokens = max_tokens
        super().__init__(model, self._instructions, max_tokens=max_tokens)

    async def rank(self, request: RankInput, /) -> Ranking:
        """The places the model names, each once, those of no edit left out; no call when there is no edit.

        Raises PortError: UNREADABLE_PATCH when both answers name no place, PROPOSER_CALL_FAILED when the model gives none.
        """
        return await self._answer(request) or Ranking(places=())

    def _question(self, request: RankInput) -> Question[Ranking] | None:
        edits = request.patch.edits
        if not edits:
            return None
        return Question(
            purpose=PURPOSE,
            system=self._instructions,
            user=together(
                skill_sections(request.current_skill),
                memory_section(request.meta_skill_memory),
                f"# Budget\n\nThis step makes at most {request.budget} of the {len(edits)} changes.",
                f"# Proposed changes\n\n{changes_block(edits)}",
            ),
            form=RANKING_FORM,
            read=partial(read_ranking, number=len(edits)),
            max_tokens=self._max_tokens,
            seed=request.seed,
        )
