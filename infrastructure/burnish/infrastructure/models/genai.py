"""Names of OpenTelemetry's conventions for generative AI, copied: they are still in development and may yet move."""

from __future__ import annotations

from typing import Final

OPERATION_NAME: Final = "gen_ai.operation.name"
"""What was asked of the model, e.g. `OPERATION_CHAT`."""

PROVIDER_NAME: Final = "gen_ai.provider.name"
"""Whose API was spoken, e.g. `PROVIDER_OPENAI`, also by a compatible server of somebody else."""

REQUEST_MODEL: Final = "gen_ai.request.model"
"""The model's name as it was asked for."""

USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
"""Tokens of the prompt."""

USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
"""Tokens of the answer."""

ERROR_TYPE: Final = "error.type"
"""A stable code of what went wrong; not of the GenAI group, but required by it."""

OPERATION_CHAT: Final = "chat"
PROVIDER_OPENAI: Final = "openai"
