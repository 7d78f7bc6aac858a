"""`burnish doctor`: what it finds with a server, with data and on the machine, and the exit status that follows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from fakes import CatalogRunner, ScriptedRunner
from scripted_server import Body, Reply, ScriptedServer, completion, failure
from ticket_server import EXAMPLE, OVER_HTTP

from burnish.presentation.checks import State
from burnish.presentation.cli import run
from burnish.presentation.doctor import check_journal

TASK = str(EXAMPLE / "task.yaml")


def examined(
    capsys: pytest.CaptureFixture[str], *arguments: str, task: str = TASK
) -> tuple[int, dict[str, tuple[str, str]], dict[str, int]]:
    """The exit status, the state and the line of each check by its name, and what was used."""
    code = run(["doctor", task, "--json", *arguments])
    captured = capsys.readouterr()
    assert captured.err == ""
    *checks, used = (json.loads(line) for line in captured.out.splitlines())
    assert all("\n" not in check["told"] for check in checks)
    return code, {check["name"]: (check["state"], check["told"]) for check in checks}, used


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """A server, to be opened by the test, that the environment names; it follows schemas."""
    server = ScriptedServer(obliging)
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-planted-secret")
    return server


def obliging(body: Body) -> Reply:
    return completion('{"ok": true}' if "response_format" in body else "ok")


OVER = ("--cfg-options", *OVER_HTTP)


def test_a_server_that_does_it_all_is_well(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    with server:
        code, checks, used = examined(capsys, *OVER)
    assert code == 0
    assert {state for state, _ in checks.values()} == {"ok"}
    assert checks["target endpoint"][1] == server.base_url
    assert checks["optimizer model"][1] == "scripted-optimizer answers"
    assert checks["JSON answers"] == ("ok", "its schema is followed by the server")
    assert used == {"calls": 2, "prompt_tokens": 24, "completion_tokens": 6}
    limits = [request.body["max_tokens"] for request in server.requests]
    assert limits == [16, 64], "a few tokens, whatever the model would write"


def test_what_was_used_is_told_and_no_key_is(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    with server:
        assert run(["doctor", TASK, *OVER]) == 0
    out = capsys.readouterr().out
    assert out.endswith("that took 2 calls: 24 prompt and 6 completion tokens\n")
    assert "sk-planted-secret" not in out


@pytest.mark.parametrize(
    ("reply", "name", "state", "told", "code"),
    [
        (failure(401), "target key", "failed", "is refused: set OPENAI_COMPATIBLE_API_KEY", 69),
        (failure(403), "target key", "failed", "is refused", 69),
        (failure(404), "target model", "failed", "correct model.target, or end the address in /v1", 69),
        (failure(400), "target model", "failed", "does not take the request", 69),
        (failure(500), "target model", "failed", "the server failed", 69),
        (failure(429), "target model", "warning", "asks to wait", 0),
        (completion(""), "target model", "warning", "gave no text (model.empty)", 0),
        (completion("thinking", "length"), "target model", "ok", "at more length than was asked for", 0),
        (Reply(raw=b"<html>"), "target endpoint", "failed", "does not speak the API", 69),
        (Reply(body={}, reset=True), "target endpoint", "failed", "cannot be reached", 69),
    ],
)
def test_what_a_server_does_instead_is_told_with_the_remedy(
    reply: Reply,
    name: str,
    state: str,
    told: str,
    code: int,
    server: ScriptedServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.respond = lambda body: reply if body["model"] == "scripted-target" else obliging(body)
    with server:
        got, checks, _ = examined(capsys, *OVER)
    assert got == code
    assert checks[name][0] == state
    assert told in checks[name][1]
    assert checks["optimizer model"][0] == "ok", "one role's trouble is no other's"
    assert len([request for request in server.requests if request.body["model"] == "scripted-target"]) == 1


def test_a_server_nobody_listens_at_cannot_be_reached(
    server: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with server:
        pass
    code, checks, used = examined(capsys, *OVER)
    assert code == 69
    assert checks["target endpoint"] == (
        "failed",
        f"{server.base_url} cannot be reached: start the server, or correct the address",
    )
    assert "target key" not in checks, "nobody has looked at it"
    assert used["calls"] == 0


@pytest.mark.parametrize(
    ("refuses", "text", "state", "told"),
    [
        (("json_schema",), '{"ok": true}', "warning", "JSON mode, without a schema"),
        (("json_schema", "json_object"), '{"ok": true}', "warning", "no JSON mode"),
        ((), "Sure! ok", "warning", "is no JSON object"),
    ],
)
def test_weaker_json_is_a_warning(
    refuses: Sequence[str],
    text: str,
    state: str,
    told: str,
    server: ScriptedServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def respond(body: Body) -> Reply:
        form = body.get("response_format")
        if isinstance(form, dict) and form["type"] in refuses:
            return failure(400, "response_format is not supported")
        return completion(text)

    server.respond = respond
    with server:
        code, checks, _ = examined(capsys, *OVER)
    assert code == 0
    assert checks["JSON answers"][0] == state
    assert told in checks["JSON answers"][1]


def test_a_model_nobody_names_is_told_with_its_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL", raising=False)
    code, checks, _ = examined(capsys, "--target_backend", "openai_compatible", "--target_model", "m")
    assert code == 2
    assert "OPENAI_COMPATIBLE_BASE_URL: is not set" in checks["target model"][1]


def test_simulated_models_are_told_and_nobody_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    code, checks, used = examined(capsys)
    assert code == 0
    assert checks["target model"] == ("warning", "simulated: its scores say nothing about any real model")
    assert checks["data"] == ("ok", "80 train, 48 val, 58 test items, each id once")
    assert checks["scorer"] == ("ok", "takes the answer of item 'tr-001' for right")
    assert used["calls"] == 0


def test_offline_asks_nobody(server: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    with server:
        code, checks, used = examined(capsys, "--offline", *OVER)
    assert code == 0
    assert not server.requests
    assert used["calls"] == 0
    assert "target endpoint" not in checks


@pytest.fixture
def task(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    return tmp_path / "task"


def test_bad_settings_are_told_and_the_machine_all_the_same(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (task / "task.yaml").write_text("train: {num_epochs: many}\n")
    code, checks, _ = examined(capsys, task=str(task / "task.yaml"))
    assert code == 2
    assert "train.num_epochs: must be a whole number" in checks["settings"][1]
    assert checks["disk"][0] == "ok"


def test_items_in_two_splits_and_questions_in_two_splits_are_found(
    task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = task / "items"
    first = json.loads((items / "train" / "items.jsonl").read_text(encoding="utf-8").splitlines()[0])
    with (items / "val" / "items.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**first, "id": "leaked"}) + "\n")
    code, checks, _ = examined(capsys, task=str(task / "task.yaml"))
    assert code == 0
    assert checks["data"][0] == "warning"
    assert "item 'leaked' of val asks what an item of train asks" in checks["data"][1]
    with (items / "val" / "items.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(first) + "\n")
    code, checks, _ = examined(capsys, task=str(task / "task.yaml"))
    assert code == 2
    assert "is in train and in val" in checks["data"][1]


@pytest.mark.parametrize(
    ("source", "state", "told", "code"),
    [
        ("raise LookupError('sk-planted-secret')", "failed", "raised LookupError for item 'tr-001'", 2),
        ("return 7", "failed", "a score outside of 0 to 1", 2),
        ("return 0.25", "warning", "takes the answer of item 'tr-001' for wrong (hard 0, soft 0.25)", 0),
        ("return True", "ok", "takes the answer of item 'tr-001' for right", 0),
    ],
)
def test_the_scorer_is_run_on_an_item(
    source: str, state: str, told: str, code: int, task: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (task / "own.py").write_text(f"def score(prediction, item):\n    {source}\n")
    own = ("--cfg-options", "env.scorer=python", "env.scorer_function=own:score")
    got, checks, _ = examined(capsys, *own, task=str(task / "task.yaml"))
    assert got == code
    assert checks["scorer"][0] == state
    assert told in checks["scorer"][1]
    assert "sk-planted-secret" not in checks["scorer"][1]


def test_a_place_that_is_no_folder_is_a_full_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    code, checks, _ = examined(capsys)
    assert code == 69
    assert "train with --out-root elsewhere" in checks["disk"][1]


def test_quiet_tells_only_what_is_not_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", TASK, "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("warning ") for line in lines)


def test_without_a_task_the_machine_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-secret")
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "OPENAI_API_KEY" in out
    assert "sk-planted-secret" not in out
    for name in ("python", "libraries", "disk"):
        assert f"ok      {name}" in out


def test_a_plain_runner_is_told_to_keep_batches_only() -> None:
    assert check_journal(CatalogRunner()).state is State.OK
    check = check_journal(ScriptedRunner())
    assert check.state is State.WARNING
    assert "a batch is one answer" in check.told
