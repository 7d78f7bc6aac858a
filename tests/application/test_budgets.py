"""Caps are never passed, bind at the same call whatever runs at once, and a run goes on when its cap is raised."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest
from fakes import CatalogRunner, ScriptedProposer, append, steps, training
from pydantic import TypeAdapter

from burnish.application.budget import Budget
from burnish.application.journal_keys import RESERVATION, journal_key, kind_of
from burnish.application.journaling import Answer, Codec, RunJournal
from burnish.application.optimizer_ports import ReflectionInput
from burnish.application.ports import JournalEntry, PortError
from burnish.application.prices import Price
from burnish.application.usage import UsageNote, note_usage
from burnish.domain.edits import Patch
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.domain.runs import StopReason, TrainingRun
from burnish.infrastructure.persistence.in_memory import InMemoryJournal, InMemoryRunStore
from burnish.presentation.app import open_app

WORST = 100
PRICES = {
    "target": Price(prompt=Decimal(1), completion=Decimal(2)),
    "optimizer": Price(prompt=Decimal(10), completion=Decimal(20)),
}
_NUMBER = Codec(lambda: TypeAdapter(int))


# --- the order of calls ----------------------------------------------------------------------------------------------


@dataclass
class World:
    """Calls of random cost, that take random turns of the loop; `costs` are what each may cost and what it does."""

    seed: int
    costs: Sequence[tuple[int, int]]
    called: list[int] = field(default_factory=list[int])
    spent: int = 0

    async def ask(self, number: int, patience: random.Random) -> Answer[int]:
        self.called.append(number)
        for _ in range(patience.randrange(4)):
            await asyncio.sleep(0)
        used = self.costs[number][1]
        self.spent += used
        note_usage(UsageNote("target", used, 0))
        return Answer(number)


async def spend(journal: RunJournal, world: World, workers: int) -> set[int]:
    """Make the calls with so many workers, as a pass over items does; the calls that were refused."""
    slots, refused = asyncio.Semaphore(workers), set[int]()
    patience = random.Random(world.seed * 1_000 + workers)
    waiting = iter(range(len(world.costs)))

    async def work() -> None:
        for number in waiting:
            worst = world.costs[number][0]
            try:
                await journal.answer(
                    journal_key("rollout", "train", number),
                    _NUMBER,
                    lambda number=number: world.ask(number, patience),  # type: ignore[misc]  # mypy cannot infer it
                    stage="train",
                    slot=slots,
                    at_most=lambda worst=worst: (UsageNote("target", worst, 0),),  # type: ignore[misc]
                )
            except PortError as error:
                if error.code != "skill_training.budget.reached":
                    raise
                refused.add(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(4 * workers):
            tasks.create_task(work())
    return refused


def random_costs(chance: random.Random) -> list[tuple[int, int]]:
    """What each of up to 40 calls may cost, and what it does: at most that."""
    worst = [chance.randrange(1, WORST) for _ in range(chance.randrange(1, 40))]
    return [(most, chance.randrange(most + 1)) for most in worst]


def one_by_one(costs: Sequence[tuple[int, int]], cap: int) -> int:
    """How many calls are made without any concurrency."""
    spent = 0
    for number, (worst, used) in enumerate(costs):
        if spent + worst > cap:
            return number
        spent += used
    return len(costs)


@pytest.mark.parametrize("part", range(10))
async def test_a_cap_binds_at_the_same_call_for_any_number_of_workers_and_is_never_passed(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        chance = random.Random(seed)
        costs = random_costs(chance)
        cap = chance.randrange(sum(worst for worst, _ in costs) + 1)
        made = one_by_one(costs, cap)
        for workers in (1, 8, 64):
            world = World(seed, costs)
            journal = RunJournal(InMemoryJournal(), "run", Budget(max_tokens=cap))
            await journal.prepare()
            refused = await spend(journal, world, workers)
            assert sorted(world.called) == list(range(made)), (seed, workers)
            assert refused == set(range(made, len(costs)))
            assert world.spent <= cap


@pytest.mark.parametrize("part", range(4))
async def test_a_crash_between_reservation_and_answer_never_lets_the_cap_be_passed(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        chance = random.Random(seed)
        costs = random_costs(chance)
        cap = chance.randrange(sum(worst for worst, _ in costs) + 1)
        kept = DyingJournal(chance.randrange(1, 2 * len(costs) + 1))
        paid = 0
        for _ in range(3):
            world = World(seed, costs)
            journal = RunJournal(kept, "run", Budget(max_tokens=cap))
            await journal.prepare()
            try:
                await spend(journal, world, 8)
            except* DyingJournal.Death:
                kept.lives_again(chance.randrange(1, 2 * len(costs) + 1))
            paid += world.spent
            assert paid <= cap, seed


class DyingJournal(InMemoryJournal):
    """Its process ends at one of its writes, before or after the entry is kept."""

    class Death(BaseException):
        """What a kill looks like from inside: nothing may catch it."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self._left = left
        self._dead = False

    def lives_again(self, left: int) -> None:
        self._left, self._dead = left, False

    async def append(self, run_id: str, entry: JournalEntry) -> None:
        self._left -= 1
        if self._left <= 0 or self._dead:
            if not self._dead and self._left % 2:
                await super().append(run_id, entry)
            self._dead = True
            raise self.Death
        await super().append(run_id, entry)


