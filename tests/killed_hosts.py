"""Hosts of the evolver that are killed at a chosen place: what children do."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from evolver_host import SMALL, Host

from burnish.application.journaling import RunJournal
from burnish.infrastructure.persistence.journal import SqlJournal
from burnish.infrastructure.persistence.sql import SqlKnowledgeMemory
from burnish.presentation.evolver import BlockingEvolver
from burnish.presentation.evolver.kept_steps import KeptSteps
from burnish.presentation.evolver.workspace import Workspace

STEPS = 6

WRITES: tuple[tuple[type, str], ...] = (
    (SqlJournal, "append"),
    (SqlKnowledgeMemory, "remember"),
    (KeptSteps, "begin"),
    (KeptSteps, "keep"),
    (Workspace, "write_document"),
    (Workspace, "write_report"),
)
"""What a call keeps or leaves, beside the answers."""


def whole(folder: str) -> int:
    """The loop, which nothing breaks off."""
    _one_call_at_a_time()
    Host(Path(folder)).loop(BlockingEvolver(SMALL), STEPS)
    return 0


def killed_at_calls(folder: str) -> int:
    """The loop; every process is killed when it comes to its second call, so each call is one at which one was killed."""
    _one_call_at_a_time()
    calls = 0

    def arrive(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            _die()

    Host(Path(folder), before=arrive).loop(BlockingEvolver(SMALL), STEPS)
    return 0


def killed_with_answers(folder: str) -> int:
    """The loop; in each call of the host, each kind of answer is once lost with the process that was given it."""
    _one_call_at_a_time()
    host = Host(Path(folder))

    def answered(name: str) -> None:
        if _note(Path(folder, "host", "lost.txt"), f"{host.progress_count()}.{name}"):
            _die()

    host.after = answered
    host.loop(BlockingEvolver(SMALL), STEPS)
    return 0


def killed_at_writes(folder: str) -> int:
    """The loop; a process is killed before and after each kind of write in each call of the host."""
    _one_call_at_a_time()
    kills = Path(folder, "host", "kills.txt")
    host = Host(Path(folder))
    for owner, name in WRITES:

        def come_by(when: str, place: str = f"{owner.__name__}.{name}") -> None:
            if _note(kills, f"{host.progress_count()}.{place}.{when}"):
                _die()

        _wrap(owner, name, come_by)
    host.loop(BlockingEvolver(SMALL), STEPS)
    return 0


def _note(file: Path, line: str) -> bool:
    """Whether the line is new; it is noted then."""
    known = file.read_text().split() if file.exists() else []
    if line in known:
        return False
    with file.open("a") as notes:
        notes.write(f"{line}\n")
    return True


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _one_call_at_a_time() -> None:
    """Let nobody be asked before the answer of the one before is kept, so that no kill loses another call's answer."""
    answer: Callable[..., Any] = RunJournal.answer
    turns: dict[int, asyncio.Lock] = {}

    @wraps(answer)
    async def in_turn(self: RunJournal, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - it passes on what it is given
        async with turns.setdefault(id(asyncio.get_running_loop()), asyncio.Lock()):
            return await answer(self, *arguments, **named)

    RunJournal.answer = in_turn  # type: ignore[method-assign]  # in a child: it ends with the patch


def _wrap(owner: type, name: str, come_by: Callable[[str], None]) -> None:
    wrapped: Callable[..., Any] = getattr(owner, name)

    @wraps(wrapped)
    def around(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - it passes on what it is given
        come_by("before")
        answer = wrapped(*arguments, **named)
        if asyncio.iscoroutine(answer):

            async def then() -> Any:  # noqa: ANN401 - as above
                found = await answer
                come_by("after")
                return found

            return then()
        come_by("after")
        return answer

    setattr(owner, name, around)
