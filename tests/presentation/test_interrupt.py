"""A run that is told to stop: its exit status, what it leaves, and that the same command goes on."""

from __future__ import annotations

import json
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest
from console_training import ONE_ANALYST, RESULTS, TASK, HeldModels, arguments, finish, start, variables
from scripted_server import Body, Reply, ScriptedServer, completion
from terminals import Terminal
from ticket_server import OVER_HTTP


@dataclass(frozen=True, slots=True)
class Whole:
    """A run that nobody stopped."""

    folder: Path
    asked: int


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    with ScriptedServer(HeldModels()) as server:
        finish(arguments(folder, *ONE_ANALYST), variables(server))
        return Whole(folder, len(server.requests))


@pytest.mark.parametrize(
    ("signals", "status", "told"),
    [
        ((signal.SIGINT,), 130, "burnish: interrupted; run the same command to go on\n"),
        ((signal.SIGTERM,), 143, "burnish: terminated; run the same command to go on\n"),
        ((signal.SIGTERM, signal.SIGTERM), 143, "burnish: terminated; run the same command to go on\n"),
    ],
    ids=["SIGINT", "SIGTERM", "SIGTERM twice"],
)
def test_a_run_told_to_stop_is_kept_as_cancelled_and_the_same_command_goes_on(
    signals: tuple[signal.Signals, ...], status: int, told: str, whole: Whole, tmp_path: Path
) -> None:
    models = HeldModels(held=2)
    with ScriptedServer(models) as server:
        with start(arguments(tmp_path, *ONE_ANALYST), variables(server)) as process:
            assert models.reached.wait(30)
            for number in signals:
                process.send_signal(number)
            _, error = process.communicate(timeout=30)
        models.go_on.set()
        assert process.returncode == status
        assert error == told
        summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
        assert summary["stop_reason"] == "cancelled"
        assert summary["steps_executed"] == 1
        assert len(server.requests) < whole.asked
        finish(arguments(tmp_path, *ONE_ANALYST), variables(server))
        assert len(server.requests) == whole.asked + 1, "only what had no answer yet is asked again"
    for name in RESULTS:
        assert (tmp_path / name).read_bytes() == (whole.folder / name).read_bytes(), name


WAITING = {
    "train": (["train", TASK, "--out-root", "run"], "run the same command to go on"),
    "eval": (["eval", TASK, "--split", "val"], "nothing of a score is kept: run the same command to begin anew"),
    "doctor": (["doctor", TASK], "run the same command to begin anew"),
}


@pytest.mark.parametrize(("command", "told"), WAITING.values(), ids=WAITING.keys())
@pytest.mark.parametrize("at_terminal", [False, True], ids=["piped", "at a terminal"])
def test_every_command_that_waits_stops_at_ctrl_c_and_says_how_to_go_on(
    command: list[str], told: str, *, at_terminal: bool, tmp_path: Path
) -> None:
    go_on = threading.Event()

    def hold(body: Body) -> Reply:
        go_on.wait(30)
        return completion("late")

    with ScriptedServer(hold) as server:
        asked = [*command, "--cfg-options", *OVER_HTTP]
        try:
            if at_terminal:
                with Terminal(asked, variables(server), cwd=tmp_path) as terminal:
                    assert server.received.wait(30)
                    assert terminal.end_by_ctrl_c() == 130
                    said = terminal.plain
            else:
                with start(asked, variables(server), cwd=tmp_path) as process:
                    assert server.received.wait(30)
                    process.send_signal(signal.SIGINT)
                    out, said = process.communicate(timeout=30)
                    assert process.returncode == 130, out
                    assert len(said.splitlines()) == 1
        finally:
            go_on.set()
    assert f"burnish: interrupted; {told}" in said
    assert "Traceback" not in said
