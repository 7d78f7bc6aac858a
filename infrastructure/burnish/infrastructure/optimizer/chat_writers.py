"""The writers of an epoch's end: a chat model writes the slow update's guidance, and the optimizer's memory."""

from __future__ import annotations

from typing import Final

from burnish.application.optimizer_ports import EpochComparison, EpochSummary
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.answer_forms import GUIDANCE_FORM, MEMORY_FORM, read_guidance, read_memory
from burnish.infrastructure.optimizer.asking import Question
from burnish.infrastructure.optimizer.chat_role import ChatRole
from burnish.infrastructure.optimizer.comparisons import counted, pairs_of, show_pairs
from burnish.infrastructure.optimizer.prompt_sections import skill_sections, together
from burnish.infrastructure.optimizer.prompt_texts import PromptName, Prompts, load_prompts
from burnish.infrastructure.optimizer.trajectories import TrajectoryLimits, TrajectoryView, tagged

GUIDANCE_PURPOSE: Final = "guidance"
MEMORY_PURPOSE: Final = "memory"


class ChatGuidanceWriter(ChatRole[EpochComparison, str]):
    """Shows a model both skills and how items fared with them, each trajectory cut to `trajectory_tokens`.

    ValueError when a limit is none.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompts: Prompts | None = None,
        max_tokens: int = 8_192,
        trajectory_tokens: int = 3_000,
        trajectory_view: TrajectoryView = "full",
        obs_chars: int = 0,
    ) -> None:
        self._instructions = (load_prompts() if prompts is None else prompts).system(PromptName.SLOW_UPDATE)
        self._limits = TrajectoryLimits(tokens=trajectory_tokens, view=trajectory_view, obs_chars=obs_chars)
        self._max_tokens = max_tokens
        super().__init__(model, self._instructions, self._limits.identity, max_tokens=max_tokens)

    async def write(self, comparison: EpochComparison, /) -> str:
        """The guidance, without markers; empty when the model has none to give, or, without a call, no item to compare.

        Raises PortError: UNREADABLE_PATCH when both answers are unreadable, PROPOSER_CALL_FAILED when the model gives none.
        """
        return await self._answer(comparison) or ""

    def _question(self, request: EpochComparison) -> Question[str] | None:
        pairs = pairs_of(request)
        if not pairs:
            return None
        previous = request.previous_guidance.strip()
        judged = f"Judge it first.\n\n{tagged('previous_guidance', [previous])}" if previous else "There is none yet."
        return Question(
            purpose=GUIDANCE_PURPOSE,
            system=self._instructions,
            user=together(
                f"# Skill of the epoch before\n\n{tagged('prior_skill', [request.prior_skill])}",
                skill_sections(request.current_skill),
                f"# Guidance that stands in the current skill\n\n{judged}",
                f"# The same items with both skills\n\n{counted(request.analysis)}",
                show_pairs(pairs, self._limits),
            ),
            form=GUIDANCE_FORM,
            read=read_guidance,
            max_tokens=self._max_tokens,
        )


class ChatMemoryWriter(ChatRole[EpochSummary, str]):
    """Lets a model rewrite the memory at the end of an epoch. ValueError when `max_tokens` is below 1."""

    def __init__(self, model: ChatModel, *, prompts: Prompts | None = None, max_tokens: int = 4_096) -> None:
        self._instructions = (load_prompts() if prompts is None else prompts).system(PromptName.META_MEMORY)
        self._max_tokens = max_tokens
        super().__init__(model, self._instructions, max_tokens=max_tokens)

    async def write(self, summary: EpochSummary, /) -> str:
        """The new memory; the prior one when the model's is blank, so that an epoch without a lesson loses none.

        Raises PortError: UNREADABLE_PATCH when both answers are unreadable, PROPOSER_CALL_FAILED when the model gives none.
        """
        return await self._answer(summary) or summary.prior_memory

    def _question(self, request: EpochSummary) -> Question[str]:
        prior = request.prior_memory.strip()
        analysis = (
            "" if request.analysis is None else f" {counted(request.analysis)} Compared is with the epoch before."
        )
        return Question(
            purpose=MEMORY_PURPOSE,
            system=self._instructions,
            user=together(
                skill_sections(request.current_skill),
                "# Memory so far\n\n" + (tagged("memory", [prior]) if prior else "It is still empty."),
                f"# What this epoch brought\n\nEpoch {request.epoch} ended with a score of {request.current_score:.4f} of 1,"
                f" measured on held-out items, and a skill of {len(request.current_skill)} characters.{analysis}",
            ),
            form=MEMORY_FORM,
            read=read_memory,
            max_tokens=self._max_tokens,
        )
