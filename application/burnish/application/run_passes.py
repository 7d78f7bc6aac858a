"""The passes of one run: which items are tried when, with which seeds, under which repeats."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.application.detectors import Detectors
from burnish.application.passes import Pass, PassRunner, side_by_side
from burnish.domain.config import PairPolicy, TrainSkillConfig
from burnish.domain.epochs import is_of_interest
from burnish.domain.gate import Ceiling, ceiling
from burnish.domain.minibatches import in_groups
from burnish.domain.rollouts import (
    TEST,
    TRAIN,
    VALIDATION,
    OutcomeKey,
    Outcomes,
    PlannedItem,
    RolloutBatch,
    batch_seed,
    plan_epoch,
    sample_items,
    shuffled,
)

FINAL = "final"
"""The repeat of the fresh scores that decide about the final skill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """A candidate's pass over the selection set; `stopped` holds the ceiling that ended it early, if one did."""

    scored: Pass
    stopped: Ceiling | None = None


class RunPasses:
    """Plans and runs the passes of one run.

    With a runner that lists its items, epochs are planned and the selection set is sampled here. A plain runner chooses
    its items by seed; the ids of its first validation and first test pass stay pinned for the run.
    """

    def __init__(self, runner: PassRunner, config: TrainSkillConfig, *, seed: int) -> None:
        self._runner = runner
        self._config = config
        self._seed = seed
        self._train_items: tuple[str, ...] = ()
        self._pinned: dict[str, tuple[str, ...]] = {}
        self._detectors = Detectors()
        self.rollouts_saved = 0
        self._plan: tuple[int, tuple[tuple[PlannedItem, ...], ...]] = (0, ())

    async def prepare(self) -> None:
        """Read which items there are; raises PortError when a split that is needed is empty."""
        if not self._runner.lists_items:
            return
        self._train_items = await self._runner.item_ids(TRAIN)
        validation = await self._runner.item_ids(VALIDATION)
        sample_seed = batch_seed(self._seed, "selection")
        self._pinned[VALIDATION] = sample_items(validation, self._config.val_batch_size, seed=sample_seed)
        if self._config.eval_test:
            self._pinned[TEST] = await self._runner.item_ids(TEST)

    async def train(self, skill: str, *, epoch: int, step: int) -> Pass:
        """The rollout of a step; `epoch` and `step` (in the epoch) count from 1."""
        seed = batch_seed(self._seed, TRAIN, epoch, step)
        if not self._runner.lists_items:
            done = Pass()
            for place in range(self._config.accumulation):
                done = done.then((await self._chosen_by_runner(skill, epoch, step, place)).apart_from(done))
            return done
        keys = tuple(
            (planned.item_id, f"{epoch}+{planned.occurrence}" if planned.occurrence else str(epoch))
            for planned in self._epoch_plan(epoch)[step - 1]
        )
        return await self._runner.ask_items(skill, TRAIN, keys, seed=seed)

    async def _chosen_by_runner(self, skill: str, epoch: int, step: int, place: int) -> Pass:
        """A batch of a plain runner, which draws the items by seed."""
        seed = batch_seed(self._seed, TRAIN, epoch, step, *((place,) if place else ()))
        size = self._config.train_batch_size
        return await self._runner.ask_batch(skill, RolloutBatch(TRAIN, size=size, seed=seed, repeat=str(epoch)))

    async def held_in(self, skill: str, trained: Pass) -> Pass:
        """The same items as the step's rollout, with another skill."""
        return await self._ask(skill, TRAIN, trained.keys, seed=trained.seed)

    async def validate(self, skill: str, *, current: Outcomes | None = None, best: Outcomes | None = None) -> Validated:
        """Score a skill on the selection set, in blocks.

        Stops when it can no longer pass the gate against `current`, or when so many items stayed without an answer that
        the pass cannot decide anything any more.
        """
        validated = await self._validate(skill, current, best)
        self._detectors.look_at(skill, validated.scored)
        return validated

    @property
    def warnings(self) -> tuple[str, ...]:
        """Signs that something is wired wrongly, see `detectors`."""
        return self._detectors.found

    async def _validate(self, skill: str, current: Outcomes | None, best: Outcomes | None) -> Validated:
        seed = batch_seed(self._seed, VALIDATION)
        done = Pass(seed=seed)
        for repeat in range(self._config.repeats):
            if VALIDATION not in self._pinned:
                done = done.then(await self._first(skill, VALIDATION, repeat=str(repeat), seed=seed))
                continue
            keys = tuple((item, str(repeat)) for item in self._pinned[VALIDATION])
            size = self._config.block_size if self._runner.lists_items else len(keys)
            for start in range(0, len(keys), size):
                done = done.then(await self._ask(skill, VALIDATION, keys[start : start + size], seed=seed))
                left = self._left(keys[start + size :], repeat)
                if left and self._runner.lists_items:
                    total = len(done.rollouts) + len(left)
                    if (len(done.rollouts) - len(done.answered)) / total > self._config.max_error_rate:
                        return Validated(scored=done)
                    reachable = self._ceiling(done, left, current, best)
                    if reachable.is_hopeless:
                        self.rollouts_saved += len(left)
                        return Validated(scored=done, stopped=reachable)
        return Validated(scored=done)

    async def slow_pair(self, prior_skill: str, current_skill: str, *, epoch: int) -> tuple[Pass, Pass]:
        """Both epochs' skills on the same train items, as far as the pair policy takes an interest in them.

        A sample of `slow_update_samples`; when only changes count, further samples until there are as many of those, or no
        items left. A plain runner draws one sample.
        """
        size, policy = self._config.slow_update_samples, self._config.longitudinal_pair_policy
        seed = batch_seed(self._seed, "slow", epoch)
        if not self._runner.lists_items:
            pair = await self._drawn_pair(prior_skill, current_skill, f"slow/{epoch}", seed)
            return _of_interest(*pair, policy)
        items = sample_items(self._train_items, size, seed=seed)
        pair = await self._pair(prior_skill, current_skill, items, f"slow/{epoch}", seed)
        found = _of_interest(*pair, policy)
        if policy is not PairPolicy.CHANGED or prior_skill == current_skill:
            return found
        rest = shuffled([item for item in self._train_items if item not in set(items)], seed=seed)
        for more in in_groups(rest, size):
            if len(found[0].keys) >= size:
                break
            pair = await self._pair(prior_skill, current_skill, more, f"slow/{epoch}", seed)
            added = _of_interest(*pair, policy)
            found = found[0].then(added[0]), found[1].then(added[1])
        return found[0].first(size), found[1].first(size)

    async def _pair(
        self, prior_skill: str, current_skill: str, items: tuple[str, ...], repeat: str, seed: int
    ) -> tuple[Pass, Pass]:
        keys = tuple((item, repeat) for item in items)
        if prior_skill == current_skill:
            prior = await self._ask(prior_skill, TRAIN, keys, seed=seed)
            return prior, prior
        return await side_by_side(
            self._ask(prior_skill, TRAIN, keys, seed=seed), self._ask(current_skill, TRAIN, keys, seed=seed)
        )

    async def _drawn_pair(self, prior_skill: str, current_skill: str, repeat: str, seed: int) -> tuple[Pass, Pass]:
        """A plain runner's own sample, tried with both skills; equal skills are tried once."""
        size = self._config.slow_update_samples
        prior = await self._runner.ask_batch(prior_skill, RolloutBatch(TRAIN, size=size, seed=seed, repeat=repeat))
        if prior_skill == current_skill or not prior.keys:
            return prior, prior
        return prior, await self._ask(current_skill, TRAIN, prior.keys, seed=seed)

    async def final(self, skill: str) -> Pass:
        """Fresh scores on the selection set, for the promotion of the final skill."""
        return await self._whole_split(skill, VALIDATION, repeat=FINAL)

    async def test(self, skill: str) -> Pass:
        """Score a skill on the test split."""
        return await self._whole_split(skill, TEST, repeat=TEST)

    async def _whole_split(self, skill: str, split: str, *, repeat: str) -> Pass:
        seed = batch_seed(self._seed, split)
        if split not in self._pinned:
            return await self._first(skill, split, repeat=repeat, seed=seed)
        return await self._ask(skill, split, tuple((item, repeat) for item in self._pinned[split]), seed=seed)

    async def _first(self, skill: str, split: str, *, repeat: str, seed: int) -> Pass:
        """A plain runner's first pass over a split: its choice of items is pinned for the run."""
        batch = RolloutBatch(split, size=self._config.val_batch_size, seed=seed, repeat=repeat)
        done = await self._runner.ask_batch(skill, batch)
        if done.keys:
            self._pinned[split] = tuple(item for item, _ in done.keys)
        return done

    async def _ask(self, skill: str, split: str, keys: tuple[OutcomeKey, ...], *, seed: int) -> Pass:
        if self._runner.lists_items:
            return await self._runner.ask_items(skill, split, keys, seed=seed)
        if not keys:
            return Pass(seed=seed, lost=1)
        items = tuple(item for item, _ in keys)
        batch = RolloutBatch(split, size=len(items), seed=seed, item_ids=items, repeat=keys[0][1])
        return await self._runner.ask_batch(skill, batch)

    def _epoch_plan(self, epoch: int) -> tuple[tuple[PlannedItem, ...], ...]:
        if self._plan[0] != epoch:
            plan = plan_epoch(
                self._train_items,
                seed=self._seed,
                epoch=epoch,
                batch_size=self._config.train_batch_size * self._config.accumulation,
                batches=self._config.steps_per_epoch,
            )
            self._plan = (epoch, plan)
        return self._plan[1]

    def _left(self, keys: tuple[OutcomeKey, ...], repeat: int) -> tuple[OutcomeKey, ...]:
        """What is still to be asked: the rest of this repeat, and all of the later ones."""
        later = range(repeat + 1, self._config.repeats)
        return keys + tuple((item, str(number)) for number in later for item in self._pinned[VALIDATION])

    def _ceiling(
        self, done: Pass, left: tuple[OutcomeKey, ...], current: Outcomes | None, best: Outcomes | None
    ) -> Ceiling:
        return ceiling(
            done.outcomes,
            left,
            current,
            best,
            metric=self._config.gate_metric,
            mixed_weight=self._config.mixed_weight,
            mode=self._config.gate_mode,
        )


def _of_interest(prior: Pass, current: Pass, policy: PairPolicy) -> tuple[Pass, Pass]:
    """The pairs the policy asks for; all of them, also those without an answer, when it asks for all."""
    if policy is PairPolicy.MIXED or prior.keys != current.keys:
        return prior, current
    places = [
        place
        for place, pair in enumerate(zip(prior.rollouts, current.rollouts, strict=True))
        if is_of_interest(*pair, policy)
    ]
    return prior.at(places), current.at(places)
