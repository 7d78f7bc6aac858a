"""Which model of Anthropic's API is asked, where and how; apart from the client, so that knowing it loads no SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from burnish.infrastructure.models.served_settings import ServedSettings

ClaudeJsonMode = Literal["schema", "tool", "none"]

DEFAULT_MAX_TOKENS: Final = 16_384
"""The API wants a limit; it holds for thinking and answer together."""

HIGHEST_TEMPERATURE: Final = 1.0
"""That the API takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeChatSettings(ServedSettings):
    """Which of Anthropic's models.

    With `is_token` the key is a token of a gateway, which goes into another header. `json_mode` is the strongest way to
    ask for JSON that is tried: by the schema of the answer, by a tool that must be called, by the prompt alone.
    """

    API: ClassVar[str] = "anthropic/messages"

    is_token: bool = False
    json_mode: ClaudeJsonMode = "schema"

    @property
    def parameters(self) -> dict[str, object]:
        """What of the settings decides about answers."""
        longest = self.max_tokens or DEFAULT_MAX_TOKENS
        return {**self.common_parameters, "max_tokens": longest, "json_mode": self.json_mode}
