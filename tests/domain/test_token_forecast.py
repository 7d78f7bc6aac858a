"""How many tokens a run is expected to use, where it can be counted by hand."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.config import TrainSkillConfig
from burnish.domain.forecast import ItemCounts, forecast_calls
from burnish.domain.optimizer_forecast import OptimizerStage
from burnish.domain.ranges import Range
from burnish.domain.text_size import count_tokens
from burnish.domain.token_forecast import (
    GUIDANCE_TOKENS,
    LONGEST_SKILL,
    ModelSizes,
    PromptSizes,
    TokenForecast,
    drawn,
    forecast_tokens,
)

ITEMS = ItemCounts(train=4, val=3, test=2)
CONFIG = TrainSkillConfig(
    epochs=1,
    steps_per_epoch=2,
    lr_start=2,
    lr_min=2,
    lr_scheduler="constant",
    train_batch_size=2,
    val_batch_size=3,
    patience=None,
    use_slow_update=False,
    use_meta_skill=False,
    promote_final=False,
    eval_test=True,
    seed=7,
)
SIZES = PromptSizes(
    rollouts={"train": [10, 20, 30, 40], "val": [100, 100, 200], "test": [1000, 1000]},
    reflect=500,
    shown=[Range(5, 50)] * 4,
    edit=3,
    complaint=7,
    target=ModelSizes(answer=Range(1, 9)),
    optimizer=ModelSizes(answer=Range(20, 80)),
)


def forecast(config: TrainSkillConfig = CONFIG, sizes: PromptSizes = SIZES, *, asks: int = 1) -> TokenForecast:
    return forecast_tokens(config, forecast_calls(config, ITEMS, asks=asks, by_model=False), sizes)


def test_tokens_of_a_plain_run() -> None:
    target, optimizer = forecast().target, forecast().optimizer
    # baseline 400, train 100, candidates 0 to 2 * 400, test once to twice 2000; each step may add 2 edits of 3 tokens
    grown = 2 * (0 + 6) + 3 * (6 + 12) + 2 * 12
    assert target.prompt == Range(400 + 100 + 2000, 400 + 100 + 800 + 4000 + grown)
    assert target.completion == Range(3 + 4 + 2, 9 * (3 + 4 + 6 + 4))
    # one or two analysts a step; what was tried in vain may be shown: at most 2 edits of 3 tokens of the step before
    tried = 2 * 2 * 3 // 2
    assert optimizer.prompt == Range(2 * 500 + 4 * 5, 4 * (500 + 3 + tried) + 4 * 50)
    assert optimizer.completion == Range(2 * 20, 4 * 80)
    assert forecast().all == target.all + optimizer.all


def test_a_second_question_shows_everything_again_and_the_answer_too() -> None:
    assert forecast(asks=2).optimizer.prompt.high == 2 * forecast().optimizer.prompt.high + 8 * 7
    assert forecast(asks=2).optimizer.prompt.low == forecast().optimizer.prompt.low


def test_an_answer_is_as_long_as_its_stage_allows() -> None:
    sizes = ModelSizes(answer=Range(20, 80), limits={OptimizerStage.MERGE: 300, OptimizerStage.RANK: 10})
    assert [
        sizes.answer_of(stage) for stage in (OptimizerStage.REFLECT, OptimizerStage.MERGE, OptimizerStage.RANK)
    ] == [
        Range(20, 80),
        Range(20, 300),
        Range(10, 10),
    ]
    calls = {OptimizerStage.REFLECT: Range(2, 3), OptimizerStage.MERGE: Range(0, 4)}
    assert sizes.answers_by_stage(calls) == Range(2 * 20, 3 * 80 + 4 * 300)


def test_a_count_may_be_off() -> None:
    off = replace(SIZES, target=ModelSizes(answer=Range(1, 9), off=Range(0.5, 2.0)))
    exact = forecast().target.prompt
    assert forecast(sizes=off).target.prompt == Range(exact.low // 2, exact.high * 2)


def test_guidance_lengthens_the_skill_from_the_end_of_the_second_epoch_on() -> None:
    config = replace(CONFIG, epochs=2, eval_test=False)
    without = forecast(config).target.prompt.high
    guided = forecast(replace(config, use_slow_update=True, slow_update_samples=1)).target.prompt.high
    # a pair on one train item, a re-score, and the last candidate: the first of the four with guidance comes after step 4
    pair, rescored, last = 2 * (40 + 24 + GUIDANCE_TOKENS), 400 + 3 * (24 + GUIDANCE_TOKENS), 3 * GUIDANCE_TOKENS
    assert guided - without == pair + rescored + last


def test_a_memory_lengthens_the_optimizer_s_prompts() -> None:
    config = replace(CONFIG, epochs=3)
    assert forecast(replace(config, use_meta_skill=True)).optimizer.prompt.high > forecast(config).optimizer.prompt.high


def test_a_skill_grows_no_longer_than_a_skill_may_be() -> None:
    config = replace(CONFIG, epochs=10**9, steps_per_epoch=10**9, use_slow_update=True)
    tokens = forecast(config).target.prompt.high
    calls = forecast_calls(config, ITEMS).rollouts.high
    assert tokens <= calls * (1000 + LONGEST_SKILL + GUIDANCE_TOKENS)


@pytest.mark.parametrize(("draws", "expected"), [(0, (0, 0)), (1, (1, 5)), (2, (3, 7)), (3, (8, 8)), (7, (17, 21))])
def test_draws_without_replacement(draws: int, expected: tuple[int, int]) -> None:
    assert drawn([1, 5, 2], draws) == Range(*expected)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=9), st.integers(0, 40), st.randoms(use_true_random=False))
def test_what_is_drawn_lies_in_its_range(sizes: list[int], draws: int, random: Random) -> None:
    deck: list[int] = []
    while len(deck) < draws:
        turn = list(sizes)
        random.shuffle(turn)
        deck += turn
    assert sum(deck[:draws]) in drawn(sizes, draws)


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_four_characters_are_a_token(characters: int, tokens: int) -> None:
    assert count_tokens(characters) == tokens
