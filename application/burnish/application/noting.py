"""After the gate of a step: execution lapses become notes in the appendix of the current skill, which is measured anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.application.candidate import CandidatePasses, Verdict, adopted, force_candidate
from burnish.application.events import Stage
from burnish.application.log import get_logger
from burnish.application.mediator import Publisher
from burnish.application.optimizer import Optimizer, or_code
from burnish.application.optimizer_ports import NoteConsolidator, NotesInput
from burnish.application.result import ErrorCode
from burnish.application.revising import is_too_long
from burnish.application.telemetry import StageTelemetry
from burnish.application.telling import pass_scored
from burnish.application.training_state import TrainingState
from burnish.domain.appendix import fit_notes, new_notes, notes_of, with_notes, with_only_notes
from burnish.domain.gate import GateAction
from burnish.domain.rollouts import batch_seed
from burnish.domain.runs import StepReason

CONSOLIDATE = "consolidate"

_log = get_logger(__name__)


async def write_notes(
    state: TrainingState,
    optimizer: Optimizer,
    passes: CandidatePasses,
    *,
    publisher: Publisher,
    telemetry: StageTelemetry,
) -> TrainingState:
    """Put the lapses that wait in the state into the current skill, with a record of their own if any of them is new.

    The gate is not asked, but the skill is scored before anything is compared with it; it becomes the best only if it beats
    the best. It is not adopted when it is too long, or when too many validation items stay without an answer.
    """
    lapses, state = state.lapses, replace(state, lapses=())
    if with_notes(state.current.text, lapses) == state.current.text:
        return state
    with telemetry.stage(Stage.NOTES):
        noted = await _noted(state, lapses, optimizer.note_consolidator)
        if is_too_long(noted.skill, state.current.text, state.config.max_skill_tokens):
            _log.warning("notes.too_long", run_id=state.run_id, step=state.step)
            verdict = Verdict(action=GateAction.REJECT, reason=StepReason.TOO_LONG)
        else:
            verdict = await force_candidate(state, noted.skill, passes, reason=StepReason.NOTES)
            await publisher.publish(pass_scored(state, Stage.NOTES, verdict.tried, text=noted.skill))
    state = adopted(state, verdict)
    record = replace(
        verdict.record(step=state.step, epoch=state.epoch, kept=state.current.text),
        notes_added=noted.added,
        notes_total=noted.total,
        notes_consolidated=noted.saved,
        fallbacks=noted.fallbacks,
    )
    return replace(state, records=(*state.records, record))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """The current skill with the notes: how many are new, how many there are, how many a consolidation saved."""

    skill: str
    added: int
    total: int
    saved: int = 0
    fallbacks: tuple[str, ...] = ()


async def _noted(state: TrainingState, lapses: tuple[str, ...], consolidator: NoteConsolidator | None) -> _Noted:
    added = len(new_notes(state.current.text, lapses))
    skill = with_notes(state.current.text, lapses)
    notes, threshold = notes_of(skill), state.config.skill_aware_consolidate_threshold
    noted = _Noted(skill=skill, added=added, total=len(notes))
    if not 0 < threshold < len(notes):
        return noted
    fewer = None if consolidator is None else await _fewer(state, skill, notes, consolidator)
    shorter = skill if fewer is None else with_only_notes(skill, fewer)
    if shorter == skill:
        return replace(noted, fallbacks=(CONSOLIDATE,))
    total = len(notes_of(shorter))
    return replace(noted, skill=shorter, total=total, saved=len(notes) - total)


async def _fewer(
    state: TrainingState, skill: str, notes: tuple[str, ...], consolidator: NoteConsolidator
) -> tuple[str, ...] | None:
    """What the consolidator makes of them; None when that fails, has a blank note, or is not fewer."""
    request = NotesInput(
        current_skill=skill,
        notes=notes,
        threshold=state.config.skill_aware_consolidate_threshold,
        seed=batch_seed(state.seed, "consolidate", state.epoch, state.step),
    )
    answer = await or_code(consolidator.consolidate(request))
    if isinstance(answer, ErrorCode) or not all(fit_notes((note,)) for note in answer):
        return None
    fewer = fit_notes(answer)
    return fewer if len(fewer) > 0 and len(answer) < len(notes) else None
