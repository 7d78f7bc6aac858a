"""Ranges of numbers that are not known yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

Number = TypeVar("Number", int, float, Decimal)


@dataclass(frozen=True, slots=True)
class Range(Generic[Number]):
    """From `low` to `high`, both included."""

    low: Number
    high: Number

    def __add__(self, other: Range[Number]) -> Range[Number]:
        """The range of the sum."""
        return Range(self.low + other.low, self.high + other.high)

    def __contains__(self, value: Number) -> bool:
        """Whether it covers the value."""
        return self.low <= value <= self.high


NOTHING = Range(0, 0)


def total(ranges: Iterable[Range[int]]) -> Range[int]:
    """The range of the sum of all."""
    return sum(ranges, NOTHING)
