"""Asking a store: whatever goes wrong there has one code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode

T = TypeVar("T")


async def ask_store(call: Awaitable[T]) -> T:
    """A store's answer. Raises PortError: the store's own, or `skill_training.store.unavailable` for what else it raised."""
    try:
        return await call
    except (Exception, asyncio.CancelledError) as error:
        pass_on_cancellation(error)
        if isinstance(error, PortError):
            raise
        raise PortError(ErrorCode.STORE_UNAVAILABLE) from error
