"""Edits put into words, as the coach's suggestions say them, and read back from there."""

from __future__ import annotations

import re

from burnish.domain.edits import Edit, EditOp

_MOTIVE = "\n\nWhy: "
_SAID = (
    (EditOp.APPEND, re.compile(r"Add this line:\n(?P<content>.+)", re.DOTALL)),
    (EditOp.INSERT_AFTER, re.compile(r"Behind this line:\n(?P<target>.+)\nput this one:\n(?P<content>.+)", re.DOTALL)),
    (EditOp.REPLACE, re.compile(r"Instead of this line:\n(?P<target>.+)\nwrite this one:\n(?P<content>.+)", re.DOTALL)),
    (EditOp.DELETE, re.compile(r"Take this line out:\n(?P<target>.+)", re.DOTALL)),
)
_TITLES = {
    EditOp.APPEND: "Add",
    EditOp.INSERT_AFTER: "Add",
    EditOp.REPLACE: "Correct",
    EditOp.DELETE: "Take out",
}


def suggestion_of(edit: Edit) -> dict[str, str]:
    """A suggestion to do what the edit does, as an answer holds it."""
    content, target = edit.content.strip("\r\n"), edit.target.strip("\r\n")
    match edit.op:
        case EditOp.INSERT_AFTER:
            instruction = f"Behind this line:\n{target}\nput this one:\n{content}"
        case EditOp.REPLACE:
            instruction = f"Instead of this line:\n{target}\nwrite this one:\n{content}"
        case EditOp.DELETE:
            instruction = f"Take this line out:\n{target}"
        case _:
            instruction = f"Add this line:\n{content}"
    return {
        "title": f"{_TITLES[edit.op]} {content or target}",
        "motivation": "The rollouts shown speak for it.",
        "instruction": instruction,
    }


def said_again(suggestion: Edit) -> dict[str, str]:
    """A suggestion that was shown, as an answer holds it."""
    instruction, _, motivation = suggestion.content.partition(_MOTIVE)
    return {"title": suggestion.target, "motivation": motivation, "instruction": instruction}


def suggested_edit(suggestion: Edit) -> Edit | None:
    """The edit a suggestion asks for; an edit stands for itself, and None for words that nobody here would say."""
    if suggestion.op is not EditOp.SUGGEST:
        return suggestion
    instruction = suggestion.content.partition(_MOTIVE)[0]
    for op, shape in _SAID:
        if found := shape.fullmatch(instruction):
            texts = found.groupdict()
            content = texts.get("content") or ""
            return Edit(op, f"\n{content}" if op is EditOp.INSERT_AFTER else content, texts.get("target") or "")
    return None
