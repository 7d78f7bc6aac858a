"""The host's `run_agent` as a runner: it knows its tasks, and takes several of them a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from burnish.application.log import get_logger
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote, note_usage
from burnish.domain.rollouts import TRAIN, VALIDATION, Rollout, RolloutBatch
from burnish.infrastructure.tasks.refusals import RefusalError, shown
from burnish.presentation.evolver.attempts import Attempt, read_attempt
from burnish.presentation.evolver.host import HostCalls, RunAgent
from burnish.presentation.evolver.tasks import HostTask

ROLE: Final = "target"
"""The agent's name where usage is told."""

_log = get_logger(__name__)


class HostAnswerError(PortError):
    """The host's agent did not answer with one judged attempt a task; `line` says what is wrong, for people."""

    def __init__(self, line: str, code: ErrorCode, *fields: str) -> None:
        super().__init__(code, *fields)
        self.line = line


class HostRunner:
    """Hands tasks to the host's agent, and reads its attempts. Of validation tasks only the scores are kept."""

    items_a_call = 16
    fingerprint = "host agent"

    def __init__(
        self,
        run_agent: RunAgent,
        calls: HostCalls,
        *,
        validation: Sequence[HostTask],
        train: Sequence[HostTask],
        success_score: float,
        shows_traces: bool,
    ) -> None:
        self._run_agent = run_agent
        self._calls = calls
        self._tasks = {split: {task.task_id: task for task in tasks} for split, tasks in _splits(validation, train)}
        self._success_score = success_score
        self._shows_traces = shows_traces

    async def item_ids(self, split: str) -> Sequence[str]:
        """The tasks of the split."""
        return tuple(self._tasks.get(split, ()))

    def item_fingerprint(self, split: str, item_id: str) -> str:
        """The digest of the whole task."""
        return self._tasks[split][item_id].digest

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        """One rollout a task. Raises HostAnswerError for an answer of another form, and what the host raises."""
        tasks = [self._tasks[batch.split][item] for item in batch.item_ids]
        answer = await self._calls.call(self._run_agent, skill, [task.given for task in tasks])
        attempts = _read(answer, tasks)
        for attempt in attempts:
            note_usage(UsageNote(ROLE, attempt.prompt_tokens, attempt.completion_tokens))
        return [self._rollout(attempt, batch.split) for attempt in attempts]

    def _rollout(self, attempt: Attempt, split: str) -> Rollout:
        rollout = attempt.rollout(success_score=self._success_score, shows_trace=self._shows_traces)
        if split == VALIDATION:
            return Rollout(rollout.item_id, rollout.hard, rollout.soft, error=rollout.error)
        return rollout


def _splits(validation: Sequence[HostTask], train: Sequence[HostTask]) -> Sequence[tuple[str, Sequence[HostTask]]]:
    return ((VALIDATION, validation), (TRAIN, train))


def _read(answer: object, tasks: Sequence[HostTask]) -> list[Attempt]:
    """The attempts, in the order of the tasks."""
    wrong = ErrorCode.ROLLOUT_WRONG_ITEMS
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence):
        raise HostAnswerError("run_agent: its answer is no list; return one judged attempt a task", wrong)
    found: dict[str, Attempt] = {}
    for number, value in enumerate(cast("Sequence[object]", answer), start=1):
        try:
            attempt = read_attempt(value)
        except RefusalError as refusal:
            raise HostAnswerError(
                f"run_agent: attempt {number}: {refusal.what}", ErrorCode.ROLLOUT_INVALID_SCORE
            ) from None
        if attempt.task.task_id in found:
            twice = f"run_agent: attempt {number}: the task {shown(attempt.task.task_id)} is attempted twice"
            raise HostAnswerError(f"{twice}; return one attempt a task", wrong, attempt.task.task_id)
        found[attempt.task.task_id] = attempt
    asked = {task.task_id for task in tasks}
    for unknown in sorted(found.keys() - asked):
        raise HostAnswerError(f"run_agent: nobody asked for the task {shown(unknown)}", wrong, unknown)
    for missing in sorted(asked - found.keys()):
        line = f'run_agent: there is no attempt at the task {shown(missing)}; say "error" in one that has no answer'
        raise HostAnswerError(line, wrong, missing)
    return [found[task.task_id] for task in tasks]
