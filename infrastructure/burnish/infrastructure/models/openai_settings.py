"""Which model of OpenAI's API is asked, where and how; apart from the client, so that knowing it loads no SDK."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Final, Literal

JsonMode = Literal["schema", "object", "none"]

LONGEST_WAIT_SECONDS: Final = 60.0
"""Before a retry, whatever `Retry-After` asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIChatSettings:
    """Which model, where, and how to ask it.

    `base_url` None is OpenAI itself. `timeout_seconds` bounds one attempt from request to last byte. A call makes at most
    `max_retries` + 1 attempts, with waits of at most `LONGEST_WAIT_SECONDS` between them; `max_concurrency` bounds the
    requests in flight of one model object. `token_parameter` is the name the server knows for the limit of an answer's
    tokens: `max_tokens` at compatible servers. `max_tokens` and `temperature` are for requests that bring none.
    `json_mode` is the strongest way to ask for JSON that is tried; a server that refuses it is asked at once for the
    next weaker one, which are at most two requests more.
    """

    model: str
    base_url: str | None
    api_key: str = field(repr=False)
    timeout_seconds: float = 120.0
    max_retries: int = 4
    max_concurrency: int = 16
    max_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    json_mode: JsonMode = "schema"
    token_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"  # noqa: S105  # no secret


def fingerprint_of(settings: OpenAIChatSettings) -> str:
    """A SHA-256 over the model and the parameters that decide about its answers; not over key, address or limits.

    It holds the JSON mode that was configured, not the weaker one a server made us use: it must not move in a run.
    """
    parameters = {
        "api": "openai/chat.completions",
        "model": settings.model,
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "reasoning_effort": settings.reasoning_effort,
        "json_mode": settings.json_mode,
    }
    return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()
