"""Which parameters a model takes: by a table of well-known models, and by what a server says when it refuses one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

JSON_FORMAT: Final = "response_format"
"""What a dialect calls its way to ask for JSON, whatever the API's parameter."""

TOKEN_LIMITS: Final = ("max_tokens", "max_completion_tokens")
"""The two names OpenAI-style servers have for the longest answer; each server knows one of them at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a request is put: as what JSON is asked for, what the token limit is called, and which parameters are left out."""

    json_mode: str
    token_limit: str = "max_tokens"  # noqa: S105  # no secret
    left_out: frozenset[str] = frozenset()

    def without(self, named: str, json_modes: tuple[str, ...]) -> Form | None:
        """The form without what the server refused, or with the next weaker JSON mode; None when nothing is left to try."""
        if named == JSON_FORMAT:
            weaker = json_modes[json_modes.index(self.json_mode) + 1 :]
            return replace(self, json_mode=weaker[0]) if weaker else None
        if named == self.token_limit and named in TOKEN_LIMITS:
            return replace(self, token_limit=TOKEN_LIMITS[1 - TOKEN_LIMITS.index(named)])
        return None if named in self.left_out else replace(self, left_out=self.left_out | {named})


def left_out_by_openai(model: str, reasoning_effort: str | None) -> frozenset[str]:
    """What OpenAI's API refuses for a model it names so: reasoning models take no temperature, the others no effort.

    From GPT-5.1 on a model that is told not to reason takes a temperature.
    """
    if _OPENAI_REASONING.match(model):
        takes_temperature = reasoning_effort == "none" and not _FIRST_REASONING.match(model)
        return frozenset() if takes_temperature else frozenset({"temperature"})
    return frozenset({"reasoning_effort"}) if _OPENAI_PLAIN.match(model) else frozenset()


def left_out_by_claude(model: str) -> frozenset[str]:
    """What Anthropic's API refuses for a model it names so: newer models take no temperature, older ones no effort."""
    if not model.startswith("claude-"):
        return frozenset()
    refused = set[str]()
    if not _CLAUDE_WITH_TEMPERATURE.match(model):
        refused.add("temperature")
    if _CLAUDE_WITHOUT_EFFORT.match(model):
        refused.add("effort")
    return frozenset(refused)


def refused_parameter(
    text: str, parameter: object, reason: object, patterns: Mapping[str, re.Pattern[str]]
) -> str | None:
    """Which of the parameters a 400's text says is not taken at all; None when it complains about something else.

    `parameter` and `reason` are what the error's own fields say, of any type. A value out of range is the user's to put
    right, and a prompt that is too long no matter of parameters.
    """
    if _TOO_LONG.search(text):
        return None
    if JSON_FORMAT in patterns and patterns[JSON_FORMAT].search(text):
        return JSON_FORMAT
    if not (isinstance(reason, str) and reason in _REASONS) and not _REFUSES.search(text):
        return None
    if isinstance(parameter, str) and parameter in patterns:
        return parameter
    return next((name for name, pattern in patterns.items() if pattern.search(text)), None)


_OPENAI_REASONING = re.compile(r"o\d|gpt-[5-9]")
_FIRST_REASONING = re.compile(r"o\d|gpt-5(?!\.)")
_OPENAI_PLAIN = re.compile(r"gpt-[34]|chatgpt-4")
_CLAUDE_WITH_TEMPERATURE = re.compile(r"claude-(?:[123]|instant|haiku-4|sonnet-4|opus-4(?:-[0-6]\b|-\d{6}|\Z|@))")
_CLAUDE_WITHOUT_EFFORT = re.compile(r"claude-(?:[123]|instant|haiku-4|sonnet-4(?!-[6-9])|opus-4(?!-[5-9]))")

_REASONS = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_REFUSES = re.compile(
    r"not (?:be )?(?:supported|permitted|allowed|accepted|recogni[sz]ed)|(?:does|do|is)(?: not|n't) (?:support|accept|allow)"
    r"|unsupported|unrecogni[sz]ed|unknown|unexpected|deprecated|extra (?:input|field)|only the default",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(r"context[_ ](?:length|window)|too long|too many tokens", re.IGNORECASE)
