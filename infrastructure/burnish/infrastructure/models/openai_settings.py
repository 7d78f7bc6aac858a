"""Which model of OpenAI's API is asked, where and how; apart from the client, so that knowing it loads no SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from burnish.infrastructure.models.served_settings import ServedSettings

JsonMode = Literal["schema", "object", "none"]
AzureAuth = Literal["api_key", "azure_cli", "managed_identity"]

AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"
AZURE_API_VERSION = "2024-12-01-preview"


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureAccess:
    """How Azure lets us in: by the key, or by a token for `scope` from the `az` command or a managed identity."""

    auth: AzureAuth = "api_key"
    api_version: str = AZURE_API_VERSION
    scope: str = AZURE_SCOPE
    client_id: str | None = None
    """Of a managed identity that a user has assigned; None: the machine's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIChatSettings(ServedSettings):
    """Which model of which server of OpenAI's API.

    `base_url` None is OpenAI itself; with `azure` it is the resource's address, and `model` the deployment's name.
    `token_parameter` is the name the server knows for the limit of an answer's tokens: `max_tokens` at compatible
    servers. `json_mode` is the strongest way to ask for JSON that is tried; a server that refuses it is asked at once
    for the next weaker one. `is_openai`: the table of OpenAI's own models tells which parameters they take.
    """

    API: ClassVar[str] = "openai/chat.completions"

    json_mode: JsonMode = "schema"
    token_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"  # noqa: S105  # no secret
    is_openai: bool = False
    azure: AzureAccess | None = None

    @property
    def parameters(self) -> dict[str, object]:
        """What of the settings decides about answers."""
        return {**self.common_parameters, "json_mode": self.json_mode}
