"""The scorers by name: those of texts and numbers, which are defined here, and all others."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from burnish.infrastructure.tasks.answer_scorer import (
    AnswerScorer,
    all_or_nothing,
    folded,
    missed,
    normalized,
    wrong,
)
from burnish.infrastructure.tasks.edit_distance_scorer import Anls
from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.json_scorer import JsonMatch
from burnish.infrastructure.tasks.pattern_scorer import Regex
from burnish.infrastructure.tasks.plugins import SCORERS, load_plugin, plugin_names
from burnish.infrastructure.tasks.python_scorer import PythonScorer
from burnish.infrastructure.tasks.quantities import Quantity, last_quantity
from burnish.infrastructure.tasks.refusals import DataError, shown
from burnish.infrastructure.tasks.scoring import Score, Scorer, answer_or_last_line, answer_or_whole

__all__ = [
    "F1",
    "Anls",
    "Contains",
    "ExactMatch",
    "JsonMatch",
    "Numeric",
    "PythonScorer",
    "Regex",
    "Score",
    "Scorer",
    "load_scorer",
]

RELATIVE_TOLERANCE = 1e-6
"""How far, as a share of the right number, a numeric answer may be off, unless the item says otherwise."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = rf"[^\W{_UNSPACED}]"
"""A character that belongs to the word beside it; Chinese, Japanese, Thai, Lao, Khmer and Burmese set no spaces."""


_NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})


def load_scorer(name: str, folder: Path, *, field_weights: Mapping[str, float] = _NO_WEIGHTS) -> Scorer:
    """The scorer of that name: built in, or an entry point of `burnish.scorers`.

    A name with a colon is a Python function `module:callable`, looked for in the task's folder first. `field_weights` are
    for `json_match`. Raises DataError when there is no such scorer, module or callable.
    """
    if ":" in name:
        return PythonScorer.load(name, folder)
    if name == "json_match":
        return JsonMatch(field_weights)
    make = _BY_NAME.get(name)
    if make is not None:
        return make()
    if name in plugin_names(SCORERS):
        return _plugin_scorer(name)
    known = ", ".join(sorted([*_BY_NAME, "json_match", *plugin_names(SCORERS)]))
    raise DataError(f"there is no scorer {shown(name)}; use {known}, or a Python function as module:callable")


def _plugin_scorer(name: str) -> Scorer:
    """The installed scorer: an object of the protocol, or a function that takes a prediction and an item."""
    loaded = load_plugin(SCORERS, name)
    if isinstance(loaded, Scorer) and not isinstance(loaded, type):
        return loaded
    return PythonScorer.of(f"{name} of {SCORERS}", loaded)


class ExactMatch(AnswerScorer):
    """1 when the prediction is one of the answers, up to letter case and white space, else 0.

    Punctuation counts: for codes such as NWR-7F/2 it is part of the answer, and dropping it, as `f1` does, would make
    NWR-7F/2 and NWR7F2 the same. Judges what stands in the last `<answer>…</answer>`, else the last line.
    """

    fingerprint = "exact_match/1"

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the last line."""
        return answer_or_last_line(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """1 or 0."""
        return all_or_nothing(folded(prediction) in map(folded, item.answers), prediction, item)


class F1(AnswerScorer):
    """Soft: how many words prediction and answer share (F1 of the two multisets, the best answer counts). Hard: equality.

    Both after system B's normalisation for SearchQA: lower case, then without ASCII punctuation, then without the words
    a, an, the, then with single spaces. Without words, a prediction gets 1 for an answer without words, else 0. Judges
    what stands in the last `<answer>…</answer>`, else the last line, as B does.
    """

    fingerprint = "f1/1"

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the last line."""
        return answer_or_last_line(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """Equality and shared words."""
        given = normalized(prediction)
        answers = [normalized(answer) for answer in item.answers]
        hard = float(given in answers)
        soft = max((_shared_words(given, answer) for answer in answers), default=0.0)
        return Score(hard, soft) if hard else wrong(soft, prediction, item)


class Contains(AnswerScorer):
    """1 when the prediction contains one of the answers as whole words, up to letter case and white space, else 0.

    An answer without text is contained in a prediction without text only. Judges what stands in the last
    `<answer>…</answer>`, else the whole text: it looks for the answer itself, wherever it stands. An agent that lists
    everything it can think of is right, so prefer another scorer where that could pay.
    """

    fingerprint = "contains/1"

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the whole text."""
        return answer_or_whole(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """1 or 0."""
        text = folded(prediction)
        return all_or_nothing(any(_contains(text, folded(answer)) for answer in item.answers), prediction, item)


class Numeric(AnswerScorer):
    """1 when the prediction's last number is an answer's last number, within a tolerance, else 0; soft is the same.

    How near a wrong number comes says little about how nearly right the work was, so there is no partial credit. The
    tolerance is a share of the right number: `RELATIVE_TOLERANCE`, or the item's field `tolerance`; a right 0 must be met
    exactly. A percentage equals percentages only. Of two numbers with units both units must be the same (km and m are
    two, and nothing is converted); a number without one is taken to be in the other's. What counts as a number: see
    `last_quantity`. Judges what stands in the last `<answer>…</answer>`, else the whole text, for it looks for the number
    itself.
    """

    fingerprint = "numeric/2"

    def problem(self, item: Item, /) -> str:
        """An answer without a number, or a tolerance that is none."""
        if any(last_quantity(answer) is None for answer in item.answers):
            return "an answer holds no number; correct it, or choose another scorer"
        if _tolerance(item) is None:
            return '"tolerance" is not a number from 0 up; write for example 0.01 for 1 %'
        return super().problem(item)

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the whole text."""
        return answer_or_whole(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """1 or 0. Raises ValueError for an item with a `problem`."""
        if problem := self.problem(item):
            raise ValueError(problem)
        given, tolerance = last_quantity(prediction), _tolerance(item) or 0.0
        right = [quantity for answer in item.answers if (quantity := last_quantity(answer))]
        if given is not None and any(_is_near(given, each, tolerance) for each in right):
            return Score(1.0, 1.0)
        return missed(0.0, str(given or "no number"), item)


_BY_NAME: dict[str, Callable[[], Scorer]] = {
    "anls": Anls,
    "contains": Contains,
    "exact_match": ExactMatch,
    "f1": F1,
    "numeric": Numeric,
    "regex": Regex,
}


def _shared_words(given: str, answer: str) -> float:
    given_words, answer_words = Counter(given.split()), Counter(answer.split())
    total = given_words.total() + answer_words.total()
    return 2 * (given_words & answer_words).total() / total if total else 1.0


def _contains(text: str, answer: str) -> bool:
    if not answer:
        return not text
    starts = rf"(?<!{_WORD})" if re.match(_WORD, answer[0]) else ""
    ends = rf"(?!{_WORD})" if re.match(_WORD, answer[-1]) else ""
    return re.search(f"{starts}{re.escape(answer)}{ends}", text) is not None


def _is_near(given: Quantity, right: Quantity, tolerance: float) -> bool:
    if given.is_percentage != right.is_percentage or (given.unit and right.unit and given.unit != right.unit):
        return False
    return abs(given.value - right.value) <= tolerance * abs(right.value)


def _tolerance(item: Item) -> float | None:
    value = item.extra.get("tolerance", RELATIVE_TOLERANCE)
    if isinstance(value, str):  # all that CSV has
        try:
            value = float(value) if value else RELATIVE_TOLERANCE
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        return None
    return float(value)
