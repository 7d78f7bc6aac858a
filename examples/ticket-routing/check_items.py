"""Check the ticket-routing example: its rules, its starting skill and the items of every split.

Run it with `python examples/ticket-routing/check_items.py`. It needs the standard library only, prints a small table,
and ends with status 1 and a list of problems when something does not hold. The grammar is described in house_rules.md.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

UNROUTED = "UNROUTED"
SPLITS = ("train", "val", "test")
STARTING_SCORE_RANGE = (0.05, 0.28)
"""What skill.md may solve of a split, as fractions."""

_PHRASES = r'(?P<phrases>"[^"]+"(?: or "[^"]+")*)'
_VALUE = r"the (?P<part>queue|desk|suffix) is (?P<code>\S+?)\.?"
_MENTIONS = re.compile(rf"- When a ticket mentions {_PHRASES}, {_VALUE}")
_SHORT = re.compile(rf"- When a ticket has fewer than (?P<words>\d+) words, {_VALUE}")
_CAPITALS = re.compile(rf"- When a ticket is written all in capitals, {_VALUE}")
_OTHERWISE = re.compile(rf"- Otherwise {_VALUE}")
_SEVERAL = re.compile(
    r"- When several (?P<part>queue|desk|suffix)(?:s|es) fit, the first in this list wins: (?P<codes>.+?)\.?"
)
_IGNORE_LINES = re.compile(rf"- Ignore lines that start with {_PHRASES}\.?")
_IGNORE_AFTER = re.compile(rf"- Ignore everything after {_PHRASES}\.?")
_ANSWER_WITH = re.compile(r"- Answer with (?P<form>.+?)\.?")


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition (a phrase, few words, or capitals) that gives one part of the code."""

    part: str
    code: str
    phrases: tuple[str, ...] = ()
    fewer_than_words: int = 0
    capitals: bool = False

    def fits(self, text: str) -> bool:
        """Tell whether the text meets the condition."""
        words = sum(any(map(str.isalnum, token)) for token in text.split())
        mentioned = any(_find(phrase, text) for phrase in self.phrases)
        return mentioned or words < self.fewer_than_words or (self.capitals and text.isupper())


@dataclass(slots=True)
class Rules:
    """Everything a skill text says in the grammar; an empty skill gives an empty object."""

    rules: list[Rule] = field(default_factory=list)
    otherwise: dict[str, str] = field(default_factory=dict)
    precedence: dict[str, list[str]] = field(default_factory=dict)
    ignored_line_starts: list[str] = field(default_factory=list)
    ignored_after: list[str] = field(default_factory=list)
    answer_form: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Item:
    """One line of an items.jsonl file."""

    id: str
    question: str
    answer: str
    task_type: str


def parse_rules(text: str) -> Rules:
    """Read the rule lines of a skill; every other line is prose and is skipped."""
    found = Rules()
    for line in map(str.strip, text.splitlines()):
        if match := _MENTIONS.fullmatch(line):
            found.rules.append(Rule(match["part"], match["code"], phrases=_quoted(match["phrases"])))
        elif match := _SHORT.fullmatch(line):
            found.rules.append(Rule(match["part"], match["code"], fewer_than_words=int(match["words"])))
        elif match := _CAPITALS.fullmatch(line):
            found.rules.append(Rule(match["part"], match["code"], capitals=True))
        elif match := _OTHERWISE.fullmatch(line):
            found.otherwise[match["part"]] = match["code"]
        elif match := _SEVERAL.fullmatch(line):
            found.precedence[match["part"]] = re.split(r",\s*", match["codes"])
        elif match := _IGNORE_LINES.fullmatch(line):
            found.ignored_line_starts.extend(_quoted(match["phrases"]))
        elif match := _IGNORE_AFTER.fullmatch(line):
            found.ignored_after.extend(_quoted(match["phrases"]))
        elif match := _ANSWER_WITH.fullmatch(line):
            found.answer_form = re.findall(r"queue|hyphen|desk|suffix", match["form"])
    return found


def answer(rules: Rules, ticket: str) -> str:
    """Give the code that follows from the rules, or UNROUTED when they give no queue."""
    text = _read(rules, ticket)
    values = {part: _choose(rules, part, text) for part in ("queue", "desk", "suffix")}
    if not values["queue"]:
        return UNROUTED
    if not rules.answer_form:
        return " ".join(values.values())
    return "".join(values.get(name, "-") for name in rules.answer_form)


def fitting_codes(rules: Rules, part: str, text: str) -> list[str]:
    """List the codes whose rules fit, each once, in the order of the rules."""
    return list(dict.fromkeys(rule.code for rule in rules.rules if rule.part == part and rule.fits(text)))


