"""What a reflect prompt shows, found by a few anchors that survive changes of its wording.

The anchors: tags that stand alone on their lines, `<skill>` around the current skill, `<failure>` and `<success>` around
each rollout; in a rollout, the item's question between the lines `[user]` and `[agent]`; outside of all tags, the words
"at most N edits" or "at most N suggestions". Everything else may change freely, and each anchor may be missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAGGED = re.compile(r"^<(?P<tag>[a-z]\w*)>\n(?P<text>.*?)\n?^</(?P=tag)>[ \t]*$", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"^\[user\]\n(?P<question>.*?)\n\s*^\[agent\]$", re.MULTILINE | re.DOTALL)
_BUDGET = re.compile(r"at most (?P<edits>\d{1,6}) (?:edit|suggestion)s?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """A failed rollout: its whole text and, where it is marked, the item's question."""

    text: str
    question: str | None


@dataclass(frozen=True, slots=True)
class ReflectPrompt:
    """The parts of a reflect prompt; `skill` is empty when none is shown, `edit_budget` None when none is named."""

    skill: str
    failures: tuple[ShownFailure, ...]
    edit_budget: int | None


def read_reflect_prompt(text: str) -> ReflectPrompt | None:
    """The parts of the prompt; None when it shows neither a skill nor a rollout, so that it is no reflect prompt."""
    blocks = tagged_blocks(text)
    if not any(tag in ("skill", "failure", "success") for tag, _ in blocks):
        return None
    budget = _BUDGET.search(untagged(text))
    return ReflectPrompt(
        skill=next((content for tag, content in blocks if tag == "skill"), ""),
        failures=tuple(shown_failure(content) for tag, content in blocks if tag == "failure"),
        edit_budget=None if budget is None else int(budget["edits"]),
    )


def tagged_blocks(text: str) -> list[tuple[str, str]]:
    """The outermost tags that stand alone on their lines, each with what is between it and its end, in order."""
    return [(block["tag"], block["text"]) for block in _TAGGED.finditer(text)]


def untagged(text: str) -> str:
    """What stands outside of all tags."""
    return _TAGGED.sub("", text)


def shown_failure(text: str) -> ShownFailure:
    """A failed rollout as it is shown."""
    question = _QUESTION.search(text)
    return ShownFailure(text, None if question is None else question["question"])
