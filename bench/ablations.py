"""Runs the method without each of its parts on simulated tasks, and prints how much worse it gets: `make ablations`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from ablation_families import FAMILIES, FULL, VARIANTS, Family, Method, Trained, train
from paired_differences import PairedDifference, paired_difference

WIDEST = 0.03
"""Half the width an interval of the two families may have at most: more seeds or worlds are needed above."""


@dataclass(frozen=True, slots=True)
class Row:
    """A method on a family: its mean quality and, unless it is the full method, how it differs from that."""

    method: str
    quality: float
    difference: PairedDifference | None = None

    @property
    def verdict(self) -> str:
        """What the interval allows to say."""
        if self.difference is None:
            return ""
        found = "worse" if self.difference.is_worse else "better" if self.difference.is_better else "not significant"
        return f"{found}, TOO WIDE" if self.is_too_wide else found

    @property
    def is_too_wide(self) -> bool:
        return self.difference is not None and self.difference.half_width > WIDEST


@dataclass(frozen=True, slots=True)
class Table:
    """A family's rows, the full method first; `initial` is the mean quality before training."""

    family: str
    initial: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """The runs of one method with one seed: so many worlds of their own."""

    family: Family
    method: Method
    seed: int
    worlds: int


def run_job(job: Job) -> tuple[Trained, ...]:
    """Every method meets the same worlds with the same seed, and no world with two."""

    async def runs() -> tuple[Trained, ...]:
        first = job.seed * job.worlds
        return tuple([await train(job.family, job.method, world) for world in range(first, first + job.worlds)])

    return asyncio.run(runs())


def measure(family: Family, *, seeds: int, worlds: int, pool: ProcessPoolExecutor | None = None) -> Table:
    """Train with all methods and seeds; a seed's quality is the mean over its worlds."""
    methods = (FULL, *family.ablations)
    jobs = [Job(family, method, seed, worlds) for method in methods for seed in range(seeds)]
    done = list(map(run_job, jobs) if pool is None else pool.map(run_job, jobs))
    qualities: dict[str, list[float]] = {method.name: [] for method in methods}
    for job, trained in zip(jobs, done, strict=True):
        qualities[job.method.name].append(statistics.fmean(one.quality for one in trained))
    initial = statistics.fmean(one.initial_quality for trained in done for one in trained)
    return Table(family.name, initial, _rows(qualities))


def _rows(qualities: Mapping[str, Sequence[float]]) -> tuple[Row, ...]:
    full = qualities[FULL.name]
    return tuple(
        Row(name, statistics.fmean(found), None if name == FULL.name else paired_difference(found, full))
        for name, found in qualities.items()
    )


def show(table: Table) -> None:
    print(f"{table.family} (before training {table.initial:.3f})")
    for row in table.rows:
        line = f"  {row.method:<30} {row.quality:.3f}"
        if row.difference is not None:
            line += f"  {row.difference.mean:+.3f} ± {row.difference.half_width:.3f}  {row.verdict}"
        print(line)


def as_json(tables: Sequence[Table], *, seeds: int, worlds: int, seconds: float) -> str:
    """The tables for machines."""
    return json.dumps(
        {
            "seeds": seeds,
            "worlds_a_seed": worlds,
            "seconds": round(seconds, 1),
            "families": [
                {"family": table.family, "initial": table.initial, "rows": [_row_as_json(row) for row in table.rows]}
                for table in tables
            ],
        },
        indent=2,
    )


def _row_as_json(row: Row) -> dict[str, object]:
    found: dict[str, object] = {"method": row.method, "quality": row.quality}
    if row.difference is not None:
        found |= {"difference": row.difference.mean, "half_width": row.difference.half_width, "verdict": row.verdict}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; the exit status is 1 when an interval of the two families is too wide."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=_at_least(2), default=20, help="pairs to compare (20)")
    parser.add_argument("--worlds", type=_at_least(1), default=6, help="tasks of its own that each seed trains on (6)")
    parser.add_argument("--processes", type=_at_least(1), default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--variants", action="store_true", help="also the families with one assumption changed each")
    parser.add_argument("--json", action="store_true", help="for machines")
    options = parser.parse_args(arguments)
    families = (*FAMILIES, *VARIANTS) if options.variants else FAMILIES
    seeds, worlds, since = options.seeds, options.worlds, time.perf_counter()
    tables: list[Table] = []
    with ProcessPoolExecutor(options.processes) as pool:
        for family in families:
            table = measure(family, seeds=seeds, worlds=worlds, pool=pool)
            tables.append(table)
            if not options.json:
                show(table)
    seconds = time.perf_counter() - since
    if options.json:
        print(as_json(tables, seeds=seeds, worlds=worlds, seconds=seconds))
    else:
        print(f"{seeds} seeds of {worlds} worlds each, in {seconds:.0f} seconds; differences with 95 % intervals")
    return int(any(row.is_too_wide for table in tables[: len(FAMILIES)] for row in table.rows))


def _at_least(least: int) -> Callable[[str], int]:
    """Reads a number for argparse, and refuses one below `least`."""

    def whole_number(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {number}")
        return number

    return whole_number


if __name__ == "__main__":
    raise SystemExit(main())
