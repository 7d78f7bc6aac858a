"""Where a call of `step` begins: what is kept, the material and the document must fit together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.application.evolution import Evolution
from burnish.domain.runs import skill_hash
from burnish.presentation.evolver.kept_steps import Outcome, Place
from burnish.presentation.evolver.refusal import conflict
from burnish.presentation.evolver.session import Session

DONE = "done"
FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where the call begins: `place` is its own, `before` the one it goes on from.

    `known` is set when the step is done already: it is only to be told again.
    """

    place: Place
    before: Place
    evolution: Evolution
    known: Outcome | None = None


async def starting_point(session: Session, number: int, digest: str, document: str) -> Start:
    """Where the step with this number and material begins, from this document; errors of a failed one are forgotten.

    Raises EvolverError when it does not fit what is kept; nothing is changed then.
    """
    latest = await session.steps.latest()
    if latest.final:
        raise conflict(f"step {number}: finalize was called: a new run needs an empty state/")
    known = await session.steps.outcome(latest)
    if known is None:
        return Start(place=Place(step=1, attempt=1), before=Place(), evolution=await session.begin(document))
    if number < known.number:
        raise conflict(f"step {number}: step {known.number} was made already: steps go forward")
    left = known.evolution.state.current.text
    if number == known.number:
        if digest != known.material:
            line = f"step {number}: was called with other material before: hand over the same, or the next step"
            raise conflict(line)
        if known.status == DONE:
            _refuse_other(document, known, left, may_be_found=True)
            return Start(place=latest, before=known.before, evolution=known.evolution, known=known)
        _refuse_other(document, known, left)
        before = await session.steps.outcome(known.before)
        evolution = await session.begin(document) if before is None else before.evolution
        place = Place(step=latest.step, attempt=latest.attempt + 1)
        start = Start(place=place, before=known.before, evolution=evolution)
    else:
        _refuse_other(document, known, left)
        place = Place(step=latest.step + 1, attempt=1)
        start = Start(place=place, before=replace(latest, asks_again=False), evolution=known.evolution)
    if known.status == FAILED and not latest.asks_again:
        await session.forget_errors(from_step=latest.step)
        await session.steps.point_to(replace(latest, asks_again=True))
    return start


def _refuse_other(document: str, known: Outcome, left: str, *, may_be_found: bool = False) -> None:
    """Raises EvolverError for a document that is not the one the step left; a killed one may not have left it yet."""
    if document == left or (may_be_found and skill_hash(document) == known.found):
        return
    if skill_hash(document) == known.found:
        line = f"adapter: holds the document of before step {known.number}: call that step again, it puts its own there"
        raise conflict(line)
    raise conflict(f"adapter: the document is not the one step {known.number} left: put that back")
