"""The rule lines of a skill, as the simulated models read them: grammar, meaning, and the answer that follows.

The grammar is that of `examples/ticket-routing/house_rules.md`, with any noun for the ticket and any one-word names for
the slots of an answer (there: queue, desk, suffix). A rule is one line of its own:

    - Answer with the SLOT, a hyphen, the SLOT and the SLOT, and nothing else.
    - Ignore lines that start with "PHRASE" or "PHRASE".
    - Ignore everything after "PHRASE" or "PHRASE".
    - When a THING mentions "PHRASE" or "PHRASE", the SLOT is VALUE.
    - When a THING has fewer than N words, the SLOT is VALUE.
    - When a THING is written all in capitals, the SLOT is VALUE.
    - Otherwise the SLOT is VALUE.
    - When several SLOTs fit, the first in this list wins: VALUE, VALUE.

Every other line is prose. Where two lines give one condition different values, the later line wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

UNROUTED = "UNROUTED"
"""The answer when no rule gives the answer's first slot a value."""


class RuleKind(StrEnum):
    """The forms of a rule line."""

    FORM = "form"
    IGNORE_LINES = "ignore_lines"
    IGNORE_AFTER = "ignore_after"
    MENTIONS = "mentions"
    FEWER_WORDS = "fewer_words"
    CAPITALS = "capitals"
    OTHERWISE = "otherwise"
    ORDER = "order"


CONDITIONAL = frozenset({RuleKind.MENTIONS, RuleKind.FEWER_WORDS, RuleKind.CAPITALS})
"""Kinds that give a slot a value when the text meets a condition."""

VALUED = CONDITIONAL | {RuleKind.OTHERWISE}
"""Kinds that give a slot a value."""

RuleKey: TypeAlias = tuple[RuleKind, str, str]
"""Kind, slot and condition: what can have one value only."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The smallest statement of a rule line; a line with three phrases makes three.

    `slot` is the part of the answer it is about: its plural, as written, for ORDER, and empty for FORM and the Ignores.
    `condition` is a phrase, a number of words, or empty. `value` is the slot's value; ORDER has its list and FORM its
    items, separated by blanks; the Ignores have none.
    """

    kind: RuleKind
    slot: str = ""
    condition: str = ""
    value: str = ""

    @property
    def key(self) -> RuleKey:
        """Two rules with one key and different values contradict each other."""
        return (self.kind, self.slot, self.condition)

    def fits(self, text: str) -> bool:
        """Whether `text` meets the condition of a conditional rule; False for the other kinds."""
        if self.kind is RuleKind.MENTIONS:
            return mentions(text, self.condition)
        if self.kind is RuleKind.FEWER_WORDS:
            return sum(any(map(str.isalnum, token)) for token in text.split()) < int(self.condition)
        return self.kind is RuleKind.CAPITALS and text.isupper()


