"""Where in a run a call would have been made that nobody has answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from burnish.application.events import Applied, Event, PassScored, SlowUpdated, Stage, StepFinished
from burnish.application.journal_keys import parts_of
from burnish.application.run_passes import FINAL
from burnish.domain.rollouts import TEST, VALIDATION

START = "start"
"""The stage before the first one."""

_PASSES = {FINAL: Stage.PROMOTE_FINAL.value, TEST: Stage.TEST.value, "slow": Stage.SLOW_UPDATE.value}
"""The stages of passes whose repeat names their purpose."""

_ROLES = {
    "merge": Stage.AGGREGATE,
    "rate": Stage.SELECT,
    "rank": Stage.SELECT,
    "rewrite": Stage.APPLY,
    "consolidate": Stage.NOTES,
    "guidance": Stage.SLOW_UPDATE,
    "memory": Stage.META_SKILL,
}
"""The stages of calls that are not named after theirs."""

_REPEAT_AT = {"rollout": 2, "batch": 3}
"""Where behind its kind the key of a pass has the repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A step and an epoch (from 1; 0 outside of them), and the stage of a run."""

    step: int
    epoch: int
    stage: str


def place_of(key: str, events: Sequence[Event]) -> Place:
    """The place of the call with this key in a run that has told these events and ended with it."""
    kind, *parts = parts_of(key)
    latest = max((event.step for event in events), default=0)
    epoch = max((event.epoch for event in events), default=0)
    if kind in _REPEAT_AT:
        split, repeat = str(parts[0]), str(parts[_REPEAT_AT[str(kind)]])
        return _of_pass(split, repeat, Place(step=latest, epoch=epoch, stage=""), events)
    stage = _ROLES.get(str(kind), str(kind))
    if stage not in set(Stage):
        return Place(step=latest, epoch=epoch, stage=START)
    if stage == Stage.REFLECT and not parts[1]:  # the one-shot rival of the test, asked outside of steps
        return Place(step=0, epoch=0, stage=Stage.TEST.value)
    of_step = isinstance(parts[1], int)  # an optimizer's keys begin with the epoch, and in a step with that
    return Place(step=_number(parts, 1) if of_step else latest, epoch=_number(parts, 0), stage=str(stage))


def _of_pass(split: str, repeat: str, now: Place, events: Sequence[Event]) -> Place:
    purpose = repeat.partition("/")[0]
    if purpose in _PASSES:
        is_in_epoch = purpose == "slow"
        stage = _PASSES[purpose]
        return Place(step=now.step if is_in_epoch else 0, epoch=now.epoch if is_in_epoch else 0, stage=stage)
    own = [event for event in events if event.step == now.step]
    if split == VALIDATION:
        stage = Stage.GATE if any(isinstance(event, PassScored) for event in events) else Stage.BASELINE
        is_decided = any(isinstance(event, StepFinished) for event in own)
        if is_decided and not any(isinstance(event, SlowUpdated) for event in own):
            stage = Stage.NOTES
        return Place(step=now.step or 1, epoch=now.epoch or 1, stage=stage.value)
    is_tried = any(isinstance(event, Applied) for event in own) and not any(isinstance(e, StepFinished) for e in own)
    if is_tried:  # the candidate on the step's own train items
        return Place(step=now.step, epoch=now.epoch, stage=Stage.GATE.value)
    return Place(step=now.step + 1, epoch=int(repeat.partition("+")[0]), stage=Stage.ROLLOUT.value)


def _number(parts: Sequence[object], index: int) -> int:
    value = parts[index] if index < len(parts) else 0
    return value if isinstance(value, int) else 0
