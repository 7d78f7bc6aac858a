"""Passes over items: burnish asks the runner, bounds how much runs at once, and checks what comes back."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from pydantic import TypeAdapter

from burnish.application.cancellation import pass_on_cancellation
from burnish.application.journal_keys import journal_key
from burnish.application.journaling import Answer, Codec, active_journal
from burnish.application.log import get_logger
from burnish.application.port_traits import text_behind, usage_at_most
from burnish.application.ports import (
    ItemBlocks,
    ItemCatalog,
    ItemFingerprints,
    NotConfiguredError,
    PortError,
    RolloutRunner,
)
from burnish.application.result import ErrorCode
from burnish.application.rollout_texts import fit_rollout
from burnish.domain.minibatches import in_groups
from burnish.domain.rollouts import (
    SPLITS,
    BatchScore,
    Outcome,
    OutcomeKey,
    Outcomes,
    Rollout,
    RolloutBatch,
    is_item_id,
    score_batch,
)
from burnish.domain.runs import skill_hash

_log = get_logger(__name__)

_ROLLOUT = Codec(lambda: TypeAdapter(Rollout))
_BATCH: Codec[tuple[Rollout, ...] | None] = Codec(lambda: TypeAdapter(tuple[Rollout, ...] | None))

_TASKS_A_SLOT = 4
"""Of these, one may be calling: calls go on while earlier answers are written, and many are written together."""

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What came of trying a skill on some items, in the order they were asked.

    `lost` counts the items of a batch that failed as a whole before anybody knew which items it would hold; `seed` is
    the one the items were asked with.
    """

    keys: tuple[OutcomeKey, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    lost: int = 0
    seed: int = 0

    @property
    def answered(self) -> tuple[Rollout, ...]:
        """The rollouts that are no missing data."""
        return tuple(rollout for rollout in self.rollouts if rollout.error is None)

    @property
    def outcomes(self) -> Outcomes:
        """Scores of the answered items."""
        return {
            key: Outcome(rollout.hard, rollout.soft)
            for key, rollout in zip(self.keys, self.rollouts, strict=True)
            if rollout.error is None
        }

    @property
    def score(self) -> BatchScore:
        """Means over what was answered."""
        scored = score_batch(self.rollouts)
        return BatchScore(scored.hard, scored.soft, scored.scored, scored.missing + self.lost)

    @property
    def error_rate(self) -> float:
        """Share of the items asked that stayed without an answer; 1.0 when nothing was asked."""
        asked = len(self.rollouts) + self.lost
        return (asked - len(self.answered)) / asked if asked else 1.0

    def at(self, places: Sequence[int]) -> Pass:
        """This pass with these of its items only."""
        keys, rollouts = self.keys, self.rollouts
        return replace(
            self, keys=tuple(keys[place] for place in places), rollouts=tuple(rollouts[place] for place in places)
        )

    def first(self, count: int) -> Pass:
        """This pass with at most so many of its items."""
        return self.at(range(min(count, len(self.keys))))

    def apart_from(self, other: Pass) -> Pass:
        """This pass without what the other holds as well: batches that somebody else draws may share items."""
        known = set(other.keys)
        return self.at([place for place, key in enumerate(self.keys) if key not in known])

    def then(self, other: Pass) -> Pass:
        """Both passes as one."""
        return Pass(
            keys=self.keys + other.keys,
            rollouts=self.rollouts + other.rollouts,
            lost=self.lost + other.lost,
            seed=other.seed,
        )


class PassRunner:
    """Asks a runner for rollouts, at most `workers` calls at once, and refuses answers that break its contract.

    Raises PortError when the runner is not configured, returns other items than asked for, or scores outside [0, 1].
    Anything else a runner raises makes its items missing data with the code `skill_training.rollout.call_failed`.
    """

    def __init__(self, runner: RolloutRunner, *, workers: int, secrets: Sequence[str] = ()) -> None:
        self._runner = runner
        self._secrets = tuple(secrets)
        self._catalog = runner if isinstance(runner, ItemCatalog) else None
        self._contents = runner if isinstance(runner, ItemFingerprints) else None
        self._blocks = runner if isinstance(runner, ItemBlocks) else None
        self._workers = workers
        self._slots = asyncio.Semaphore(workers)

    @property
    def lists_items(self) -> bool:
        """Whether the runner knows its items, so that each is asked for on its own, or in blocks if it takes several."""
        return self._catalog is not None

    @property
    def fingerprint(self) -> str:
        """The runner's own fingerprint; empty for one that does not list its items."""
        return "" if self._catalog is None else self._catalog.fingerprint

    async def item_ids(self, split: str) -> tuple[str, ...]:
        """The items of the split. Raises PortError when it cannot list any, or their ids are odd or not unique."""
        if self._catalog is None:
            return ()
        ids = await self._listed(self._catalog, split)
        if not ids:
            raise PortError(ErrorCode.ROLLOUT_EMPTY_BATCH, split)
        return ids

    async def _listed(self, catalog: ItemCatalog, split: str) -> tuple[str, ...]:
        try:
            ids = tuple(await catalog.item_ids(split))
        except (Exception, asyncio.CancelledError) as error:
            pass_on_cancellation(error)
            if isinstance(error, PortError):
                raise
            raise PortError(ErrorCode.ROLLOUT_CALL_FAILED, split) from error
        if len(set(ids)) != len(ids) or not all(isinstance(item, str) and is_item_id(item) for item in ids):
            raise PortError(ErrorCode.ROLLOUT_WRONG_ITEMS, split)
        return ids

    async def items_digest(self) -> str:
        """SHA-256 over the items of all splits, with their contents where the runner tells them; empty for a plain one.

        Raises PortError when the runner cannot list its items.
        """
        if self._catalog is None:
            return ""
        digest = hashlib.sha256()
        for split in SPLITS:
            for item in await self._listed(self._catalog, split):
                contents = "" if self._contents is None else self._contents.item_fingerprint(split, item)
                digest.update(journal_key(split, item, contents).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    async def ask_items(self, skill: str, split: str, keys: Sequence[OutcomeKey], *, seed: int) -> Pass:
        """One call an item, or a block of them; answers in the order of `keys` (item id, repeat), however they come."""
        if self._blocks is not None:
            return await self._ask_blocks(skill, split, keys, self._blocks.items_a_call, seed=seed)
        answers: list[Rollout | PortError | None] = [None] * len(keys)
        waiting = iter(range(len(keys)))
        digest = skill_hash(skill)

        async def work() -> None:
            for index in waiting:
                item, repeat = keys[index]
                batch = RolloutBatch(split, size=1, seed=seed, item_ids=(item,), repeat=repeat)
                answers[index] = await self._ask_one(skill, digest, batch)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(_TASKS_A_SLOT * self._workers, len(keys))):
                tasks.create_task(work())
        rollouts: list[Rollout] = []
        for answer in answers:
            if not isinstance(answer, Rollout):
                raise answer or AssertionError("every item has an answer")
            rollouts.append(answer)
        return Pass(keys=tuple(keys), rollouts=tuple(rollouts), seed=seed)

    async def _ask_blocks(self, skill: str, split: str, keys: Sequence[OutcomeKey], size: int, *, seed: int) -> Pass:
        """Neighbours of the same repeat in one call, at most `size` of them."""
        batches = [
            RolloutBatch(split, size=len(block), seed=seed, item_ids=tuple(item for item, _ in block), repeat=repeat)
            for repeat, group in groupby(keys, key=lambda key: key[1])
            for block in in_groups(tuple(group), size)
        ]
        done = Pass(seed=seed)
        for answer in await asyncio.gather(
            *(self.ask_batch(skill, batch) for batch in batches), return_exceptions=True
        ):
            if isinstance(answer, BaseException):
                raise answer
            done = done.then(answer)
        return done

    async def ask_batch(self, skill: str, batch: RolloutBatch) -> Pass:
        """One call for the whole batch: of `batch.item_ids`, or of at most `batch.size` items of the runner's choice."""
        pinned = batch.item_ids
        rollouts = await self._ask_whole(skill, batch)
        if rollouts is None:
            missing = tuple(_missing(item) for item in pinned)
            lost = 0 if pinned else batch.size
            return Pass(keys=_keys(pinned, batch.repeat), rollouts=missing, lost=lost, seed=batch.seed)
        by_id = _by_id(rollouts, batch)
        ids = pinned or tuple(by_id)
        return Pass(keys=_keys(ids, batch.repeat), rollouts=tuple(by_id[item] for item in ids), seed=batch.seed)

    async def _ask_one(self, skill: str, digest: str, batch: RolloutBatch) -> Rollout | PortError:
        """The rollout of one item, from the journal if it is there; what breaks the contract is returned, not raised."""
        journal = active_journal()
        (item,) = batch.item_ids
        try:
            if journal is None:
                async with self._slots:
                    return (await self._try_one(skill, batch)).value
            fingerprint = "" if self._contents is None else self._contents.item_fingerprint(batch.split, item)
            key = journal_key("rollout", batch.split, item, batch.repeat, digest, fingerprint, self.fingerprint)
            return await journal.answer(
                key,
                _ROLLOUT,
                lambda: self._try_one(skill, batch),
                stage=_stage(batch),
                slot=self._slots,
                at_most=lambda: usage_at_most(self._runner, skill, batch),
                texts=self._texts(skill, digest, fingerprint),
            )
        except PortError as error:
            return error

    async def _try_one(self, skill: str, batch: RolloutBatch) -> Answer[Rollout]:
        (item,) = batch.item_ids
        rollouts = await self._call(skill, batch)
        if rollouts is None:
            return Answer(_missing(item), is_error=True)
        if [rollout.item_id for rollout in rollouts] != [item]:
            raise PortError(ErrorCode.ROLLOUT_WRONG_ITEMS, item)
        return Answer(rollouts[0], is_error=rollouts[0].error is not None)

    async def _ask_whole(self, skill: str, batch: RolloutBatch) -> tuple[Rollout, ...] | None:
        """A batch's rollouts, from the journal if they are there; None when the runner raised."""

        async def ask() -> Answer[tuple[Rollout, ...] | None]:
            rollouts = await self._call(skill, batch)
            if self._blocks is not None and rollouts is not None:
                _by_id(rollouts, batch)  # an answer that breaks the contract is not kept
            unanswered = self._blocks is not None and any(rollout.error is not None for rollout in rollouts or ())
            return Answer(rollouts, is_error=rollouts is None or unanswered)

        journal = active_journal()
        if journal is None:
            async with self._slots:
                return (await ask()).value
        digest = skill_hash(skill)
        return await journal.answer(
            journal_key(
                "batch",
                batch.split,
                batch.size,
                batch.seed,
                batch.repeat,
                digest,
                *batch.item_ids,
                *self._known_of(batch),
            ),
            _BATCH,
            ask,
            stage=_stage(batch),
            slot=self._slots,
            at_most=lambda: usage_at_most(self._runner, skill, batch),
            texts=self._texts(skill, digest),
        )

    def _known_of(self, batch: RolloutBatch) -> tuple[str, ...]:
        """What a catalog that takes blocks tells of a batch's items and of itself, as one digest; nothing of others."""
        if self._blocks is None or self._contents is None:
            return ()
        told = (self._contents.item_fingerprint(batch.split, item) for item in batch.item_ids)
        return (hashlib.sha256(journal_key("block", self.fingerprint, *told).encode()).hexdigest(),)

    def _texts(self, skill: str, digest: str, item: str = "") -> Mapping[str, Callable[[], str]]:
        """The texts behind the digests in a key: the skill's, the item's, and the runner's own fingerprint."""
        behind = {named: partial(text_behind, self._runner, named) for named in (item, self.fingerprint)}
        return {digest: lambda: skill, **behind}

    async def _call(self, skill: str, batch: RolloutBatch) -> tuple[Rollout, ...] | None:
        """The runner's checked answer; None when it raised."""
        try:
            rollouts = tuple(await self._runner.run(skill, batch))
        except NotConfiguredError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            pass_on_cancellation(error)
            code = error.code if isinstance(error, PortError) else ErrorCode.ROLLOUT_CALL_FAILED
            if code in {ErrorCode.ROLLOUT_INVALID_SCORE, ErrorCode.ROLLOUT_WRONG_ITEMS}:
                raise
            _log.exception("rollout.call_failed", split=batch.split, items=len(batch.item_ids), code=code.value)
            return None
        for rollout in rollouts:
            _check(rollout)
        return tuple(fit_rollout(rollout, self._secrets) for rollout in rollouts)


async def side_by_side(first: Coroutine[object, object, T], second: Coroutine[object, object, U]) -> tuple[T, U]:
    """Both answers, awaited concurrently; when both raise, the first one's error, whichever came earlier.

    In a run whose calls are capped the second waits for the first, so that calls are made in the loop's order.
    """
    journal = active_journal()
    if journal is not None and journal.is_in_order:
        with closing(second):
            return await first, await second
    one, two = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(two, BaseException):
        raise two
    return one, two


def _by_id(rollouts: Sequence[Rollout], batch: RolloutBatch) -> dict[str, Rollout]:
    """The batch's rollouts by item. Raises PortError when they are not those that were asked for."""
    by_id, pinned = {rollout.item_id: rollout for rollout in rollouts}, batch.item_ids
    if not rollouts and not pinned:
        raise PortError(ErrorCode.ROLLOUT_EMPTY_BATCH, batch.split)
    if len(by_id) != len(rollouts) or (set(by_id) != set(pinned) if pinned else len(by_id) > batch.size):
        raise PortError(ErrorCode.ROLLOUT_WRONG_ITEMS, batch.split)
    return by_id


def _check(rollout: object) -> None:
    if not isinstance(rollout, Rollout) or not isinstance(rollout.item_id, str) or not is_item_id(rollout.item_id):
        raise PortError(ErrorCode.ROLLOUT_WRONG_ITEMS)
    if rollout.error is not None:
        return
    for score in (rollout.hard, rollout.soft):
        if not isinstance(score, (int, float)) or not 0.0 <= score <= 1.0:  # a comparison with NaN is false
            raise PortError(ErrorCode.ROLLOUT_INVALID_SCORE, rollout.item_id)


def _keys(item_ids: Sequence[str], repeat: str) -> tuple[OutcomeKey, ...]:
    return tuple((item, repeat) for item in item_ids)


def _stage(batch: RolloutBatch) -> str:
    """What a batch is for: its split, or the purpose its repeat names (`slow/2`, `final`)."""
    purpose = batch.repeat.partition("/")[0]
    return batch.split if not purpose[:1].isalpha() else purpose


def _missing(item_id: str) -> Rollout:
    return Rollout(item_id, 0.0, 0.0, error=ErrorCode.ROLLOUT_CALL_FAILED.value)