@dataclass(frozen=True, slots=True)
class Rules:
    """What a text states: one rule a key, in the order in which the keys first appear."""

    stated: tuple[Rule, ...] = ()

    def of_kind(self, *kinds: RuleKind) -> Iterator[Rule]:
        """The rules of these kinds, in order."""
        return (rule for rule in self.stated if rule.kind in kinds)

    def states(self, rule: Rule) -> bool:
        """Whether this very rule is stated and not contradicted later."""
        return rule in self.stated


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A line that states rules: its text without the white space around it, and the rules."""

    text: str
    rules: tuple[Rule, ...]


_PHRASES = r'(?P<phrases>"[^"]+"(?: or "[^"]+")*)'
_WHEN = r"- When an? [^\W\d_][\w-]*"
_VALUE = r"the (?P<slot>[^\W\d_][\w-]*) is (?P<value>\S+?)\.?"
_ITEM = r"(?:the|an?) [^\W\d_][\w-]*"
_SHAPES = {
    RuleKind.FORM: re.compile(rf"- Answer with (?P<items>{_ITEM}(?:(?:, | and ){_ITEM})*), and nothing else\.?"),
    RuleKind.IGNORE_LINES: re.compile(rf"- Ignore lines that start with {_PHRASES}\.?"),
    RuleKind.IGNORE_AFTER: re.compile(rf"- Ignore everything after {_PHRASES}\.?"),
    RuleKind.MENTIONS: re.compile(rf"{_WHEN} mentions {_PHRASES}, {_VALUE}"),
    RuleKind.FEWER_WORDS: re.compile(rf"{_WHEN} has fewer than (?P<words>\d{{1,6}}) words, {_VALUE}"),
    RuleKind.CAPITALS: re.compile(rf"{_WHEN} is written all in capitals, {_VALUE}"),
    RuleKind.OTHERWISE: re.compile(rf"- Otherwise {_VALUE}"),
    RuleKind.ORDER: re.compile(
        r"- When several (?P<slot>[^\W\d_][\w-]*) fit, the first in this list wins: (?P<values>[^\s,]+(?:, *[^\s,]+)*)"
    ),
}
_OPENINGS = ("- Answer ", "- Ignore ", "- When ", "- Otherwise ")
_SIGNS = {
    "hyphen": "-",
    "blank": " ",
    "slash": "/",
    "colon": ":",
    "comma": ",",
    "dot": ".",
    "underscore": "_",
}


def rule_lines(text: str) -> tuple[RuleLine, ...]:
    """Every rule line of `text`, in order, contradicted ones included."""
    found: list[RuleLine] = []
    for line in map(str.strip, text.splitlines()):
        rules = _read_line(line) if line.startswith(_OPENINGS) else ()
        if rules:
            found.append(RuleLine(line, rules))
    return tuple(found)


@lru_cache(maxsize=64)
def parse_rules(text: str) -> Rules:
    """The rules `text` states; never raises, a text without rule lines states none.

    Of two values for one key the later is kept, in the earlier one's place.
    """
    stated: dict[RuleKey, Rule] = {}
    for line in rule_lines(text):
        for rule in line.rules:
            stated[rule.key] = rule
    return Rules(tuple(stated.values()))


def answer(rules: Rules, question: str) -> str:
    """What follows from the rules for a question; UNROUTED when the answer's first slot gets no value."""
    return write_answer(rules, slot_values(rules, question))


def slot_values(rules: Rules, question: str) -> dict[str, str]:
    """What the rules give each slot: a value, or the empty text; the first slot of the answer comes first.

    A slot takes the value of the rule that fits, of several the first in its ORDER list, then the first stated, and
    without any the Otherwise value.
    """
    text = readable_part(rules, question)
    items = _form_items(rules)
    slots = [item for item in items if item not in _SIGNS] if items else slots_of(rules)
    return {slot: _choose(rules, slot, text) for slot in slots}


def write_answer(rules: Rules, values: dict[str, str]) -> str:
    """The answer in the rules' FORM; without one the values stand apart with blanks, in the order of their rules."""
    if not next(iter(values.values()), ""):
        return UNROUTED
    items = _form_items(rules)
    return "".join(_SIGNS.get(item) or values[item] for item in items) if items else " ".join(values.values())


def slots_of(rules: Rules) -> tuple[str, ...]:
    """The slots the rules give values for, in the order of their rules."""
    valued = rules.of_kind(*VALUED)
    return tuple(dict.fromkeys(rule.slot for rule in valued))


def fitting_values(rules: Rules, slot: str, text: str) -> tuple[str, ...]:
    """The values of the conditional rules of a slot that fit `text`, each once, in the order of the rules."""
    conditional = (rule for rule in rules.of_kind(*CONDITIONAL) if rule.slot == slot)
    return tuple(dict.fromkeys(rule.value for rule in conditional if rule.fits(text)))


