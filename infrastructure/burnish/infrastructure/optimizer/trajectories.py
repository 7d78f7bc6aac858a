"""Rollouts as text for the optimizer's prompt, long ones cut in the middle."""

from __future__ import annotations

from collections.abc import Iterable

from burnish.domain.rollouts import Rollout

CHARACTERS_A_TOKEN = 4
"""The usual rule of thumb for English text."""

_REASON_TOKENS = 500
_NOTE_CHARACTERS = 40  # room for the note about what was left out


def show_rollouts(rollouts: Iterable[Rollout], *, trajectory_tokens: int) -> str:
    """The rollouts, failures first, each group in input order; each trajectory cut to `trajectory_tokens`.

    Rollouts with an error are left out: they are missing data. Empty when nothing is left.
    """
    answered = [rollout for rollout in rollouts if rollout.error is None]
    ordered = sorted(answered, key=lambda rollout: rollout.is_success)
    return "\n\n".join(_show(rollout, trajectory_tokens) for rollout in ordered)


def cut_middle(text: str, tokens: int) -> str:
    """`text`, or its beginning and end with a note between them, in `tokens` of 4 characters (the note may go beyond)."""
    limit = tokens * CHARACTERS_A_TOKEN
    if len(text) <= limit:
        return text
    kept = max(limit - _NOTE_CHARACTERS, limit // 2)
    tail = kept // 2
    left_out = len(text) - kept
    return f"{text[: kept - tail]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"


def _show(rollout: Rollout, trajectory_tokens: int) -> str:
    tag = "success" if rollout.is_success else "failure"
    lines = [f"<{tag}>", f"item: {rollout.item_id}"]
    if rollout.task_type.strip():
        lines.append(f"task type: {rollout.task_type}")
    if rollout.fail_reason.strip():
        lines.append(f"why it failed: {cut_middle(rollout.fail_reason.strip(), _REASON_TOKENS)}")
    if rollout.trajectory.strip():
        lines += ["trajectory:", cut_middle(rollout.trajectory.strip("\r\n"), trajectory_tokens)]
    elif rollout.prediction.strip():
        lines += ["answer:", cut_middle(rollout.prediction.strip("\r\n"), trajectory_tokens)]
    return "\n".join([*lines, f"</{tag}>"])
