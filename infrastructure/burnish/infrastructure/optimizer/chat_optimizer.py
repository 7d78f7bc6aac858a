"""All roles of the optimizer, played by one chat model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.application.port_traits import fingerprint_of_roles
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.chat_consolidator import ChatNoteConsolidator
from burnish.infrastructure.optimizer.chat_merger import ChatPatchMerger
from burnish.infrastructure.optimizer.chat_proposer import ChatPatchProposer
from burnish.infrastructure.optimizer.chat_ranker import ChatEditRanker
from burnish.infrastructure.optimizer.chat_rate import ChatRateChooser
from burnish.infrastructure.optimizer.chat_rewriter import ChatSkillRewriter
from burnish.infrastructure.optimizer.chat_writers import ChatGuidanceWriter, ChatMemoryWriter
from burnish.infrastructure.optimizer.prompt_texts import Prompts
from burnish.infrastructure.optimizer.trajectories import TrajectoryView


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerLimits:
    """The longest answer of each role, and how much of a trajectory is shown, in tokens.

    `rewrite` limits every answer that holds a whole skill; `compared_trajectory` what guidance is written from, two
    trajectories an item. `trajectory_view` and `obs_chars` are those of `TrajectoryLimits`.
    """

    analyst: int = 4_096
    merge: int = 8_192
    rank: int = 4_096
    learning_rate: int = 4_096
    rewrite: int = 16_384
    consolidate: int = 4_096
    guidance: int = 8_192
    memory: int = 4_096
    trajectory: int = 12_000
    compared_trajectory: int = 3_000
    trajectory_view: TrajectoryView = "full"
    obs_chars: int = 0

    def with_answers_of(self, tokens: int | None) -> OptimizerLimits:
        """These limits with one for every role's answer; None: as they are."""
        if tokens is None:
            return self
        return replace(
            self,
            analyst=tokens,
            merge=tokens,
            rank=tokens,
            learning_rate=tokens,
            rewrite=tokens,
            consolidate=tokens,
            guidance=tokens,
            memory=tokens,
        )


DEFAULT_LIMITS = OptimizerLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptimizer:
    """The optimizer's ports; see `chat_optimizer`."""

    proposer: ChatPatchProposer
    merger: ChatPatchMerger
    ranker: ChatEditRanker
    rate_chooser: ChatRateChooser
    rewriter: ChatSkillRewriter
    note_consolidator: ChatNoteConsolidator
    guidance_writer: ChatGuidanceWriter
    memory_writer: ChatMemoryWriter

    @property
    def fingerprint(self) -> str:
        """Changes whenever a role could answer the same request differently."""
        return fingerprint_of_roles(
            self.proposer,
            self.merger,
            self.ranker,
            self.rate_chooser,
            self.rewriter,
            self.note_consolidator,
            self.guidance_writer,
            self.memory_writer,
        )


def chat_optimizer(
    model: ChatModel, *, prompts: Prompts | None = None, limits: OptimizerLimits = DEFAULT_LIMITS
) -> ChatOptimizer:
    """Every role on this model; `prompts` None: the shipped ones. ValueError for a limit that is none."""
    return ChatOptimizer(
        proposer=ChatPatchProposer(
            model,
            prompts=prompts,
            max_tokens=limits.analyst,
            rewrite_tokens=limits.rewrite,
            trajectory_tokens=limits.trajectory,
            trajectory_view=limits.trajectory_view,
            obs_chars=limits.obs_chars,
        ),
        merger=ChatPatchMerger(model, prompts=prompts, max_tokens=limits.merge, rewrite_tokens=limits.rewrite),
        ranker=ChatEditRanker(model, prompts=prompts, max_tokens=limits.rank),
        rate_chooser=ChatRateChooser(model, prompts=prompts, max_tokens=limits.learning_rate),
        rewriter=ChatSkillRewriter(model, prompts=prompts, max_tokens=limits.rewrite),
        note_consolidator=ChatNoteConsolidator(model, prompts=prompts, max_tokens=limits.consolidate),
        guidance_writer=ChatGuidanceWriter(
            model,
            prompts=prompts,
            max_tokens=limits.guidance,
            trajectory_tokens=limits.compared_trajectory,
            trajectory_view=limits.trajectory_view,
            obs_chars=limits.obs_chars,
        ),
        memory_writer=ChatMemoryWriter(model, prompts=prompts, max_tokens=limits.memory),
    )
