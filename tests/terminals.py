"""`burnish` at a terminal of its own: what it writes there is read, and its questions are answered."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self

_LONGEST_WAIT_SECONDS = 60.0
_BETWEEN_PRESSES_SECONDS = 2.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A context manager around the command; at its end the command is killed if it is still there."""

    def __init__(self, command: list[str], environ: Mapping[str, str] | None = None, *, cwd: os.PathLike[str]) -> None:
        self._main, side = pty.openpty()
        self._unread = ""
        self.text = ""
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "burnish", *command],
            env={
                **{name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "CI"}},
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "TERM": "xterm",
                "COLUMNS": "120",
                **(environ or {}),
            },
            cwd=cwd,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._main)

    def expect(self, text: str) -> None:
        """Read until the text comes; what came before it is done with."""
        while text not in self._unread:
            assert self._read(), f"it never said {text!r}, but: {self.text}"
        self._unread = self._unread.partition(text)[2]

    def answer(self, line: str) -> None:
        """Type a line."""
        os.write(self._main, f"{line}\n".encode())

    def end_by_ctrl_c(self) -> int:
        """Press Ctrl-C until there is an answer, as people do: a prompt that is just coming up misses one. The status."""
        ready: list[int] = []
        while not ready:
            self._process.send_signal(signal.SIGINT)
            ready, _, _ = select.select([self._main], [], [], _BETWEEN_PRESSES_SECONDS)
        return self.finish()

    def finish(self) -> int:
        """Read to the end; the exit status."""
        while self._read():
            pass
        return self._process.wait(_LONGEST_WAIT_SECONDS)

    @property
    def plain(self) -> str:
        """All it wrote, without colours and movements."""
        return _ESCAPES.sub("", self.text)

    def _read(self) -> bool:
        """Whether there was something to read."""
        ready, _, _ = select.select([self._main], [], [], _LONGEST_WAIT_SECONDS)
        assert ready, f"it says nothing any more, but said: {self.text}"
        try:
            data = os.read(self._main, 65536)
        except OSError:  # what Linux says when the other side is closed
            return False
        self.text += (read := data.decode("utf-8", "replace"))
        self._unread += read
        return bool(data)
