"""A task's runner that tells how far it has come, for bars on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from burnish.application.usage import UsageNote
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.infrastructure.tasks.chat_runner import ChatTaskRunner


class RolloutWatch(Protocol):
    """Somebody who wants to know about rollouts."""

    def expect(self, total: int) -> None:
        """So many are to be made in all, where that is known."""
        ...

    def count(self, rollouts: int) -> None:
        """So many more were made."""
        ...


class WatchedRunner:
    """Passes everything on to the task's runner, and tells each rollout that was asked for; kept answers are none."""

    def __init__(self, runner: ChatTaskRunner, watch: RolloutWatch) -> None:
        self._runner = runner
        self._watch = watch

    @property
    def fingerprint(self) -> str:
        """The runner's own: being watched changes no answer."""
        return self._runner.fingerprint

    async def item_ids(self, split: str) -> Sequence[str]:
        """The runner's own."""
        return await self._runner.item_ids(split)

    def item_fingerprint(self, split: str, item_id: str) -> str:
        """The runner's own."""
        return self._runner.item_fingerprint(split, item_id)

    def usage_at_most(self, skill: str, batch: RolloutBatch) -> Sequence[UsageNote] | None:
        """The runner's own."""
        return self._runner.usage_at_most(skill, batch)

    def text_behind(self, digest: str) -> str | None:
        """The runner's own."""
        return self._runner.text_behind(digest)

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        """The runner's rollouts."""
        rollouts = await self._runner.run(skill, batch)
        self._watch.count(len(rollouts))
        return rollouts
