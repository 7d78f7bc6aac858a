"""List prices of well-known models, and finding the one of a model by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from burnish.application.prices import Price

NOTED = date(2026, 11, 30)
"""When the table was last compared with what the providers publish."""

FREE = Price(prompt=Decimal(0), completion=Decimal(0))
"""What simulated models cost."""


def _price(prompt: str, completion: str) -> Price:
    return Price(prompt=Decimal(prompt), completion=Decimal(completion))


LIST_PRICES: Mapping[str, Price] = MappingProxyType(
    {
        # OpenAI
        "gpt-5.5": _price("5.00", "30.00"),
        "gpt-5.4": _price("2.50", "15.00"),
        "gpt-5.4-mini": _price("0.75", "4.50"),
        "gpt-5.4-nano": _price("0.20", "1.25"),
        "gpt-5.2": _price("1.75", "14.00"),
        "gpt-5.1": _price("1.25", "10.00"),
        "gpt-5": _price("1.25", "10.00"),
        "gpt-5-mini": _price("0.25", "2.00"),
        "gpt-5-nano": _price("0.05", "0.40"),
        "gpt-4.1": _price("2.00", "8.00"),
        "gpt-4.1-mini": _price("0.40", "1.60"),
        "gpt-4.1-nano": _price("0.10", "0.40"),
        "gpt-4o": _price("2.50", "10.00"),
        "gpt-4o-2024-05-13": _price("5.00", "15.00"),
        "gpt-4o-mini": _price("0.15", "0.60"),
        "o1": _price("15.00", "60.00"),
        "o3": _price("2.00", "8.00"),
        "o3-mini": _price("1.10", "4.40"),
        "o4-mini": _price("1.10", "4.40"),
        # Anthropic
        "claude-opus-5-5": _price("4.00", "20.00"),
        "claude-opus-5": _price("5.00", "25.00"),
        "claude-opus-4-6": _price("5.00", "25.00"),
        "claude-opus-4-5": _price("5.00", "25.00"),
        "claude-opus-4-1": _price("15.00", "75.00"),
        "claude-opus-4": _price("15.00", "75.00"),
        "claude-sonnet-5-5": _price("2.00", "10.00"),
        "claude-sonnet-4-6": _price("3.00", "15.00"),
        "claude-sonnet-4-5": _price("3.00", "15.00"),
        "claude-sonnet-4": _price("3.00", "15.00"),
        "claude-haiku-4-5": _price("1.00", "5.00"),
        "claude-3-7-sonnet": _price("3.00", "15.00"),
        "claude-3-5-haiku": _price("0.80", "4.00"),
        "claude-3-haiku": _price("0.25", "1.25"),
    }
)
"""US dollars a million tokens, without discounts for caches or batches and without surcharges for very long prompts."""

_DATE_SUFFIX = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8})\Z")


def price_of(model: str, own: Mapping[str, Price]) -> Price | None:
    """The model's price: `own` prices win over the list, in both the exact name over the one without its date.

    None when neither names the model.
    """
    names = (model, _DATE_SUFFIX.sub("", model))
    return next((prices[name] for prices in (own, LIST_PRICES) for name in names if name in prices), None)
