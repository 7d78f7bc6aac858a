"""Trains the tasks of examples/real-models with several seeds on a real small model, and keeps what came out.

usage: python bench/real_models.py [--runs DIR] [--seeds 1 2 3] [--collect-only]

The servers are named in the environment (see docs/real-model.md). A run that is there already is gone on with, or left as
it is when it has ended, so the same command goes on after an interruption. What is kept of each run is written into
bench/real_models.json; with that the tables of the page are printed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict, cast

from burnish.domain.runs import skill_hash

ROOT: Final = Path(__file__).parent.parent
TASKS: Final = ROOT / "examples" / "real-models"
RESULTS: Final = Path(__file__).with_suffix(".json")
KINDS: Final = ("formatting", "house-rules", "facts")
DRAWS: Final = 10_000


class Kept(TypedDict):
    """What is kept of a run; `items` has the hard score of each test item with each skill, in the order of the items."""

    kind: str
    seed: int
    stop_reason: str
    validation: list[float]
    test: dict[str, float | None]
    items: dict[str, list[float]]
    steps: list[str]
    tokens: dict[str, list[int]]
    minutes: float
    skills: dict[str, str]


def train(kind: str, seed: int, folder: Path) -> None:
    """Run the task, or go on with its run."""
    task = TASKS / kind / "task.yaml"
    command = [sys.executable, "-m", "burnish", "train", str(task), "--out-root", str(folder)]
    subprocess.run([*command, "--cfg-options", f"train.seed={seed}"], check=True)


def has_ended(folder: Path) -> bool:
    """Whether the folder holds a run that came to its end and was scored: one whose servers were gone has not."""
    file = folder / "summary.json"
    if not file.is_file():
        return False
    summary = json.loads(file.read_text(encoding="utf-8"))
    return "test" in summary and summary["stop_reason"] in {"completed", "patience"}


def collect(kind: str, seed: int, folder: Path) -> Kept:
    """What is kept of an ended run."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    initial = (TASKS / kind / "skill.md").read_text(encoding="utf-8")
    best = (folder / "best_skill.md").read_text(encoding="utf-8")
    scores = _scores_by_skill(folder)
    known = {"start": skill_hash(initial), "end": str(summary["best_skill_hash"])}
    others = set(scores) - set(known.values())
    if "one_shot" in summary["test"] and len(others) == 1:
        known["one_shot"] = others.pop()
    elif summary["test"].get("one_shot"):
        known["one_shot"] = next(iter({known["start"], known["end"]} & set(scores)))
    tokens: dict[str, list[int]] = {}
    for note in summary["usage"]:
        sums = tokens.setdefault(note["role"], [0, 0, 0])
        for place, field in enumerate(("calls", "prompt_tokens", "completion_tokens")):
            sums[place] += note[field]
    on_test: dict[str, dict[str, float] | None] = summary["test"]
    tested = {"start": "initial", "end": "best", "one_shot": "one_shot"}
    return Kept(
        kind=kind,
        seed=seed,
        stop_reason=summary["stop_reason"],
        validation=[summary["baseline_score"], summary["selected_score"]],
        test={name: (on_test.get(field) or {}).get("hard") for name, field in tested.items()},
        items={name: scores[digest] for name, digest in known.items() if digest in scores},
        steps=[str(record["reason"]) for record in history],
        tokens=tokens,
        minutes=round(json.loads((folder / "timing.json").read_text(encoding="utf-8"))["seconds"] / 60, 1),
        skills={"end": best},
    )


def _scores_by_skill(folder: Path) -> dict[str, list[float]]:
    """Of each skill that met the test items, their hard scores; an item without an answer counts 0."""
    with tempfile.TemporaryDirectory() as place:
        recording = Path(place) / "run.recording"
        subprocess.run(
            [sys.executable, "-m", "burnish", "runs", "export", str(folder), "-o", str(recording)],
            check=True,
            capture_output=True,
        )
        with gzip.open(recording, "rt", encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines][1:]
    found: dict[str, dict[str, float]] = {}
    for entry in entries:
        kind, *parts = json.loads(entry["key"])
        if kind == "rollout" and parts[0] == "test":
            _, item, _, digest, *_ = parts
            answer = json.loads(entry["answer"])
            found.setdefault(digest, {})[item] = float(answer["hard"]) if not answer.get("error") else 0.0
    return {digest: [by_item[item] for item in sorted(by_item)] for digest, by_item in found.items()}


