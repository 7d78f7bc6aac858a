"""Quantities: the numbers that people and models write in a text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from burnish.infrastructure.tasks.units import unit_beside

_SCALE_WORDS = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SCALE_LETTERS = {"k": 1e3, "K": 1e3, "M": 1e6, "mn": 1e6, "B": 1e9, "bn": 1e9, "T": 1e12, "tn": 1e12}

_SEPARATOR = re.compile("[,'’_\u00a0\u202f\u2009]")
_SCALE_WORD = re.compile("|".join(_SCALE_WORDS))
_QUANTITY = re.compile(
    r"""
    (?: (?<! [\w)\]^] ) (?P<sign> [-+] ) [$€£¥]?     # the hyphen of "3-5" is no sign
      | (?<! [\w^] ) (?<! \d\. ) )                   # the digits of "B12", of the 2 in "m^2" and of "1.2.3" are no number
    (?P<digits> \d{1,3} (?: [,'’_\u00a0\u202f\u2009] \d{3} )+ (?!\d) (?: \.\d+ )?
              | \d+ (?: \.\d+ )?
              | (?<!\.) \.\d+ )
    (?P<exponent> [eE] [-+]? \d+ (?!\w) )?
    (?: \^ (?P<power> [-+]? \d+ ) | (?P<divisors> (?: / \d+ (?: \.\d+ )? )+ ) )?
    (?: (?P<letters> (?: k | K | M | mn | B | bn | T | tn ) \b )
      | (?P<words> (?: [ \u00a0\u202f-]? (?i: hundred | thousand | million | billion | trillion ) s? \b )+ ) )?
    (?P<percent> \s? (?: [%％] | (?i: percent | per\s?cent | pct ) \b ) )?
    """,
    re.VERBOSE,
)

_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s?\{\s?([-+]?[\d.]+)\s?\}\s?\{\s?([\d.]+)\s?\}")
_SUPERSCRIPT = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_SUPERSCRIPT_DIGITS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_POWER = re.compile(r"(?<=\d)(?: ?\^ ?[{(]? ?|\*\*)([-+]?\d+) ?[)}]?")
_POWER_OF_TEN = re.compile(r"(?<=\d) ?[×xX*·] ?10\^(?=[-+\d])")
_SPELLINGS = (("{,}", ","), ("\\%", "%"), ("\\$", "$"), ("\\times", "×"), ("\\cdot", "×"), ("−", "-"))


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number, its unit, and whether it is a percentage: 50 % is `Quantity(50.0, is_percentage=True)`, never 0.5.

    `unit` is empty for a number beside which none stands that is known.
    """

    value: float
    is_percentage: bool
    unit: str = ""

    def __str__(self) -> str:
        unit = "%" if self.is_percentage else self.unit
        return f"{self.value:.15g}{unit and f' {unit}'}"


def last_quantity(text: str) -> Quantity | None:
    """The last finite number in the text; None without any.

    Understood: signs, a decimal point, thousands set apart by commas, apostrophes or narrow spaces ("1,234.5"; a decimal
    comma is not understood), exponents and powers ("1.5e6", "1.5 × 10^6", "10⁶"), fractions ("3/4"), scales ("5 million",
    "5M"), percentages ("5 %", "5 percent"), currencies ("€ 5") and units behind the number ("5 km"). No numbers: digits
    inside words ("B12"), dates with slashes.
    """
    plain = _plain(text)
    for match in reversed(list(_QUANTITY.finditer(plain))):
        value = _value(match)
        if value is not None and math.isfinite(value):
            if match["percent"] is not None:
                return Quantity(value, is_percentage=True)
            return Quantity(value, is_percentage=False, unit=unit_beside(plain, match.start("digits"), match.end()))
    return None


def _plain(text: str) -> str:
    """The text with each way to write a sign, fraction or power made the same."""
    for spelling, plain in _SPELLINGS:
        text = text.replace(spelling, plain)
    text = _LATEX_FRACTION.sub(r"\1/\2", text)
    text = _SUPERSCRIPT.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPT_DIGITS), text)
    text = _POWER.sub(r"^\1", text)
    return _POWER_OF_TEN.sub("e", text)


def _value(match: re.Match[str]) -> float | None:
    value = float(_SEPARATOR.sub("", match["digits"]) + (match["exponent"] or ""))
    if match["power"]:
        try:
            value = math.pow(value, float(match["power"]))
        except (OverflowError, ValueError):
            return None
    if match["divisors"]:
        divisors = [float(divisor) for divisor in match["divisors"].split("/")[1:]]
        if len(divisors) > 1 or divisors[0] == 0:
            return None
        value /= divisors[0]
    if match["letters"]:
        value *= _SCALE_LETTERS[match["letters"]]
    if match["words"]:
        value *= math.prod(_SCALE_WORDS[word] for word in _SCALE_WORD.findall(match["words"].lower()))
    return -value if match["sign"] == "-" else value
