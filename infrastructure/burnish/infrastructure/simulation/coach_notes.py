"""The notes of the simulated coach: what an agent that slipped is reminded of, and fewer of such notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from burnish.infrastructure.simulation.rules import Rule, RuleLine, Rules

MOST_NOTES = 2
"""Notes in one answer."""

_REMINDER = "Follow the rule that stands here: "


def reminders(known: Rules, lines: Iterable[RuleLine], failures: Sequence[AbstractSet[Rule]]) -> list[str]:
    """A note for each line behind a failure that the skill as it is would have prevented: all its rules are known.

    `failures` has the right rules behind each of them. A note states no rule itself, so it changes none.
    """
    lapses = [rules for rules in failures if rules and all(map(known.states, rules))]
    missed = [line for line in lines if any(not rules.isdisjoint(line.rules) for rules in lapses)]
    return [_REMINDER + line.text.removeprefix("- ") for line in missed[:MOST_NOTES]]


def fewer_notes(notes: Sequence[str], most: int) -> list[str]:
    """The newest of them, each once, but no more than `most`, and fewer than there are."""
    unique = list(dict.fromkeys(notes))
    kept = min(most, len(notes) - 1)
    return unique[-kept:] if kept > 0 else unique
