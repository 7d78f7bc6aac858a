"""The scorer `anls`: nearness by the number of characters to change."""

from __future__ import annotations

from burnish.infrastructure.tasks.answer_scorer import AnswerScorer, wrong
from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.scoring import Score, answer_or_last_line

SOLVED_FROM = 0.999
"""From this similarity on an item counts as solved (system B)."""

FURTHEST = 0.5
"""From this distance on, as a share of the longer text, nothing is alike (the metric's own threshold)."""


class Anls(AnswerScorer):
    """Soft: average normalised Levenshtein similarity, the best answer counts. Hard: 1 when that is (nearly) 1.

    Of both texts without outer white space, in lower case, with single spaces (system B's form for DocVQA): one minus the
    number of characters to change, as a share of the longer text; 0 from half of it on. Judges what stands in the last
    `<answer>…</answer>`, else the last line.
    """

    fingerprint = "anls/1"

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the last line."""
        return answer_or_last_line(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """The similarity, and whether it is complete."""
        given = _normalized(prediction)
        soft = max((_similarity(given, _normalized(answer)) for answer in item.answers), default=0.0)
        return Score(1.0, soft) if soft >= SOLVED_FROM else wrong(soft, prediction, item)


def _normalized(text: str) -> str:
    return " ".join(text.lower().split())


def _similarity(given: str, answer: str) -> float:
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - for tasks scored by it only

    longest = max(len(given), len(answer))
    if not longest:
        return 1.0
    distance = Levenshtein.distance(given, answer, score_cutoff=longest // 2 + 1) / longest
    return 0.0 if distance >= FURTHEST else 1.0 - distance
