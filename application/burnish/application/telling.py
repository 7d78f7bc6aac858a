"""What a run tells of a pass over items."""

from __future__ import annotations

from burnish.application.events import PassScored, Stage
from burnish.application.passes import Pass
from burnish.application.training_state import TrainingState


def pass_scored(state: TrainingState, stage: Stage, done: Pass, *, text: str, skill: str = "") -> PassScored:
    """The event of a pass in the state's step: `text` is the skill that was tried, `skill` tells which of several."""
    return PassScored(
        run_id=state.run_id,
        step=state.step,
        epoch=state.epoch,
        stage=stage,
        score=done.score,
        skill=skill,
        text=text,
        rollouts=done.rollouts,
    )
