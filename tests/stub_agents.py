"""Executables that stand in for agents: they note how they were started, and then do as they are told."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

_PROGRAM: Final = """\
#!{python}
import json, os, pathlib, subprocess, sys, time

home = pathlib.Path({home!r})
files = {{str(path): path.read_bytes().decode() for path in pathlib.Path(".").rglob("*") if path.is_file()}}
note = {{"arguments": sys.argv[1:], "environ": dict(os.environ), "input": sys.stdin.read(), "files": files,
        "folder": os.getcwd()}}
with (home / "calls").open("a") as calls:
    calls.write(json.dumps(note) + "\\n")
number = len((home / "calls").read_text().splitlines())
script = json.loads((home / "script").read_text())
act = script[min(number, len(script)) - 1]
if act.get("family"):
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(sleep)
    stray = subprocess.Popen(
        [sys.executable, "-c", "import subprocess, sys; "
         "print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=subprocess.DEVNULL).pid)", *sleep],
        stdout=subprocess.PIPE, text=True)
    orphan = int(stray.communicate()[0])
    (home / "family.new").write_text(json.dumps([os.getpid(), child.pid, orphan]))
    (home / "family.new").rename(home / "family")
for line in act.get("lines", []):
    print(line if isinstance(line, str) else json.dumps(line), flush=True)
time.sleep(act.get("seconds", 0))
sys.exit(act.get("status", 0))
"""


class StubAgent:
    """An executable `name` in `folder`, which acts by its script: one entry a call, the last one for ever."""

    def __init__(self, folder: Path, name: str) -> None:
        self._home = folder / f"{name}-home"
        self._home.mkdir()
        self.path = folder / name
        self.path.write_text(_PROGRAM.format(python=sys.executable, home=str(self._home)), encoding="utf-8")
        self.path.chmod(0o755)
        self.acts({})

    def acts(self, *script: Mapping[str, object]) -> None:
        """What it prints (`lines`), how long it sleeps then (`seconds`), its `status`, and whether it has a `family`.

        A family is a child, and a grandchild that has left its group and lost its parent.
        """
        (self._home / "script").write_text(json.dumps(script), encoding="utf-8")

    def says(self, *lines: object) -> None:
        """Print these lines, and end well."""
        self.acts({"lines": lines})

    @property
    def calls(self) -> list[Mapping[str, object]]:
        """How it was started."""
        notes = self._home / "calls"
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
        return [cast("Mapping[str, object]", json.loads(line)) for line in lines]

    @property
    def family(self) -> Sequence[int]:
        """The process, its child and its lost grandchild, once all have started."""
        file = self._home / "family"
        return cast("list[int]", json.loads(file.read_text(encoding="utf-8"))) if file.exists() else ()

    def await_family(self, seconds: float) -> None:
        """Return when the family has started; AssertionError when it has not for so long."""
        until = time.monotonic() + seconds
        while not self.family:
            assert time.monotonic() < until, "the agent was not started"
            time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether the process is there and does anything."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in {"Z", "X"}


CODEX_USAGE: Final = {"input_tokens": 120, "cached_input_tokens": 100, "output_tokens": 30}


def codex_says(text: str, *before: object) -> list[object]:
    """What `codex exec --json` prints when its last message is this text."""
    message = {"type": "item.completed", "item": {"id": "item_9", "type": "agent_message", "text": text}}
    head = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
    return [*head, *before, message, {"type": "turn.completed", "usage": CODEX_USAGE}]


def claude_says(text: str, *before: object, **result: object) -> list[object]:
    """What `claude --print --output-format stream-json` prints when its result is this text."""
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 40,
        "output_tokens": 30,
    }
    answer = {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": usage}
    return [{"type": "system", "subtype": "init"}, *before, answer, {**end, **result}]
