"""Fixtures every layer's tests may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes import Telescope


@pytest.fixture
def telescope() -> Iterator[Telescope]:
    """Spans and metrics of this test only."""
    seen = Telescope()
    yield seen
    seen.close()
