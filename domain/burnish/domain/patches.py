"""Merging patches and clipping them to a budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from burnish.domain.edits import Edit, EditOp, Patch

REASONING_SEPARATOR = "\n---\n"


def aggregate(patches: Iterable[Patch | None]) -> Patch:
    """Merge patches: equal edits become one and their support adds up (system A).

    Edits are equal when op, target and content agree, white space at the end ignored. The first one's place and text
    stay. Missing support counts as 1; a merge raises the merge level by one. None entries are skipped. Notes stay, in
    their order.
    """
    merged: dict[tuple[EditOp, str, str], Edit] = {}
    reasons: list[str] = []
    notes: list[str] = []
    for patch in patches:
        if patch is None:
            continue
        notes.extend(patch.notes)
        if patch.reasoning.strip():
            reasons.append(patch.reasoning)
        for edit in patch.edits:
            key = _key(edit)
            earlier = merged.get(key)
            merged[key] = _counted(edit) if earlier is None else _merge(earlier, edit)
    return Patch(tuple(merged.values()), REASONING_SEPARATOR.join(reasons), tuple(notes))


def deduplicate(patches: Iterable[Patch]) -> tuple[Patch, ...]:
    """Take an edit out of a patch when an earlier patch has an equal one, whose support grows by its support.

    Equal as in `aggregate`. Patches that lose all their edits are left out; empty ones, too.
    """
    first: dict[tuple[EditOp, str, str], tuple[int, int]] = {}
    kept: list[list[Edit]] = []
    given = tuple(patches)
    for patch in given:
        kept.append([])
        for edit in patch.edits:
            key = _key(edit)
            if key not in first:
                first[key] = (len(kept) - 1, len(kept[-1]))
                kept[-1].append(edit)
                continue
            place, index = first[key]
            kept[place][index] = _merge(kept[place][index], edit)
    return tuple(replace(patch, edits=tuple(edits)) for patch, edits in zip(given, kept, strict=True) if edits)


def select_top_k(patch: Patch, k: int) -> Patch:
    """Keep the `k` best edits, ranked by support, then merge level, then order (system A); ValueError when `k` < 0."""
    if k < 0:
        raise ValueError(f"k must be at least 0, not {k}")
    ranked = sorted(patch.edits, key=lambda edit: (edit.support_count or 0, edit.merge_level or 0), reverse=True)
    return replace(patch, edits=tuple(ranked[:k]))


def _key(edit: Edit) -> tuple[EditOp, str, str]:
    return edit.op, edit.target.rstrip(), edit.content.rstrip()


def _counted(edit: Edit) -> Edit:
    return replace(edit, support_count=_support(edit), merge_level=edit.merge_level or 0)


def _merge(earlier: Edit, edit: Edit) -> Edit:
    return replace(
        earlier,
        support_count=_support(earlier) + _support(edit),
        merge_level=max(earlier.merge_level or 0, edit.merge_level or 0) + 1,
    )


def _support(edit: Edit) -> int:
    return 1 if edit.support_count is None else edit.support_count
