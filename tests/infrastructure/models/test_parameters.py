"""Which parameters models take: the table, and what refusals say."""

from __future__ import annotations

import re

import pytest

from burnish.infrastructure.models.parameters import JSON_FORMAT, Form, left_out_by_openai, refused_parameter

MODES = ("schema", "object", "none")
PATTERNS = {
    JSON_FORMAT: re.compile("response_format"),
    "max_tokens": re.compile(r"\bmax_tokens\b"),
    "temperature": re.compile(r"\btemperature\b"),
}


@pytest.mark.parametrize(
    ("model", "effort", "left_out"),
    [
        ("gpt-5.5", None, {"temperature"}),
        ("gpt-5.5", "high", {"temperature"}),
        ("gpt-5.1", "none", set[str]()),
        ("gpt-5", "none", {"temperature"}),
        ("gpt-5-mini", None, {"temperature"}),
        ("o3-mini", None, {"temperature"}),
        ("gpt-4.1-mini", "high", {"reasoning_effort"}),
        ("gpt-4o", None, {"reasoning_effort"}),
        ("org/model", "high", set[str]()),
    ],
)
def test_the_table_knows_openai_s_models(model: str, effort: str | None, left_out: set[str]) -> None:
    assert left_out_by_openai(model, effort) == left_out


@pytest.mark.parametrize(
    ("text", "parameter", "reason", "named"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "unsupported_parameter",
            "max_tokens",
        ),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported.",
            "temperature",
            "unsupported_value",
            "temperature",
        ),
        ("`temperature` is deprecated for this model.", None, None, "temperature"),
        ("Extra inputs are not permitted: temperature", None, None, "temperature"),
        ("Unrecognized request argument supplied: temperature", None, None, "temperature"),
        ("invalid response_format", None, None, JSON_FORMAT),
        ("temperature must be at most 2", "temperature", "invalid_value", None),
        ("'messages' is not supported", "messages", "unsupported_parameter", None),
        ("max_tokens is too large: this model's maximum context length is 8192 tokens", None, None, None),
        ("no", None, None, None),
        ("unsupported", ["temperature"], {"a": 1}, None),
    ],
)
def test_a_refusal_names_a_parameter_or_none(text: str, parameter: object, reason: object, named: str | None) -> None:
    assert refused_parameter(text, parameter, reason, PATTERNS) == named


def test_a_refused_form_has_a_next_one_until_none_is_left() -> None:
    form = Form(json_mode="schema")
    weaker = form.without(JSON_FORMAT, MODES)
    assert weaker == Form(json_mode="object")
    assert Form(json_mode="none").without(JSON_FORMAT, MODES) is None
    swapped = form.without("max_tokens", MODES)
    assert swapped == Form(json_mode="schema", token_limit="max_completion_tokens")
    dropped = form.without("temperature", MODES)
    assert dropped == Form(json_mode="schema", left_out=frozenset({"temperature"}))
    assert dropped is not None
    assert dropped.without("temperature", MODES) is None
