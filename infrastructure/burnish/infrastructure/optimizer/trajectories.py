"""Rollouts as text for the optimizer's prompts, long ones cut in the middle.

A trajectory is a conversation when lines such as `[user]`, `[agent]` or `[tool: search]` open its turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from burnish.domain.rollouts import Rollout
from burnish.domain.text_size import CHARACTERS_A_TOKEN

TrajectoryView: TypeAlias = Literal["full", "paper"]

_REASON_TOKENS = 500
_NOTE_CHARACTERS = 40  # room for the note about what was left out
_PAPER_TOKENS: Final = 1_000  # of a trajectory in the paper's view, at most
_AGENT: Final = frozenset({"agent", "assistant"})
_TURN = re.compile(
    r"^\[(?P<role>user|agent|assistant|system|tool|observation|environment)(?:[ :][^\]\n]{0,200})?\][ \t]*\r?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryLimits:
    """How much of a trajectory is shown.

    `full` shows the conversation, cut in the middle to `tokens`. `paper` shows what the agent was asked first and what it
    answered at last, in at most 1,000 tokens: without turns the answer alone. `obs_chars` cuts each turn that is not
    the agent's, tools' answers above all; 0: no limit. ValueError for a limit that is none.
    """

    tokens: int = 12_000
    view: TrajectoryView = "full"
    obs_chars: int = 0

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.obs_chars < 0 or self.view not in ("full", "paper"):
            raise ValueError(
                f"trajectories need tokens of at least 1, not {self.tokens}; obs_chars of at least 0, not {self.obs_chars};"
                f" and the view full or paper, not {self.view!r}"
            )

    @property
    def identity(self) -> str:
        """All of them, for fingerprints."""
        return f"{self.tokens}/{self.view}/{self.obs_chars}"


def show_rollouts(rollouts: Iterable[Rollout], limits: TrajectoryLimits) -> str:
    """The rollouts, failures first, each group in input order; rollouts with an error are missing data and left out."""
    answered = [rollout for rollout in rollouts if rollout.error is None]
    ordered = sorted(answered, key=lambda rollout: rollout.is_success)
    return "\n\n".join(
        tagged("success" if rollout.is_success else "failure", [f"item: {rollout.item_id}", *attempt(rollout, limits)])
        for rollout in ordered
    )


def attempt(rollout: Rollout, limits: TrajectoryLimits) -> list[str]:
    """What is known of an attempt besides its item; a score between 0 and 1 is told, no word where nothing is known."""
    lines: list[str] = []
    if rollout.task_type.strip():
        lines.append(f"task type: {rollout.task_type}")
    if not rollout.is_success and max(rollout.hard, rollout.soft) > 0:
        lines.append(f"score: hard {rollout.hard:.7g}, soft {rollout.soft:.7g} of 1, so it counts as failed")
    trajectory = _shown(rollout, limits)
    if trajectory:
        lines += ["trajectory:", trajectory]
    elif rollout.prediction.strip():
        lines += ["answer:", cut_middle(rollout.prediction.strip("\r\n"), limits.tokens)]
    if rollout.fail_reason.strip():
        lines.append(f"why it failed: {cut_middle(rollout.fail_reason.strip(), _REASON_TOKENS)}")
    return lines


def tagged(tag: str, lines: Iterable[str]) -> str:
    """Lines between a tag and its end."""
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])


def cut_middle(text: str, tokens: int) -> str:
    """`text`, or its beginning and end with a note between them, in `tokens` of 4 characters (the note may go beyond)."""
    return _cut(text, tokens * CHARACTERS_A_TOKEN)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = max(limit - _NOTE_CHARACTERS, limit // 2)
    tail = kept // 2
    left_out = len(text) - kept
    return f"{text[: kept - tail]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"


def _shown(rollout: Rollout, limits: TrajectoryLimits) -> str:
    """The trajectory in its view; empty when the answer alone is to be shown."""
    trajectory = rollout.trajectory.strip("\r\n")
    if not trajectory.strip():
        return ""
    turns = _turns(trajectory)
    if limits.view == "paper":
        if len(turns) < 2:
            return "" if rollout.prediction.strip() else cut_middle(trajectory, min(limits.tokens, _PAPER_TOKENS))
        return cut_middle(_first_and_last(turns, limits), min(limits.tokens, _PAPER_TOKENS))
    if limits.obs_chars:
        trajectory = "".join(_observed(turn, limits.obs_chars) for turn in turns)
    return cut_middle(trajectory, limits.tokens)


@dataclass(frozen=True, slots=True)
class _Turn:
    """A piece of a conversation, with the line that opens it; `role` is empty for what stands before the first turn."""

    role: str
    opener: str
    text: str


def _turns(trajectory: str) -> list[_Turn]:
    """The pieces, which make the trajectory when they are joined."""
    openers = list(_TURN.finditer(trajectory))
    starts = [opener.start() for opener in openers]
    turns = [_Turn("", "", trajectory[: starts[0] if starts else None])]
    for opener, end in zip(openers, [*starts, len(trajectory)][1:], strict=True):
        turns.append(_Turn(opener["role"], opener.group(), trajectory[opener.end() : end]))
    return turns if turns[0].text else turns[1:]


def _observed(turn: _Turn, obs_chars: int) -> str:
    """The turn; cut, with its line breaks at both ends, when it is an observation."""
    if not obs_chars or not turn.role or turn.role in _AGENT:
        return turn.opener + turn.text
    text = turn.text.strip("\r\n")
    start = turn.text.find(text)
    return turn.opener + turn.text[:start] + _cut(text, obs_chars) + turn.text[start + len(text) :]


def _first_and_last(turns: Sequence[_Turn], limits: TrajectoryLimits) -> str:
    """The turns up to the first question, and the agent's last one with a note of how many stood between them."""
    first = next((place for place, turn in enumerate(turns) if turn.role == "user"), 0)
    last = next((place for place in range(len(turns) - 1, first, -1) if turns[place].role in _AGENT), len(turns) - 1)
    between = last - first - 1
    shown = [_observed(turns[first], limits.obs_chars).rstrip("\r\n")] if first != last else []
    if between > 0:
        shown.append(f"[… {between} turn{'' if between == 1 else 's'} left out …]")
    return "\n\n".join([*shown, (turns[last].opener + turns[last].text).strip("\r\n")])
