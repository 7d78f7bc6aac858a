"""The rules of a run's life: who it is, how it ends, where the next attempt goes on, what is drawn once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Protocol

from pydantic import TypeAdapter

from burnish.application.events import Event
from burnish.application.journal_keys import journal_key
from burnish.application.journaling import Answer, Codec, RunJournal
from burnish.application.mediator import Publisher
from burnish.application.ports import KnowledgeMemory
from burnish.application.result import ErrorCode, Failure
from burnish.application.store_calls import ask_store
from burnish.application.training_state import TrainingState
from burnish.domain.config import TrainSkillConfig
from burnish.domain.runs import StepReason, StopReason, TrainingRun, skill_hash

_SEED = Codec(lambda: TypeAdapter(int))
_TEXT = Codec(lambda: TypeAdapter(str))

_RESUMABLE_FAILURES = frozenset({StopReason.FAILED, StopReason.OPTIMIZER_FAILED})
_WITHOUT_ANSWERS = frozenset({ErrorCode.RUN_INCONCLUSIVE, ErrorCode.RUN_NOTHING_WORKED})

UNDECIDED = frozenset({StepReason.INCONCLUSIVE, StepReason.OPTIMIZER_FAILED})
"""Reasons of steps in which the world outside did not answer: they may be asked again."""


class RunRequest(Protocol):
    """What a run is started with."""

    @property
    def skill_id(self) -> str:
        """Whose skill it is."""
        ...

    @property
    def initial_skill(self) -> str:
        """The text training starts from."""
        ...

    @property
    def config(self) -> TrainSkillConfig:
        """How it is trained."""
        ...


def ending_of(state: TrainingState, inconclusive_steps: int) -> tuple[StopReason, Failure | None]:
    """Why the loop ended, and the failure it amounts to when the world outside did not work (design, section 5.9)."""
    if state.consecutive_inconclusive >= inconclusive_steps:
        usable = state.has_rollouts or state.baseline is not None
        code = ErrorCode.RUN_INCONCLUSIVE if usable else ErrorCode.RUN_NOTHING_WORKED
        return StopReason.FAILED, Failure(code)
    if state.patience_is_over:
        if state.consecutive_failures == state.consecutive_rejects:
            return StopReason.OPTIMIZER_FAILED, Failure(ErrorCode.RUN_OPTIMIZER_FAILED)
        return StopReason.PATIENCE, None
    if not state.answered_steps:
        return StopReason.FAILED, Failure(ErrorCode.RUN_NOTHING_WORKED)
    return StopReason.COMPLETED, None


def run_identity(message: RunRequest, items: str, *, target: str, optimizer: str) -> dict[str, str]:
    """What must be the same for a run id to mean the same run, by name."""
    config = {
        f"config.{field.name}": _canonical(getattr(message.config, field.name)) for field in fields(message.config)
    }
    return {
        "skill_id": message.skill_id,
        "initial_skill": skill_hash(message.initial_skill),
        "items": items,
        "target": target,
        "optimizer": optimizer,
        **config,
    }


def _canonical(setting: object) -> str:
    """The same text for settings of the same meaning: 1 and 1.0, Cosine and cosine."""
    if isinstance(setting, float) and setting.is_integer():
        return str(int(setting))
    return str(setting).lower()


def first_undecided_step(run: TrainingRun) -> int | None:
    """The first of the steps at the end of a failed run that decided nothing; their errors are asked again.

    0 when not even the baseline could be measured. None when there are no such steps: what was decided stays as it is. A
    step is judged by its own record, not by that of a slow update after it.
    """
    if run.stop_reason not in _RESUMABLE_FAILURES:
        return None
    if not run.steps:
        return 0 if run.code in _WITHOUT_ANSWERS else None
    first: int | None = None
    own = {record.step: record.reason for record in reversed(run.steps)}  # a step's own record is its first
    for step in sorted(own, reverse=True):
        if own[step] not in UNDECIDED:
            break
        first = step
    return first


async def drawn_seed(draw: Callable[[], int], journal: RunJournal) -> int:
    """A seed that is drawn once for a run, whatever the number of attempts."""

    async def ask() -> Answer[int]:
        return Answer(draw())

    return await journal.answer(journal_key("seed"), _SEED, ask, stage="start")


async def recalled_memory(memory: KnowledgeMemory, key: str, journal: RunJournal) -> str:
    """The memory a run starts with, as it was found the first time."""

    async def ask() -> Answer[str]:
        recalled: str | None = await ask_store(memory.recall(key))
        return Answer(recalled or "")

    return await journal.answer(journal_key("recalled_memory", key), _TEXT, ask, stage="start")


class MarkingPublisher:
    """Marks the events of a resumed run that tell what an earlier attempt has told already."""

    def __init__(self, publisher: Publisher, journal: RunJournal) -> None:
        self._publisher = publisher
        self._journal = journal

    async def publish(self, event: Event, /) -> None:
        """Publish it."""
        await self._publisher.publish(replace(event, replayed=True) if self._journal.is_replaying else event)
