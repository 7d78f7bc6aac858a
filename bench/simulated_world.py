"""A simulated task whose skills have an exactly known quality: cases to recognise, rules to follow, an agent that slips."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from burnish.api import Rollout, RolloutBatch

TITLE = "# What to do in which case"
ACTIONS = ("answer", "defer", "escalate", "forward")

_WORDINGS = ("- In case {case}, {action}.", "- Case {case}: {action}.", "- Always {action} when it is case {case}.")
_BLANKET = "- Whatever the case, {action}."
_REMARK = "- Remark {number}: take your time and stay attentive."
_CASE = re.compile(r"\bcase (\d\d)\b", re.IGNORECASE)
_ACTION = re.compile(rf"\b({'|'.join(ACTIONS)})\b")

GUESS = 0.30
"""How often an item is right when the skill says nothing about its case."""
RIGHT = 0.92
WRONG = 0.05
CONTRADICTED = 0.45
"""When the skill names the right action for the case, and another one."""
BLANKET_RIGHT = 0.75
BLANKET_AGAINST_A_RULE = 0.80
"""What is left of a right rule's share when a blanket rule says otherwise."""
LEAST_ATTENTION = 0.3


@dataclass(frozen=True, slots=True)
class Line:
    """A rule line of a skill: the action for a case, or for all of them (`case` is None)."""

    text: str
    case: str | None
    action: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What an agent takes from a skill: its rules by case, its blanket rules, and how many lines there are to mind."""

    rules: Mapping[str, frozenset[str]]
    blankets: frozenset[str]
    lines: int


def rule_line(case: str, action: str, wording: int = 0) -> str:
    """A rule in one of several wordings that mean the same."""
    return _WORDINGS[wording % len(_WORDINGS)].format(case=case, action=action)


def blanket_line(action: str) -> str:
    return _BLANKET.format(action=action)


def remark_line(number: int) -> str:
    return _REMARK.format(number=number)


def parse_line(text: str) -> Line | None:
    """The rule a line states; None for remarks, headings and blank lines."""
    action = _ACTION.search(text)
    if not text.startswith("- ") or action is None:
        return None
    case = _CASE.search(text)
    return Line(text, case.group(1) if case else None, action.group(1))


def rule_lines(skill: str) -> tuple[Line, ...]:
    """The rules of a text, in its order."""
    return tuple(line for text in skill.splitlines() if (line := parse_line(text)) is not None)


@lru_cache(maxsize=4096)
def read_skill(skill: str) -> Reading:
    """What an agent takes from a skill, protected regions included."""
    rules: dict[str, frozenset[str]] = {}
    for line in rule_lines(skill):
        if line.case is not None:
            rules[line.case] = rules.get(line.case, frozenset()) | {line.action}
    blankets = frozenset(line.action for line in rule_lines(skill) if line.case is None)
    return Reading(rules, blankets, sum(text.startswith("- ") for text in skill.splitlines()))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSettings:
    """How a world is drawn: `skew` is how much commoner the first case is than the last one."""

    cases: int
    train_items: int
    validation_items: int
    skew: float = 1.0
    known_at_first: int = 0
    comfortable_lines: int = 16
    """As many lines an agent minds without a slip."""
    slip_a_line: float = 0.02
    """The share of right answers lost to each line above that."""
    tempting: float = 0.5
    """Share of the cases whose rollouts suggest a wrong rule before the right one."""


class World:
    """One task, drawn by seed: which cases there are, how common they are, what is right in each, what looks right."""

    def __init__(self, settings: WorldSettings, seed: int) -> None:
        self.settings = settings
        self.seed = seed
        draw = random.Random(f"world {seed}")
        self.cases = tuple(f"{number:02d}" for number in range(settings.cases))
        powers = [settings.skew ** (-number / max(settings.cases - 1, 1)) for number in range(settings.cases)]
        shares = dict(zip(draw.sample(self.cases, len(self.cases)), powers, strict=True))
        self.weights: dict[str, float] = {case: shares[case] / math.fsum(powers) for case in self.cases}
        self.right = {case: draw.choice(ACTIONS) for case in self.cases}
        self.ideas = {case: self._ideas(draw, case) for case in self.cases}
        self.blanket = draw.choice(ACTIONS)
        self.items = {
            "train": draw.choices(self.cases, [self.weights[case] for case in self.cases], k=settings.train_items),
            "val": draw.choices(self.cases, [self.weights[case] for case in self.cases], k=settings.validation_items),
        }
        self._known = draw.sample(self.cases, settings.known_at_first)

    @cached_property
    def initial_skill(self) -> str:
        """A title and the rules that are known from the start."""
        known = [rule_line(case, self.right[case]) for case in sorted(self._known)]
        return "\n".join([TITLE, "", *known])

    def success(self, skill: str, case: str) -> float:
        """The probability that an item of a case is answered rightly."""
        reading = read_skill(skill)
        excess = max(0, reading.lines - self.settings.comfortable_lines)
        attention = max(LEAST_ATTENTION, 1 - self.settings.slip_a_line * excess)
        return self._undistracted(reading, case) * attention

    def quality(self, skill: str) -> float:
        """The expected score over all items there could be: exact, without noise."""
        return math.fsum(weight * self.success(skill, case) for case, weight in self.weights.items())

    def _undistracted(self, reading: Reading, case: str) -> float:
        right, said = self.right[case], reading.rules.get(case, frozenset())
        if not said:
            if not reading.blankets:
                return GUESS
            return BLANKET_RIGHT if reading.blankets == frozenset({right}) else WRONG
        if right not in said:
            return WRONG
        share = RIGHT if len(said) == 1 else CONTRADICTED
        return share * BLANKET_AGAINST_A_RULE if reading.blankets - {right} else share

    def _ideas(self, draw: random.Random, case: str) -> tuple[str, ...]:
        """Actions for a case in the order in which its rollouts suggest them."""
        others = draw.sample([action for action in ACTIONS if action != self.right[case]], len(ACTIONS) - 1)
        place = 1 if draw.random() < self.settings.tempting else 0
        return (*others[:place], self.right[case], *others[place:])


class NoisyAgent:
    """Lists a world's items; an answer is right by a draw that depends on seed, item, repeat and skill alone."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.fingerprint = f"world {world.seed}"

    async def item_ids(self, split: str) -> Sequence[str]:
        return [f"{split}/{number}" for number in range(len(self._world.items.get(split, ())))]

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        return [self._attempt(skill, item_id, batch.repeat) for item_id in batch.item_ids]

    def _attempt(self, skill: str, item_id: str, repeat: str) -> Rollout:
        split, number = item_id.split("/")
        case = self._world.items[split][int(number)]
        text = f"{self._world.seed} {item_id} {repeat} {skill}"
        draw = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64
        score = float(draw < self._world.success(skill, case))
        return Rollout(item_id, score, score, task_type=case)
