"""Spreading requests and tokens evenly over the minute, so that a provider's limits are not run into."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

_MINUTE = 60.0


class Pace:
    """Lets requests pass at the given rates; None: no limit. One object belongs to one event loop."""

    def __init__(
        self,
        *,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seconds_a_request = 0.0 if requests_per_minute is None else _MINUTE / requests_per_minute
        self._seconds_a_token = 0.0 if tokens_per_minute is None else _MINUTE / tokens_per_minute
        self._clock = clock
        self._sleep = sleep
        self._next_request_at = 0.0
        self._next_token_at = 0.0

    async def wait(self, tokens: int) -> None:
        """Return when a request of about so many tokens may be sent; those who wait are let pass in their order."""
        now = self._clock()
        start = max(now, self._next_request_at, self._next_token_at)
        self._next_request_at = start + self._seconds_a_request
        self._next_token_at = start + tokens * self._seconds_a_token
        if start > now:
            await self._sleep(start - now)

    def correct(self, tokens: int) -> None:
        """Count so many tokens more (fewer, if negative) than were told before the request was sent."""
        self._next_token_at += tokens * self._seconds_a_token
