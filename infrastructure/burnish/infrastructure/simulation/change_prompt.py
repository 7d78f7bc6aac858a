"""What the prompts of the later stages show, by their anchors: proposed changes, proposals to merge, an epoch's end.

The anchors, besides those of a reflect prompt: `<changes>` around numbered changes; `<proposal>` around each patch to be
merged; a change is a line of JSON with `op`, `target` and `content`, or with `title` and `suggestion`; `<candidate>`, in
a proposal, around a whole skill; `<prior_skill>`, `<previous_guidance>`, `<regressed>` and `<persistent>` in a comparison
of epochs; `<memory>`, and outside of all tags "epoch N", where the memory is written; `<notes>` around a note a line, and
outside "at most N", where there are to be fewer of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from burnish.domain.edits import BOUNDED_OPS, Edit, EditOp
from burnish.infrastructure.simulation.reflect_prompt import ShownFailure, shown_failure, tagged_blocks, untagged

_EPOCH = re.compile(r"\bepoch (?P<epoch>\d{1,9})\b", re.IGNORECASE)
_SCORE = re.compile(r"\bscore of (?P<score>\d(?:\.\d{1,9})?)\b", re.IGNORECASE)
_MOST = re.compile(r"\bat most (?P<most>\d{1,9})\b", re.IGNORECASE)
_ALIKE = {op.value: op for op in BOUNDED_OPS}


@dataclass(frozen=True, slots=True)
class ChangePrompt:
    """A skill, and changes of it."""

    skill: str
    changes: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class ComparisonPrompt:
    """The current skill, the guidance in it, and the items that fail with it."""

    skill: str
    previous_guidance: str
    failures: tuple[ShownFailure, ...]


@dataclass(frozen=True, slots=True)
class EpochPrompt:
    """An epoch's number and score, its skill, and the memory so far."""

    epoch: int
    score: str
    skill: str
    memory: str


@dataclass(frozen=True, slots=True)
class NotesPrompt:
    """Notes, and how many of them there should be at most."""

    notes: tuple[str, ...]
    most: int


def read_notes_prompt(text: str) -> NotesPrompt | None:
    """Notes of which there should be fewer; None without any `<notes>`."""
    blocks = tagged_blocks(text)
    if all(tag != "notes" for tag, _ in blocks):
        return None
    lines = [line.removeprefix("- ") for line in _first(blocks, "notes").splitlines() if line.strip()]
    most = _MOST.search(untagged(text))
    return NotesPrompt(notes=tuple(lines), most=len(lines) if most is None else int(most["most"]))


def read_change_prompt(text: str) -> ChangePrompt | None:
    """A prompt with changes to rank, to count or to carry out; None without any `<changes>`."""
    blocks = tagged_blocks(text)
    listed = [content for tag, content in blocks if tag == "changes"]
    if not listed:
        return None
    return ChangePrompt(_first(blocks, "skill"), tuple(edit for content in listed for edit in _changes(content)))


def read_merge_prompt(text: str) -> ChangePrompt | None:
    """The changes of all proposals, in order; None without any `<proposal>`."""
    blocks = tagged_blocks(text)
    proposals = [content for tag, content in blocks if tag == "proposal"]
    if not proposals:
        return None
    changes: list[Edit] = []
    for content in proposals:
        changes += _changes(untagged(content))
        changes += [Edit(EditOp.REWRITE, skill) for tag, skill in tagged_blocks(content) if tag == "candidate"]
    return ChangePrompt(_first(blocks, "skill"), tuple(changes))


def read_comparison_prompt(text: str) -> ComparisonPrompt | None:
    """A comparison of epochs; None without any `<prior_skill>`."""
    blocks = tagged_blocks(text)
    if all(tag != "prior_skill" for tag, _ in blocks):
        return None
    return ComparisonPrompt(
        skill=_first(blocks, "skill"),
        previous_guidance=_first(blocks, "previous_guidance"),
        failures=tuple(shown_failure(content) for tag, content in blocks if tag in ("regressed", "persistent")),
    )


def read_epoch_prompt(text: str) -> EpochPrompt | None:
    """The end of an epoch; None where no epoch is named."""
    blocks = tagged_blocks(text)
    epoch, score = _EPOCH.search(untagged(text)), _SCORE.search(untagged(text))
    if epoch is None:
        return None
    return EpochPrompt(
        epoch=int(epoch["epoch"]),
        score="unknown" if score is None else score["score"],
        skill=_first(blocks, "skill"),
        memory=_first(blocks, "memory"),
    )


def _first(blocks: list[tuple[str, str]], tag: str) -> str:
    return next((content for name, content in blocks if name == tag), "")


def _changes(text: str) -> Iterator[Edit]:
    """The lines that are changes."""
    for line in text.splitlines():
        try:
            value: object = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            op = EditOp.SUGGEST if "suggestion" in fields else _ALIKE.get(str(fields.get("op")))
            if op is not None:
                yield _change(op, fields)


def _change(op: EditOp, fields: dict[str, object]) -> Edit:
    target, content = ("title", "suggestion") if op is EditOp.SUGGEST else ("target", "content")
    support = fields.get("support")
    return Edit(
        op,
        content=str(fields.get(content, "")),
        target=str(fields.get(target, "")),
        support_count=support if isinstance(support, int) else None,
    )
