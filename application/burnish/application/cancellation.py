"""Telling a cancellation from outside from one that an adapter let escape."""

from __future__ import annotations

import asyncio


def pass_on_cancellation(error: BaseException) -> None:
    """Raise CancelledError when `error` is, or came up during, a cancellation of the current task from outside.

    Any other error, also a CancelledError nobody asked for, is an adapter's own failure: returns, and the caller treats
    it as such. Call it first where errors of a port become codes.
    """
    task = asyncio.current_task()
    if task is None or not task.cancelling():
        return
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, asyncio.CancelledError):
        cause = cause.__context__
    if cause is error:
        raise error
    if cause is not None:
        raise asyncio.CancelledError from error
