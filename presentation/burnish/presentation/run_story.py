"""What happened in a run, put in order from its events: the opening, the steps, the ends of epochs, the ending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from burnish.application.events import Event, PassScored, Stage, StepFinished
from burnish.domain.runs import StepRecord

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Events that belong together, in the order they were told; step and epoch count from 1, or are 0 outside of steps."""

    events: tuple[Event, ...]
    step: int = 0
    epoch: int = 0
    ends_epoch: bool = False

    def of(self, kind: type[E]) -> E | None:
        """The chapter's first event of this kind, or None."""
        return next((event for event in self.events if isinstance(event, kind)), None)

    @property
    def finished(self) -> tuple[StepFinished, ...]:
        """The decision, and behind it what became of the step's notes; empty when nothing was decided."""
        return tuple(event for event in self.events if isinstance(event, StepFinished))

    @property
    def notes(self) -> StepRecord | None:
        """What became of the step's notes; None without any."""
        return next((event.record for event in self.finished if event.record.is_of_notes), None)

    def scored(self, stage: Stage, skill: str = "") -> PassScored | None:
        """The chapter's pass of this stage over the skill of this name, or None."""
        passes = (event for event in self.events if isinstance(event, PassScored))
        return next((scored for scored in passes if scored.stage is stage and scored.skill == skill), None)

    @property
    def record(self) -> StepRecord | None:
        """How the step, or the slow update, was decided; None when it was not."""
        finished = self.of(StepFinished)
        return None if finished is None else finished.record


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStory:
    """A run's chapters; of the steps only those that were decided."""

    opening: Chapter
    steps: tuple[Chapter, ...]
    epochs: tuple[Chapter, ...]
    ending: Chapter

    @property
    def decisions(self) -> tuple[Chapter, ...]:
        """Steps and slow updates that were decided, in the order they were."""
        decided = [chapter for chapter in (*self.steps, *self.epochs) if chapter.record is not None]
        return tuple(sorted(decided, key=lambda chapter: (chapter.step, chapter.ends_epoch)))


def story_of(events: Sequence[Event]) -> RunStory:
    """The story these events tell.

    What is told of a step up to its decision is the step's, and so are its notes; what else is told after that, up to the
    next step, is the end of its epoch. The baseline belongs to the opening although it is told with the first step.
    """
    opening: list[Event] = []
    ending: list[Event] = []
    steps: dict[int, list[Event]] = {}
    epochs: dict[int, list[Event]] = {}
    decided: set[int] = set()
    for event in events:
        if isinstance(event, PassScored) and event.stage is Stage.BASELINE:
            opening.append(event)
        elif not event.step:
            (ending if steps else opening).append(event)
        elif event.step in decided and not _is_of_notes(event):
            epochs.setdefault(event.epoch, []).append(event)
        else:
            steps.setdefault(event.step, []).append(event)
            if isinstance(event, StepFinished):
                decided.add(event.step)
    return RunStory(
        opening=Chapter(events=tuple(opening)),
        steps=tuple(_chapter(told, ends_epoch=False) for step, told in sorted(steps.items()) if step in decided),
        epochs=tuple(_chapter(told, ends_epoch=True) for _, told in sorted(epochs.items())),
        ending=Chapter(events=tuple(ending)),
    )


def _is_of_notes(event: Event) -> bool:
    if isinstance(event, StepFinished):
        return event.record.is_of_notes
    return isinstance(event, PassScored) and event.stage is Stage.NOTES


def _chapter(events: Sequence[Event], *, ends_epoch: bool) -> Chapter:
    return Chapter(events=tuple(events), step=events[0].step, epoch=events[0].epoch, ends_epoch=ends_epoch)
