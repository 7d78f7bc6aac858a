"""Whatever a run is like, it makes as many calls as its forecast says: never more than high, never fewer than low."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

from fakes import CatalogRunner, ScriptedProposer, append, rollout, training
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.config import AppendixSource, PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.edits import Patch
from burnish.domain.forecast import CallForecast, ItemCounts, RolloutStage, forecast_calls
from burnish.domain.gate import GateMetric, GateMode
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import StopReason
from burnish.presentation.app import open_app

ENDED = {StopReason.COMPLETED, StopReason.PATIENCE}
OF_A_SPLIT = {
    "train": (RolloutStage.TRAIN, RolloutStage.HELD_IN),
    "slow": (RolloutStage.SLOW_UPDATE,),
    "val": (RolloutStage.BASELINE, RolloutStage.CANDIDATES, RolloutStage.RESCORE, RolloutStage.NOTES),
    "final": (RolloutStage.FINAL,),
    "test": (RolloutStage.TEST,),
}

SMALL = st.integers(1, 4)
CONFIGS = st.builds(
    TrainSkillConfig,
    epochs=SMALL,
    steps_per_epoch=SMALL,
    train_batch_size=st.integers(1, 7),
    val_batch_size=st.integers(1, 7),
    gate_metric=st.sampled_from(GateMetric),
    gate_mode=st.sampled_from(GateMode),
    patience=st.none() | st.integers(1, 6),
    use_slow_update=st.booleans(),
    slow_update_samples=st.integers(1, 7),
    slow_update_gate=st.booleans(),
    seed=st.integers(1, 99),
    evaluate_baseline=st.booleans(),
    failure_only=st.booleans(),
    promote_final=st.booleans(),
    eval_test=st.booleans(),
    repeats=st.integers(1, 2),
    block_size=st.integers(1, 5),
    accumulation=st.integers(1, 3),
    minibatch_size=st.integers(1, 8),
    lr_control_mode=st.sampled_from([RateControl.FIXED, RateControl.NONE]),
    update_mode=st.sampled_from([UpdateMode.PATCH, UpdateMode.FULL_REWRITE_MINIBATCH]),
    longitudinal_pair_policy=st.sampled_from(PairPolicy),
    one_shot_baseline=st.booleans(),
    use_skill_aware_reflection=st.booleans(),
    skill_aware_appendix_source=st.sampled_from(AppendixSource),
)


class Scores:
    """Scores nobody could guess, of as many different values as there are `levels`; some items stay unanswered."""

    def __init__(self, seed: int, levels: int, errors: int) -> None:
        self._seed, self._levels, self._errors = seed, levels, errors

    def __call__(self, skill: str, item_id: str) -> Rollout:
        digest = hashlib.sha256(f"{self._seed}|{skill}|{item_id}".encode()).digest()
        if digest[0] < self._errors:
            raise TimeoutError
        return rollout(item_id, digest[1] % self._levels / max(self._levels - 1, 1))


def answers(draw: st.DrawFn) -> list[Patch]:
    texts = st.sampled_from(["rule a", "rule b", "rule c", "rule d", "rule e"])
    some = st.lists(texts, max_size=2)
    patch = st.tuples(some, some).map(lambda chosen: replace(append(*chosen[0]), notes=tuple(chosen[1])))
    return draw(st.lists(patch, max_size=16))


async def outcome(
    config: TrainSkillConfig, items: ItemCounts, attempt: Scores, patches: list[Patch]
) -> tuple[StopReason | None, Counter[str], int]:
    """How the run ended, its rollouts by purpose, and the calls of its proposer."""
    runner, proposer = (
        CatalogRunner(attempt, train=items.train, val=items.val, test=items.test),
        ScriptedProposer(*patches),
    )
    async with open_app(rollouts=runner, proposer=proposer) as app:
        result = await app.send(training(config))
    asked = Counter(
        call.batch.split if call.batch.repeat[:1].isdigit() else call.batch.repeat.partition("/")[0]
        for call in runner.calls
    )
    return (result.value.stop_reason if result.is_ok else None), asked, len(proposer.reflections)


def of(forecast: CallForecast, purpose: str) -> tuple[int, int]:
    ranges = [forecast.stages[stage].rollouts for stage in OF_A_SPLIT[purpose]]
    return sum(each.low for each in ranges), sum(each.high for each in ranges)


@settings(derandomize=True, deadline=None, max_examples=250)
@given(st.data(), CONFIGS, st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
async def test_a_run_makes_as_many_calls_as_forecast(
    data: st.DataObject, config: TrainSkillConfig, train: int, val: int, test: int
) -> None:
    items = ItemCounts(train=train, val=val, test=test)
    errors = data.draw(st.sampled_from([0, 0, 0, 8, 40]))
    attempt = Scores(data.draw(st.integers(0, 9)), data.draw(st.integers(1, 4)), errors)
    patches = data.draw(st.composite(answers)())
    forecast = forecast_calls(config, items, asks=1, by_model=False)
    ended, asked, proposals = await outcome(config, items, attempt, patches)
    for purpose in OF_A_SPLIT:
        low, high = of(forecast, purpose)
        assert asked[purpose] <= high, purpose
        if ended in ENDED:
            assert low <= asked[purpose], purpose
    assert proposals <= forecast.optimizer_calls.high
    if ended in ENDED and not errors:
        assert proposals in forecast.optimizer_calls
