"""Judging without a gate: a candidate is measured, and taken whatever it scores."""

from __future__ import annotations

from burnish.application.candidate import CandidatePasses, Verdict, force_candidate
from burnish.application.passes import Pass
from burnish.application.training_state import TrainingState
from burnish.domain.runs import StepReason


async def accept_anyway(state: TrainingState, candidate: str, _trained: Pass, passes: CandidatePasses) -> Verdict:
    """Take the candidate; it becomes the best only if it beats the best on the items both have answers for."""
    return await force_candidate(state, candidate, passes, reason=StepReason.FORCED)
