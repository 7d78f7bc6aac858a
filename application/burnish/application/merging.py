"""Stage 3 of a step, aggregate: the analysts' patches become one, by rules or by a model that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from burnish.application.optimizer import Optimizer, StepNotes, or_code, together
from burnish.application.optimizer_ports import Focus, MergeInput, PatchMerger
from burnish.application.passes import side_by_side
from burnish.application.proposing import Proposals
from burnish.application.reflect_on_failures import checked_patch
from burnish.application.result import ErrorCode
from burnish.application.training_state import TrainingState
from burnish.domain.config import UpdateMode
from burnish.domain.edits import BOUNDED_OPS, EditOp, Patch
from burnish.domain.minibatches import in_groups
from burnish.domain.patches import deduplicate
from burnish.domain.rollouts import batch_seed

MERGE = "merge"

_OPS = {
    UpdateMode.PATCH: frozenset(BOUNDED_OPS),
    UpdateMode.REWRITE_FROM_SUGGESTIONS: frozenset({EditOp.SUGGEST}),
    UpdateMode.FULL_REWRITE_MINIBATCH: frozenset({EditOp.REWRITE}),
}
"""What an edit must be to be of use in a mode."""


async def merge_patches(state: TrainingState, proposals: Proposals, optimizer: Optimizer, notes: StepNotes) -> Patch:
    """One patch of all; failures' edits come first and win (system B).

    Without a model the aggregator does it at once. With one, equal edits become one first, then failures and successes are
    merged side by side, each in a tree of groups of `merge_batch_size`, then both. A merge that fails, or comes back
    empty, is done by the aggregator, and noted.
    """
    mode = state.config.update_mode
    failures, successes = _of_use(proposals.from_failures, mode), _of_use(proposals.from_successes, mode)
    merging = _Merging(state, optimizer, notes)
    if not failures and not successes:
        return Patch()
    if optimizer.merger is None:
        return await merging.by_rule((*failures, *successes))
    one, two = await side_by_side(
        merging.tree(deduplicate(failures), Focus.FAILURES, optimizer.merger),
        merging.tree(deduplicate(successes), Focus.SUCCESSES, optimizer.merger),
    )
    sides = tuple(side.patch for side in (one, two) if side.patch.edits)
    if len(sides) < 2:
        return sides[0] if sides else Patch()
    return await merging.by_model(sides, Focus.MIXED, optimizer.merger, level=max(one.levels, two.levels) + 1)


@dataclass(frozen=True, slots=True)
class _Side:
    """What a tree of merges came to, and how high it was."""

    patch: Patch
    levels: int


class _Merging:
    """The merges of one step."""

    def __init__(self, state: TrainingState, optimizer: Optimizer, notes: StepNotes) -> None:
        self._state = state
        self._optimizer = optimizer
        self._notes = notes

    async def tree(self, patches: Sequence[Patch], focus: Focus, merger: PatchMerger) -> _Side:
        """Merge in groups until one patch is left; a group of one passes as it is."""
        level = 0
        while len(patches) > 1:
            level += 1
            groups = in_groups(patches, self._state.config.merge_batch_size)
            calls = [self._group(group, focus, merger, level, index) for index, group in enumerate(groups)]
            patches = await together(calls)
        return _Side(patches[0] if patches else Patch(), level)

    async def _group(
        self, group: tuple[Patch, ...], focus: Focus, merger: PatchMerger, level: int, index: int
    ) -> Patch:
        if len(group) == 1:
            return group[0]
        return await self.by_model(group, focus, merger, level=level, index=index)

    async def by_model(
        self, patches: tuple[Patch, ...], focus: Focus, merger: PatchMerger, *, level: int, index: int = 0
    ) -> Patch:
        """What the merger makes of them; what the aggregator does when it fails, or answers with nothing of use."""
        state = self._state
        request = MergeInput(
            current_skill=state.current.text,
            patches=patches,
            focus=focus,
            level=level,
            meta_skill_memory=state.memory,
            update_mode=state.config.update_mode,
            seed=batch_seed(state.seed, "merge", state.epoch, state.step, list(Focus).index(focus), level, index),
        )
        answer = await or_code(merger.merge(request))
        if not isinstance(answer, ErrorCode):
            for merged in _of_use((answer,), state.config.update_mode):
                return merged
        self._notes.fallbacks.append(MERGE)
        return await self.by_rule(patches)

    async def by_rule(self, patches: tuple[Patch, ...]) -> Patch:
        """What the aggregator makes of them; of several whole rewrites, the first. Its failure ends the step."""
        answer = await or_code(self._aggregate(patches))
        if isinstance(answer, ErrorCode):
            self._notes.code = answer.value
            return Patch()
        is_whole = self._state.config.update_mode is UpdateMode.FULL_REWRITE_MINIBATCH
        return replace(answer, edits=answer.edits[:1]) if is_whole else answer

    async def _aggregate(self, patches: tuple[Patch, ...]) -> Patch:
        return checked_patch(await self._optimizer.aggregator.aggregate(patches))


def _of_use(patches: Sequence[Patch], mode: UpdateMode) -> tuple[Patch, ...]:
    """The patches with the edits that can be used in this mode; those without any, and all notes, are left out."""
    ops = _OPS[mode]
    used = (replace(patch, edits=tuple(edit for edit in patch.edits if edit.op in ops), notes=()) for patch in patches)
    return tuple(patch for patch in used if patch.edits)
