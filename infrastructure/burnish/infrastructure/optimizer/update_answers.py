"""What analysts and merges answer with in each update mode: its form, its instructions, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from burnish.application.optimizer_ports import Focus
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Patch
from burnish.infrastructure.optimizer.answer_forms import (
    PATCH_FORM,
    SUGGESTIONS_FORM,
    WHOLE_SKILL_FORM,
    read_suggestions,
    read_whole_patch,
)
from burnish.infrastructure.optimizer.asking import AnswerForm
from burnish.infrastructure.optimizer.json_finding import UnreadableAnswerError
from burnish.infrastructure.optimizer.note_reading import notes_alone, notes_beside, with_notes
from burnish.infrastructure.optimizer.patch_reading import read_patch
from burnish.infrastructure.optimizer.prompt_texts import PromptName, Prompts, load_prompts


class PatchReader(Protocol):
    """Reads an answer as a patch for a skill."""

    def __call__(self, text: str, skill: str, /) -> Patch:
        """The patch; raises UnreadableAnswerError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAnswer:
    """The answer of an update mode.

    `prompt` tells how to write it, `payload` is the key of what it is made of, `counts` what a budget is of (nothing: there
    is none), `if_empty` what an empty skill asks for.
    """

    form: AnswerForm
    prompt: PromptName
    payload: str
    read: PatchReader
    counts: str
    if_empty: str

    def form_for(self, *, wants_notes: bool) -> AnswerForm:
        """The form, with notes if they are wanted."""
        return with_notes(self.form) if wants_notes else self.form

    def read_noted(self, text: str, skill: str) -> Patch:
        """The patch with its notes, which may be all there is; raises UnreadableAnswerError when there is neither."""
        try:
            patch = self.read(text, skill)
            return patch if patch.notes else replace(patch, notes=notes_beside(text))
        except UnreadableAnswerError:
            alone = notes_alone(text, self.payload)
            if alone is None:
                raise
            return alone

    def budget(self, most: int | None) -> str:
        """The section that limits the answer; empty when there is nothing to limit."""
        if not self.counts:
            return ""
        if most is None:
            return f"# Budget\n\nPropose no more {self.counts}s than the evidence asks for, the most useful first."
        plural = "" if most == 1 else "s"
        return f"# Budget\n\nPropose at most {most} {self.counts}{plural}, the most useful first."


def _suggested(text: str, _skill: str, /) -> Patch:
    return read_suggestions(text)


ANSWERS: Final[Mapping[UpdateMode, UpdateAnswer]] = {
    UpdateMode.PATCH: UpdateAnswer(
        form=PATCH_FORM,
        prompt=PromptName.EDITS,
        payload="edits",
        read=read_patch,
        counts="edit",
        if_empty="The skill is still empty: every edit must be an append.",
    ),
    UpdateMode.REWRITE_FROM_SUGGESTIONS: UpdateAnswer(
        form=SUGGESTIONS_FORM,
        prompt=PromptName.SUGGESTIONS,
        payload="suggestions",
        read=_suggested,
        counts="suggestion",
        if_empty="The skill is still empty: suggest what it should say.",
    ),
    UpdateMode.FULL_REWRITE_MINIBATCH: UpdateAnswer(
        form=WHOLE_SKILL_FORM,
        prompt=PromptName.WHOLE_SKILL,
        payload="skill",
        read=read_whole_patch,
        counts="",
        if_empty="The skill is still empty: write its first version.",
    ),
}


def instructions(
    prompts: Prompts | None, purposes: Mapping[Focus, PromptName], *added: PromptName
) -> Mapping[tuple[Focus, UpdateMode], str]:
    """The system prompts of a role whose purpose has a text for each focus; None: the shipped ones.

    `added` are texts behind those that every such role reads.
    """
    texts = load_prompts() if prompts is None else prompts
    return {
        (focus, mode): texts.system(purpose, answer.prompt, *added)
        for focus, purpose in purposes.items()
        for mode, answer in ANSWERS.items()
    }
