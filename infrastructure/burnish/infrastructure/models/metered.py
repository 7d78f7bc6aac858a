"""A chat model whose tokens are counted for the role it plays."""

from __future__ import annotations

from burnish.application.usage import UsageNote, note_usage
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatModel, ChatRequest, Usage


class MeteredModel:
    """Passes everything on, and notes what each call used, also one that was paid for and gave no usable answer."""

    def __init__(self, model: ChatModel, role: str) -> None:
        self._model = model
        self._role = role

    @property
    def fingerprint(self) -> str:
        """The model's own."""
        return self._model.fingerprint

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The model's answer."""
        try:
            answer = await self._model.complete(request)
        except ChatError as error:
            if error.usage is not None:
                self._note(error.usage)
            raise
        self._note(answer.usage)
        return answer

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    def _note(self, usage: Usage) -> None:
        note_usage(UsageNote(self._role, usage.prompt_tokens, usage.completion_tokens, usage.is_estimated))
