"""Every backend from the console: a run with it as the agent, what it leaves, and what it lacks."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from console_training import start
from model_drivers import AZURE, CLAUDE, QWEN, ModelDriver
from scripted_server import Body, Reply, ScriptedServer
from stub_agents import StubAgent, claude_says, codex_says, is_running
from ticket_server import EXAMPLE

from burnish.infrastructure.models.chat import ChatRequest
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice
from burnish.presentation.cli import run

TASK = str(EXAMPLE / "task.yaml")
KEY = "sk-planted-9f8e7d6c5b4a3210"
SMALL = (
    *("train.num_epochs=1", "train.steps_per_epoch=1", "train.batch_size=4", "evaluation.sel_env_num=4"),
    *("evaluation.test_env_num=2", "model.target_max_retries=0", "model.target=small"),
)
_PATIENCE_SECONDS = 30.0


def arguments(folder: Path, *options: str) -> list[str]:
    return ["train", TASK, "--out-root", str(folder), "--cfg-options", *SMALL, *options]


def with_the_key(driver: ModelDriver) -> Callable[[Body], Reply]:
    """The example's agent, whose answers tell the key it was asked with."""
    apprentice = SimulatedApprentice()

    def respond(body: Body) -> Reply:
        messages = cast("list[dict[str, str]]", body["messages"])
        blocks = cast("list[dict[str, str]]", body.get("system", [{"text": messages[0]["content"]}]))
        request = ChatRequest(system=blocks[0]["text"], user=messages[-1]["content"], purpose="rollout")
        return driver.answers(f"{asyncio.run(apprentice.complete(request)).text} {KEY}")

    return respond


