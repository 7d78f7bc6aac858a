"""What a run cost, beside what was expected: in the summary, in the timing, and on the terminal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer
from ticket_server import EXAMPLE, OPTIMIZER, OVER_HTTP, TARGET, ticket_models

from burnish.presentation.cli import run

SMALL = (
    "train.num_epochs=1",
    "train.steps_per_epoch=2",
    "train.batch_size=4",
    "evaluation.sel_env_num=6",
    "evaluation.eval_test=false",
)
PRICES = f"""
budget:
  prices:
    {TARGET}: {{prompt: 0.5, completion: 2}}
"""
BOTH = f"{PRICES}    {OPTIMIZER}: {{prompt: 3, completion: 15}}\n"


def train(folder: Path, prices: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The summary of a run over HTTP, with prices in its task file."""
    if not (folder / "task").exists():
        shutil.copytree(EXAMPLE, folder / "task")
    task = folder / "task" / "task.yaml"
    task.write_text((EXAMPLE / "task.yaml").read_text(encoding="utf-8") + prices, encoding="utf-8")
    with ScriptedServer(ticket_models()) as server:
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.base_url)
        assert run(["train", str(task), "--out-root", str(folder / "run"), "--cfg-options", *OVER_HTTP, *SMALL]) == 0
    summary: dict[str, Any] = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    return summary


def test_a_run_tells_what_it_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = train(tmp_path, BOTH, monkeypatch)
    rates = {"target": (0.5, 2), "optimizer": (3, 15)}
    for row in summary["usage"]:
        prompt, completion = rates[row["role"]]
        dollars = (row["prompt_tokens"] * prompt + row["completion_tokens"] * completion) / 1_000_000
        assert row["cost_usd"] == pytest.approx(dollars, abs=5e-7)
    assert summary["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in summary["usage"]), abs=1e-5)
    assert summary["cost_usd"] == round(summary["cost_usd"], 6) > 0
    assert f"cost: ${summary['cost_usd']:.4f}\n" in capsys.readouterr().out
    forecast = summary["forecast"]
    for name in ("rollouts", "optimizer_calls"):
        assert forecast[name]["low"] <= forecast[name]["fact"] <= forecast[name]["high"]
    assert forecast["tokens"]["fact"] == sum(
        row["prompt_tokens"] + row["completion_tokens"] for row in summary["usage"]
    )
    assert forecast["cost_usd"]["fact"] == summary["cost_usd"] < forecast["cost_usd"]["high"]


def test_without_a_price_for_each_role_there_is_no_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = train(tmp_path, PRICES, monkeypatch)
    assert summary["cost_usd"] is None
    assert summary["forecast"]["cost_usd"] == {"low": None, "high": None, "fact": None}
    assert {(row["role"], row["cost_usd"] is None) for row in summary["usage"]} == {
        ("target", False),
        ("optimizer", True),
    }
    assert "cost:" not in capsys.readouterr().out


def test_prices_may_be_added_to_a_run_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train(tmp_path, "", monkeypatch)["cost_usd"] is None
    assert train(tmp_path, BOTH, monkeypatch)["cost_usd"] > 0


def test_simulated_models_cost_nothing_and_the_time_is_forecast_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(EXAMPLE / "task.yaml"), "--out-root", str(tmp_path), "--cfg-options", *SMALL]
    assert run(command) == 0
    assert "cost:" not in capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["cost_usd"] == 0
    assert {row["cost_usd"] for row in summary["usage"]} == {0}
    assert "seconds" not in json.dumps(summary)
    timing = json.loads((tmp_path / "timing.json").read_text(encoding="utf-8"))
    assert 0 < timing["forecast_seconds"]["low"] < timing["forecast_seconds"]["high"]
    assert run(command) == 0
    assert json.loads((tmp_path / "timing.json").read_text(encoding="utf-8")) == timing