def _choose(rules: Rules, part: str, text: str) -> str:
    codes = fitting_codes(rules, part, text)
    ranked = [code for code in rules.precedence.get(part, []) if code in codes] + codes
    return ranked[0] if ranked else rules.otherwise.get(part, "")


def _read(rules: Rules, ticket: str) -> str:
    """Leave out what the Ignore rules exclude."""
    for phrase in rules.ignored_after:
        if match := _find(phrase, ticket):
            ticket = ticket[: match.start()]
    starts = tuple(rules.ignored_line_starts)
    return "\n".join(line for line in ticket.splitlines() if not line.lstrip().startswith(starts))


def _find(phrase: str, text: str) -> re.Match[str] | None:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE)


def _quoted(phrases: str) -> tuple[str, ...]:
    return tuple(re.findall(r'"([^"]+)"', phrases))


def load_items(path: Path) -> list[Item]:
    """Read one JSONL file; a line with missing or unknown fields raises TypeError."""
    return [Item(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def solved(skill: str, items: Sequence[Item]) -> int:
    """Count the items that a skill text answers right."""
    rules = parse_rules(skill)
    return sum(answer(rules, item.question) == item.answer for item in items)


def weakened(skill: str) -> Iterator[tuple[str, str]]:
    """Yield (what was removed, the skill without it) for each rule line and for each phrase of a line with several."""
    lines = skill.splitlines()
    for number, line in enumerate(lines):
        if parse_rules(line) == Rules():
            continue
        yield line, "\n".join(lines[:number] + lines[number + 1 :])
        phrases = _quoted(line)
        for phrase in phrases if len(phrases) > 1 else ():
            without = " or ".join(f'"{other}"' for other in phrases if other != phrase)
            shorter = line.replace(" or ".join(f'"{each}"' for each in phrases), without)
            yield f"{line} [{phrase}]", "\n".join([*lines[:number], shorter, *lines[number + 1 :]])


def problems(house: str, start: str, splits: dict[str, list[Item]]) -> list[str]:
    """List everything that is wrong with the example; an empty list means that it holds."""
    found: list[str] = []
    rules = parse_rules(house)
    everything = [item for items in splits.values() for item in items]
    for values in ([item.id for item in everything], [" ".join(item.question.split()) for item in everything]):
        found += [f"occurs twice: {value!r}" for value in sorted({each for each in values if values.count(each) > 1})]
    for item in everything:
        if (given := answer(rules, item.question)) != item.answer:
            found.append(f"{item.id}: the house rules say {given}, the item says {item.answer}")
        text = _read(rules, item.question)
        for part in ("queue", "desk", "suffix"):
            codes = fitting_codes(rules, part, text)
            if len(codes) > 1 and not set(codes) <= set(rules.precedence.get(part, [])):
                found.append(f"{item.id}: no order between {', '.join(codes)}")
    if len({(item.task_type, item.answer[:3]) for item in everything}) != len({item.task_type for item in everything}):
        found.append("a task type has items of more than one queue")
    for name, items in splits.items():
        if missing := {item.task_type for item in everything} - {item.task_type for item in items}:
            found.append(f"{name}: no item of {', '.join(sorted(missing))}")
        low, high = STARTING_SCORE_RANGE
        if not low <= (score := solved(start, items) / len(items)) <= high:
            found.append(f"{name}: skill.md solves {score:.0%}, not {low:.0%} to {high:.0%}")
        found += [
            f"{name}: loses nothing without: {what}"
            for what, skill in weakened(house)
            if solved(skill, items) >= solved(house, items)
        ]
    return found


def main() -> int:
    """Print the scores of both skills, how much the least important rule matters, and the problems."""
    folder = Path(__file__).resolve().parent
    house = (folder / "house_rules.md").read_text(encoding="utf-8")
    start = (folder / "skill.md").read_text(encoding="utf-8")
    splits = {name: load_items(folder / "items" / name / "items.jsonl") for name in SPLITS}
    print(f"{'split':<6} {'items':>5} {'topics':>6} {'codes':>5}   {'skill.md':<12} house_rules.md")
    for name, items in splits.items():
        topics, codes = len({item.task_type for item in items}), len({item.answer for item in items})
        scores = [f"{solved(skill, items):>3} ({solved(skill, items) / len(items):.1%})" for skill in (start, house)]
        print(f"{name:<6} {len(items):>5} {topics:>6} {codes:>5}   {scores[0]:<12} {scores[1]}")
    removals = [what for what, _ in weakened(house)]
    rule_count = sum(not what.endswith("]") for what in removals)
    print(f"{rule_count} rules, {len(removals) - rule_count} phrases; each must matter in every split")
    found = problems(house, start, splits)
    print("\n".join(found) if found else "all checks hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
