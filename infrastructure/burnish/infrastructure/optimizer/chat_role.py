"""What the optimizer's roles share: a model they ask, a fingerprint, and a bound of what asking uses."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from burnish.application.usage import UsageNote
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.optimizer.asking import Question, ask, most_tokens

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class ChatRole(ABC, Generic[Request, Answer]):
    """A role that makes at most one question of a request.

    `identity` is everything besides model and limits that decides about an answer: the prompts above all. ValueError when
    a limit is below 1.
    """

    def __init__(self, model: ChatModel, *identity: str, **limits: int) -> None:
        for name, limit in limits.items():
            if limit < 1:
                raise ValueError(f"{name} must be at least 1, not {limit}")
        self._model = model
        self._identity = (type(self).__name__, *identity, *limits.values())

    @property
    def fingerprint(self) -> str:
        """A SHA-256 over the role, its model, prompts and limits: what else decides about an answer is the request."""
        return hashlib.sha256(json.dumps([self._model.fingerprint, *self._identity]).encode()).hexdigest()

    def usage_at_most(self, request: Request, /) -> Sequence[UsageNote]:
        """The most tokens the call can use; none when nobody is asked."""
        question = self._question(request)
        return () if question is None else most_tokens(question)

    def text_behind(self, digest: str) -> str | None:
        """What the fingerprint was made from, for people to compare."""
        if digest != self.fingerprint:
            return None
        return "\n".join((f"model: {self._model.fingerprint}", *map(str, self._identity)))

    async def _answer(self, request: Request) -> Answer | None:
        """The model's answer; None when nobody is asked.

        Raises PortError: UNREADABLE_PATCH when both answers are unreadable, PROPOSER_CALL_FAILED when the model gives none.
        """
        question = self._question(request)
        if question is None:
            return None
        return await ask(self._model, question)

    @abstractmethod
    def _question(self, request: Request) -> Question[Answer] | None:
        """What to ask; None when there is nothing to ask."""
