"""What the evolver remembers of its steps, in `state/`: each one's outcome and the tasks it saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import TypeAdapter

from burnish.application.evolution import Evolution
from burnish.application.journal_keys import journal_key, parts_of
from burnish.application.journaling import Codec
from burnish.application.kept_evolution import KeptEvolution
from burnish.application.ports import Journal, JournalEntry, KnowledgeMemory, PortError
from burnish.application.result import ErrorCode
from burnish.presentation.evolver.tasks import HostTask
from burnish.presentation.evolver.workspace import Material

T = TypeVar("T")

_LATEST = "evolver/latest"
_KIND = "EvolverPlace"
_STATE = "state"
_MATERIAL = "material"
_FINAL = "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which of the kept outcomes is the latest: of a step (0: none), in one of its attempts; and of the last call.

    `asks_again` is set when the errors of a failed attempt have been forgotten and the next one is under way.
    """

    step: int = 0
    attempt: int = 0
    final: int = 0
    asks_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended. `number` is the host's; `found` the hash of the document it found; `before` where it began."""

    number: int
    material: str
    found: str
    before: Place
    status: str
    summary: str
    report: str
    usage: Mapping[str, Mapping[str, int]]
    kept: KeptEvolution

    @property
    def evolution(self) -> Evolution:
        """Where training stands after it."""
        return self.kept.whole


_OUTCOME = Codec(lambda: TypeAdapter(Outcome))
_PLACE = Codec(lambda: TypeAdapter(Place))
_TASKS = Codec(lambda: TypeAdapter(tuple[HostTask, ...]))


class KeptSteps:
    """Outcomes are entries of the journal, of which none is ever changed; one text tells the latest."""

    def __init__(self, journal: Journal, memory: KnowledgeMemory) -> None:
        self._journal = journal
        self._memory = memory

    async def latest(self) -> Place:
        """The latest place."""
        text = await self._memory.recall(_LATEST)
        return Place() if text is None else _read(_PLACE, text)

    async def point_to(self, place: Place) -> None:
        """Make it the latest place."""
        await self._memory.remember(_LATEST, _PLACE.dump(place), _KIND)

    async def outcome(self, place: Place) -> Outcome | None:
        """What is kept of the step at the place, or None."""
        return await self._found(_run(place.step), place.attempt)

    async def conclusion(self, place: Place) -> Outcome | None:
        """What is kept of the last call, or None."""
        return await self._found(_run(_FINAL), place.final)

    async def keep(self, place: Place, outcome: Outcome) -> None:
        """Keep it, and make its place the latest."""
        run, attempt = (_run(_FINAL), place.final) if place.final else (_run(place.step), place.attempt)
        entry = JournalEntry(key=journal_key(_STATE, attempt), answer=_OUTCOME.dump(outcome), step=place.step)
        await self._journal.append(run, entry)
        await self.point_to(replace(place, asks_again=False))

    async def begin(self, step: int, material: Material) -> bool:
        """Note what a step sees; False when it was begun with other material of the same number."""
        run = _run(step)
        for entry in await self._journal.entries(run):
            kind, *parts = parts_of(entry.key)
            if kind == _MATERIAL and parts[0] == material.number and parts[1] != material.digest:
                return False
        tasks = tuple(attempt.task for attempt in material.attempts)
        key = journal_key(_MATERIAL, material.number, material.digest)
        await self._journal.append(run, JournalEntry(key=key, answer=_TASKS.dump(tasks), step=step))
        return True

    async def tasks(self, *, first: int, last: int) -> tuple[HostTask, ...]:
        """The tasks of these steps, each once, as it was seen last."""
        seen: dict[str, HostTask] = {}
        for step in range(first, last + 1):
            for entry in await self._journal.entries(_run(step)):
                if parts_of(entry.key)[0] == _MATERIAL:
                    seen |= {task.task_id: task for task in _read(_TASKS, entry.answer)}
        return tuple(seen.values())

    async def _found(self, run: str, attempt: int) -> Outcome | None:
        entry = await self._journal.find(run, journal_key(_STATE, attempt))
        return None if entry is None else _read(_OUTCOME, entry.answer)


def _run(step: int | str) -> str:
    """The journal's name for what is kept of a step."""
    return f"evolver/{step}"


def _read(codec: Codec[T], text: str) -> T:
    try:
        return codec.load(text)
    except ValueError as error:  # somebody has damaged it
        raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
