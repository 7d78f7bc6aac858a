"""A chat model that is not there: it stands in where every answer comes from a recording."""

from __future__ import annotations

from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest


class OfflineModel:
    """Known by the fingerprint of the model it stands for; asked, it fails."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> str:
        """That of the model it stands for."""
        return self._fingerprint

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Raises ChatError."""
        raise ChatError(ChatErrorCode.CONNECTION)

    async def aclose(self) -> None:
        """Nothing is open."""
