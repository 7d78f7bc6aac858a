"""Prices of models: the list that ships, and finding a model in it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from burnish.application.prices import Price
from burnish.infrastructure.models.prices import LIST_PRICES, price_of

OWN = Price(prompt=Decimal(7), completion=Decimal(8))


@pytest.mark.parametrize("name", LIST_PRICES)
def test_a_listed_price_is_above_zero_and_writing_costs_more_than_reading(name: str) -> None:
    price = LIST_PRICES[name]
    assert 0 < price.prompt < price.completion


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
    ],
)
def test_a_model_is_found_by_its_name_or_without_its_date(model: str, listed: str) -> None:
    assert price_of(model, {}) == LIST_PRICES[listed]


@pytest.mark.parametrize("model", ["", "my-model", "gpt-4o-", "gpt-4o-2024", "GPT-4o", "gpt-4o-2024-08-06-x"])
def test_a_model_that_is_not_listed_has_no_price(model: str) -> None:
    assert price_of(model, {}) is None


@pytest.mark.parametrize("own", ["gpt-4o-2024-05-13", "gpt-4o"])
def test_own_prices_win_over_the_list(own: str) -> None:
    assert price_of("gpt-4o-2024-05-13", {own: OWN}) == OWN


def test_own_prices_name_models_nobody_else_knows() -> None:
    assert price_of("my-model", {"my-model": OWN}) == OWN
