"""Where in a run a call belongs that nobody has answered."""

from __future__ import annotations

import pytest

from burnish.application.events import Applied, Event, PassScored, SlowUpdated, Stage, StepFinished
from burnish.application.journal_keys import journal_key
from burnish.domain.rollouts import BatchScore
from burnish.domain.runs import StepReason, StepRecord
from burnish.presentation.missed_call import Place, place_of

BASELINE = PassScored(run_id="r", stage=Stage.BASELINE, score=BatchScore(0, 0, 1, 0), step=1, epoch=1)
ROLLOUT = PassScored(run_id="r", stage=Stage.ROLLOUT, score=BatchScore(0, 0, 1, 0), step=1, epoch=1)
APPLIED = Applied(run_id="r", applied=(), failed=(), step=1, epoch=1)
DECIDED = StepFinished(
    run_id="r",
    record=StepRecord(1, 1, None, StepReason.INCONCLUSIVE),
    current_score=None,
    best_score=None,
    step=1,
    epoch=1,
)

COMPARED = SlowUpdated(run_id="r", analysis=None, step=1, epoch=1)

TRAIN = journal_key("rollout", "train", "item", "1", "skill", "contents", "target")
VALIDATION = journal_key("rollout", "val", "item", "0", "skill", "contents", "target")


@pytest.mark.parametrize(
    ("key", "events", "place"),
    [
        (journal_key("seed"), (), Place(step=0, epoch=0, stage="start")),
        (VALIDATION, (), Place(step=1, epoch=1, stage="baseline")),
        (TRAIN, (), Place(step=1, epoch=1, stage="rollout")),
        (journal_key("reflect", 1, 1, "f", "d"), (BASELINE, ROLLOUT), Place(step=1, epoch=1, stage="reflect")),
        (journal_key("merge", 1, 1, "f", "d"), (BASELINE, ROLLOUT), Place(step=1, epoch=1, stage="aggregate")),
        (journal_key("rank", 1, 1, "f", "d"), (BASELINE, ROLLOUT), Place(step=1, epoch=1, stage="select")),
        (journal_key("rewrite", 1, 1, "f", "d"), (BASELINE, ROLLOUT), Place(step=1, epoch=1, stage="apply")),
        (VALIDATION, (BASELINE, ROLLOUT, APPLIED), Place(step=1, epoch=1, stage="gate")),
        (TRAIN, (BASELINE, ROLLOUT, APPLIED), Place(step=1, epoch=1, stage="gate")),
        (TRAIN, (BASELINE, ROLLOUT, APPLIED, DECIDED), Place(step=2, epoch=1, stage="rollout")),
        (VALIDATION, (BASELINE, ROLLOUT, APPLIED, DECIDED), Place(step=1, epoch=1, stage="notes")),
        (
            journal_key("consolidate", 1, "f", "d"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=1, epoch=1, stage="notes"),
        ),
        (VALIDATION, (BASELINE, ROLLOUT, APPLIED, DECIDED, COMPARED), Place(step=1, epoch=1, stage="gate")),
        (
            journal_key("rollout", "train", "item", "2+1", "skill", "contents", "target"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=2, epoch=2, stage="rollout"),
        ),
        (
            journal_key("rollout", "train", "item", "slow/1", "skill", "contents", "target"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=1, epoch=1, stage="slow_update"),
        ),
        (
            journal_key("guidance", 1, "f", "d"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=1, epoch=1, stage="slow_update"),
        ),
        (
            journal_key("memory", 1, "f", "d"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=1, epoch=1, stage="meta_skill"),
        ),
        (
            journal_key("rollout", "val", "item", "final", "skill", "contents", "target"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=0, epoch=0, stage="promote_final"),
        ),
        (
            journal_key("batch", "test", 8, 7, "test", "skill"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=0, epoch=0, stage="test"),
        ),
        (
            journal_key("reflect", 0, 0, "f", "d"),
            (BASELINE, ROLLOUT, APPLIED, DECIDED),
            Place(step=0, epoch=0, stage="test"),
        ),
        (journal_key("batch", "train", 8, 7, "1", "skill"), (), Place(step=1, epoch=1, stage="rollout")),
    ],
)
def test_a_missing_call_has_a_place(key: str, events: tuple[Event, ...], place: Place) -> None:
    assert place_of(key, events) == place
