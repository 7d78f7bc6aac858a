"""What scorers share that compare a prediction with an item's answers: normal forms of texts, and reasons."""

from __future__ import annotations

import re
import string
import unicodedata

from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.scoring import Score

_MAX_REASON_CHARACTERS = 200
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


class AnswerScorer:
    """Quick, and in need of an answer to compare with."""

    is_blocking = False

    def problem(self, item: Item, /) -> str:
        """An item without answers."""
        return "" if item.answers else "it has no answer to compare with; write one, or score with a Python function"


def all_or_nothing(is_right: bool, prediction: str, item: Item) -> Score:  # noqa: FBT001 - the score itself
    """1 and 1, or 0 and 0 with the reason."""
    return Score(1.0, 1.0) if is_right else wrong(0.0, prediction, item)


def wrong(soft: float, prediction: str, item: Item) -> Score:
    """Not solved: what was expected, and what the prediction was."""
    return missed(soft, got(prediction), item)


def missed(soft: float, got: str, item: Item) -> Score:
    """Not solved: what was expected, and `got`, said as it was understood."""
    return Score(0.0, soft, f"expected {_expected(item)}, got {got}", f"got {got}, which is not what was expected")


def got(prediction: str) -> str:
    """The prediction for a reason: quoted, on one line, cut."""
    return quoted(prediction) if prediction.strip() else "nothing"


def quoted(text: str) -> str:
    """A text for a reason: in quotation marks, on one line, cut."""
    text = " ".join(text.split())
    return f'"{text}"' if len(text) <= _MAX_REASON_CHARACTERS else f'"{text[: _MAX_REASON_CHARACTERS - 1]}…"'


def folded(text: str) -> str:
    """Without differences of letter case, white space, and of how an accented letter is encoded."""
    lower = unicodedata.normalize("NFC", text).casefold()
    return " ".join(unicodedata.normalize("NFC", lower).split())


def normalized(text: str) -> str:
    """System B's form for SearchQA: lower case, no ASCII punctuation, then no words a, an, the, then single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _expected(item: Item) -> str:
    others = f" (or {len(item.answers) - 1} more)" if len(item.answers) > 1 else ""
    return quoted(item.answers[0]) + others if item.answers else "nothing"
