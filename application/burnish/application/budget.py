"""Caps on what a run may spend, kept by reservations that are granted in the order in which calls are made."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from burnish.application.ports import PortError
from burnish.application.prices import Price, TokenCount, cost_of
from burnish.application.result import ErrorCode

MAX_TOKENS = "budget.max_tokens"
MAX_ROLLOUTS = "budget.max_rollouts"
MAX_USD = "budget.max_usd"
MAX_MINUTES = "budget.max_minutes"

_SECONDS_A_MINUTE = 60.0


class BudgetReachedError(PortError):
    """The next call could pass a cap, so it was not made: the run ends, and goes on when the cap is raised."""

    def __init__(self, cap: str) -> None:
        super().__init__(ErrorCode.BUDGET_REACHED, cap)
        self.cap = cap


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may use, over all its attempts; None: no limit. Not part of what a run is: it may change between attempts.

    `max_tokens` counts those read and those written. `max_usd` needs the prices of both roles, which are in US dollars a
    million tokens. `max_minutes` counts active time and is looked at between steps. The first three are never passed.
    """

    max_rollouts: int | None = None
    max_tokens: int | None = None
    max_usd: Decimal | None = None
    max_minutes: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])

    @property
    def caps_calls(self) -> bool:
        """Whether calls are counted, so that they are made in order."""
        return self.max_rollouts is not None or self.caps_tokens

    @property
    def caps_tokens(self) -> bool:
        """Whether every call must say what it uses at most."""
        return self.max_tokens is not None or self.max_usd is not None

    def violations(self) -> tuple[str, ...]:
        """Caps that are negative, or not a number."""
        caps = {
            "max_rollouts": self.max_rollouts,
            "max_tokens": self.max_tokens,
            "max_usd": self.max_usd,
            "max_minutes": self.max_minutes,
        }
        return tuple(name for name, cap in caps.items() if cap is not None and not (math.isfinite(cap) and cap >= 0))

    def is_time_over(self, active_seconds: float) -> bool:
        """Whether a run that was active so long is to end."""
        return self.max_minutes is not None and active_seconds >= self.max_minutes * _SECONDS_A_MINUTE


UNLIMITED = Budget()
"""No cap at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What calls use: rollouts, tokens read and written, US dollars."""

    rollouts: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            rollouts=self.rollouts + other.rollouts, tokens=self.tokens + other.tokens, usd=self.usd + other.usd
        )

    def __sub__(self, other: Amount) -> Amount:
        return Amount(
            rollouts=self.rollouts - other.rollouts, tokens=self.tokens - other.tokens, usd=self.usd - other.usd
        )

    def passed_cap(self, budget: Budget) -> str | None:
        """The name of a cap that is lower than this, or None."""
        caps = (
            (MAX_ROLLOUTS, self.rollouts, budget.max_rollouts),
            (MAX_TOKENS, self.tokens, budget.max_tokens),
            (MAX_USD, self.usd, budget.max_usd),
        )
        return next((name for name, used, cap in caps if cap is not None and used > cap), None)


def amount_of(rollouts: int, counts: Iterable[TokenCount], budget: Budget) -> Amount:
    """What so many rollouts and these tokens amount to.

    Raises PortError with `skill_training.budget.unbounded` when dollars are capped and a role has no price.
    """
    counted = tuple(counts)
    usd = cost_of(counted, budget.prices) if budget.max_usd is not None else Decimal(0)
    if usd is None:
        raise PortError(ErrorCode.BUDGET_UNBOUNDED, MAX_USD)
    tokens = sum(count.prompt_tokens + count.completion_tokens for count in counted)
    return Amount(rollouts=rollouts, tokens=tokens, usd=usd)


class Account:
    """Grants calls in turn, so that a cap binds at the same call whatever runs at once (design, section 6).

    Who wants to make a call takes a turn, without waiting, in the order in which a run without concurrency would make
    its calls. A turn is then granted, or given up because the answer is known. A call that could pass a cap, were all
    open ones as expensive as they may be, waits until earlier ones are settled; when none is open, it is refused, and so
    is all that comes after it. As no call costs more than was reserved, that is the decision made without concurrency.
    """

    def __init__(self, budget: Budget, spent: Amount) -> None:
        self._budget = budget
        self._spent = spent
        self._reserved = Amount()
        self._open = 0
        self._turns = 0
        self._next = 0
        self._passed: set[int] = set()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._reached: str | None = None

    @property
    def spent(self) -> Amount:
        """What settled calls have used."""
        return self._spent

    def turn(self) -> int:
        """The next place in the order; every turn must be granted or given up."""
        self._turns += 1
        return self._turns - 1

    def give_up(self, turn: int) -> None:
        """Let later turns pass; nothing happens when this one is over already."""
        if turn >= self._next:
            self._passed.add(turn)
            while self._next in self._passed:
                self._passed.remove(self._next)
                self._next += 1
            self._wake()

    async def reserve(self, turn: int, worst: Amount) -> None:
        """Grant the call, which uses `worst` at most; `settle` ends it. Raises BudgetReachedError for one not to be made."""
        try:
            while not self._is_granted(turn, worst):
                self._waiting[turn] = asyncio.get_running_loop().create_future()
                try:
                    await self._waiting[turn]
                finally:
                    del self._waiting[turn]
        finally:
            self.give_up(turn)

    def settle(self, worst: Amount, used: Amount) -> None:
        """End a granted call that has used so much."""
        self._open -= 1
        self._reserved -= worst
        self._spent += used
        self._wake()

    def _is_granted(self, turn: int, worst: Amount) -> bool:
        if self._next != turn:
            return False
        if self._reached is None:
            cap = (self._spent + self._reserved + worst).passed_cap(self._budget)
            if cap is None:
                self._open += 1
                self._reserved += worst
                return True
            if self._open:
                return False
            self._reached = cap
        raise BudgetReachedError(self._reached)

    def _wake(self) -> None:
        waiting = self._waiting.get(self._next)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
