"""Runs in trouble with each other or with their disk: what children do in them."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from killed_runs import train

from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.infrastructure.persistence import database
from burnish.infrastructure.persistence.journal import SqlJournal
from burnish.infrastructure.tasks.chat_runner import ChatTaskRunner
from burnish.presentation.cli import run

_NOBODY = 65_534
_LONGEST_WAIT_SECONDS = 60


def train_when_told(arguments: list[str], ready: str, go: str) -> int:
    """Train up to the first question to the agent, say so by a file, and go on when another file is there."""
    ask = ChatTaskRunner.run
    until = time.monotonic() + _LONGEST_WAIT_SECONDS

    async def ask_when_told(self: ChatTaskRunner, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        Path(ready).touch()
        while not Path(go).exists() and time.monotonic() < until:
            time.sleep(0.005)  # noqa: ASYNC251 - the whole process waits
        return await ask(self, skill, batch)

    ChatTaskRunner.run = ask_when_told  # type: ignore[method-assign]  # in a child: it ends with the patch
    return run(arguments)


def train_on_a_small_disk(arguments: list[str], asked: str, largest_file: int) -> int:
    """Train where no file may grow beyond so many bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    return train(arguments, asked)


def train_until_the_disk_is_full(arguments: list[str], asked: str, number: int, wal: str) -> int:
    """Train, and let no file grow beyond the size of the write-ahead log at the commit of that number."""
    commits = 0
    commit = SqlJournal._commit  # pyright: ignore[reportPrivateUsage]  where the disk is written

    async def counted(self: SqlJournal, group: Sequence[object]) -> None:
        nonlocal commits
        commits += 1
        if commits == number:
            size = Path(wal).stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        await commit(self, group)  # type: ignore[arg-type]  # what it holds is the journal's own

    SqlJournal._commit = counted  # type: ignore[method-assign]  # in a child: it ends with the patch
    return train(arguments, asked)


def train_without_rights(arguments: list[str]) -> int:
    """Train as a user for whom read-only files are read-only."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    return run(arguments)


def train_impatiently(arguments: list[str]) -> int:
    """Train without waiting long for other writers."""
    database._BUSY_MILLISECONDS = 50  # pyright: ignore[reportPrivateUsage]  no setting for users
    return run(arguments)
