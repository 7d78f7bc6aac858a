"""Stage 4 of a step, select: how many of the merged edits are kept, and which."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.application.optimizer import Optimizer, StepNotes, or_code
from burnish.application.optimizer_ports import EditRanker, RankInput, RateChooser, RateInput
from burnish.application.proposing import scheduled_rate
from burnish.application.reflect_on_failures import checked_patch
from burnish.application.result import ErrorCode
from burnish.application.training_state import TrainingState
from burnish.domain.config import RateControl, UpdateMode
from burnish.domain.edits import Patch
from burnish.domain.rollouts import BatchScore, batch_seed

RATE = "rate"
RANK = "rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The edits to apply, how many there might have been, and the optimizer's reasons where it decided that."""

    patch: Patch
    learning_rate: int
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class _Rate:
    edits: int
    reasoning: str = ""


async def choose_edits(
    state: TrainingState, merged: Patch, score: BatchScore, optimizer: Optimizer, notes: StepNotes
) -> Chosen:
    """Keep at most as many edits as the learning rate allows.

    A whole rewrite is one edit, and has no learning rate. A model ranks only when there are more edits than that; when it
    fails, or names none, the selector's rule is followed, and noted. The same goes for a learning rate that the optimizer
    was to choose: then the schedule's holds.
    """
    if state.config.update_mode is UpdateMode.FULL_REWRITE_MINIBATCH:
        return Chosen(patch=merged, learning_rate=len(merged.edits))
    rate = await _rate(state, merged, score, optimizer.rate_chooser, notes)
    if not merged.edits or rate.edits == 0:
        return Chosen(patch=replace(merged, edits=()), learning_rate=rate.edits, reasoning=rate.reasoning)
    patch = None
    if optimizer.ranker is not None and len(merged.edits) > rate.edits:
        patch = await _ranked(state, merged, rate.edits, optimizer.ranker, notes)
    if patch is None:
        patch = await _selected(merged, rate.edits, optimizer, notes)
    return Chosen(patch=patch, learning_rate=rate.edits, reasoning=rate.reasoning)


async def _rate(
    state: TrainingState, merged: Patch, score: BatchScore, chooser: RateChooser | None, notes: StepNotes
) -> _Rate:
    control = state.config.lr_control_mode
    if control is RateControl.NONE:
        return _Rate(len(merged.edits))
    if control is RateControl.FIXED or chooser is None or not merged.edits:
        return _Rate(scheduled_rate(state))
    request = RateInput(
        current_skill=state.current.text,
        patch=merged,
        score=score,
        meta_skill_memory=state.memory,
        tried=state.tried,
        seed=batch_seed(state.seed, "rate", state.epoch, state.step),
    )
    decision = await or_code(chooser.choose(request))
    if isinstance(decision, ErrorCode):
        notes.fallbacks.append(RATE)
        return _Rate(scheduled_rate(state))
    return _Rate(min(max(decision.learning_rate, 0), len(merged.edits)), decision.reasoning)


async def _ranked(
    state: TrainingState, merged: Patch, budget: int, ranker: EditRanker, notes: StepNotes
) -> Patch | None:
    """The edits the ranker puts first; None when it failed, or named none that there is."""
    request = RankInput(
        current_skill=state.current.text,
        patch=merged,
        budget=budget,
        meta_skill_memory=state.memory,
        seed=batch_seed(state.seed, "rank", state.epoch, state.step),
    )
    ranking = await or_code(ranker.rank(request))
    places = () if isinstance(ranking, ErrorCode) else dict.fromkeys(ranking.places)
    edits = [merged.edits[place] for place in places if 0 <= place < len(merged.edits)]
    if not edits:
        notes.fallbacks.append(RANK)
        return None
    return replace(merged, edits=tuple(edits[:budget]))


async def _selected(merged: Patch, budget: int, optimizer: Optimizer, notes: StepNotes) -> Patch:
    """The edits the selector's rule keeps; its failure ends the step."""

    async def select() -> Patch:
        return checked_patch(await optimizer.selector.select(merged, budget))

    selected = await or_code(select())
    if isinstance(selected, ErrorCode):
        notes.code = selected.value
        return Patch()
    return replace(selected, edits=selected.edits[:budget])
