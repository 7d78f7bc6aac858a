"""Queries about runs and their checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from burnish.application.mediator import Query
from burnish.application.ports import CheckpointStore, RunStore
from burnish.application.result import ErrorCode, Result
from burnish.application.store_calls import ask_store
from burnish.domain.runs import Checkpoint, TrainingRun, is_run_id


@dataclass(frozen=True, slots=True)
class GetRun(Query[TrainingRun]):
    """A run, as far as it has come; also one that failed."""

    run_id: str

    def violations(self) -> tuple[str, ...]:
        """The id has a form."""
        return _without_form(self.run_id)


@dataclass(frozen=True, slots=True)
class ListRuns(Query[tuple[TrainingRun, ...]]):
    """All runs, oldest first."""


@dataclass(frozen=True, slots=True)
class ListCheckpoints(Query[tuple[Checkpoint, ...]]):
    """What is kept of a run's steps, by step."""

    run_id: str

    def violations(self) -> tuple[str, ...]:
        """The id has a form."""
        return _without_form(self.run_id)


@dataclass(frozen=True, slots=True)
class GetCheckpoint(Query[Checkpoint]):
    """The snapshot of one step (1-based); without a step, the one with the best score."""

    run_id: str
    step: Annotated[int, Ge(1)] | None = None

    def violations(self) -> tuple[str, ...]:
        """The id has a form."""
        return _without_form(self.run_id)


class GetRunHandler:
    """Reads the store of runs."""

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs

    async def handle(self, message: GetRun, /) -> Result[TrainingRun]:
        """The run, or `skill_training.run.not_found`."""
        run = await ask_store(self._runs.get(message.run_id))
        return Result.fail(ErrorCode.RUN_NOT_FOUND) if run is None else Result.ok(run)


class ListRunsHandler:
    """Reads the store of runs."""

    def __init__(self, runs: RunStore) -> None:
        self._runs = runs

    async def handle(self, message: ListRuns, /) -> Result[tuple[TrainingRun, ...]]:
        """Possibly none."""
        return Result.ok(tuple(await ask_store(self._runs.list())))


class ListCheckpointsHandler:
    """Reads the store of checkpoints."""

    def __init__(self, checkpoints: CheckpointStore) -> None:
        self._checkpoints = checkpoints

    async def handle(self, message: ListCheckpoints, /) -> Result[tuple[Checkpoint, ...]]:
        """Possibly none, also for a run nobody knows."""
        return Result.ok(tuple(await ask_store(self._checkpoints.list(message.run_id))))


class GetCheckpointHandler:
    """Reads the store of checkpoints."""

    def __init__(self, checkpoints: CheckpointStore) -> None:
        self._checkpoints = checkpoints

    async def handle(self, message: GetCheckpoint, /) -> Result[Checkpoint]:
        """The checkpoint, or `skill_training.run.not_found`."""
        found = await ask_store(
            self._checkpoints.best(message.run_id)
            if message.step is None
            else self._checkpoints.get(message.run_id, message.step)
        )
        return Result.fail(ErrorCode.RUN_NOT_FOUND) if found is None else Result.ok(found)


def _without_form(run_id: str) -> tuple[str, ...]:
    return () if is_run_id(run_id) else ("run_id",)
