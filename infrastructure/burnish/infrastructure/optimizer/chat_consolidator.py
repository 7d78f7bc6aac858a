"""The note consolidator: a chat model makes fewer notes of those in a skill's appendix."""

from __future__ import annotations

from typing import Final

from burnish.application.optimizer_ports import NotesInput
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.asking import Question
from burnish.infrastructure.optimizer.chat_role import ChatRole
from burnish.infrastructure.optimizer.note_reading import CONSOLIDATION_FORM, read_notes
from burnish.infrastructure.optimizer.prompt_sections import skill_sections, together
from burnish.infrastructure.optimizer.prompt_texts import PromptName, Prompts, load_prompts
from burnish.infrastructure.optimizer.trajectories import tagged

PURPOSE: Final = "consolidate"


class ChatNoteConsolidator(ChatRole[NotesInput, tuple[str, ...]]):
    """Asks a model once, and once more when its answer holds no notes. ValueError when `max_tokens` is below 1."""

    def __init__(self, model: ChatModel, *, prompts: Prompts | None = None, max_tokens: int = 4_096) -> None:
        self._instructions = (load_prompts() if prompts is None else prompts).system(PromptName.CONSOLIDATE_NOTES)
        self._max_tokens = max_tokens
        super().__init__(model, self._instructions, max_tokens=max_tokens)

    async def consolidate(self, request: NotesInput, /) -> tuple[str, ...]:
        """The notes the model makes of them, one line each; no call when there is none.

        Raises PortError: UNREADABLE_PATCH when both answers hold no notes or a blank one, PROPOSER_CALL_FAILED when the
        model gives none.
        """
        return await self._answer(request) or ()

    def _question(self, request: NotesInput) -> Question[tuple[str, ...]] | None:
        if not request.notes:
            return None
        return Question(
            purpose=PURPOSE,
            system=self._instructions,
            user=together(
                skill_sections(request.current_skill),
                f"# Notes: {len(request.notes)}, of which at most {request.threshold} should be left\n\n"
                + tagged("notes", [f"- {note}" for note in request.notes]),
            ),
            form=CONSOLIDATION_FORM,
            read=read_notes,
            max_tokens=self._max_tokens,
            seed=request.seed,
        )