def holds_the_key(folder: Path) -> list[str]:
    return [str(file) for file in folder.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    ("driver", "backend", "variables"),
    [
        (CLAUDE, "claude_chat", {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "{origin}"}),
        (CLAUDE, "claude_chat", {"TARGET_ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": "{origin}"}),
        (QWEN, "qwen_chat", {"QWEN_CHAT_API_KEY": KEY, "QWEN_CHAT_BASE_URL": "{origin}/v1"}),
        (AZURE, "openai_chat", {"TARGET_AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "{origin}"}),
    ],
    ids=["claude_chat", "claude_chat by token", "qwen_chat", "azure"],
)
def test_a_key_that_the_model_tells_is_in_no_file_no_output_no_recording_and_no_process_list(
    driver: ModelDriver, backend: str, variables: dict[str, str], tmp_path: Path
) -> None:
    folder, traces = tmp_path / "run", tmp_path / "traces.jsonl"
    answer, listed = with_the_key(driver), list[str]()

    def respond(body: Body) -> Reply:
        if not listed:
            listed.extend(command_lines())
        return answer(body)

    with ScriptedServer(respond, path=driver.path) as server:
        environ = {name: value.format(origin=server.origin) for name, value in variables.items()}
        train = ["train", TASK, "--out-root", str(folder), "--traces", str(traces)]
        with start([*train, "--cfg-options", *SMALL, f"model.target_backend={backend}"], environ) as process:
            out, error = process.communicate(timeout=_PATIENCE_SECONDS)
        assert process.returncode == 0, error
        assert all(request.headers[driver.credential[0]].endswith(KEY) for request in server.requests)
    assert run(["runs", "export", str(folder), "--output", str(tmp_path / "answers.json.gz")]) == 0
    recording = gzip.decompress((tmp_path / "answers.json.gz").read_bytes()).decode()
    assert [line for line in listed if str(folder) in line]
    assert KEY not in out + error + recording + "".join(listed)
    assert holds_the_key(tmp_path) == []
    assert "[REDACTED]" in json.dumps(_journal_of(folder))
    spans = traces.read_text(encoding="utf-8")
    assert '"gen_ai.request.model": "small"' in spans
    assert f'"gen_ai.provider.name": "{driver.provider}"' in spans


def command_lines() -> list[str]:
    """Those of all processes, as anybody sees them."""
    lines: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                lines.append((entry / "cmdline").read_bytes().decode("utf-8", "replace"))
    return lines


def _journal_of(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "burnish.db") as database:
        return [row[0] for row in database.execute("SELECT answer FROM journal")]


def stub_that_tells(folder: Path, backend: str) -> StubAgent:
    stub = StubAgent(folder, "codex" if backend == "codex_exec" else "claude")
    says = codex_says if backend == "codex_exec" else claude_says
    stub.says(*says(f"RT-1 {KEY}"))
    return stub


@pytest.mark.parametrize("backend", ["codex_exec", "claude_code_exec"])
def test_an_agent_is_trained_from_the_console_and_tells_no_key(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stub = stub_that_tells(tmp_path, backend)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CODEX_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    folder = tmp_path / "run"
    assert run(arguments(folder, f"model.target_backend={backend}")) == 0
    told = capsys.readouterr()
    assert KEY not in told.out + told.err
    assert holds_the_key(folder) == []
    files = cast("dict[str, str]", stub.calls[0]["files"])
    (skill,) = files.values()
    assert skill.startswith("---\nname: ticket-routing\n")
    assert not [call for call in stub.calls if KEY in str(call["arguments"]) + str(call["input"])]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_an_agent_started_outlives_an_interruption(number: signal.Signals, tmp_path: Path) -> None:
    stub = StubAgent(tmp_path, "codex")
    stub.acts({"family": True, "seconds": 600})
    environ = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    options = ("model.target_backend=codex_exec", "model.target_timeout_seconds=600.0", "env.workers=1")
    with start(arguments(tmp_path / "run", *options), environ) as process:
        stub.await_family(_PATIENCE_SECONDS)
        process.send_signal(number)
        until = time.monotonic() + 1.0
        while any(map(is_running, stub.family)) and time.monotonic() < until:
            time.sleep(0.01)
        assert not [pid for pid in stub.family if is_running(pid)]
        process.communicate(timeout=_PATIENCE_SECONDS)
    assert process.returncode == (130 if number is signal.SIGINT else 143)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ("model.target_backend=codex_exec", "model.codex_exec_path=no-such-agent"),
            "model.codex_exec_path: there is no command no-such-agent: install the agent, or set the path of it",
        ),
        (
            ("model.target_backend=claude_chat", "model.target_temperature=1.5"),
            "model.target_temperature: must be at most 1 for claude_chat, not 1.5",
        ),
        (
            ("model.optimizer_backend=codex_exec",),
            (
                "model.optimizer_backend: "
                "must be openai_chat, openai_compatible, claude_chat, qwen_chat or simulated, not codex_exec"
            ),
        ),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    options: tuple[str, ...],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert run(arguments(tmp_path / "run", *options)) == 2
    assert capsys.readouterr().err.strip().endswith(line)
    assert not (tmp_path / "run").exists()


def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    assert run(arguments(tmp_path / "run", "model.target_backend=claude_chat")) == 2
    remedy = "needs the extra anthropic: install burnish[anthropic]"
    assert f"model.target_backend: claude_chat: {remedy}" in capsys.readouterr().err


@pytest.mark.parametrize("cap", ["budget.max_tokens=1000000", "budget.max_usd=5.0"])
def test_a_cap_an_agent_could_pass_is_refused(
    cap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    StubAgent(tmp_path, "codex")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    options = ("model.target_backend=codex_exec", "model.target_max_tokens=100", cap)
    assert run(arguments(tmp_path / "run", *options)) == 2
    assert f"{cap.partition('=')[0]}: cannot be kept: nothing limits what codex_exec uses" in capsys.readouterr().err


def test_an_agent_needs_no_installation_for_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", TASK, "--cfg-options", "model.target_backend=codex_exec"]) == 0
    assert "cost: unknown: model.target names no model" in capsys.readouterr().out