def interval(
    differences: Sequence[Sequence[float]], *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float, float]:
    """The mean of a table of differences (a row a seed, a column an item), and a 95 % interval of it.

    A bootstrap that draws rows and columns anew, each for itself, since all seeds meet the same items; 10,000 draws, the
    2.5th and the 97.5th percentile. Raises ValueError for an empty table or rows of different lengths.
    """
    if not differences or not differences[0] or len({len(row) for row in differences}) != 1:
        raise ValueError("an interval needs rows of the same length, with at least one item")
    draw = random.Random(seed)
    rows, columns = range(len(differences)), range(len(differences[0]))
    means: list[float] = []
    for _ in range(draws):
        items = draw.choices(columns, k=len(columns))
        means.append(
            statistics.fmean(differences[row][item] for row in draw.choices(rows, k=len(rows)) for item in items)
        )
    means.sort()
    cut = draws * 25 // 1000
    return statistics.fmean(value for row in differences for value in row), means[cut], means[-cut - 1]


def tables(kept: Sequence[Kept]) -> str:
    """The page's tables, as Markdown."""
    lines = [
        "| task | seed | validation start → end | test start | test end | test one-shot | steps | minutes |",
        "|---|--:|--:|--:|--:|--:|---|--:|",
    ]
    for run in kept:
        start, end = run["validation"]
        tested = " | ".join(_score(run["test"][name]) for name in ("start", "end", "one_shot"))
        steps = ", ".join(run["steps"])
        lines.append(
            f"| {run['kind']} | {run['seed']} | {start:.2f} → {end:.2f} | {tested} | {steps} | {run['minutes']} |"
        )
    lines += ["", "| task | seeds | end − start | end − one-shot |", "|---|--:|--:|--:|"]
    for kind in KINDS:
        runs = [run for run in kept if run["kind"] == kind]
        if runs:
            lines.append(f"| {kind} | {len(runs)} | {_difference(runs, 'start')} | {_difference(runs, 'one_shot')} |")
    lines += ["", "| task | target: calls, prompt, completion tokens | optimizer: calls, prompt, completion tokens |"]
    lines.append("|---|--:|--:|")
    for kind in KINDS:
        runs = [run for run in kept if run["kind"] == kind]
        if runs:
            lines.append(f"| {kind} | {_tokens(runs, 'target')} | {_tokens(runs, 'optimizer')} |")
    return "\n".join(lines)


def _score(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def _difference(runs: Sequence[Kept], rival: str) -> str:
    able = [run["items"] for run in runs if rival in run["items"] and "end" in run["items"]]
    if not able:
        return "none"
    mean, low, high = interval(
        [[end - other for end, other in zip(items["end"], items[rival], strict=True)] for items in able]
    )
    missing = f", {len(able)} of {len(runs)} runs" if len(able) < len(runs) else ""
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]{missing}"


def _tokens(runs: Sequence[Kept], role: str) -> str:
    sums = [sum(run["tokens"].get(role, [0, 0, 0])[place] for run in runs) for place in range(3)]
    return ", ".join(f"{number:,}" for number in sums)


def read_results() -> tuple[Kept, ...]:
    """What is kept."""
    return tuple(cast("Sequence[Kept]", json.loads(RESULTS.read_text(encoding="utf-8"))))


def write_results(kept: Mapping[tuple[str, int], Kept]) -> None:
    """Keep the runs, by task and seed."""
    ordered = [kept[key] for key in sorted(kept, key=lambda key: (KINDS.index(key[0]), key[1]))]
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what has not ended, keep all that has, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "real-models", help="where the run folders are")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--collect-only", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    kept: dict[tuple[str, int], Kept] = {}
    for seed in options.seeds:
        for kind in KINDS:
            folder = options.runs / f"{kind}-{seed}"
            if not options.collect_only and not has_ended(folder):
                train(kind, seed, folder)
            if has_ended(folder):
                kept[kind, seed] = collect(kind, seed, folder)
                write_results(kept)
    print(tables([kept[key] for key in sorted(kept, key=lambda key: (KINDS.index(key[0]), key[1]))]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
