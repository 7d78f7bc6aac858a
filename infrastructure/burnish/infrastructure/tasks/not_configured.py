"""The runner that stands where a host has brought none."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.application.ports import NotConfiguredError
from burnish.application.result import ErrorCode
from burnish.domain.rollouts import Rollout, RolloutBatch


class NotConfiguredRunner:
    """Fails on first use, with the remedy."""

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        """Raises NotConfiguredError."""
        raise NotConfiguredError(ErrorCode.ROLLOUT_NOT_CONFIGURED)
