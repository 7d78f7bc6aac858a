"""Children of a process that has burnish loaded already: each is a fork, so a whole command takes little time.

The process forks while it has one thread only, which pytest's own cannot promise.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from ticket_server import EXAMPLE

from burnish.presentation.cli import run

_AT_WORK = 1_000

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit status (negative: the signal that killed it), and what it wrote."""

    status: int
    text: str

    @property
    def was_killed(self) -> bool:
        """Whether it was killed by SIGKILL."""
        return self.status == -signal.SIGKILL


class Child:
    """A child at work."""

    def __init__(self, parent: Parent, pid: int, output: Path) -> None:
        self.pid = pid
        self._parent = parent
        self._output = output

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        """How it ended, once it has."""
        status = self._parent.ask({"wait": self.pid})
        return Ended(status, self._output.read_text(encoding="utf-8"))

    def poll(self) -> Ended | None:
        """How it ended; None while it is at work."""
        status = self._parent.ask({"poll": self.pid})
        return None if status == _AT_WORK else Ended(status, self._output.read_text(encoding="utf-8"))


class Parent:
    """A context manager around the process that forks; it has loaded the modules named, so that no child need do it."""

    def __init__(self, *modules: str) -> None:
        self._started = 0
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", "import child_processes; child_processes.serve()", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pipe(self._process.stdin).close()
        self._process.wait()
        self._pipe(self._process.stdout).close()
        self._folder.cleanup()

    def start(self, function: Callable[..., int], *arguments: Json, environ: Mapping[str, str] | None = None) -> Child:
        """Call a function of a module in a child; it returns the exit status."""
        self._started += 1
        output = Path(self._folder.name) / f"{self._started}.txt"
        pid = self.ask(
            {
                "module": function.__module__,
                "function": function.__qualname__,
                "arguments": list(arguments),
                "environ": dict(environ or {}),
                "output": str(output),
            }
        )
        return Child(self, pid, output)

    def call(self, function: Callable[..., int], *arguments: Json, environ: Mapping[str, str] | None = None) -> Ended:
        """Start it and wait."""
        return self.start(function, *arguments, environ=environ).wait()

    def ask(self, order: Mapping[str, Json]) -> int:
        """Hand an order to the process; its answer."""
        pipe = self._pipe(self._process.stdin)
        pipe.write(json.dumps(order) + "\n")
        pipe.flush()
        return int(self._pipe(self._process.stdout).readline())

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def serve() -> None:
    """The process's own loop: an order a line, an answer a line; ends with its input."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for module in sys.argv[1:]:
            import_module(module)
        _warm_up()
        assert threading.active_count() == 1, threading.enumerate()
        for line in sys.stdin:
            order = cast("dict[str, Json]", json.loads(line))
            answers.write(f"{_forked(order) if 'function' in order else _waited(order)}\n")
            answers.flush()


def _warm_up() -> None:
    """Run a small training, so that everything lazy is there."""
    small = ["train.num_epochs=2", "train.steps_per_epoch=1", "train.batch_size=2", "evaluation.sel_env_num=2"]
    with tempfile.TemporaryDirectory() as folder:
        out = sys.stdout
        with Path(os.devnull).open("w", encoding="utf-8") as sys.stdout:
            arguments = ["train", str(EXAMPLE / "task.yaml"), "--out-root", folder, "--cfg-options", *small]
            assert run([*arguments, "evaluation.eval_test=false"]) == 0
        sys.stdout = out


def _waited(order: Mapping[str, Json]) -> int:
    if "wait" in order:
        _, status = os.waitpid(cast("int", order["wait"]), 0)
        return os.waitstatus_to_exitcode(status)
    ended, status = os.waitpid(cast("int", order["poll"]), os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else _AT_WORK


def _forked(order: Mapping[str, Json]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        output = os.open(cast("str", order["output"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(cast("dict[str, str]", order["environ"]))
        function: object = import_module(cast("str", order["module"]))
        for name in cast("str", order["function"]).split("."):
            function = getattr(function, name)
        status = cast("Callable[..., int]", function)(*cast("list[Json]", order["arguments"]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
