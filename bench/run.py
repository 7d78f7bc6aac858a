"""Measures the bars of the design's quality table: medians, each beside its bar. Run it with `make bench`."""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import many_calls as many_calls_bench
from burnish.api import (
    Edit,
    EditOp,
    GateCandidateSkill,
    GateEvaluation,
    Patch,
    ReflectionInput,
    Rollout,
    RolloutBatch,
    TrainSkill,
    TrainSkillConfig,
    apply_patch,
    open_app,
)
from burnish.application.events import Event, StepFinished
from burnish.infrastructure.persistence.stores import SqlStores, open_stores
from many_calls import LATENCIES, MEMORY_BAR

WITHOUT_FRAMEWORKS = "import sys; sys.modules.update(fastapi=None, starlette=None)"
"""dependency-injector imports web frameworks where they are installed, as they are here for an example."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured quality."""

    name: str
    measured: float
    bar: float
    unit: str


def median(samples: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(samples))


def process_seconds(*arguments: str) -> float:
    cached = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }  # as users have it
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=cached)
    return time.perf_counter() - started


def start_up() -> list[Row]:
    """Whole processes, each beside a bare interpreter in the same run."""
    bare = median(15, lambda: process_seconds("-c", "pass"))
    version = median(15, lambda: process_seconds("-m", "burnish", "--version"))
    api = median(9, lambda: process_seconds("-c", f"{WITHOUT_FRAMEWORKS}; import burnish.api"))
    return [
        Row("burnish --version above a bare interpreter", (version - bare) * 1000, 60, "ms"),
        Row("import burnish.api above a bare interpreter", (api - bare) * 1000, 200, "ms"),
    ]


async def dispatch() -> Row:
    """Messages through all four behaviors, in-memory audit, no exporter."""
    evaluation = GateEvaluation("candidate", 0.5, 0.5, "current", 0.4, "best", 0.4, 0, 1)
    async with open_app() as app:

        async def batch() -> float:
            started = time.perf_counter()
            for _ in range(500):
                await app.send(GateCandidateSkill(evaluation))
            return (time.perf_counter() - started) / 500

        samples = [await batch() for _ in range(9)]
    return Row("dispatch of a message", statistics.median(samples) * 1e6, 100, "µs")


class InstantAgent:
    """Lists 40 train and 40 validation items, and answers at once."""

    fingerprint = "instant"

    async def item_ids(self, split: str) -> Sequence[str]:
        return [f"{split}-{number}" for number in range(40)]

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        return [Rollout(item, hard=float(hash((skill, item)) % 2), soft=0.5) for item in batch.item_ids]


class InstantOptimizer:
    """Proposes one new line a step."""

    def __init__(self) -> None:
        self._asked = 0

    async def propose(self, reflection: ReflectionInput) -> Patch:
        self._asked += 1
        line = f"- Rule {self._asked}."
        target = reflection.current_skill.splitlines()[-1]
        return Patch((Edit(EditOp.REPLACE, line, target=target),))


class StepTimes:
    """An event sink that notes when each step ended."""

    def __init__(self) -> None:
        self.ends = [time.perf_counter()]

    async def emit(self, event: Event) -> None:
        if isinstance(event, StepFinished):
            self.ends.append(time.perf_counter())

    def of_a_step(self, first: int, last: int) -> float:
        """The median of the seconds that each step took, from the end of one to the end of another."""
        ends = self.ends[first : last + 1]
        return statistics.median(end - start for start, end in itertools.pairwise(ends))


async def train(steps: int, stores: SqlStores | None = None) -> StepTimes:
    """A run with instant stubs, in memory or with everything a run keeps in a database."""
    config = TrainSkillConfig(
        epochs=1, steps_per_epoch=steps, train_batch_size=40, val_batch_size=40, patience=None, seed=1, block_size=40
    )
    times = StepTimes()
    async with open_app(
        rollouts=InstantAgent(),
        proposer=InstantOptimizer(),
        sinks=(times,),
        runs=None if stores is None else stores.runs,
        checkpoints=None if stores is None else stores.checkpoints,
        memory=None if stores is None else stores.memory,
        audit_log=None if stores is None else stores.audit_log,
        journal=None if stores is None else stores.journal,
    ) as app:
        result = await app.send(TrainSkill("bench", "bench", "# Skill\n\n- Start.", config))
        assert result.is_ok
    return times


async def train_on_disk(steps: int) -> StepTimes:
    with tempfile.TemporaryDirectory() as folder:
        async with open_stores(Path(folder) / "burnish.db") as stores:
            return await train(steps, stores)


async def loop_overhead() -> list[Row]:
    """Seconds a step of the loop's own, and how the last steps of a long run compare with its first."""
    short = [(await train(50)).of_a_step(0, 50) for _ in range(5)]
    on_disk = [(await train_on_disk(50)).of_a_step(0, 50) for _ in range(5)]
    long = [await train(800) for _ in range(3)]
    long_on_disk = [await train_on_disk(800) for _ in range(3)]
    return [
        Row("loop overhead a step, 40 + 40 items, no journal", statistics.median(short) * 1000, 3, "ms"),
        Row("the same with the SQLite journal", statistics.median(on_disk) * 1000, 15, "ms"),
        Row("steps 701-800 compared with 1-100, no journal", flatness(long), 1.25, "x"),
        Row("the same with the SQLite journal", flatness(long_on_disk), 1.25, "x"),
    ]


def flatness(runs: Sequence[StepTimes]) -> float:
    return statistics.median(times.of_a_step(700, 800) / times.of_a_step(0, 100) for times in runs)


async def many_calls() -> list[Row]:
    """How far 500 calls at once end from the ideal, and whether memory stays where it was."""
    found = await many_calls_bench.ratios()
    return [
        *(
            Row(f"500 calls at concurrency 64, {latency:g} s each, {backend}", ratio, LATENCIES[latency], "x")
            for (backend, latency), ratio in found.items()
        ),
        Row("memory after 3000 calls compared with 1000", await many_calls_bench.memory_growth(), MEMORY_BAR, "x"),
    ]


def apply_large() -> Row:
    """64 edits on a document of 256 KB with regions."""
    line = "- When the ticket says nothing, ask for the order number and wait.\n"
    body = "".join(f"{number} {line}" for number in range(3_500))
    document = f"---\nname: x\n---\n{body}<!-- LOCKED_START -->\nkeep\n<!-- LOCKED_END -->\n"
    edits = tuple(Edit(EditOp.REPLACE, f"changed {n}", target=f"{n * 50} {line[:30]}") for n in range(64))
    patch = Patch(edits)

    def once() -> float:
        started = time.perf_counter()
        report = apply_patch(document, patch)
        assert len(report.applied) == 64
        return time.perf_counter() - started

    return Row(f"apply_patch, {len(document) // 1024} KB, 64 edits", median(15, once) * 1000, 20, "ms")


def show(row: Row) -> bool:
    met = row.measured <= row.bar
    print(f"{row.name:<52} {row.measured:9.2f} {row.unit:<3} bar {row.bar:g} {row.unit:<3} {'ok' if met else 'MISSED'}")
    return met


async def measured(*benches: Callable[[], Awaitable[Row | list[Row]]]) -> list[Row]:
    rows: list[Row] = []
    for bench in benches:
        found = await bench()
        rows += found if isinstance(found, list) else [found]
    return rows


def main() -> int:
    """Print every row; the exit status is 1 when a bar was missed."""
    rows = [*start_up(), apply_large(), *asyncio.run(measured(dispatch, loop_overhead, many_calls))]
    missed = [row for row in rows if not show(row)]
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
