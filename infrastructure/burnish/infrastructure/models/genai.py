"""Names of OpenTelemetry's conventions for generative AI, copied: they are still in development and may yet move."""

from __future__ import annotations

from typing import Final

from burnish.infrastructure.models.chat import Usage

OPERATION_NAME: Final = "gen_ai.operation.name"
"""What was asked of the model, e.g. `OPERATION_CHAT`."""

PROVIDER_NAME: Final = "gen_ai.provider.name"
"""Whose API was spoken, e.g. `PROVIDER_OPENAI`, also by a compatible server of somebody else."""

REQUEST_MODEL: Final = "gen_ai.request.model"
"""The model's name as it was asked for."""

REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
"""The longest answer that was asked for."""

REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
"""The temperature that was asked for."""

REQUEST_SEED: Final = "gen_ai.request.seed"
"""The seed that was asked for."""

OUTPUT_TYPE: Final = "gen_ai.output.type"
"""As what the answer was asked for, e.g. `OUTPUT_JSON`."""

RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
"""How the answer came to its end."""

SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
"""Where the model answers; not of the GenAI group."""

USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
"""Tokens of the prompt."""

USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
"""Tokens of the answer."""

USAGE_CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
"""Those of them that were read from the provider's cache."""

USAGE_CACHE_WRITTEN_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
"""Those of them that were written to it."""

USAGE_IS_ESTIMATED: Final = "burnish.usage.is_estimated"
"""There when the provider reported no tokens and they were guessed; burnish's own."""

ERROR_TYPE: Final = "error.type"
"""A stable code of what went wrong; not of the GenAI group, but required by it."""

AGENT_NAME: Final = "gen_ai.agent.name"
"""Which agent was asked, where it was none of the provider's models themselves."""

OPERATION_INVOKE_AGENT: Final = "invoke_agent"
OPERATION_CHAT: Final = "chat"
PROVIDER_OPENAI: Final = "openai"
PROVIDER_AZURE: Final = "azure.ai.openai"
PROVIDER_ANTHROPIC: Final = "anthropic"
PROVIDER_QWEN: Final = "qwen"
OUTPUT_JSON: Final = "json"


def usage_attributes(usage: Usage) -> dict[str, int | bool]:
    """A call's tokens as attributes of its span."""
    attributes: dict[str, int | bool] = {
        USAGE_INPUT_TOKENS: usage.prompt_tokens,
        USAGE_OUTPUT_TOKENS: usage.completion_tokens,
    }
    if usage.cached_tokens or usage.cache_written_tokens:
        attributes[USAGE_CACHED_TOKENS] = usage.cached_tokens
        attributes[USAGE_CACHE_WRITTEN_TOKENS] = usage.cache_written_tokens
    if usage.is_estimated:
        attributes[USAGE_IS_ESTIMATED] = True
    return attributes
