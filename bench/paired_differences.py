"""Paired differences between two methods that were run with the same seeds, and how sure one can be of their mean."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_QUANTILES = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
"""Student's t at 0.975 for 1 to 30 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of the differences, and half the width of its 95 % interval."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width

    @property
    def is_worse(self) -> bool:
        """Whether the whole interval lies below 0."""
        return self.high < 0

    @property
    def is_better(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0


def paired_difference(measured: Sequence[float], compared_with: Sequence[float]) -> PairedDifference:
    """The first minus the second, seed by seed, with a 95 % t-interval. Raises ValueError for fewer than two pairs."""
    differences = [one - other for one, other in zip(measured, compared_with, strict=True)]
    if len(differences) < 2:
        raise ValueError(f"an interval needs at least 2 pairs, not {len(differences)}")
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return PairedDifference(statistics.fmean(differences), t_quantile(len(differences) - 1) * error)


def t_quantile(degrees: int) -> float:
    """Student's t at 0.975: a table up to 30 degrees of freedom, Fisher's expansion around the normal one above.

    Right to four decimals. Raises ValueError below 1 degree.
    """
    if degrees < 1:
        raise ValueError(f"Student's t has at least 1 degree of freedom, not {degrees}")
    if degrees <= len(_QUANTILES):
        return _QUANTILES[degrees - 1]
    z = statistics.NormalDist().inv_cdf(0.975)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3
