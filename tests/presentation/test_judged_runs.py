"""Runs scored by a model: what they cost, resume, replay, and stop at."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from ticket_server import EXAMPLE

from burnish.infrastructure.persistence.recording import read_recording
from burnish.presentation.cli import run

TASK = str(EXAMPLE / "task.yaml")
JUDGED = (
    "env.scorer=llm_judge",
    "train.num_epochs=2",
    "train.steps_per_epoch=2",
    "evaluation.sel_env_num=10",
    "evaluation.test_env_num=5",
)
RESULTS = ("best_skill.md", "final_skill.md", "history.jsonl", "summary.json")


def _train(folder: Path, *options: str, replay: Path | None = None) -> int:
    source = [] if replay is None else ["--replay", str(replay)]
    return run(["train", TASK, "--out-root", str(folder), "--run-id", "r", *source, "--cfg-options", *JUDGED, *options])


def _summary(folder: Path) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", json.loads((folder / "summary.json").read_text(encoding="utf-8")))


def _bytes(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in RESULTS]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged") / "run"
    assert _train(folder) == 0
    return folder


def test_a_judge_has_its_own_rows_of_usage_and_its_own_model(judged: Path) -> None:
    summary = _summary(judged)
    assert summary["models"]["judge"] == "simulated-judge"
    rows = [row for row in summary["usage"] if row["role"] == "judge"]
    assert rows
    assert all(row["calls"] > 0 and row["prompt_tokens"] > 0 for row in rows)
    assert summary["selected_score"] > summary["baseline_score"]


def test_each_grade_is_kept_and_equal_answers_are_graded_once(judged: Path, tmp_path: Path) -> None:
    assert run(["runs", "export", str(judged), "-o", str(tmp_path / "r.recording")]) == 0
    keys = [json.loads(entry.key) for entry in read_recording(tmp_path / "r.recording").entries]
    grades = [key for key in keys if key[0] == "judge"]
    rollouts = [key for key in keys if key[0] == "rollout"]
    assert {tuple(key[3:]) for key in grades} == {("reference_first", 0), ("answer_first", 0)}
    assert 0 < len(grades) < 2 * len(rollouts)
    asked = sum(row["calls"] for row in _summary(judged)["usage"] if row["role"] == "judge")
    assert asked == len(grades)


def test_it_replays_without_asking_anybody(judged: Path, tmp_path: Path) -> None:
    assert run(["runs", "export", str(judged), "-o", str(tmp_path / "r.recording")]) == 0
    assert _train(tmp_path / "again", replay=tmp_path / "r.recording") == 0
    assert _bytes(tmp_path / "again") == _bytes(judged)


@pytest.mark.parametrize("workers", [1, 4, 64])
def test_the_number_of_workers_changes_nothing(judged: Path, tmp_path: Path, workers: int) -> None:
    assert _train(tmp_path / "run", f"env.workers={workers}") == 0
    assert _bytes(tmp_path / "run") == _bytes(judged)


def test_repeats_are_kept_apart(tmp_path: Path) -> None:
    assert _train(tmp_path / "run", "env.judge_repeats=3", "train.num_epochs=1") == 0
    assert run(["runs", "export", str(tmp_path / "run"), "-o", str(tmp_path / "r.recording")]) == 0
    keys = [json.loads(entry.key) for entry in read_recording(tmp_path / "r.recording").entries]
    assert {key[4] for key in keys if key[0] == "judge"} == {0, 1, 2}


def test_the_estimate_counts_the_judge(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["estimate", TASK, "--json", "--cfg-options", *JUDGED]) == 0
    expected = json.loads(capsys.readouterr().out)["tokens"]["judge"]
    used = [row for row in _summary(judged)["usage"] if row["role"] == "judge"]
    for kind in ("prompt", "completion"):
        fact = sum(row[f"{kind}_tokens"] for row in used)
        assert expected[kind]["low"] <= fact <= expected[kind]["high"], kind
    forecast = _summary(judged)["forecast"]["tokens"]
    assert forecast["low"] <= forecast["fact"] <= forecast["high"]


def test_a_cap_on_tokens_covers_the_judge_and_a_higher_one_goes_on(judged: Path, tmp_path: Path) -> None:
    caps = ("model.target_max_tokens=64", "model.judge_max_tokens=64")
    whole = tmp_path / "whole"
    assert _train(whole, *caps) == 0
    used = sum(row["prompt_tokens"] + row["completion_tokens"] for row in _summary(whole)["usage"])
    for workers in (1, 8):
        folder = tmp_path / f"capped{workers}"
        cap = used // 2 + 60_000
        assert _train(folder, *caps, f"budget.max_tokens={cap}", f"env.workers={workers}") == 0
        summary = _summary(folder)
        spent = sum(row["prompt_tokens"] + row["completion_tokens"] for row in summary["usage"])
        assert summary["stop_reason"] == "budget"
        assert spent <= cap
    assert _bytes(tmp_path / "capped1") == _bytes(tmp_path / "capped8")
    assert _train(tmp_path / "capped1", *caps, f"budget.max_tokens={100 * used}") == 0
    assert _bytes(tmp_path / "capped1")[:3] == _bytes(whole)[:3]


def test_a_cap_on_dollars_needs_the_judge_s_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("model.target_max_tokens=64", "budget.max_usd=1", "model.judge_backend=openai_chat", "model.judge=odd")
    shutil.copytree(EXAMPLE, tmp_path / "task")
    (tmp_path / "task" / ".env").write_text("OPENAI_API_KEY=sk-0123456789\n", encoding="utf-8")
    command = ["train", str(tmp_path / "task" / "task.yaml"), "--out-root", str(tmp_path / "run"), "--cfg-options"]
    assert run([*command, *JUDGED, *options]) == 2
    assert "budget.max_usd: no price is known for the model odd: add it to budget.prices" in capsys.readouterr().err


def test_another_rubric_is_another_run(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _train(judged, "env.judge_rubric=Be brief.") == 75
    assert "identity_mismatch" in capsys.readouterr().err
