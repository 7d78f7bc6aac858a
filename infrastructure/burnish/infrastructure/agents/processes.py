"""One command, in a folder of its own, with nothing of it left when it is over."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

MARK: Final = "BURNISH_PROCESS_TREE"
"""The variable all processes of a command inherit, so that those are found that left its process group."""

MOST_OUTPUT_BYTES: Final = 32 << 20
"""Of a command's output, that are read."""

_MOST_ROUNDS: Final = 100
_PROCESSES: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: its exit status (negative: the signal that killed it), and what it wrote."""

    status: int
    output: bytes
    errors: bytes


class TimedOutError(Exception):
    """A command took too long; it and all it started are gone."""


async def run_command(
    command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], text: str, scratch: Path, timeout_seconds: float
) -> Finished:
    """Run the command with `text` as its input, and nothing of our own environment.

    It has a session of its own, so that it and all it started can be ended together; they are when it ends, when
    `timeout_seconds` are over (TimedOutError), and when we are cancelled. Input and output are files in `scratch`: a
    process it leaves behind would hold a pipe open. Raises OSError when it cannot be started.
    """
    mark = uuid4().hex
    source, output, errors = scratch / "input", scratch / "output", scratch / "errors"
    source.write_text(text, encoding="utf-8", errors="surrogatepass")
    with source.open("rb") as stdin, output.open("wb") as stdout, errors.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env={**environ, MARK: mark},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(timeout_seconds):
            status = await process.wait()
    except TimeoutError:
        raise TimedOutError from None
    finally:
        end_tree(process.pid, mark)
        if process.returncode is None:
            await asyncio.shield(process.wait())
    return Finished(status, _read(output), _read(errors))


def end_tree(leader: int, mark: str) -> None:
    """Kill the process group, and where the system tells, every process with the mark in its environment.

    One that is just being started by another is found in the next round, since its parent is gone by then.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    if not sys.platform.startswith("linux"):
        return
    for _ in range(_MOST_ROUNDS):
        marked = _marked(mark)
        if not marked:
            return
        for pid in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    """The processes of ours that carry the mark and still run; one that has ended has no environment."""
    sought, found = f"{MARK}={mark}".encode(), list[int]()
    for entry in _PROCESSES.iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            if sought in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_OUTPUT_BYTES)
