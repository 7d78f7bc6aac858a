"""The host examples do what they say: a plain script, and a web service whose runs outlive it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from desk_service import create_app
from fastapi import FastAPI

HOSTS = Path(__file__).parents[2] / "examples" / "hosts"

Open = Callable[[], AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def service(tmp_path: Path) -> Open:
    """Opens the service on one database, as often as it is called."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[httpx2.AsyncClient]:
        app: FastAPI = create_app(tmp_path / "service.db")
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://desk") as client,
        ):
            yield client

    return opened


async def ended(client: httpx2.AsyncClient, run_id: str) -> dict[str, object]:
    """The run, once it has ended."""
    for _ in range(500):
        run = (await client.get(f"/runs/{run_id}")).json()
        if run["ended"] is not None:
            return dict(run)
    raise AssertionError("the run does not end")


def test_the_script_trains_and_leaves_a_page_a_step(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HOSTS / "desk_script.py"), str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "from 0.25 to 0." in done.stdout
    assert "→ billing" in done.stdout
    checkpoint = json.loads((tmp_path / "desk-1-001.json").read_text())
    assert checkpoint["skill"] == (tmp_path / "desk-1-001.md").read_text()


async def test_a_run_is_begun_read_and_begun_again_without_harm(service: Open) -> None:
    async with service() as client:
        begun = await client.put("/runs/one", json={"epochs": 2})
        assert (begun.status_code, begun.json()) == (202, {"run_id": "one"})
        run = await ended(client, "one")
        assert run["ended"] == "completed"
        assert run["baseline_score"] == 0.25
        assert (await client.put("/runs/one", json={"epochs": 2})).status_code == 202
        assert await ended(client, "one") == run
    async with service() as client:
        assert (await client.get("/runs/one")).json() == run


@pytest.mark.parametrize(
    ("wish", "status"),
    [({"page": "<!-- LOCKED_START -->"}, 422), ({"epochs": 0}, 422), ({"epoch": 3}, 422)],
    ids=["a marker too many", "out of range", "no such field"],
)
async def test_what_is_wrong_with_a_request_is_a_status(service: Open, wish: dict[str, object], status: int) -> None:
    async with service() as client:
        assert (await client.put("/runs/one", json=wish)).status_code == status
        assert (await client.get("/runs/one")).status_code == 404


async def test_failures_have_the_status_of_their_kind(service: Open) -> None:
    async with service() as client:
        missing = await client.get("/runs/none")
        assert (missing.status_code, missing.json()["code"]) == (404, "skill_training.run.not_found")
        assert (await client.delete("/runs/none")).status_code == 404
        await client.put("/runs/one", json={"epochs": 2})
        await ended(client, "one")
        other = await client.put("/runs/one", json={"epochs": 3})
        assert (other.status_code, other.json()["fields"]) == (409, ["config.epochs"])


async def test_a_run_that_is_stopped_goes_on_where_it_was(service: Open) -> None:
    async with service() as client:
        await client.put("/runs/whole", json={"epochs": 4})
        whole = await ended(client, "whole")
    async with service() as client:
        await client.put("/runs/stopped", json={"epochs": 4})
        assert (await client.delete("/runs/stopped")).json() == {"stopped": "stopped"}
    async with service() as client:
        assert (await client.put("/runs/stopped", json={"epochs": 4})).status_code == 202
        assert await ended(client, "stopped") == whole


async def test_events_are_told_to_those_who_watch(service: Open) -> None:
    async with service() as client:
        watching = client.get("/runs/one/events")
        watched = asyncio.create_task(watching)
        await asyncio.sleep(0)
        await client.put("/runs/one", json={"epochs": 1})
        told = (await watched).text
    names = [line.removeprefix("event: ") for line in told.splitlines() if line.startswith("event: ")]
    assert names[-1] == "RunFinished"
    assert names.count("StepFinished") == 3
    last = json.loads(told.rstrip().rpartition("data: ")[2])
    assert last["ended"] == "completed"
