"""What a call's report is made from: the events of the call, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from burnish.application.events import Event, PassScored, Stage

E = TypeVar("E", bound=Event)


@dataclass(slots=True)
class Told:
    """An event sink that keeps all it is told, also what a resumed call tells again."""

    events: list[Event] = field(default_factory=list[Event])

    async def emit(self, event: Event) -> None:
        """Take note."""
        self.events.append(event)

    def last(self, kind: type[E]) -> E | None:
        """The latest event of the kind, or None."""
        return next((event for event in reversed(self.events) if isinstance(event, kind)), None)

    def passes(self, stage: Stage) -> list[PassScored]:
        """The passes of a stage."""
        return [event for event in self.events if isinstance(event, PassScored) and event.stage is stage]
