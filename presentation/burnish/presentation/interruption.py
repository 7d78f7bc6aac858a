"""Ending a command in good order when it is told to stop: by Ctrl-C, or by a supervisor's SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class TerminatedError(Exception):
    """The process was sent SIGTERM; what came of its work until then is kept."""


def run_until_told_to_stop(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end. Ctrl-C and SIGTERM cancel the work; then KeyboardInterrupt or TerminatedError is raised.

    Outside of the main thread, where no signals arrive, it just runs.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return asyncio.run(_cancelled_by_sigterm(work) if is_main else work)


async def _cancelled_by_sigterm(work: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` does for Ctrl-C, for SIGTERM."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    is_told = False

    def stop() -> None:
        nonlocal is_told
        if not is_told:  # a second one must not cancel the keeping of what there is
            task.cancel()
        is_told = True

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        return await work
    except asyncio.CancelledError:
        if is_told:
            raise TerminatedError from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
