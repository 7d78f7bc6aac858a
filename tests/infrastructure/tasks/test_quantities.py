"""Quantities: how numbers are written, and how long reading them may take."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.infrastructure.tasks.quantities import Quantity, last_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        ("The answer is 42.", 42),
        ("first 4, then 5", 5),
        ("**42**", 42),
        ("-5", -5),
        ("\u22125", -5),
        ("+5", 5),
        ("x=-5", -5),
        ("3-5", 5),
        ("(5)", 5),
        ("$5", 5),
        ("-$5", -5),
        ("$-5", -5),
        ("\\$5.25", 5.25),
        ("1,234.5", 1234.5),
        ("1,234,567", 1_234_567),
        ("1'234", 1234),
        ("1\u202f234", 1234),
        ("1{,}234", 1234),
        ("1,2345", 2345),
        ("1,2,3", 3),
        (".5", 0.5),
        ("-.5", -0.5),
        ("wait...5", 5),
        ("1.5e6", 1.5e6),
        ("1E-3", 0.001),
        ("1.5 × 10^6", 1.5e6),
        ("1.5x10**6", 1.5e6),
        ("1.5 \\times 10^{6}", 1.5e6),
        ("10⁶", 1e6),
        ("10⁻³", 0.001),
        ("2^10", 1024),
        ("an area of 5 m²", 5),
        ("an area of 5 m^2", 5),
        ("3/4", 0.75),
        ("\\frac{3}{4}", 0.75),
        ("\\dfrac{-3}{4}", -0.75),
        ("5 million", 5e6),
        ("5-million", 5e6),
        ("2.5 Billion dollars", 2.5e9),
        ("5 hundred thousand", 5e5),
        ("$5M", 5e6),
        ("5bn", 5e9),
        ("5k", 5000),
        ("5 km", 5),
        ("5km", 5),
        ("5 K", 5),
        ("the 3rd", 3),
        ("**Total:** **5** 10", 10),
        ("٣", 3),
        ("4 of group B12", 4),
        ("version 1.2.3", 1.2),
        ("4, since 7/8/2024", 4),
        ("4, not 1/0", 4),
        ("4, not 1e999", 4),
        ("4, not 10^999", 4),
        ("4, not 0^-1", 4),
    ],
)
def test_the_last_number_is_read(text: str, value: float) -> None:
    quantity = last_quantity(text)
    assert quantity is not None
    assert (quantity.value, quantity.is_percentage) == (value, False)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("5", ""),
        ("5 apples", ""),
        ("9 in total", ""),
        ("5 K", ""),
        ("5M", ""),
        ("5 km", "km"),
        ("5km", "km"),
        ("5-km", "km"),
        ("5 kilometres", "km"),
        ("5 Kilometers", "km"),
        ("5 KM", ""),
        ("5 m", "m"),
        ("5 m²", "m^2"),
        ("5 m^2", "m^2"),
        ("5 km/h", "km/h"),
        ("5 m/s", "m/s"),
        ("5 km/s", ""),
        ("5 mL", "ml"),
        ("5 °C", "°C"),
        ("5 days", "day"),
        ("5 business days", ""),
        ("$5", "$"),
        ("-$5", "$"),
        ("$-5", "$"),
        ("US$ 5", "$"),
        ("USD 5", "$"),
        ("5 USD", "$"),
        ("$5M", "$"),
        ("5 million dollars", "$"),
        ("A$5", ""),
        ("€ 5.00", "€"),
        ("5 €", "€"),
        ("5 Euros", "€"),
        ("$5 or 5 km", "km"),
    ],
)
def test_the_unit_beside_the_number_is_read(text: str, unit: str) -> None:
    quantity = last_quantity(text)
    assert quantity is not None
    assert quantity.unit == unit


@pytest.mark.parametrize("text", ["5%", "5 %", "5\\%", "5％", "5 percent", "5 Per cent", "5 pct", "from 4 % to 5.0 %"])
def test_a_percentage_is_kept_apart(text: str) -> None:
    assert last_quantity(text) == Quantity(5, is_percentage=True)


@pytest.mark.parametrize("text", ["", "none", "five", "B12", "7/8/2024", "½", "1e999", "-", "%", "NaN", "inf"])
def test_there_may_be_no_number(text: str) -> None:
    assert last_quantity(text) is None


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity(5.0, is_percentage=False), "5"),
        (Quantity(0.1, is_percentage=True), "0.1 %"),
        (Quantity(5.0, is_percentage=False, unit="km"), "5 km"),
        (Quantity(1234567.25, is_percentage=False), "1234567.25"),
    ],
)
def test_a_quantity_is_shown_in_full(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.text(st.sampled_from("0123456789.,'-+−$%/^*{}() eExkMbn\n×⁶₂۳") | st.characters(), max_size=60))
def test_any_text_gives_a_finite_number_or_none(text: str) -> None:
    quantity = last_quantity(text)
    assert quantity is None or math.isfinite(quantity.value)


@settings(derandomize=True, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_writes_is_read_back(value: float) -> None:
    assert last_quantity(f"it is {value!r}") == Quantity(value, is_percentage=False)


@pytest.mark.parametrize(
    "piece", ["1", "1,234", "1/", "1e1", "-", "1 ", "5 million ", "^1", "1^", "{", "⁶", "\\frac{1}{", ",123"]
)
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    start = time.perf_counter()
    last_quantity(piece * 50_000)
    assert time.perf_counter() - start < 5
