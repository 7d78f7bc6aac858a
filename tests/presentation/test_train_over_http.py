"""The main job over real HTTP: the console, the official SDK, a server whose target follows the rules it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from scripted_server import Body, Reply, ScriptedServer, completion, failure
from ticket_server import EXAMPLE, OPTIMIZER, OVER_HTTP, TARGET, ticket_models

from burnish.presentation.cli import run

KEY = "sk-planted-9f8e7d6c5b4a3210"
SMALL = ("train.num_epochs=1", "train.steps_per_epoch=2", "evaluation.sel_env_num=10", "evaluation.test_env_num=10")


def train(server: ScriptedServer, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    quick = ("model.target_max_retries=0", "model.optimizer_max_retries=0", "model.target_timeout_seconds=5.0")
    task = str(EXAMPLE / "task.yaml")
    return run(["train", task, "--out-root", str(folder), "--cfg-options", *OVER_HTTP, *quick, *options])


def summary(folder: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return loaded


def test_a_run_over_http_lifts_the_test_score_and_leaves_a_readable_trail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(ticket_models()) as server:
        assert train(server, tmp_path / "run", monkeypatch) == 0
    told = capsys.readouterr()
    found = summary(tmp_path / "run")
    test = cast("dict[str, dict[str, float]]", found["test"])
    assert test["best"]["hard"] > test["initial"]["hard"] + 0.4
    assert found["has_accepted_any"] is True
    assert found["simulated"] is False
    for stage in ("rollout", "reflect", "aggregate", "select", "apply", "gate", "slow update", "memory", "test"):
        assert f"\n  {stage}" in told.out
    assert "accepted, new best" in told.out
    records = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert {record["reason"] for record in records} >= {"accepted", "gate"}
    skill = (tmp_path / "run" / "best_skill.md").read_text(encoding="utf-8")
    assert skill.startswith("---\nname: ticket-routing\n")
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        role, messages = request.body["model"], cast("list[dict[str, str]]", request.body["messages"])
        if role == TARGET:
            assert messages[0]["role"] == "system"
            assert messages[0]["content"].startswith("---\nname: ticket-routing\n")
        else:
            assert role == OPTIMIZER
            form = cast("dict[str, dict[str, object]]", request.body["response_format"])
            assert form["json_schema"]["strict"] is True


def test_the_key_is_in_no_file_and_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ticket_models()

    def respond(body: Body) -> Reply:
        if body["model"] == OPTIMIZER:
            return failure(401, f"Incorrect API key provided: {KEY}")
        return answer(body)

    with ScriptedServer(respond) as server:
        code = train(server, tmp_path / "run", monkeypatch, *SMALL)
    told = capsys.readouterr()
    assert code == 69
    assert KEY not in told.out + told.err
    for file in (tmp_path / "run").iterdir():
        assert KEY.encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("reply", "step_code", "exit_code", "run_code"),
    [
        (failure(401), "skill_training.reflect.proposer_call_failed", 69, "skill_training.run.nothing_worked"),
        (failure(429), "skill_training.reflect.proposer_call_failed", 69, "skill_training.run.nothing_worked"),
        (failure(500), "skill_training.reflect.proposer_call_failed", 69, "skill_training.run.nothing_worked"),
        (
            Reply(delay_seconds=5.0),
            "skill_training.reflect.proposer_call_failed",
            69,
            "skill_training.run.nothing_worked",
        ),
        (
            Reply(reset=True, raw=b"{"),
            "skill_training.reflect.proposer_call_failed",
            69,
            "skill_training.run.nothing_worked",
        ),
        (
            completion("half an ans", finish_reason="length"),
            "skill_training.reflect.proposer_call_failed",
            69,
            "skill_training.run.nothing_worked",
        ),
        (completion(""), "skill_training.reflect.proposer_call_failed", 69, "skill_training.run.nothing_worked"),
        (
            completion("I would rather not."),
            "skill_training.reflect.unreadable_patch",
            69,
            "skill_training.run.nothing_worked",
        ),
    ],
    ids=["401", "429", "500", "time-out", "reset", "truncated", "empty", "unreadable"],
)
def test_an_optimizer_that_fails_is_a_coded_outcome(
    reply: Reply,
    step_code: str,
    exit_code: int,
    run_code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = ticket_models()

    def respond(body: Body) -> Reply:
        return reply if body["model"] == OPTIMIZER else answer(body)

    with ScriptedServer(respond) as server:
        quick = "model.optimizer_timeout_seconds=0.3"
        assert train(server, tmp_path / "run", monkeypatch, *SMALL, quick) == exit_code
    told = capsys.readouterr()
    assert run_code in told.err
    assert "Traceback" not in told.err
    found = summary(tmp_path / "run")
    assert found["code"] == run_code
    assert found["reasons"] == {"optimizer_failed": 2}
    records = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [record["code"] for record in records] == [step_code, step_code]


@pytest.mark.parametrize(
    "reply", [failure(401), failure(500), Reply(reset=True, raw=b"{")], ids=["401", "500", "reset"]
)
def test_a_target_that_never_answers_ends_the_run_loudly(
    reply: Reply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = ticket_models()

    def respond(body: Body) -> Reply:
        return reply if body["model"] == TARGET else answer(body)

    with ScriptedServer(respond) as server:
        assert train(server, tmp_path / "run", monkeypatch, *SMALL) == 69
    assert "skill_training.run.nothing_worked" in capsys.readouterr().err
    assert summary(tmp_path / "run")["stop_reason"] == "failed"
