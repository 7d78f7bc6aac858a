"""The edits of the simulated coach: one that teaches, one that changes nothing, one that harms.

Targets are whole lines of the skill as it was shown, so an edit still works when others of its patch are left out. Each
edit is tried on the document first: what is returned does what its function's name says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from burnish.domain.edits import Edit, EditOp, Patch, apply_patch
from burnish.infrastructure.simulation.rules import (
    VALUED,
    Rule,
    RuleLine,
    is_order_of,
    parse_rules,
    rule_lines,
)

_HABITS = (
    "Read to the end before you decide",
    "Take the whole text into account",
    "Keep a calm and friendly tone",
    "Check the answer once more",
    "Think about what is really asked",
    "Work carefully",
    "Prefer the simple reading",
    "Treat everybody alike",
)
_OCCASIONS = (
    "also when it is late in the day",
    "even if the text is untidy",
    "whatever the writer's mood",
    "also for short texts",
    "as experienced colleagues do",
    "in every case",
    "even when many are waiting",
    "also when two readings seem possible",
)


@dataclass(frozen=True, slots=True)
class Draft:
    """The skill as it was shown, and what the edits made so far have turned it into."""

    skill: str
    document: str

    def with_edit(self, edit: Edit) -> Draft | None:
        """The draft after one more edit; None when it cannot be applied."""
        report = apply_patch(self.document, Patch((edit,)))
        return None if report.failed else Draft(self.skill, report.content)


def teach(draft: Draft, line: RuleLine) -> Edit | None:
    """An edit after which the document states the line's rules and all it stated before, contradictions apart."""
    keys = {rule.key for rule in line.rules}
    kept = {rule for rule in parse_rules(draft.document).stated if rule.key not in keys}
    for edit in _ways_to_teach(draft.skill, line):
        after = draft.with_edit(edit)
        if after is not None and kept.union(line.rules) <= set(parse_rules(after.document).stated):
            return edit
    return None


def distract(draft: Draft, chance: float) -> Edit | None:
    """A line of advice that the document does not have yet and that states no rule; None when all are there.

    `chance`, in [0, 1), chooses.
    """
    advice = [f"- {habit}, {occasion}." for habit in _HABITS for occasion in _OCCASIONS]
    unused = [line for line in advice if line not in draft.document]
    return Edit(EditOp.APPEND, _choose(unused, chance)) if unused else None


def harm(draft: Draft, knowledge: Sequence[RuleLine], chance: Callable[[str], float]) -> Edit | None:
    """An edit that contradicts or deletes something right; None when there is no such edit.

    It goes for what the skill has right, or without any such rule for something it does not know yet. `chance` gives a
    number in [0, 1) for each of the choices.
    """
    right = {rule for line in knowledge for rule in line.rules}
    stated = parse_rules(draft.document).stated
    known = right.intersection(parse_rules(draft.skill).stated, stated)
    keys = {rule.key for rule in stated}
    contradictions = list(_contradictions(knowledge, known or {rule for rule in right if rule.key not in keys}))
    deletions = [
        edit
        for line in rule_lines(draft.skill)
        if known.intersection(line.rules)
        for edit in _deletions(draft.skill, line)
    ]
    before = wrongness(stated, right)
    ways = [contradictions, deletions] if chance("contradict or delete") < 0.5 else [deletions, contradictions]
    for edits in ways:
        start = int(chance("which") * len(edits))
        for edit in edits[start:] + edits[:start]:
            after = draft.with_edit(edit)
            if after is not None and wrongness(parse_rules(after.document).stated, right) > before:
                return edit
    return None


def wrongness(stated: Sequence[Rule], right: AbstractSet[Rule]) -> int:
    """How many right rules are missing, and how many of those are contradicted, together."""
    keys = {rule.key for rule in right}
    contradicting = sum(rule.key in keys and rule not in right for rule in stated)
    return len(right - set(stated)) + contradicting


def _ways_to_teach(skill: str, line: RuleLine) -> Iterator[Edit]:
    """First to correct what contradicts the line, then to put it beside its like, at last to append it."""
    keys = {rule.key for rule in line.rules}
    lines = rule_lines(skill)
    for old in reversed(lines):
        if keys.issuperset(rule.key for rule in old.rules):
            yield from _deletions(skill, old)
            yield Edit(EditOp.REPLACE, line.text, old.text)
    alike = [old.text for old in lines if _are_alike(old.rules[0], line.rules[0])]
    if alike:
        yield Edit(EditOp.INSERT_AFTER, f"\n{line.text}", alike[-1])
    yield Edit(EditOp.APPEND, line.text)


def _are_alike(one: Rule, other: Rule) -> bool:
    """Whether two rules belong into one list: about the same slot, or both about no slot and of one kind."""
    if not one.slot or not other.slot:
        return one.kind is other.kind
    return one.slot == other.slot or is_order_of(one, other.slot) or is_order_of(other, one.slot)


def _deletions(skill: str, line: RuleLine) -> Iterator[Edit]:
    """Take the line away, with its line break if that follows at once."""
    if f"{line.text}\n" in skill:
        yield Edit(EditOp.DELETE, target=f"{line.text}\n")
    yield Edit(EditOp.DELETE, target=line.text)


def _contradictions(knowledge: Sequence[RuleLine], victims: set[Rule]) -> Iterator[Edit]:
    """Each line that gives a victim's slot a value, with each other value the knowledge has for the slot."""
    rules = [rule for line in knowledge for rule in line.rules if rule.kind in VALUED]
    for line in knowledge:
        first = line.rules[0]
        if first.kind in VALUED and victims.intersection(line.rules):
            at = line.text.rindex(first.value)
            for value in sorted({rule.value for rule in rules if rule.slot == first.slot} - {first.value}):
                wrong = line.text[:at] + value + line.text[at + len(first.value) :]
                yield Edit(EditOp.APPEND, wrong)


def _choose(texts: Sequence[str], chance: float) -> str:
    return texts[int(chance * len(texts))]
