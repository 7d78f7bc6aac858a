"""Judged attempts as hosts hand them over, and the rollouts they amount to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from burnish.domain.rollouts import Rollout
from burnish.infrastructure.tasks.refusals import RefusalError
from burnish.presentation.evolver.tasks import HostTask, Json, read_task

_NO_ANSWER = "host.no_answer"
_ROLES = {"human": "user", "assistant": "agent", "function": "tool"}
_KNOWN_ROLES = frozenset({"user", "agent", "system", "tool", "observation", "environment"})
_OPENERS = tuple(f"[{role}" for role in ("agent", "assistant", "system", "tool", "observation", "environment"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One scored attempt at a task; without an answer (`error`) it is missing data.

    `score` and `f1` lie in [0, 1]; `prompt_tokens` and `completion_tokens` are what the agent used, where it tells.
    """

    task: HostTask
    output: str = ""
    trajectory: str = ""
    score: float = 0.0
    f1: float | None = None
    feedback: str = ""
    trace: str = ""
    error: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def rollout(self, *, success_score: float, shows_trace: bool = False) -> Rollout:
        """The rollout: hard is 1 from `success_score` on, soft is the judge's f1 where there is one."""
        if self.error is not None:
            return Rollout(self.task.task_id, 0.0, 0.0, task_type=self.task.task_type, error=self.error)
        is_success = self.score >= success_score
        return Rollout(
            self.task.task_id,
            hard=float(is_success),
            soft=self.score if self.f1 is None else self.f1,
            trajectory=self._shown(self.trace if shows_trace else ""),
            task_type=self.task.task_type,
            prediction=self.output,
            fail_reason="" if is_success else self.feedback,
        )

    def _shown(self, trace: str) -> str:
        """The conversation, which begins with the task and ends with the answer, after the trace summary."""
        shown = self.trajectory
        if "[user]" not in shown.splitlines():
            answer = shown if shown.strip() else self.output
            opener = "" if answer.startswith(_OPENERS) else "[agent]\n"
            shown = f"[user]\n{self.task.asked}\n\n{opener}{answer}"
        return f"Trace summary of this run:\n{trace.strip()}\n\n{shown}" if trace.strip() else shown


def read_attempt(value: object) -> Attempt:
    """The attempt in a JSON value. Raises RefusalError when it is none, or a score is no number in [0, 1]."""
    if not isinstance(value, Mapping):
        raise RefusalError('not a JSON object; write {"task": …, "output": …, "judge": {"score": …}}')
    record = cast("Json", value)
    if "task" not in record:
        raise RefusalError('"task" is missing; write the task that was attempted')
    task = read_task(record["task"])
    usage = _tokens(record.get("usage"))
    if record.get("error") is not None:
        return Attempt(task=task, error=_NO_ANSWER, prompt_tokens=usage[0], completion_tokens=usage[1])
    judge = record.get("judge")
    if not isinstance(judge, Mapping):
        raise RefusalError('"judge" is not an object; write {"score": …, "feedback": …}')
    judged = cast("Json", judge)
    extra = judged.get("extra")
    f1 = cast("Json", extra).get("f1") if isinstance(extra, Mapping) else None
    return Attempt(
        task=task,
        output=_text(record.get("output")),
        trajectory=_conversation(record.get("trajectory")),
        score=_score(judged.get("score"), "judge.score"),
        f1=None if f1 is None else _score(f1, "judge.extra.f1"),
        feedback=_text(judged.get("feedback")),
        trace=_text(record.get("codex_trace_summary")),
        prompt_tokens=usage[0],
        completion_tokens=usage[1],
    )


def _score(value: object, name: str) -> float:
    if value is None:
        raise RefusalError(f'"{name}" is missing; write a number in [0, 1], or say "error" when there was no answer')
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusalError(f'"{name}" is not a number; write one in [0, 1]')
    if not (math.isfinite(value) and 0.0 <= value <= 1.0):
        told = "not finite" if not math.isfinite(value) else f"{value:.6g}"
        raise RefusalError(f'"{name}" is {told}; scores lie in [0, 1]')
    return float(value)


def _tokens(value: object) -> tuple[int, int]:
    """Prompt and completion tokens, 0 where they are not told."""
    usage: Json = cast("Json", value) if isinstance(value, Mapping) else {}
    told = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if type(count) is int and count >= 0 else 0 for count in told)
    return prompt, completion


def _text(value: object) -> str:
    """A text as it is, nothing as the empty one, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _conversation(value: object) -> str:
    """A trajectory as text: a list of turns (`role`, `content`, perhaps `name`) becomes one with a line before each."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return _text(value)
    return "\n\n".join(_turn(turn) for turn in cast("Sequence[object]", value))


def _turn(turn: object) -> str:
    if not isinstance(turn, Mapping):
        return _text(turn)
    told = cast("Json", turn)
    role, content = told.get("role"), told.get("content")
    named = _ROLES.get(role, role) if isinstance(role, str) else ""
    if named not in _KNOWN_ROLES:
        return _text(cast("object", turn))
    name = told.get("name")
    opener = f"[{named}: {name}]" if isinstance(name, str) and _is_short_name(name) else f"[{named}]"
    rest = {key: inner for key, inner in told.items() if key not in {"role", "content", "name"} and inner}
    parts = [opener, *([_text(content)] if content is not None else []), *([_text(rest)] if rest else [])]
    return "\n".join(parts)


def _is_short_name(name: str) -> bool:
    return 0 < len(name) <= 80 and name.isprintable() and "]" not in name
