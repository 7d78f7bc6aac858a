"""Train from a web service: runs are started, watched, stopped and read over HTTP, and outlive a restart of the service.

Run it with `uvicorn --factory desk_service:create_app` in this folder. It stands behind your own authentication.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from desk import PAGE, DeskAnalyst, DeskRunner
from fastapi import FastAPI, Request
from fastapi import Path as InPath
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from burnish.api import Result, TrainingRun, TrainSkill, TrainSkillConfig, open_app
from burnish.application.events import Event, RunFinished, RunStarted
from burnish.application.result import ErrorCode, Failure
from burnish.application.runs import GetRun
from burnish.domain.runs import StopReason
from burnish.infrastructure.persistence.stores import open_stores
from burnish.presentation.app import App


class Wish(BaseModel):
    """What a client may say about a run; everything else is the service's business."""

    model_config = ConfigDict(extra="forbid")

    page: str = PAGE
    epochs: Annotated[int, Field(ge=1, le=20)] = 2
    seed: Annotated[int, Field(ge=0)] = 1


RunId = Annotated[str, InPath(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class Watchers:
    """An event sink: passes each run's events on to whoever watches it, and says when a run has begun."""

    def __init__(self) -> None:
        self._queues: defaultdict[str, set[asyncio.Queue[Event]]] = defaultdict(set)

    async def emit(self, event: Event) -> None:
        """Pass it on."""
        for queue in self._queues.get(event.run_id, ()):
            queue.put_nowait(event)

    async def watch(self, run_id: str) -> AsyncGenerator[Event]:
        """A run's events from now on, up to its last one."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        self._queues[run_id].add(queue)
        try:
            while True:
                event = await queue.get()
                yield event
                if isinstance(event, RunFinished):
                    return
        finally:
            self._queues[run_id].discard(queue)
            if not self._queues[run_id]:
                del self._queues[run_id]


class Trainings:
    """The runs this process is training."""

    def __init__(self, app: App, watchers: Watchers) -> None:
        self._app = app
        self._watchers = watchers
        self._tasks: dict[str, asyncio.Task[Result[TrainingRun]]] = {}

    async def begin(self, command: TrainSkill) -> Failure | None:
        """Begin or go on with a run, and come back when it has begun; why it has not, if it has not."""
        training = asyncio.create_task(self._app.send(command))
        begun = asyncio.create_task(self._begun(command.run_id))
        await asyncio.wait({training, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if training.done():
            return training.result().failure
        self._tasks[command.run_id] = training
        training.add_done_callback(lambda _: self._tasks.pop(command.run_id, None))
        return None

    def is_on(self, run_id: str) -> bool:
        """Whether this process is training it."""
        return run_id in self._tasks

    def stop(self, run_id: str) -> bool:
        """Cancel a run; False when this process is not training it. What it has had answered is kept."""
        training = self._tasks.get(run_id)
        return training is not None and training.cancel()

    async def stop_all(self) -> None:
        """Cancel every run: the next process goes on with those that are asked for again."""
        running = tuple(self._tasks.values())
        for training in running:
            training.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _begun(self, run_id: str) -> None:
        async for event in self._watchers.watch(run_id):
            if isinstance(event, RunStarted):
                return


def create_app(database: Path = Path("runs/host-service.db")) -> FastAPI:
    """The service, with everything it remembers in one SQLite file."""
    watchers = Watchers()

    @asynccontextmanager
    async def life(service: FastAPI) -> AsyncGenerator[None]:
        database.parent.mkdir(parents=True, exist_ok=True)
        async with (
            open_stores(database) as stores,
            open_app(
                rollouts=DeskRunner(),
                proposer=DeskAnalyst(),
                runs=stores.runs,
                journal=stores.journal,
                checkpoints=stores.checkpoints,
                memory=stores.memory,
                audit_log=stores.audit_log,
                sinks=(watchers,),
            ) as app,
        ):
            service.state.app, service.state.trainings = app, Trainings(app, watchers)
            try:
                yield
            finally:
                await service.state.trainings.stop_all()

    service = FastAPI(title="Desk training", lifespan=life)

    @service.put("/runs/{run_id}", status_code=202)
    async def begin(run_id: RunId, wish: Wish, request: Request) -> JSONResponse:
        """Begin a run, or go on with it: the same request again does no harm."""
        config = TrainSkillConfig(epochs=wish.epochs, steps_per_epoch=3, train_batch_size=3, lr_start=1, seed=wish.seed)
        trainings: Trainings = request.app.state.trainings
        failure = await trainings.begin(TrainSkill(run_id, "desk", wish.page, config))
        return JSONResponse({"run_id": run_id}, 202) if failure is None else refused(failure)

    @service.get("/runs/{run_id}")
    async def read(run_id: RunId, request: Request) -> JSONResponse:
        """A run, as far as it has come."""
        app: App = request.app.state.app
        trainings: Trainings = request.app.state.trainings
        is_on = trainings.is_on(run_id)
        result = await app.send(GetRun(run_id))
        if result.failure is None:
            return JSONResponse(told(result.value))
        return JSONResponse({"ended": None}) if is_on else refused(result.failure)  # nothing of it is kept yet

    @service.get("/runs/{run_id}/events")
    async def watch(run_id: RunId) -> StreamingResponse:
        """A run's events as they happen, as server-sent events."""
        return StreamingResponse(server_sent(watchers.watch(run_id)), media_type="text/event-stream")

    @service.delete("/runs/{run_id}")
    async def stop(run_id: RunId, request: Request) -> JSONResponse:
        """Stop a run; beginning it again goes on with it."""
        trainings: Trainings = request.app.state.trainings
        if trainings.stop(run_id):
            return JSONResponse({"stopped": run_id})
        return refused(Failure(ErrorCode.RUN_NOT_FOUND))

    return service


def refused(failure: Failure) -> JSONResponse:
    """A failure over HTTP: the status of its kind, its code, and what it is about."""
    return JSONResponse({"code": failure.code, "fields": failure.fields}, failure.code.kind.http_status)


def told(run: TrainingRun) -> dict[str, object]:
    """What clients see of a run."""
    return {
        "ended": None if run.stop_reason in {None, StopReason.CANCELLED} else run.stop_reason,
        "steps": [
            {"step": record.step, "reason": record.reason, "score": record.candidate_score} for record in run.steps
        ],
        "baseline_score": run.baseline_score,
        "selected_score": run.selected_score,
        "page": run.best_skill,
    }


async def server_sent(events: AsyncIterator[Event]) -> AsyncIterator[str]:
    """Events in the form browsers read, without the texts behind them."""
    async for event in events:
        if isinstance(event, RunFinished):
            summary: dict[str, object] = told(event.run)
        else:
            summary = event.summary()
        yield f"event: {type(event).__name__}\ndata: {json.dumps(summary, default=str)}\n\n"
