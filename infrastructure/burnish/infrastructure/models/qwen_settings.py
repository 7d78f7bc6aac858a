"""Which Qwen model is asked, where and how; apart from the client, so that knowing it loads no SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from burnish.infrastructure.models.served_settings import ServedSettings

ThinkingMode = Literal["server_default", "enabled", "disabled"]

QWEN_URL: Final = "http://localhost:8000/v1"
"""Where vLLM serves when nobody says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QwenChatSettings(ServedSettings):
    """Which Qwen model of a vLLM-style server, and whether it is to think before it answers."""

    API: ClassVar[str] = "qwen/chat.completions"

    thinking_mode: ThinkingMode = "server_default"
    json_mode: Literal["schema", "object", "none"] = "schema"

    @property
    def parameters(self) -> dict[str, object]:
        """What of the settings decides about answers."""
        return {**self.common_parameters, "json_mode": self.json_mode, "thinking_mode": self.thinking_mode}
