"""The patch proposer: a chat model reads rollouts and answers with edits, suggestions or a whole new skill."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, EditSource, Patch
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import skill_hash
from burnish.infrastructure.models.chat import ChatModel, ChatRequest
from burnish.infrastructure.optimizer.asking import Question
from burnish.infrastructure.optimizer.chat_role import ChatRole
from burnish.infrastructure.optimizer.prompt_sections import memory_section, skill_sections, together, tried_section
from burnish.infrastructure.optimizer.prompt_texts import PromptName, Prompts
from burnish.infrastructure.optimizer.trajectories import TrajectoryLimits, TrajectoryView, show_rollouts
from burnish.infrastructure.optimizer.update_answers import ANSWERS, instructions

PURPOSE: Final = "reflect"
TRAJECTORY_TOKENS: Final = 12_000
"""To which each trajectory that is shown is cut."""
COMPLAINT_TOKENS: Final = 1_200
"""About what the repair round adds to the first question at most."""

_ANALYSTS: Final = {
    Focus.FAILURES: PromptName.ANALYST_ERROR,
    Focus.SUCCESSES: PromptName.ANALYST_SUCCESS,
    Focus.MIXED: PromptName.ANALYST_MIXED,
}


class ChatPatchProposer(ChatRole[ReflectionInput, Patch]):
    """Asks a model once for what the update mode wants, and once more when its answer is unreadable.

    An answer has at most `max_tokens`, one with a whole skill at most `rewrite_tokens`. ValueError when a limit is none.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        prompts: Prompts | None = None,
        max_tokens: int = 4_096,
        rewrite_tokens: int = 16_384,
        trajectory_tokens: int = TRAJECTORY_TOKENS,
        trajectory_view: TrajectoryView = "full",
        obs_chars: int = 0,
    ) -> None:
        self._instructions = {
            False: instructions(prompts, _ANALYSTS),
            True: instructions(prompts, _ANALYSTS, PromptName.NOTES),
        }
        self._limits = TrajectoryLimits(tokens=trajectory_tokens, view=trajectory_view, obs_chars=obs_chars)
        self._max_tokens = max_tokens
        self._rewrite_tokens = rewrite_tokens
        texts = (text for each in self._instructions.values() for text in each.values())
        identity = (*texts, self._limits.identity)
        super().__init__(model, *identity, max_tokens=max_tokens, rewrite_tokens=rewrite_tokens)

    async def propose(self, reflection: ReflectionInput) -> Patch:
        """What the model proposes but for notes nobody wants; an empty patch, without a call, when no rollout can be shown.

        Each edit has its source (of mixed rollouts failure as soon as one failure was shown), the hash of the skill it was
        written for, and as support what the model says, or the number of rollouts shown when it says nothing that can be.
        Raises PortError: UNREADABLE_PATCH when both answers are unreadable, PROPOSER_CALL_FAILED when the model gives none.
        """
        patch = await self._answer(reflection)
        if patch is None:
            return Patch()
        shown = _shown(reflection)
        source = EditSource.SUCCESS if all(rollout.is_success for rollout in shown) else EditSource.FAILURE
        version = skill_hash(reflection.current_skill)
        edits = (
            replace(edit, source=source, skill_version=version, support_count=_support(edit, len(shown)))
            for edit in patch.edits
        )
        return replace(patch, edits=tuple(edits), notes=patch.notes if reflection.wants_notes else ())

    def request(self, reflection: ReflectionInput) -> ChatRequest:
        """What the model is asked first, also about no rollout at all."""
        return self._asking(reflection, _shown(reflection)).request

    def _question(self, request: ReflectionInput) -> Question[Patch] | None:
        shown = _shown(request)
        if not shown:
            return None
        return self._asking(request, shown)

    def _asking(self, request: ReflectionInput, shown: tuple[Rollout, ...]) -> Question[Patch]:
        mode = request.update_mode
        answer = ANSWERS[mode]
        read = answer.read_noted if request.wants_notes else answer.read
        return Question(
            purpose=PURPOSE,
            system=self._instructions[request.wants_notes][request.focus, mode],
            user=_asked(request, shown, self._limits),
            form=answer.form_for(wants_notes=request.wants_notes),
            read=lambda text: read(text, request.current_skill),
            max_tokens=self._rewrite_tokens if mode is UpdateMode.FULL_REWRITE_MINIBATCH else self._max_tokens,
            seed=request.seed,
        )


def _shown(reflection: ReflectionInput) -> tuple[Rollout, ...]:
    """The rollouts the model gets to see: with an answer, of its focus, and failures only where no success is wanted."""
    wants_failures = reflection.focus is not Focus.SUCCESSES
    wants_successes = reflection.focus is not Focus.FAILURES and reflection.include_successes
    return tuple(
        rollout
        for rollout in reflection.rollouts
        if rollout.error is None and (wants_successes if rollout.is_success else wants_failures)
    )


def _support(edit: Edit, shown: int) -> int:
    """What the model says the edit's support is, if that can be; a whole skill stands for all rollouts."""
    told = edit.support_count
    return told if told is not None and 1 <= told <= shown and edit.op is not EditOp.REWRITE else shown


def _asked(reflection: ReflectionInput, shown: tuple[Rollout, ...], limits: TrajectoryLimits) -> str:
    """The user message: what a batch's calls share comes first (prefix caches), the rollouts come last."""
    failures = sum(not rollout.is_success for rollout in shown)
    answer = ANSWERS[reflection.update_mode]
    return together(
        skill_sections(reflection.current_skill, if_empty=answer.if_empty),
        memory_section(reflection.meta_skill_memory),
        tried_section(reflection.tried),
        answer.budget(reflection.edit_budget),
        f"# Rollouts with this skill: {failures} failed, {len(shown) - failures} succeeded\n\n"
        + show_rollouts(shown, limits),
    )
