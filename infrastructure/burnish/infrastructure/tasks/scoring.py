"""What a scorer is: the score it gives, what it reads of an answer, and what the runner asks of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from burnish.application.usage import UsageNote
from burnish.infrastructure.tasks.items import Item

_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Score:
    """How good a prediction is: `hard` (solved or not) and `soft` (how nearly), both meant to lie in [0, 1].

    `reason` says for the optimizer why the item is not solved; empty when it is. `reason_without_answer` says it without the
    expected answer, for tasks that do not show it; empty: `reason` does not hold it.
    """

    hard: float
    soft: float
    reason: str = ""
    reason_without_answer: str = ""


@runtime_checkable
class Scorer(Protocol):
    """Judges an agent's answer to an item; the same answer to the same item always gets the same score."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same answer could be scored differently."""
        ...

    @property
    def is_blocking(self) -> bool:
        """Whether scoring may take long, so that it belongs in a thread and not on the event loop."""
        ...

    def problem(self, item: Item, /) -> str:
        """Why this scorer cannot judge the item, and the remedy, in one line; empty when it can."""
        ...

    def extract(self, answer: str, /) -> str:
        """The prediction: what of the agent's whole answer is judged."""
        ...

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """The score of the prediction; it is passed on as it is, even outside of [0, 1]. May raise anything."""
        ...


class JudgeFailedError(Exception):
    """A judge that gave no grade: the answer stays without a score. `code` is the rollout's error."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@runtime_checkable
class JudgingScorer(Protocol):
    """Judges an agent's answer by asking somebody, a model for example."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same answer could be scored differently."""
        ...

    def problem(self, item: Item, /) -> str:
        """Why this scorer cannot judge the item, and the remedy, in one line; empty when it can."""
        ...

    def extract(self, answer: str, /) -> str:
        """The prediction: what of the agent's whole answer is judged."""
        ...

    async def judge(self, prediction: str, item: Item, /) -> Score:
        """The score of the prediction. Raises JudgeFailedError when there is none."""
        ...

    def usage_at_most(self, item: Item, /) -> Sequence[UsageNote]:
        """The most tokens that judging any answer to the item can use."""
        ...


def answer_or_last_line(answer: str) -> str:
    """What stands in the last `<answer>…</answer>`, else the last line that is not blank (system B); trimmed."""
    tagged = _last_tagged(answer)
    if tagged is not None:
        return tagged
    lines = [line for line in answer.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def answer_or_whole(answer: str) -> str:
    """What stands in the last `<answer>…</answer>`, else the whole answer; trimmed."""
    tagged = _last_tagged(answer)
    return answer.strip() if tagged is None else tagged


def _last_tagged(answer: str) -> str | None:
    """One pass over the tags: a search for pairs takes quadratic time when a model repeats an opening tag for ever."""
    opened: int | None = None
    found: str | None = None
    for tag in _TAG.finditer(answer):
        if not tag[1]:
            opened = tag.end()
        elif opened is not None:
            found = answer[opened : tag.start()].strip()
            opened = None
    return found
