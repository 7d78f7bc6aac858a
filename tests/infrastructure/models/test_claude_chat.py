"""What is Anthropic's own: cached prompts, tools, efforts, and models that take less than others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from model_drivers import ASK, ASK_JSON, CLAUDE, Rig
from scripted_server import ScriptedServer, body_of, claude_failure, claude_message, in_turn

from burnish.infrastructure.models.chat import Usage


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ScriptedServer(in_turn(claude_message("ok")), path=CLAUDE.path) as server:
        rig = Rig(server, CLAUDE)
        yield rig
        for model in rig.models:
            await model.aclose()


async def test_cached_tokens_are_part_of_the_prompt_s_and_told_apart(rig: Rig) -> None:
    reported = {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 40}
    rig.server.respond = in_turn(claude_message("ok", usage=reported))
    answer = await rig.model().complete(ASK)
    assert answer.usage == Usage(prompt_tokens=152, completion_tokens=3, cached_tokens=100, cache_written_tokens=40)
    (span,) = rig.exporter.get_finished_spans()
    attributes = span.attributes or {}
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 100
    assert attributes["gen_ai.usage.cache_creation.input_tokens"] == 40


async def test_the_version_of_the_api_is_named(rig: Rig) -> None:
    await rig.model().complete(ASK)
    assert rig.server.requests[0].headers["anthropic-version"]
    assert "anthropic-beta" not in rig.server.requests[0].headers


async def test_a_gateway_s_token_goes_into_the_authorization(rig: Rig) -> None:
    await rig.model(is_token=True).complete(ASK)
    headers = rig.server.requests[0].headers
    assert headers["authorization"].startswith("Bearer sk-planted")
    assert "x-api-key" not in headers


@pytest.mark.parametrize("system", ["", " \n"])
async def test_an_empty_skill_is_no_block_of_the_request(system: str, rig: Rig) -> None:
    await rig.model().complete(replace(ASK, system=system))
    assert "system" not in rig.server.requests[0].body


async def test_what_the_tool_is_called_with_is_the_answer(rig: Rig) -> None:
    reply = claude_message("I call the tool.", "tool_use", tool_input={"label": "é"})
    rig.server.respond = in_turn(claude_failure(400, "output_config: Extra inputs are not permitted"), reply)
    answer = await rig.model().complete(ASK_JSON)
    assert answer.text == '{"label": "é"}'


async def test_thinking_is_no_part_of_the_answer(rig: Rig) -> None:
    reply = claude_message("The label.")
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "The label."}]
    rig.server.respond = in_turn(replace(reply, body={**body_of(reply), "content": content}))
    assert (await rig.model().complete(ASK)).text == "The label."


@pytest.mark.parametrize(
    ("effort", "expected"),
    [
        (None, {}),
        ("none", {"thinking": {"type": "disabled"}}),
        ("minimal", {"output_config": {"effort": "low"}}),
        ("xhigh", {"output_config": {"effort": "xhigh"}}),
    ],
)
async def test_the_effort_is_said_in_the_api_s_words(effort: str | None, expected: dict[str, object], rig: Rig) -> None:
    await rig.model(reasoning_effort=effort).complete(ASK)
    assert rig.server.requests[0].body == {**CLAUDE.body, **expected}


@pytest.mark.parametrize(
    ("model", "temperature", "effort"),
    [
        ("claude-sonnet-4-5", True, False),
        ("claude-sonnet-4-6", True, True),
        ("claude-haiku-4-5-20251001", True, False),
        ("claude-opus-4-1", True, False),
        ("claude-opus-4-20250514", True, False),
        ("claude-opus-4-6", True, True),
        ("claude-opus-4-7", False, True),
        ("claude-opus-5-5", False, True),
        ("claude-sonnet-5", False, True),
        ("claude-3-5-haiku", True, False),
        ("mine", True, True),
    ],
)
async def test_a_known_model_is_not_sent_what_it_refuses(
    model: str, *, temperature: bool, effort: bool, rig: Rig
) -> None:
    await rig.model(model=model, temperature=0.5, reasoning_effort="high").complete(ASK)
    body = rig.server.requests[0].body
    assert ("temperature" in body, "output_config" in body) == (temperature, effort)


async def test_a_refused_effort_is_left_out_and_the_format_kept(rig: Rig) -> None:
    refused = claude_failure(400, 'output_config.effort: "high" is not supported by this model')
    rig.server.respond = in_turn(refused, claude_message("{}"))
    await rig.model(reasoning_effort="high").complete(ASK_JSON)
    sent = [request.body["output_config"] for request in rig.server.requests]
    assert isinstance(sent[0], dict)
    assert sent == [sent[0], {"format": sent[0]["format"]}]
    assert sent[0]["effort"] == "high"


async def test_an_answer_that_fills_the_context_window_is_truncated(rig: Rig) -> None:
    rig.server.respond = in_turn(claude_message("half", "model_context_window_exceeded"))
    with pytest.raises(Exception, match=r"model\.truncated"):
        await rig.model().complete(ASK)


async def test_custom_environment_of_the_sdk_decides_nothing(monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-other-key-of-the-process")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    await rig.model().complete(ASK)
    assert "other-key" not in rig.server.requests[0].headers["authorization"]
