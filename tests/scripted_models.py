"""Chat models that answer what a test tells them to."""

from __future__ import annotations

from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatRequest, Usage


class ScriptedModel:
    """Gives one answer after the other, or raises it, and keeps the requests."""

    def __init__(self, *answers: str | ChatError, fingerprint: str = "scripted") -> None:
        self.requests: list[ChatRequest] = []
        self._answers = list(answers)
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def asked(self) -> str:
        """The user message of the only request."""
        (request,) = self.requests
        return request.user

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, ChatError):
            raise answer
        return ChatAnswer(text=answer, usage=Usage(prompt_tokens=1, completion_tokens=1))

    async def aclose(self) -> None:
        """Nothing is open."""
