"""The optimizer ports' defaults: the pure functions of the domain, and proposers nobody has brought yet."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.application.optimizer_ports import ReflectionInput
from burnish.application.ports import NotConfiguredError
from burnish.application.result import ErrorCode
from burnish.domain.edits import Patch
from burnish.domain.patches import aggregate, select_top_k


class PureAggregator:
    """Merges equal edits."""

    is_pure = True

    async def aggregate(self, patches: Sequence[Patch | None]) -> Patch:
        """`burnish.domain.patches.aggregate`."""
        return aggregate(patches)


class PureSelector:
    """Ranks by support."""

    is_pure = True

    async def select(self, patch: Patch, k: int) -> Patch:
        """`burnish.domain.patches.select_top_k`."""
        return select_top_k(patch, k)


class NotConfiguredProposer:
    """Stands where a host has brought no proposer."""

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        """Raises NotConfiguredError."""
        raise NotConfiguredError(ErrorCode.PROPOSER_NOT_CONFIGURED)
