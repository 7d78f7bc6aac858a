"""The sections of the optimizer's questions: what its roles share, and changes shown as one line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.regions import RegionKind, protection
from burnish.domain.step_memory import TriedStep
from burnish.infrastructure.optimizer.trajectories import cut_middle, tagged

_TRIED_TOKENS = 500  # of one tried edit
_REASONING_TOKENS = 1_000  # of one patch


def together(*sections: str) -> str:
    """The sections that are not empty, as one text."""
    return "\n\n".join(filter(None, sections))


def skill_sections(skill: str, *, if_empty: str = "The skill is still empty.") -> str:
    """The current skill, and which of its parts are protected."""
    if not skill.strip():
        return f"# Current skill\n\n{if_empty}"
    shown = f"# Current skill\n\nEverything between the two tags:\n\n<skill>\n{skill}\n</skill>"
    named = "\n".join(f"- {part}" for part in _protected_parts(skill))
    if not named:
        return shown
    return f"{shown}\n\n# Protected parts\n\nDo not edit these parts of the skill, and take no target from them:\n\n{named}"


def memory_section(memory: str) -> str:
    """What the optimizer remembers of earlier epochs; empty without a memory."""
    if not memory.strip():
        return ""
    return f"# What earlier epochs taught about editing this skill\n\n<memory>\n{memory.strip()}\n</memory>"


def tried_section(tried: Iterable[TriedStep]) -> str:
    """What earlier steps of the epoch tried in vain; empty when that is nothing."""
    steps = [lines for lines in map(_tried_lines, tried) if lines]
    if not steps:
        return ""
    shown = tagged("tried", ["\n\n".join("\n".join(lines) for lines in steps)])
    return f"# What earlier steps of this epoch tried in vain\n\nDo not propose it again.\n\n{shown}"


def change_line(edit: Edit, number: int | None = None) -> str:
    """An edit or a suggestion on one line, as JSON, with its number where it has one."""
    shown: dict[str, object] = {} if number is None else {"number": number}
    if edit.op is EditOp.SUGGEST:
        shown |= {"title": edit.target, "suggestion": edit.content}
    else:
        shown |= {"op": edit.op.value, "target": edit.target, "content": edit.content}
    if edit.support_count is not None:
        shown["support"] = edit.support_count
    if edit.merge_level:
        shown["merges"] = edit.merge_level
    return json.dumps(shown, ensure_ascii=False)


def patch_block(patch: Patch) -> str:
    """A whole patch between tags: its reasoning, then its changes; a whole new skill stands there as it is."""
    reasoning = cut_middle(patch.reasoning.strip(), _REASONING_TOKENS)
    lines = [json.dumps({"reasoning": reasoning}, ensure_ascii=False)]
    for edit in patch.edits:
        if edit.op is EditOp.REWRITE:
            support = "" if edit.support_count is None else f", support {edit.support_count}"
            lines += [f"A whole new skill{support}:", tagged("candidate", [edit.content])]
        else:
            lines.append(change_line(edit))
    return tagged("proposal", lines)


def changes_block(edits: Sequence[Edit]) -> str:
    """Numbered changes, from 0, between tags."""
    return tagged("changes", [change_line(edit, number) for number, edit in enumerate(edits)])


def _tried_lines(step: TriedStep) -> list[str]:
    """A step's vain edits with what came of them."""
    lines: list[str] = []
    if step.rejected:
        items = "item" if step.lost == 1 else "items"
        lines.append(f"Step {step.step}, rejected together: lost on {step.lost} {items}, gained on {step.gained}.")
        lines += [cut_middle(change_line(edit), _TRIED_TOKENS) for edit in step.rejected]
    if step.failed:
        lines.append(f"Step {step.step}, could not be applied:")
        lines += [
            f"{cut_middle(change_line(each.edit), _TRIED_TOKENS)}  ({' '.join(each.reason.split()) or 'no reason'})"
            for each in step.failed
        ]
    return lines


def _protected_parts(skill: str) -> list[str]:
    """The parts of this skill that edits must leave alone, by name, each kind once."""
    guard = protection(skill)
    kinds = {region.kind for region in guard.regions}
    parts = ["the front matter, from the first line to the second `---`"] if guard.front_matter else []
    return parts + [
        f"everything from `{kind.start_marker}` to `{kind.end_marker}`" for kind in RegionKind if kind in kinds
    ]
