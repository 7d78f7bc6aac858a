"""What is set of a model behind any HTTP API; apart from the clients, so that knowing it loads no SDK."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import ClassVar, Final

LONGEST_WAIT_SECONDS: Final = 60.0
"""Before a retry, whatever `Retry-After` asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSettings:
    """Which model, where, and how to ask it.

    `base_url` None is the provider's own address. `timeout_seconds` bounds one attempt from request to last byte. A call
    makes at most `max_retries` + 1 attempts, with waits of at most `LONGEST_WAIT_SECONDS` between them;
    `max_concurrency` bounds the requests in flight of one model object, `requests_per_minute` and `tokens_per_minute`
    spread them over time (None: as they come). `max_tokens` and `temperature` are for requests that bring none.
    """

    API: ClassVar[str] = ""

    model: str
    base_url: str | None
    api_key: str = field(repr=False)
    timeout_seconds: float = 120.0
    max_retries: int = 4
    max_concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None

    @property
    def fingerprint(self) -> str:
        """A SHA-256 over the model and the parameters that decide about its answers; not over key, address or limits.

        It holds what was configured, not what a server made us do instead: it must not move in a run.
        """
        return digest_of(self.API, self.parameters)

    @property
    def parameters(self) -> dict[str, object]:
        """What of the settings decides about answers."""
        return self.common_parameters

    @property
    def common_parameters(self) -> dict[str, object]:
        """What of the settings all APIs share decides about answers."""
        return {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "reasoning_effort": self.reasoning_effort,
        }


def digest_of(api: str, parameters: dict[str, object]) -> str:
    """A SHA-256 over an API and what decides about its answers."""
    return hashlib.sha256(json.dumps({"api": api, **parameters}, sort_keys=True).encode()).hexdigest()


def check_key(key: str) -> None:
    """Raise ValueError for a key that is blank, or one that no HTTP header can carry."""
    if not key.strip() or not (key.isascii() and key.isprintable()):
        raise ValueError("api_key is blank, or holds characters that no HTTP header can carry")