# --- whole runs ------------------------------------------------------------------------------------------------------


class PaidRunner(CatalogRunner):
    """Each rollout reads 60 tokens and writes up to 40, by its item."""

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        rollouts = await super().run(skill, batch)
        for item in batch.item_ids:
            note_usage(UsageNote("target", 60, sum(item.encode()) % 41))
        return rollouts

    def usage_at_most(self, skill: str, batch: RolloutBatch) -> Sequence[UsageNote]:
        return [UsageNote("target", 60, 40)] * len(batch.item_ids)


class PaidProposer(ScriptedProposer):
    """Each call reads 500 tokens and writes 50 of at most 100."""

    async def propose(self, reflection: ReflectionInput) -> Patch:
        note_usage(UsageNote("optimizer", 500, 50))
        patch = await super().propose(reflection)
        assert patch is not None
        return patch

    def usage_at_most(self, reflection: ReflectionInput) -> Sequence[UsageNote]:
        return [UsageNote("optimizer", 500, 100)]


PATCHES = tuple(append(f"score={score}") for score in (0.3, 0.1, 0.6, 0.2, 0.9))


@dataclass
class Host:
    """A host whose stores and optimizer live on between attempts."""

    runs: InMemoryRunStore = field(default_factory=InMemoryRunStore)
    journal: InMemoryJournal = field(default_factory=InMemoryJournal)
    proposer: PaidProposer = field(default_factory=lambda: PaidProposer(*PATCHES))

    async def train(self, budget: Budget, *, workers: int = 8) -> tuple[TrainingRun, PaidRunner]:
        runner = PaidRunner(test=4)
        async with open_app(
            rollouts=runner,
            proposer=self.proposer,
            runs=self.runs,
            journal=self.journal,
            workers=workers,
        ) as app:
            result = await app.send(replace(training(steps(5, eval_test=True)), budget=budget))
        return result.value, runner


def tokens(run: TrainingRun) -> int:
    return sum(total.prompt_tokens + total.completion_tokens for total in run.usage)


async def test_a_run_stops_before_the_rollout_that_would_pass_the_cap_and_keeps_what_it_has() -> None:
    whole, _ = await Host().train(Budget())
    run, runner = await Host().train(Budget(max_rollouts=17))
    assert (run.stop_reason, run.cap, run.code) == (StopReason.BUDGET, "budget.max_rollouts", None)
    assert len(runner.calls) == 17
    assert run.steps == whole.steps[: len(run.steps)]
    assert 0 < len(run.steps) < len(whole.steps)
    assert run.test is None


async def test_a_cap_of_nothing_stops_a_run_before_its_first_call() -> None:
    run, runner = await Host().train(Budget(max_rollouts=0))
    assert (run.stop_reason, runner.calls, run.steps, run.selected_score) == (StopReason.BUDGET, [], (), None)
    assert run.best_skill == training().initial_skill