def rules_behind(rules: Rules, question: str) -> frozenset[Rule]:
    """The rules that have a say in the answer to a question; several that fit one slot all count."""
    text = readable_part(rules, question)
    behind = set(rules.of_kind(RuleKind.FORM))
    behind.update(rule for rule in rules.of_kind(RuleKind.IGNORE_AFTER) if mentions(question, rule.condition))
    starts = {line.lstrip() for line in question.splitlines()}
    behind.update(
        rule for rule in rules.of_kind(RuleKind.IGNORE_LINES) if any(line.startswith(rule.condition) for line in starts)
    )
    for slot in slots_of(rules):
        fitting = {rule for rule in rules.of_kind(*CONDITIONAL) if rule.slot == slot and rule.fits(text)}
        behind |= fitting or {rule for rule in rules.of_kind(RuleKind.OTHERWISE) if rule.slot == slot}
        if len({rule.value for rule in fitting}) > 1:
            behind.update(rule for rule in rules.of_kind(RuleKind.ORDER) if is_order_of(rule, slot))
    return frozenset(behind)


def readable_part(rules: Rules, question: str) -> str:
    """The question without what the Ignore rules exclude."""
    for rule in rules.of_kind(RuleKind.IGNORE_AFTER):
        if match := _pattern(rule.condition).search(question):
            question = question[: match.start()]
    starts = tuple(rule.condition for rule in rules.of_kind(RuleKind.IGNORE_LINES))
    return "\n".join(line for line in question.splitlines() if not line.lstrip().startswith(starts))


def mentions(text: str, phrase: str) -> bool:
    """Whether `text` contains the phrase as whole words, in small or capital letters, with any white space between."""
    first_word = phrase.split(maxsplit=1)[0].casefold()
    return first_word in text.casefold() and _pattern(phrase).search(text) is not None  # the quick test saves most time


def is_order_of(rule: Rule, slot: str) -> bool:
    """Whether an ORDER rule, which names its slot in the plural, is about this slot."""
    plurals = (f"{slot}s", f"{slot}es", f"{slot[:-1]}ies")
    return rule.kind is RuleKind.ORDER and rule.slot in plurals


def _form_items(rules: Rules) -> list[str]:
    return [item for rule in rules.of_kind(RuleKind.FORM) for item in rule.value.split(" ")]


def _choose(rules: Rules, slot: str, text: str) -> str:
    fitting = fitting_values(rules, slot, text)
    for rule in rules.of_kind(RuleKind.ORDER):
        if is_order_of(rule, slot):
            fitting = (*(value for value in rule.value.split(" ") if value in fitting), *fitting)
    otherwise = (rule.value for rule in rules.of_kind(RuleKind.OTHERWISE) if rule.slot == slot)
    return fitting[0] if fitting else next(otherwise, "")


def _read_line(line: str) -> tuple[Rule, ...]:
    for kind, shape in _SHAPES.items():
        if match := shape.fullmatch(line):
            return tuple(_rules_of(kind, match.groupdict()))
    return ()


def _rules_of(kind: RuleKind, found: dict[str, str]) -> Iterator[Rule]:
    slot, value = found.get("slot", ""), found.get("value", "")
    if kind is RuleKind.FORM:
        yield from _form(re.findall(r"(the|an?) ([\w-]+)", found["items"]))
    elif kind is RuleKind.ORDER:
        yield Rule(kind, slot, value=" ".join(re.split(r", *", found["values"].removesuffix("."))))
    elif kind is RuleKind.IGNORE_LINES:
        yield from (Rule(kind, condition=phrase) for phrase in _quoted(found["phrases"]))
    elif kind in (RuleKind.MENTIONS, RuleKind.IGNORE_AFTER):
        for phrase in _quoted(found["phrases"]):
            yield Rule(kind, slot, " ".join(phrase.lower().split()), value)
    else:
        yield Rule(kind, slot, found.get("words", ""), value)


def _form(items: list[tuple[str, str]]) -> Iterator[Rule]:
    """The form, unless it names a sign nobody knows: then the line is prose."""
    if all((word in _SIGNS) is (article != "the") for article, word in items):
        yield Rule(RuleKind.FORM, value=" ".join(word for _, word in items))


def _quoted(phrases: str) -> list[str]:
    return [phrase for phrase in re.findall(r'"([^"]+)"', phrases) if phrase.strip()]


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
