"""Caps that could not be kept are refused before anything is asked, one line for each thing that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_server import ScriptedServer
from ticket_server import EXAMPLE, OPTIMIZER, OVER_HTTP, TARGET, ticket_models

from burnish.presentation.cli import run

TASK = str(EXAMPLE / "task.yaml")
NO_LIMIT = (
    "needs model.target_max_tokens: without it nothing limits the agent's answers: set it to the longest one, in tokens"
)
NO_PRICE = "budget.max_usd: no price is known for the model {}: add it to budget.prices"
LIMIT = "model.target_max_tokens=20"
SMALL = ("train.num_epochs=1", "train.steps_per_epoch=1", "train.batch_size=2", "evaluation.sel_env_num=2")


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["budget.max_tokens=1000"], [f"budget.max_tokens: {NO_LIMIT}"]),
        (["budget.max_usd=0.0", LIMIT], [NO_PRICE.format(TARGET), NO_PRICE.format(OPTIMIZER)]),
        (["budget.max_usd=1.5", LIMIT, "model.target=gpt-5.5"], [NO_PRICE.format(OPTIMIZER)]),
        (["budget.max_usd=1.5", LIMIT, f"model.optimizer={TARGET}"], [NO_PRICE.format(TARGET)]),
        (["budget.max_usd=1.5", "model.target=gpt-5.5", "model.optimizer=gpt-5.5"], [f"budget.max_usd: {NO_LIMIT}"]),
        (
            ["budget.max_usd=1.5", "budget.max_tokens=1000", "model.optimizer_backend=simulated"],
            [f"budget.max_tokens: {NO_LIMIT}", f"budget.max_usd: {NO_LIMIT}", NO_PRICE.format(TARGET)],
        ),
    ],
)
def test_a_cap_that_could_not_be_kept_is_refused(
    options: list[str],
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ScriptedServer(ticket_models()) as server:
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.base_url)
        code = run(["train", TASK, "--out-root", str(tmp_path / "run"), "--cfg-options", *OVER_HTTP, *options])
        assert server.requests == []
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err.splitlines() == [f"burnish: {line}" for line in lines]
    assert not (tmp_path / "run").exists()


def test_simulated_models_cost_nothing_and_keep_their_caps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = (LIMIT, "budget.max_usd=0.0", "budget.max_tokens=100000", *SMALL)
    assert run(["train", TASK, "--out-root", str(tmp_path / "run"), "--cfg-options", *options]) == 0
    assert "stopped: " in capsys.readouterr().out


def test_a_replay_uses_nothing_so_that_its_answers_need_no_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", TASK, "--out-root", str(tmp_path / "run"), "--cfg-options", *SMALL]) == 0
    assert run(["runs", "export", str(tmp_path / "run"), "-o", str(tmp_path / "recording")]) == 0
    again = ["train", TASK, "--out-root", str(tmp_path / "again"), "--replay", str(tmp_path / "recording")]
    assert run([*again, "--cfg-options", *SMALL, "budget.max_tokens=100000000"]) == 0
    assert (tmp_path / "again" / "summary.json").read_bytes() == (tmp_path / "run" / "summary.json").read_bytes()
    assert capsys.readouterr().err == ""