@pytest.mark.parametrize("workers", [1, 4, 64])
@pytest.mark.parametrize(
    "budget", [Budget(max_rollouts=29), Budget(max_tokens=3_000), Budget(max_usd=Decimal("0.02"), prices=PRICES)]
)
async def test_workers_do_not_change_where_a_run_stops(budget: Budget, workers: int) -> None:
    expected, _ = await Host().train(budget, workers=2)
    run, _ = await Host().train(budget, workers=workers)
    assert expected.stop_reason is StopReason.BUDGET
    assert run == expected
    assert budget.max_tokens is None or tokens(run) <= budget.max_tokens


async def test_raising_the_cap_goes_on_where_the_run_stopped() -> None:
    host, calls = Host(), 0
    for cap in (5, 5, 12, 40):
        run, runner = await host.train(Budget(max_rollouts=cap))
        calls += len(runner.calls)
        assert (run.stop_reason, calls) == (StopReason.BUDGET, cap)
    run, runner = await host.train(Budget())
    whole, all_calls = await Host().train(Budget())
    assert run == whole
    assert calls + len(runner.calls) == len(all_calls.calls)


async def test_a_lower_cap_lets_paid_answers_count_and_asks_for_nothing_more() -> None:
    host = Host()
    await host.train(Budget(max_rollouts=20))
    run, runner = await host.train(Budget(max_rollouts=3))
    assert (run.stop_reason, runner.calls) == (StopReason.BUDGET, [])


async def test_a_port_that_does_not_say_what_it_uses_cannot_run_under_a_cap_on_tokens() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(*PATCHES)) as app:
        result = await app.send(replace(training(steps(1)), budget=Budget(max_tokens=10_000)))
    assert result.failure is not None
    assert result.failure.code == "skill_training.budget.unbounded"
    assert result.failure.fields == ("rollout val",)


async def test_dollars_need_the_prices_of_both_roles() -> None:
    prices = {"target": PRICES["target"]}
    async with open_app(rollouts=PaidRunner(), proposer=PaidProposer(*PATCHES)) as app:
        result = await app.send(replace(training(steps(1)), budget=Budget(max_usd=Decimal(1), prices=prices)))
    assert result.failure is not None
    assert (result.failure.code, result.failure.fields) == ("skill_training.budget.unbounded", ("budget.max_usd",))


@pytest.mark.parametrize("name", ["max_rollouts", "max_tokens", "max_usd", "max_minutes"])
async def test_a_negative_cap_is_refused(name: str) -> None:
    budget = replace(Budget(), **{name: -1})  # type: ignore[arg-type]  # by name
    async with open_app(rollouts=PaidRunner(), proposer=PaidProposer(*PATCHES)) as app:
        result = await app.send(replace(training(steps(1)), budget=budget))
    assert result.failure is not None
    assert (result.failure.code, result.failure.fields) == ("request.invalid", (f"budget.{name}",))


async def test_lost_reservations_count_at_their_worst_and_are_shown_apart() -> None:
    host = Host()
    whole, _ = await Host().train(Budget(max_rollouts=1_000))
    await host.train(Budget(max_rollouts=10))
    reserved = [entry for entry in await host.journal.entries("run") if kind_of(entry.key) == RESERVATION]
    lost = journal_key(RESERVATION, journal_key("rollout", "train", "never answered"), 1)
    (of_a_rollout, *_) = [entry for entry in reserved if "rollout" in entry.key]
    await host.journal.append("run", replace(of_a_rollout, key=lost))
    run, _ = await host.train(Budget(max_rollouts=11))
    assert run.lost is not None
    assert (run.lost.calls, run.lost.rollouts, run.lost.prompt_tokens) == (1, 1, 60)
    assert len([e for e in await host.journal.entries("run") if kind_of(e.key) == "rollout"]) == 10
    run, _ = await host.train(Budget())
    assert replace(run, lost=None) == whole


async def test_time_ends_a_run_between_steps_over_all_attempts() -> None:
    host = Host()
    run, _ = await host.train(Budget(max_minutes=0))
    assert (run.stop_reason, run.cap, run.steps_executed) == (StopReason.BUDGET, "budget.max_minutes", 1)
    mark = JournalEntry(key=journal_key("active", 2), answer="59.9999")
    await host.journal.append("run", mark)
    again, _ = await host.train(Budget(max_minutes=1))
    assert (again.stop_reason, again.steps_executed) == (StopReason.BUDGET, 1)
    done, _ = await host.train(Budget(max_minutes=60))
    assert done.stop_reason is StopReason.COMPLETED
