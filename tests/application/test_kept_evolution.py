"""An evolution is the same after it was kept."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from burnish.application.evolution import begin
from burnish.application.kept_evolution import EVOLUTION, KeptEvolution
from burnish.application.training_state import ScoredSkill
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Edit, EditOp, FailedEdit
from burnish.domain.gate import GateAction
from burnish.domain.rollouts import Outcome
from burnish.domain.runs import StepReason, StepRecord
from burnish.domain.step_memory import TriedStep

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCORES = st.floats(min_value=0, max_value=1)
OUTCOMES = st.dictionaries(st.tuples(TEXTS, TEXTS), st.builds(Outcome, SCORES, SCORES), max_size=3)
SKILLS = st.builds(ScoredSkill, TEXTS, st.none() | OUTCOMES)


@given(current=SKILLS, best=SKILLS, baseline=st.none() | SKILLS, prior=st.none() | TEXTS, memory=TEXTS)
def test_kept_and_read_again_it_is_equal(
    current: ScoredSkill, best: ScoredSkill, baseline: ScoredSkill | None, prior: str | None, memory: str
) -> None:
    edit = Edit(EditOp.APPEND, memory)
    evolution = begin("text", TrainSkillConfig(), run_id="run", seed=3, total_steps=5)
    state = replace(
        evolution.state,
        current=current,
        best=best,
        baseline=baseline,
        memory=memory,
        tried=(TriedStep(step=1, rejected=(edit,), failed=(FailedEdit(edit, "why"),)),),
        records=(StepRecord(1, 1, GateAction.REJECT, StepReason.GATE, candidate_score=0.1, fallbacks=("rank",)),),
    )
    evolution = replace(evolution, state=state, prior_skill=prior, ended_at=4)
    assert EVOLUTION.load(EVOLUTION.dump(KeptEvolution.of(evolution))).whole == evolution
