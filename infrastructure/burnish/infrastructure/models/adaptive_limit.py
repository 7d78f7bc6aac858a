"""How many requests may be in flight at once: fewer when a server is asked too much, more again when it answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic


class AdaptiveLimit:
    """At most `most` holders at once, first come, first served.

    A server's refusal halves the limit, once for all requests that were in flight together, and holds new ones back for
    as long as it asked; each round of answers raises the limit by one, up to `most`. One object belongs to one event loop.
    """

    def __init__(
        self,
        most: int,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._most = most
        self._limit = most
        self._clock = clock
        self._sleep = sleep
        self._held = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cuts = 0
        self._answers = 0
        self._resume_at = 0.0

    @property
    def limit(self) -> int:
        """How many may be in flight now."""
        return self._limit

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[int]:
        """Hold one of the places; what it gives is to be handed to `refused`."""
        await self._acquire()
        try:
            pause = self._resume_at - self._clock()
            if pause > 0:
                await self._sleep(pause)
            yield self._cuts
        finally:
            self._held -= 1
            self._wake()

    def refused(self, slot: int, wait_seconds: float) -> None:
        """Note that the server refused the request in this slot because it is asked too much."""
        self._resume_at = max(self._resume_at, self._clock() + wait_seconds)
        if slot == self._cuts:  # the others of its round tell nothing new
            self._cuts += 1
            self._answers = 0
            self._limit = max(1, self._limit // 2)

    def answered(self) -> None:
        """Note that the server kept up."""
        if self._limit == self._most:
            return
        self._answers += 1
        if self._answers >= self._limit:
            self._answers = 0
            self._limit += 1
            self._wake()

    async def _acquire(self) -> None:
        if self._held < self._limit and not self._waiting:
            self._held += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # it was taken out as one that waits no more
                    self._waiting.remove(turn)
            else:  # the place was given in the same moment
                self._held -= 1
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting and self._held < self._limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._held += 1
                turn.set_result(None)
