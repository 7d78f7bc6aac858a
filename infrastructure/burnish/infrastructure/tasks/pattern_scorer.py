"""The scorer `regex`: an item's answers are regular expressions."""

from __future__ import annotations

from burnish.infrastructure.tasks.answer_scorer import AnswerScorer, got, quoted
from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.scoring import Score, answer_or_whole

MAX_SEARCH_SECONDS = 5.0
"""A search that takes longer ends the run: the pattern goes back and forth for ever, and no score would be true."""


class Regex(AnswerScorer):
    """1 when one of the item's answers, read as a regular expression, is found in the prediction, else 0.

    The syntax is that of Python's `re`, and a little more (the library `regex`); letter case counts unless the pattern
    begins with `(?i)`; `^` and `$` stand for the ends of the prediction. Judges what stands in the last
    `<answer>…</answer>`, else the whole text.
    """

    fingerprint = "regex/1"
    is_blocking = True

    def problem(self, item: Item, /) -> str:
        """A pattern that is none."""
        import regex  # noqa: PLC0415 - for tasks with patterns only

        for answer in item.answers:
            try:
                regex.compile(answer)
            except (regex.error, OverflowError, RecursionError):
                return f"its answer {quoted(answer)} is no regular expression; correct it"
        return super().problem(item)

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the whole text."""
        return answer_or_whole(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """1 or 0. Raises TimeoutError when a pattern takes too long, and the library's error for one that is none."""
        import regex  # noqa: PLC0415 - for tasks with patterns only

        for pattern in item.answers:
            if regex.search(pattern, prediction, timeout=MAX_SEARCH_SECONDS, concurrent=True) is not None:
                return Score(1.0, 1.0)
        patterns = " or ".join(map(quoted, item.answers[:3])) + (" or more" if len(item.answers) > 3 else "")
        found = got(prediction)
        return Score(
            0.0, 0.0, f"expected a match of {patterns}, got {found}", f"got {found}, which has not the form expected"
        )
