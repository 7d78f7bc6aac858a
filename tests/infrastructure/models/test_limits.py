"""How many requests are in flight, and how fast they follow one another."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.infrastructure.models.adaptive_limit import AdaptiveLimit
from burnish.infrastructure.models.pace import Pace


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def limit_of(most: int, time: Time | None = None) -> AdaptiveLimit:
    time = time or Time()
    return AdaptiveLimit(most, clock=time.clock, sleep=time.sleep)


async def test_no_more_hold_a_slot_than_the_limit() -> None:
    limit, held, most_held = limit_of(3), 0, 0

    async def work() -> None:
        nonlocal held, most_held
        async with limit.slot():
            held += 1
            most_held = max(most_held, held)
            await asyncio.sleep(0)
            held -= 1

    await asyncio.gather(*(work() for _ in range(20)))
    assert most_held == 3


async def test_a_round_of_refusals_halves_the_limit_once() -> None:
    limit = limit_of(8)
    async with AsyncExitStack() as stack:
        slots = [await stack.enter_async_context(limit.slot()) for _ in range(8)]
        for slot in slots:
            limit.refused(slot, 0.0)
        assert limit.limit == 4
    async with limit.slot() as slot:
        limit.refused(slot, 0.0)
    assert limit.limit == 2


async def test_the_limit_never_falls_below_one() -> None:
    limit = limit_of(2)
    for _ in range(5):
        async with limit.slot() as slot:
            limit.refused(slot, 0.0)
    assert limit.limit == 1


async def test_every_round_of_answers_lets_one_more_pass() -> None:
    limit = limit_of(4)
    async with limit.slot() as slot:
        limit.refused(slot, 0.0)
    seen: list[int] = []
    for _ in range(8):
        limit.answered()
        seen.append(limit.limit)
    assert seen == [2, 3, 3, 3, 4, 4, 4, 4]


async def test_after_a_refusal_nobody_starts_before_the_server_said() -> None:
    time = Time()
    limit = limit_of(2, time)
    async with limit.slot() as slot:
        limit.refused(slot, 7.0)
    async with limit.slot():
        pass
    async with limit.slot():
        pass
    assert time.sleeps == [7.0]


async def test_a_holder_that_waits_and_is_cancelled_leaves_no_place_taken() -> None:
    limit = limit_of(1)
    async with limit.slot():
        waiting = [asyncio.create_task(_hold(limit)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*waiting[1:])
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    async with asyncio.timeout(5):
        await _hold(limit)


async def test_a_holder_that_is_cancelled_as_its_turn_comes_passes_it_on() -> None:
    limit = limit_of(1)
    async with limit.slot():
        first = asyncio.create_task(_hold(limit))
        second = asyncio.create_task(_hold(limit))
        await asyncio.sleep(0)
    first.cancel()  # its turn has come, and it has not noticed yet
    with pytest.raises(asyncio.CancelledError):
        await first
    async with asyncio.timeout(5):
        await second


async def _hold(limit: AdaptiveLimit) -> None:
    async with limit.slot():
        await asyncio.sleep(0)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=30), st.integers(1, 600), st.integers(1, 10_000))
async def test_no_minute_holds_more_than_its_rate(sizes: list[int], requests: int, tokens: int) -> None:
    time = Time()
    pace = Pace(requests_per_minute=requests, tokens_per_minute=tokens, clock=time.clock, sleep=time.sleep)
    started: list[tuple[float, int]] = []
    for size in sizes:
        await pace.wait(size)
        started.append((time.now, size))
    for start, _ in started:
        window = [size for at, size in started if start <= at < start + 60.0 - 1e-6]
        assert len(window) <= requests + 1
        assert sum(window[:-1]) <= tokens + 1  # the last one may begin as soon as those before it are paid off


async def test_without_rates_nobody_waits() -> None:
    time = Time()
    pace = Pace(requests_per_minute=None, tokens_per_minute=None, clock=time.clock, sleep=time.sleep)
    for _ in range(5):
        await pace.wait(1_000_000)
    assert time.sleeps == []


async def test_tokens_that_were_told_too_high_are_given_back() -> None:
    time = Time()
    pace = Pace(requests_per_minute=None, tokens_per_minute=60, clock=time.clock, sleep=time.sleep)
    await pace.wait(30)
    pace.correct(-20)
    await pace.wait(30)
    assert time.sleeps == [10.0]
