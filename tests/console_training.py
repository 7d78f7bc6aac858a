"""Training the ticket-routing example by the command, in a process of its own, with models that can be held up."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from scripted_server import Body, Reply, ScriptedServer
from ticket_server import EXAMPLE, OPTIMIZER, OVER_HTTP, ticket_models

TASK = str(EXAMPLE / "task.yaml")
SMALL = ("train.num_epochs=1", "train.steps_per_epoch=2", "evaluation.sel_env_num=10", "evaluation.test_env_num=10")
RESULTS = ("best_skill.md", "final_skill.md", "history.jsonl", "summary.json")
"""The files that must not tell whether a run was interrupted, or where it was kept."""


ONE_ANALYST = ("gradient.failure_only=true", "gradient.minibatch_size=100")
"""A step has one call of the optimizer, so that its second is the second step's, and nothing runs beside it."""


class HeldModels:
    """Answers as the example's models do; `reached` is set with the optimizer's call `held`, which waits for `go_on`."""

    def __init__(self, held: int = 0) -> None:
        self._answer = ticket_models()
        self._held = held
        self._proposals = 0
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, body: Body) -> Reply:
        if body["model"] == OPTIMIZER:
            self._proposals += 1
            if self._proposals == self._held:
                self.reached.set()
                self.go_on.wait(30)
        return self._answer(body)


def arguments(folder: Path, *options: str) -> list[str]:
    """Those of `burnish` that train a small run over HTTP."""
    return ["train", TASK, "--out-root", str(folder), "--cfg-options", *OVER_HTTP, *SMALL, *options]


def variables(server: ScriptedServer) -> dict[str, str]:
    """What tells the command where the models are."""
    return {"OPENAI_COMPATIBLE_BASE_URL": server.base_url, "OPENAI_COMPATIBLE_API_KEY": "sk-no-key-required"}


def start(command: list[str], environ: Mapping[str, str], *, cwd: Path | None = None) -> subprocess.Popen[str]:
    """`burnish` in a process of its own; warnings are errors there too."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "burnish", *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environ},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(command: list[str], environ: Mapping[str, str]) -> None:
    """Run `burnish` to its end, which must be a good one."""
    with start(command, environ) as process:
        out, error = process.communicate(timeout=60)
    assert process.returncode == 0, f"{out}\n{error}"
    assert error == ""
