"""System B's JSON for what burnish knows: rollouts, edits, patches, pairs. What is not known is left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from burnish.application.events import Applied, PassScored, Selected
from burnish.domain.edits import (
    EMPTY_CONTENT,
    NOT_APPLICABLE,
    PROTECTION_CHANGED,
    TARGET_NOT_FOUND,
    TARGET_PROTECTED,
    TARGET_REQUIRED,
    UNKNOWN_OP,
    Edit,
    EditOp,
    EditSource,
    Patch,
)
from burnish.domain.rollouts import Rollout, score_batch

Json = dict[str, object]

_PREVIEW = 200
"""Characters of a text that a report of applied edits shows."""

_SKIPPED = {
    EMPTY_CONTENT: "skipped_empty_content",
    NOT_APPLICABLE: "skipped_not_applicable",
    PROTECTION_CHANGED: "skipped_protected_region",
    TARGET_PROTECTED: "skipped_protected_region",
    UNKNOWN_OP: "skipped_unknown_op",
}
_SKIPPED_FOR_TARGET = {TARGET_NOT_FOUND: "target_not_found", TARGET_REQUIRED: "missing_target"}


def as_json(value: object) -> str:
    """A whole file of JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def as_lines(rows: Iterable[Json]) -> str:
    """A file with one JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def known(**values: object) -> Json:
    """The values that are known, by name."""
    return {name: value for name, value in values.items() if value is not None}


def rollout_row(rollout: Rollout) -> Json:
    """A line of `results.jsonl`; an item without an answer has an error in place of scores."""
    row: Json = {"id": rollout.item_id, "agent_ok": rollout.error is None}
    if rollout.error is not None:
        return {**row, "error": rollout.error}
    return {
        **row,
        "hard": rollout.hard,
        "soft": rollout.soft,
        "predicted_answer": rollout.prediction,
        "fail_reason": rollout.fail_reason,
        "task_type": rollout.task_type,
        "trajectory": rollout.trajectory,
    }


def results(scored: PassScored) -> str:
    """A pass as `results.jsonl`."""
    return as_lines(map(rollout_row, scored.rollouts))


def task_types(scored: PassScored) -> Json:
    """A test pass by type of task: how many items were answered, and their mean hard score."""
    answered = [rollout for rollout in scored.rollouts if rollout.error is None]
    types = sorted({rollout.task_type for rollout in answered if rollout.task_type})
    groups = {name: [rollout for rollout in answered if rollout.task_type == name] for name in types}
    return {
        name: {"total": len(group), "hard_acc": score_batch(group).hard}
        for name, group in {**groups, "overall": answered}.items()
    }


def edit_row(edit: Edit) -> Json:
    """An edit, a suggestion or a whole skill, with what is known of where it came from."""
    return {
        **_change(edit),
        **known(
            source_type=None if edit.source is None else edit.source.value,
            support_count=edit.support_count,
            merge_level=edit.merge_level,
        ),
    }


def _change(edit: Edit) -> Json:
    if edit.op is EditOp.SUGGEST:
        return {"title": edit.target, "instruction": edit.content}
    if edit.op is EditOp.REWRITE:
        return {"new_skill": edit.content}
    return {"op": edit.op.value, "content": edit.content, **known(target=edit.target or None)}


def patch_row(reasoning: str, edits: Sequence[Edit]) -> Json:
    """A patch, its payload under the name of what it is made of: edits, suggestions or whole skills."""
    ops = {edit.op for edit in edits}
    payload = next((name for op, name in _PAYLOADS.items() if ops == {op}), "edits")
    return {"reasoning": reasoning, payload: [edit_row(edit) for edit in edits]}


_PAYLOADS = {EditOp.SUGGEST: "revise_suggestions", EditOp.REWRITE: "skill_candidates"}


def source_of(patch: Patch) -> EditSource | None:
    """What a patch was proposed from: failures as soon as one edit was; None when an edit does not tell."""
    sources = {edit.source for edit in patch.edits}
    if None in sources or not sources:
        return None
    return EditSource.FAILURE if EditSource.FAILURE in sources else EditSource.SUCCESS


def apply_report(selected: Selected, applied: Applied) -> list[Json]:
    """A row for each selected edit, in their order: what became of it."""
    left = Counter(applied.applied)
    failed = list(applied.failed)
    rows: list[Json] = []
    for index, edit in enumerate(selected.edits, start=1):
        row: Json = {
            "index": index,
            "op": edit.op.value,
            "target": edit.target[:_PREVIEW],
            "content_preview": edit.content[:_PREVIEW],
        }
        why = next((one for one in failed if one.edit == edit), None)
        if left[edit] or why is None:
            left[edit] -= 1
            rows.append({**row, "status": f"applied_{edit.op.value}"})
        else:
            failed.remove(why)
            rows.append({**row, "status": _status(edit, why.reason), "reason": why.reason})
    return rows


def _status(edit: Edit, reason: str) -> str:
    if (about := _SKIPPED_FOR_TARGET.get(reason)) is not None:
        return f"skipped_{edit.op.value}_{about}"
    return _SKIPPED.get(reason, "skipped")


def pairs(prior: PassScored, current: PassScored) -> list[Json]:
    """The items both skills have an answer for, with both attempts and how they compare."""
    before = {rollout.item_id: rollout for rollout in prior.rollouts if rollout.error is None}
    after = {rollout.item_id: rollout for rollout in current.rollouts if rollout.error is None}
    return [_pair(before[item], after[item]) for item in before if item in after]


def without_trajectories(rows: Sequence[Json]) -> list[Json]:
    """The pairs without the long texts."""
    return [{name: value for name, value in row.items() if not name.endswith("_trajectory")} for row in rows]


def _pair(before: Rollout, after: Rollout) -> Json:
    return {
        "id": before.item_id,
        "category": _CATEGORIES[before.is_success, after.is_success],
        "prev": _side(before),
        "curr": _side(after),
        "prev_trajectory": before.trajectory,
        "curr_trajectory": after.trajectory,
    }


_CATEGORIES = {
    (False, True): "improved",
    (True, False): "regressed",
    (False, False): "persistent_fail",
    (True, True): "stable_success",
}


def _side(rollout: Rollout) -> Json:
    return {
        "hard": rollout.hard,
        "soft": rollout.soft,
        "predicted_answer": rollout.prediction,
        "fail_reason": rollout.fail_reason,
    }
