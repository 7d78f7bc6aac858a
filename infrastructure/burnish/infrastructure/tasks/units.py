"""Units of measure and currencies that stand beside a number, by their usual spellings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_CURRENCIES: Final = {
    "$": ("US$", "$", "USD", "dollar", "dollars"),
    "€": ("€", "EUR", "euro", "euros"),
    "£": ("£", "GBP"),
    "¥": ("¥", "JPY", "yen"),
    "CHF": ("CHF", "franc", "francs"),
    "CNY": ("CNY", "RMB", "yuan"),
    "INR": ("₹", "INR", "rupee", "rupees"),
}

_SYMBOLS: Final = (
    *("km", "m", "cm", "mm", "µm", "nm", "mi", "ft", "yd"),
    *("kg", "g", "mg", "µg", "t", "lb", "oz"),
    *("s", "ms", "min", "h"),
    *("l", "ml", "L", "mL", "gal"),
    *("m^2", "km^2", "cm^2", "ft^2", "m^3", "cm^3", "ha"),
    *("km/h", "m/s", "mph"),
    *("W", "kW", "MW", "kWh", "MWh", "J", "kJ", "kcal", "V", "A", "Hz", "kHz", "MHz", "GHz", "N", "Pa", "kPa", "bar"),
    *("°C", "°F", "°"),
    *("kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"),
)
"""Written as they are, letter case included."""

_WORDS: Final = {
    "km": ("kilometer", "kilometers", "kilometre", "kilometres"),
    "m": ("meter", "meters", "metre", "metres"),
    "cm": ("centimeter", "centimeters", "centimetre", "centimetres"),
    "mm": ("millimeter", "millimeters", "millimetre", "millimetres"),
    "mi": ("mile", "miles"),
    "ft": ("foot", "feet"),
    "in": ("inch", "inches"),
    "yd": ("yard", "yards"),
    "kg": ("kilogram", "kilograms"),
    "g": ("gram", "grams"),
    "mg": ("milligram", "milligrams"),
    "t": ("tonne", "tonnes"),
    "lb": ("lbs",),
    "oz": ("ounce", "ounces"),
    "s": ("sec", "second", "seconds"),
    "ms": ("millisecond", "milliseconds"),
    "min": ("mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "day": ("day", "days"),
    "week": ("week", "weeks"),
    "month": ("month", "months"),
    "year": ("year", "years"),
    "l": ("liter", "liters", "litre", "litres"),
    "ml": ("milliliter", "milliliters", "millilitre", "millilitres"),
    "gal": ("gallon", "gallons"),
    "km/h": ("kph", "kmh"),
}
"""In any letter case, and written out."""

_SAME: Final = {"L": "l", "mL": "ml"}

_BY_SYMBOL: Final = {
    **{symbol: _SAME.get(symbol, symbol) for symbol in _SYMBOLS},
    **{spelling: unit for unit, spellings in _CURRENCIES.items() for spelling in spellings if not spelling.islower()},
}
_BY_WORD: Final = {
    **{word: unit for unit, words in _WORDS.items() for word in words},
    **{spelling: unit for unit, spellings in _CURRENCIES.items() for spelling in spellings if spelling.islower()},
}


def _any_of(spellings: Iterable[str]) -> str:
    return "|".join(re.escape(spelling) for spelling in sorted(spellings, key=len, reverse=True))


_CURRENCY_SPELLINGS: Final = [each for spellings in _CURRENCIES.values() for each in spellings if not each.islower()]
_BEFORE: Final = re.compile(rf"(?<!\w)({_any_of(_CURRENCY_SPELLINGS)})[ \u00a0]?[-+]?\Z")
_AFTER: Final = re.compile(
    rf"[ \u00a0\u202f-]?(?:(?P<symbol>{_any_of(_BY_SYMBOL)})|(?P<word>(?i:{_any_of(_BY_WORD)})))(?![\w/^])"
)
_LONGEST_BEFORE: Final = 7


def unit_beside(text: str, start: int, end: int) -> str:
    """The unit of the number `text[start:end]`: a currency before it, or a unit right behind; empty when there is none.

    Spellings of one unit give the same text; nothing is converted, so km and m are two units.
    """
    before = _BEFORE.search(text[max(0, start - _LONGEST_BEFORE) : start])
    if before is not None:
        return _BY_SYMBOL[before[1]]
    after = _AFTER.match(text, end)
    if after is None:
        return ""
    return _BY_SYMBOL[after["symbol"]] if after["symbol"] else _BY_WORD[after["word"].lower()]
