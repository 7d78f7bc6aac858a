"""What the coach does with changes that were proposed before: it merges, ranks, counts and carries them out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType

from burnish.domain.edits import Edit, EditOp, Patch, apply_patch
from burnish.infrastructure.simulation.change_prompt import ChangePrompt, EpochPrompt
from burnish.infrastructure.simulation.coach_edits import wrongness
from burnish.infrastructure.simulation.coach_suggestions import said_again, suggested_edit
from burnish.infrastructure.simulation.draws import draw
from burnish.infrastructure.simulation.rules import Rule, parse_rules, rule_lines

EMPTY_SKILL = "# Skill\n"
"""The whole new skill where there is nothing to write."""

_REMEMBERED = 6


class EditKind(StrEnum):
    """What an edit of the coach does to the agent."""

    USEFUL = "useful"
    USELESS = "useless"
    HARMFUL = "harmful"


def as_json(**fields: object) -> str:
    """An answer."""
    return json.dumps(fields, ensure_ascii=False)


def edit_fields(edit: Edit) -> dict[str, object]:
    """An edit as an answer holds it; its support only where it is known."""
    fields: dict[str, object] = {"op": edit.op.value, "target": edit.target, "content": edit.content}
    return fields if edit.support_count is None else fields | {"support": edit.support_count}


def merged(prompt: ChangePrompt) -> str:
    """All changes, equal ones as one with their supports added up; of whole skills the first with the others' rules."""
    skills = [edit.content for edit in prompt.changes if edit.op is EditOp.REWRITE]
    if skills:
        return whole_skill(_joined(skills), f"{len(skills)} skills made one.", [])
    unique: dict[tuple[EditOp, str, str], Edit] = {}
    for edit in prompt.changes:
        key = (edit.op, edit.target.rstrip(), edit.content.rstrip())
        earlier = unique.get(key, replace(edit, support_count=0))
        unique[key] = replace(earlier, support_count=(earlier.support_count or 0) + (edit.support_count or 1))
    reasoning = f"{len(prompt.changes)} changes, {len(unique)} of them different."
    suggestions = [edit for edit in unique.values() if edit.op is EditOp.SUGGEST]
    if suggestions:
        return as_json(
            reasoning=reasoning,
            suggestions=[said_again(edit) | {"support": edit.support_count} for edit in suggestions],
        )
    return as_json(reasoning=reasoning, edits=[edit_fields(edit) for edit in unique.values()])


def ranked(prompt: ChangePrompt, kinds: Sequence[EditKind]) -> str:
    """All places: useful changes before useless ones before harmful ones, of one kind those with most support first."""
    order = sorted(
        range(len(kinds)),
        key=lambda place: (list(EditKind).index(kinds[place]), -(prompt.changes[place].support_count or 1), place),
    )
    return as_json(reasoning=_summary(kinds), order=order)


def counted(kinds: Sequence[EditKind], confidence: float) -> str:
    """As many changes as look useful."""
    return as_json(
        reasoning=_summary(kinds),
        learning_rate=kinds.count(EditKind.USEFUL),
        confidence=confidence,
        risks=f"{kinds.count(EditKind.HARMFUL)} look harmful.",
    )


def rewritten(prompt: ChangePrompt) -> str:
    """The skill after all suggestions that can be carried out, one after another."""
    edits = [edit for edit in map(suggested_edit, prompt.changes) if edit is not None]
    report = apply_patch(prompt.skill, Patch(tuple(edits)))
    reasoning = f"{len(report.applied)} of {len(prompt.changes)} suggestions carried out."
    return whole_skill(report.content, reasoning, report.applied)


def whole_skill(
    skill: str, reasoning: str, applied: Sequence[Edit], beside: Mapping[str, object] = MappingProxyType({})
) -> str:
    """An answer with a whole skill, and what else is in it."""
    changes = [f"{edit.op.value}: {(edit.content or edit.target).strip()}" for edit in applied]
    return as_json(reasoning=reasoning, changes=changes, skill=skill if skill.strip() else EMPTY_SKILL, **beside)


def remembered(prompt: EpochPrompt) -> str:
    """A line for this epoch behind the last lines of the memory so far."""
    number = len(rule_lines(prompt.skill))
    line = (
        f"- Epoch {prompt.epoch}: score {prompt.score} with {number} rule lines;"
        " rules in the form of those that stand there can be followed."
    )
    lines = [kept for kept in prompt.memory.splitlines() if kept.strip()]
    return as_json(reasoning="One line an epoch.", memory="\n".join([*lines, line][-_REMEMBERED:]))


def seen_kinds(prompt: ChangePrompt, right: AbstractSet[Rule], accuracy: float, digest: str) -> list[EditKind]:
    """What each change does to the skill, as the coach sees it: in a share of `accuracy` as it is, else wrongly."""
    kinds: list[EditKind] = []
    for place, change in enumerate(prompt.changes):
        kind = kind_of(prompt.skill, change, right)
        if draw(digest, place, "looks closely") >= accuracy:
            others = [other for other in EditKind if other is not kind]
            kind = others[int(draw(digest, place, "takes it for") * len(others))]
        kinds.append(kind)
    return kinds


def kind_of(skill: str, change: Edit, right: AbstractSet[Rule]) -> EditKind:
    """What a change, on its own, does to the rules the skill states; one that cannot be applied is useless."""
    edit = suggested_edit(change)
    if edit is None:
        return EditKind.USELESS
    before = wrongness(parse_rules(skill).stated, right)
    after = wrongness(parse_rules(apply_patch(skill, Patch((edit,))).content).stated, right)
    return EditKind.USELESS if after == before else EditKind.USEFUL if after < before else EditKind.HARMFUL


def _joined(skills: Sequence[str]) -> str:
    """The first skill and, behind it, the rule lines of the others that it neither has nor contradicts."""
    joined = skills[0]
    for skill in skills[1:]:
        for line in rule_lines(skill):
            keys = {rule.key for rule in parse_rules(joined).stated}
            if keys.isdisjoint(rule.key for rule in line.rules):
                joined = apply_patch(joined, Patch((Edit(EditOp.APPEND, line.text),))).content
    return joined


def _summary(kinds: Sequence[EditKind]) -> str:
    counts: Mapping[str, int] = {kind.value: kinds.count(kind) for kind in EditKind}
    return ", ".join(f"{number} {kind}" for kind, number in counts.items())
