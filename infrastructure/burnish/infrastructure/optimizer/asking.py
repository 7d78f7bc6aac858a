"""Asking a model for JSON of a schema, with one repair round: how every role of the optimizer asks, and a judge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar, cast

from burnish.application.log import get_logger
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote
from burnish.domain.text_size import CHARACTERS_A_TOKEN
from burnish.infrastructure.models.chat import ChatError, ChatModel, ChatRequest
from burnish.infrastructure.models.metered import most_usage
from burnish.infrastructure.optimizer.json_finding import UnreadableAnswerError
from burnish.infrastructure.optimizer.trajectories import cut_middle

ROLE: Final = "optimizer"

_SHOWN_ANSWER_TOKENS: Final = 1_000  # of an unreadable answer, in the repair round
_PROBLEM_CHARACTERS: Final = 200

_log = get_logger(__name__)

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What an answer must look like: a strict JSON schema, and the name the API knows it by."""

    name: str
    schema: Mapping[str, object]

    @property
    def shown(self) -> str:
        """An answer of this form with nothing in it, for the prompt."""
        return json.dumps(_example(self.schema), ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Answer_co]):
    """What one call asks, and how its answer is read.

    `read` raises UnreadableAnswerError, and nothing else, for a text that is no such answer; it is called in a thread,
    since the repair of a badly broken answer can take seconds while other calls must go on.
    """

    purpose: str
    system: str
    user: str
    form: AnswerForm
    read: Callable[[str], Answer_co]
    max_tokens: int
    seed: int = 0

    @property
    def request(self) -> ChatRequest:
        """The first round's request; the form of the answer closes the user message."""
        return ChatRequest(
            system=self.system,
            user=f"{self.user}\n\n# Your answer\n\nOne JSON object and nothing else: {self.form.shown}",
            purpose=self.purpose,
            json_schema=self.form.schema,
            schema_name=self.form.name,
            max_tokens=self.max_tokens,
            seed=self.seed or None,
        )


async def ask(model: ChatModel, question: Question[Answer]) -> Answer:
    """What the first answer says, or the second.

    Raises PortError: UNREADABLE_PATCH when both answers are unreadable, PROPOSER_CALL_FAILED when the model gives none.
    """
    request, purpose = question.request, question.purpose
    answer = await _complete(model, request)
    try:
        return await asyncio.to_thread(question.read, answer)
    except UnreadableAnswerError as error:
        problem = str(error)
    _log.warning(f"{purpose}.unreadable_answer", round=1, problem=problem, characters=len(answer))
    answer = await _complete(model, replace(request, user=request.user + _complaint(answer, problem)))
    try:
        return await asyncio.to_thread(question.read, answer)
    except UnreadableAnswerError as error:
        _log.warning(f"{purpose}.unreadable_answer", round=2, problem=str(error), characters=len(answer))
        raise PortError(ErrorCode.UNREADABLE_PATCH) from error


def most_tokens(question: Question[object], role: str = ROLE) -> tuple[UsageNote, ...]:
    """The most tokens that asking it can use, the repair round included."""
    request = question.request
    longest = "\U0001f642" * (_SHOWN_ANSWER_TOKENS * CHARACTERS_A_TOKEN)  # four bytes each; a cut answer has fewer
    again = replace(request, user=request.user + _complaint(longest, longest))
    return (*most_usage(request, role), *most_usage(again, role))


async def _complete(model: ChatModel, request: ChatRequest) -> str:
    try:
        return (await model.complete(request)).text
    except ChatError as error:
        _log.warning(f"{request.purpose}.call_failed", code=error.code.value, attempts=error.attempts)
        raise PortError(ErrorCode.PROPOSER_CALL_FAILED) from error


def _complaint(answer: str, problem: str) -> str:
    """What the repair round adds to the first question."""
    shown = cut_middle(answer, _SHOWN_ANSWER_TOKENS)
    return (
        "\n\n# Your answer could not be read\n\nYou have answered this already, with:\n\n"
        f"<answer>\n{shown}\n</answer>\n\nIt cannot be used: {problem[:_PROBLEM_CHARACTERS]}. Answer again as one JSON"
        " object of that form, with quotation marks and line breaks inside texts escaped, and write nothing before or"
        " after it."
    )


def _example(schema: Mapping[str, object]) -> object:
    if "enum" in schema:
        return " | ".join(cast("Sequence[str]", schema["enum"]))
    match schema["type"]:
        case "object":
            properties = cast("Mapping[str, Mapping[str, object]]", schema["properties"])
            return {name: _example(inner) for name, inner in properties.items()}
        case "array":
            return [_example(cast("Mapping[str, object]", schema["items"]))]
        case "integer":
            return 1
        case "number":
            return 0.5
        case _:
            return "…"
