"""What the tests of durability share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from child_processes import Parent
from killed_runs import small_task


@pytest.fixture(scope="session")
def parent() -> Iterator[Parent]:
    """A process that forks children with burnish, and the SDK it calls models with, loaded."""
    with Parent("burnish.infrastructure.models.openai_chat", "openai.resources.chat.completions") as process:
        yield process


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The task file of a small task."""
    return small_task(tmp_path_factory.mktemp("task"))
