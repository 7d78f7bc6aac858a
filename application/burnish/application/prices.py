"""What model calls cost: a price a role, and sums that are exact to the last decimal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars a million tokens: of what a model reads, and of what it writes."""

    prompt: Decimal
    completion: Decimal


class TokenCount(Protocol):
    """Tokens that a role's calls used: a `UsageNote` of one call, a `UsageTotal` of many."""

    @property
    def role(self) -> str:
        """Who used them: `target` or `optimizer`."""
        ...

    @property
    def prompt_tokens(self) -> int:
        """Tokens read."""
        ...

    @property
    def completion_tokens(self) -> int:
        """Tokens written."""
        ...


def cost_of(counts: Iterable[TokenCount], prices: Mapping[str, Price]) -> Decimal | None:
    """US dollars for all of them together; None when a role that used tokens has no price."""
    total = Decimal(0)
    for count in counts:
        price = prices.get(count.role)
        if price is None:
            if count.prompt_tokens or count.completion_tokens:
                return None
            continue
        total += (count.prompt_tokens * price.prompt + count.completion_tokens * price.completion) / MILLION
    return total
