"""The scorer `llm_judge`: a model grades answers by a rubric, in both orders, perhaps several times."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Sequence
from itertools import product
from typing import Final
from weakref import WeakValueDictionary

from burnish.application.journal_keys import journal_key
from burnish.application.journaling import active_journal
from burnish.application.ports import PortError
from burnish.application.usage import UsageNote
from burnish.domain.text_size import CHARACTERS_A_TOKEN
from burnish.infrastructure.models.chat import ChatError, ChatModel, ChatRequest
from burnish.infrastructure.optimizer.asking import Question, ask, most_tokens
from burnish.infrastructure.optimizer.trajectories import cut_middle
from burnish.infrastructure.tasks.items import Item, item_json
from burnish.infrastructure.tasks.judge_prompt import PURPOSE, Grade, Order, orders_for, question_about, read_grade
from burnish.infrastructure.tasks.scoring import JudgeFailedError, Score, answer_or_whole

ROLE: Final = "judge"
DEFAULT_MAX_TOKENS: Final = 1_024
DEFAULT_PASS_MARK: Final = 0.7

MAX_ANSWER_TOKENS: Final = 4_000
"""Of an answer, as much is shown to a judge; the middle of a longer one is cut out."""

_VERSION = 1
"""Counts up when questions are put together, or grades taken together, in another way."""

_EPSILON = 1e-9


class LlmJudge:
    """Soft: the mean of a model's grades, as shares of the best one. Hard: 1 from the pass mark on.

    An answer is graded `repeats` times in each order: with the reference answer before it and behind it, for judges favour
    places; without a reference there is one order. The criteria are the rubric and the item's own field `rubric`. Judges
    what stands in the last `<answer>…</answer>`, else the whole text. A grade that does not come leaves the answer without
    a score. In a run each grade is kept in its journal under answer, rubric, order and repeat, so that equal answers to an
    item are graded once.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        rubric: str = "",
        repeats: int = 1,
        pass_mark: float = DEFAULT_PASS_MARK,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        answer_tokens: int = MAX_ANSWER_TOKENS,
    ) -> None:
        self._model = model
        self._rubric = rubric.strip()
        self._repeats = repeats
        self._pass_mark = pass_mark
        self._max_tokens = max_tokens
        self._answer_tokens = min(answer_tokens, MAX_ANSWER_TOKENS)
        self._being_graded: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def fingerprint(self) -> str:
        """Changes with the judge's model, the rubric, and how often and how much it reads."""
        return json.dumps(["llm_judge", self._repeats, self._pass_mark, self._judge])

    @property
    def _judge(self) -> list[str | int]:
        """All of a grade's making that is not in the answer."""
        return [_VERSION, self._model.fingerprint, self._rubric, self._max_tokens, self._answer_tokens]

    def problem(self, item: Item, /) -> str:
        """An item that nothing is said about."""
        own = item.extra.get("rubric")
        if own is not None and not isinstance(own, str):
            return '"rubric" is not a text; put it in quotation marks'
        if not item.answers and not self._rubric and not own:
            return 'it has neither an answer nor a "rubric", and env.judge_rubric is empty; write one of them'
        return ""

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the whole text."""
        return answer_or_whole(answer)

    async def judge(self, prediction: str, item: Item, /) -> Score:
        """The score, and the reason of the lowest grade. Raises JudgeFailedError when a grade does not come."""
        calls = (self._grade(prediction, item, order, repeat) for order, repeat in self._calls(item))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        grades: list[Grade] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            grades.append(answer)
        soft = math.fsum(grade.share for grade in grades) / len(grades)
        if soft >= self._pass_mark - _EPSILON:
            return Score(1.0, soft)
        graded = f"graded {soft:.2f} of 1, passed from {self._pass_mark:.2f} on"
        reason = min(grades, key=lambda grade: grade.share).reason
        return Score(0.0, soft, f"{graded}: {reason}" if reason else graded, graded)

    def usage_at_most(self, item: Item, /) -> Sequence[UsageNote]:
        """The most tokens that judging any answer to the item can use."""
        # Four bytes a character, which no cut answer has more of; and the note in the place of what was cut out.
        longest = "\U0001f642" * (self._answer_tokens * CHARACTERS_A_TOKEN + 16)
        calls = (self._question_about(longest, item, order, repeat) for order, repeat in self._calls(item))
        return [note for question in calls for note in most_tokens(question, ROLE)]

    def question(self, prediction: str, item: Item, order: Order, repeat: int) -> Question[Grade]:
        """What the judge is asked in one call."""
        return self._question_about(cut_middle(prediction, self._answer_tokens), item, order, repeat)

    def _question_about(self, shown: str, item: Item, order: Order, repeat: int) -> Question[Grade]:
        return question_about(shown, item, rubric=self._rubric, order=order, repeat=repeat, max_tokens=self._max_tokens)

    def requests(self, prediction: str, item: Item) -> Sequence[ChatRequest]:
        """What the judge is asked about an answer, in all orders and repeats."""
        return [self.question(prediction, item, order, repeat).request for order, repeat in self._calls(item)]

    def calls(self, item: Item) -> int:
        """How often the judge is asked about an answer to the item."""
        return len(self._calls(item))

    def _calls(self, item: Item) -> list[tuple[Order, int]]:
        return list(product(orders_for(item), range(self._repeats)))

    async def _grade(self, prediction: str, item: Item, order: Order, repeat: int) -> Grade:
        journal, question = active_journal(), self.question(prediction, item, order, repeat)
        if journal is None:
            return await self._asked(question)
        key = journal_key(PURPOSE, _digest([item_json(item), prediction]), _digest(self._judge), order.value, repeat)

        async def ask_judge() -> str:
            grade = await self._asked(question)
            return json.dumps({"reason": grade.reason, "grade": grade.share * 10}, ensure_ascii=False)

        lock = self._being_graded.setdefault(key, asyncio.Lock())
        async with lock:  # an equal answer that comes meanwhile finds the grade in the journal
            return read_grade(await journal.part(key, ask_judge))

    async def _asked(self, question: Question[Grade]) -> Grade:
        try:
            return await ask(self._model, question)
        except PortError as error:
            cause = error.__cause__
            code = cause.code.value.removeprefix("model.") if isinstance(cause, ChatError) else "unreadable"
            raise JudgeFailedError(f"{ROLE}.{code}") from error


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
