"""A chat model as burnish sees it: one request, one answer, or one coded failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

MOST_PAID_ANSWERS: Final = 2
"""How many answers one call may pay for: an empty one costs tokens too, and is asked for once more."""


class ChatErrorCode(StrEnum):
    """Why a model gave no usable answer. The values are recorded as a rollout's `error`, and are stable."""

    REFUSED_KEY = "model.refused_key"
    """401 or 403: the key is missing, wrong or not allowed."""
    NOT_FOUND = "model.not_found"
    """404: no such model or path."""
    BAD_REQUEST = "model.bad_request"
    """400, 413 or 422: the server does not accept this request (too long a prompt, an unknown parameter)."""
    RATE_LIMITED = "model.rate_limited"
    """429, still after the last retry."""
    SERVER_ERROR = "model.server_error"
    """5xx (or 408, 409, 425), still after the last retry."""
    TIMEOUT = "model.timeout"
    """No answer in time, still after the last retry."""
    CONNECTION = "model.connection"
    """The server could not be reached, or the connection broke."""
    TRUNCATED = "model.truncated"
    """The answer hit the token limit (finish reason length)."""
    FILTERED = "model.filtered"
    """The provider withheld the answer (content filter, refusal)."""
    EMPTY = "model.empty"
    """The answer holds no text."""
    UNREADABLE = "model.unreadable"
    """The server's reply is not what its API promises (invalid JSON, no choices)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call; `is_estimated` when the server reported none and they were guessed from the text's length.

    Of the prompt's tokens `cached_tokens` were read from the provider's cache, and `cache_written_tokens` written to it.
    """

    prompt_tokens: int
    completion_tokens: int
    is_estimated: bool = False
    cached_tokens: int = 0
    cache_written_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            is_estimated=self.is_estimated or other.is_estimated,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_written_tokens=self.cache_written_tokens + other.cache_written_tokens,
        )


class ChatError(Exception):
    """A model call that failed for good. Its text names the code only: details went to the log, without secrets.

    `usage` are the tokens that were paid for all the same, where the server told.
    """

    def __init__(self, code: ChatErrorCode, *, attempts: int = 1, usage: Usage | None = None) -> None:
        super().__init__(code.value)
        self.code = code
        self.attempts = attempts
        self.usage = usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One question to a model: a system prompt, a user message, and what the answer must look like.

    `json_schema`, where given, is a JSON Schema object the whole answer must match (`schema_name` names it for the API).
    `purpose` is a short name for usage accounting (`rollout`, `reflect`, …). None leaves a parameter to the model's own
    settings. `seed` makes repeated sampling reproducible where a server offers it. `skill` is the part of `system` that
    is a skill document: an agent that looks for skills in a folder finds it there, and the rest in its prompt.
    """

    system: str
    user: str
    purpose: str
    json_schema: Mapping[str, object] | None = None
    schema_name: str = "answer"
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    skill: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """A usable answer: not empty, not cut off. `trace` tells what an agent did before it answered, in turns."""

    text: str
    usage: Usage
    attempts: int = 1
    trace: str = ""


class ChatModel(Protocol):
    """A model somewhere."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same request could be answered differently: model, parameters, base prompt. No secrets."""
        ...

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer; raises ChatError when there is none. May be called concurrently.

        Its usage adds up what was paid for, at most `MOST_PAID_ANSWERS` answers.
        """
        ...

    async def aclose(self) -> None:
        """Give connections back."""
        ...
