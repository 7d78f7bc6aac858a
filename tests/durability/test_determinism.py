"""The same bytes whatever the number of workers, the order of answers, the hash seed and the database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from child_processes import Parent
from killed_runs import AFTER, JOURNAL, SMALL, kept_in, results_of, train
from store_drivers import POSTGRES_VARIABLE
from ticket_server import EXAMPLE
from unsteady_models import train_unsteadily

TASK = str(EXAMPLE / "task.yaml")
FAILING = 0.03

VARIANTS: dict[str, tuple[str, ...]] = {
    "as shipped": (),
    "everything": (
        "evaluation.gate_mode=two_split",
        "evaluation.gate_metric=mixed",
        "evaluation.repeats=2",
        "evaluation.block_size=7",
        "optimizer.slow_update_gate_with_selection=true",
        "model.simulated.noise=0.1",
        "train.steps_per_epoch=3",
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_number_of_workers_and_the_order_of_answers_change_no_byte(
    variant: str, parent: Parent, tmp_path: Path
) -> None:
    def trained(workers: int, seed_of_waits: int) -> tuple[dict[str, bytes], dict[str, str]]:
        folder = tmp_path / f"{workers} {seed_of_waits}"
        options = [f"env.workers={workers}", "model.simulated.seed=3", *VARIANTS[variant]]
        command = ["train", TASK, "--out-root", str(folder), "--cfg-options", *options]
        ended = parent.call(train_unsteadily, command, 5, FAILING, 0, seed_of_waits)
        assert ended.status == 0, ended.text
        return results_of(folder), kept_in(folder).answers

    results, answers = trained(1, 1)
    assert any('"error":"model.timeout"' in answer for answer in answers.values())
    for workers, seed_of_waits in ((4, 2), (64, 3), (64, 4)):
        assert trained(workers, seed_of_waits) == (results, answers), workers


def test_a_run_may_go_on_with_another_number_of_workers(parent: Parent, task: str, tmp_path: Path) -> None:
    def command(folder: str, workers: int) -> list[str]:
        return [
            *("train", task, "--out-root", str(tmp_path / folder)),
            *("--cfg-options", *SMALL, f"env.workers={workers}"),
        ]

    assert parent.call(train, command("whole", 8), str(tmp_path / "a")).status == 0
    assert parent.call(train, command("run", 64), str(tmp_path / "b"), JOURNAL, 7, AFTER).was_killed
    assert parent.call(train, command("run", 1), str(tmp_path / "c"), JOURNAL, 7, AFTER).was_killed
    assert parent.call(train, command("run", 4), str(tmp_path / "d")).status == 0
    assert results_of(tmp_path / "run") == results_of(tmp_path / "whole")


def test_the_hash_seed_of_the_interpreter_changes_no_byte(task: str, tmp_path: Path) -> None:
    def trained(hash_seed: str) -> dict[str, bytes]:
        folder = tmp_path / hash_seed
        subprocess.run(
            [sys.executable, "-m", "burnish", "train", task, "--out-root", str(folder), "--cfg-options", *SMALL],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        return results_of(folder)

    assert trained("1") == trained("4294967295")


@pytest.mark.services
def test_the_database_changes_no_byte(parent: Parent, task: str, tmp_path: Path) -> None:
    run_id = f"run-{uuid4().hex}"

    def trained(folder: Path, environ: Mapping[str, str]) -> dict[str, bytes]:
        command = ["train", task, "--run-id", run_id, "--out-root", str(folder), "--cfg-options", *SMALL]
        ended = parent.call(train, command, str(tmp_path / "asked"), environ=environ)
        assert ended.status == 0, ended.text
        return results_of(folder)

    results = trained(tmp_path / "sqlite", {})
    assert trained(tmp_path / "postgresql", {"BURNISH_DATABASE_URL": os.environ[POSTGRES_VARIABLE]}) == results
    assert json.loads(results["summary.json"])["run_id"] == run_id
