"""The chat client over the real SDK and a real server on the loopback interface."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast
from urllib.parse import urlsplit

import openai
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from scripted_server import Body, Reply, ScriptedServer, body_of, completion, failure, in_turn

from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage
from burnish.infrastructure.models.openai_chat import OpenAIChatModel
from burnish.infrastructure.models.openai_settings import JsonMode, OpenAIChatSettings

KEY = "sk-planted-key-0123456789"
SETTINGS = OpenAIChatSettings(model="small", base_url=None, api_key=KEY, timeout_seconds=5.0, max_retries=2)
NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
ASK = ChatRequest(system="The skill.", user="The question?", purpose="rollout")
SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
ASK_JSON = replace(ASK, json_schema=SCHEMA, schema_name="label")
SCHEMA_FORMAT = {"type": "json_schema", "json_schema": {"name": "label", "schema": SCHEMA, "strict": True}}
NO_SCHEMAS = failure(400, "response_format of type json_schema is not supported", param="response_format")


def our_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages burnish logged as warnings."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("burnish.")]


class Rig:
    """A server, and models that talk to it; `waits` are the seconds they wanted to wait, without jitter: none pass."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.waits: list[float] = []
        self.models: list[OpenAIChatModel] = []
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def model(self, settings: OpenAIChatSettings = SETTINGS, *, base_url: str | None = None) -> OpenAIChatModel:
        model = OpenAIChatModel(
            replace(settings, base_url=base_url or self.server.base_url),
            tracer=self.provider.get_tracer("burnish"),
            sleep=self.sleep,
            draw=lambda: 0.0,
            now=lambda: NOW,
            clock=lambda: sum(self.waits),
        )
        self.models.append(model)
        return model

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def formats(self) -> list[object]:
        return [request.body.get("response_format") for request in self.server.requests]


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ScriptedServer() as server:
        rig = Rig(server)
        yield rig
        for model in rig.models:
            await model.aclose()


async def _failure_of(model: OpenAIChatModel, request: ChatRequest = ASK) -> ChatError:
    with pytest.raises(ChatError) as caught:
        await model.complete(request)
    return caught.value


async def test_answer_holds_text_and_reported_usage(rig: Rig) -> None:
    rig.server.respond = in_turn(completion(" A label.\n", usage=(7, 2)))
    usage = Usage(prompt_tokens=7, completion_tokens=2)
    assert await rig.model().complete(ASK) == ChatAnswer(text=" A label.\n", usage=usage, attempts=1)


async def test_skill_goes_first_and_unset_parameters_are_not_sent(rig: Rig) -> None:
    await rig.model().complete(ASK)
    messages = [{"role": "system", "content": "The skill."}, {"role": "user", "content": "The question?"}]
    assert rig.server.requests[0].body == {"model": "small", "messages": messages}
    assert rig.server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_parameters_of_the_request_win_over_the_settings(rig: Rig) -> None:
    settings = replace(SETTINGS, max_tokens=50, temperature=0.7, reasoning_effort="low", token_parameter="max_tokens")
    model = rig.model(settings)
    await model.complete(ASK)
    await model.complete(replace(ASK, max_tokens=9, temperature=0.0, seed=3))
    names = ("max_tokens", "max_completion_tokens", "temperature", "reasoning_effort", "seed")
    sent = [[request.body.get(name) for name in names] for request in rig.server.requests]
    assert sent == [[50, None, 0.7, "low", None], [9, None, 0.0, "low", 3]]


async def test_token_limit_has_the_name_that_openai_knows(rig: Rig) -> None:
    await rig.model(replace(SETTINGS, max_tokens=50)).complete(ASK)
    assert rig.server.requests[0].body["max_completion_tokens"] == 50
    assert "max_tokens" not in rig.server.requests[0].body


async def test_the_other_name_of_the_token_limit_is_used_once_the_server_asks_for_it(rig: Rig) -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    refused = failure(400, message, param="max_tokens", code="unsupported_parameter")
    rig.server.respond = in_turn(refused, completion("ok"))
    model = rig.model(replace(SETTINGS, max_tokens=50, token_parameter="max_tokens"))
    answers = [await model.complete(ASK), await model.complete(ASK)]
    sent = [
        (request.body.get("max_tokens"), request.body.get("max_completion_tokens")) for request in rig.server.requests
    ]
    assert sent == [(50, None), (None, 50), (None, 50)]
    assert [answer.attempts for answer in answers] == [2, 1]


async def test_openai_s_reasoning_models_are_sent_no_temperature(rig: Rig) -> None:
    settings = replace(SETTINGS, model="gpt-5.5", temperature=0.5, reasoning_effort="low", is_openai=True)
    await rig.model(settings).complete(ASK)
    body = rig.server.requests[0].body
    assert ("temperature" in body, body["reasoning_effort"]) == (False, "low")


async def test_cached_tokens_are_told_apart(rig: Rig) -> None:
    reply = completion("ok", usage=(700, 2))
    usage = cast("dict[str, object]", body_of(reply)["usage"])
    usage["prompt_tokens_details"] = {"cached_tokens": 640}
    rig.server.respond = in_turn(reply)
    answer = await rig.model().complete(ASK)
    assert answer.usage == Usage(prompt_tokens=700, completion_tokens=2, cached_tokens=640)


@pytest.mark.parametrize(
    ("mode", "expected"), [("schema", SCHEMA_FORMAT), ("object", {"type": "json_object"}), ("none", None)]
)
async def test_json_mode_decides_the_response_format(mode: JsonMode, expected: object, rig: Rig) -> None:
    await rig.model(replace(SETTINGS, json_mode=mode)).complete(ASK_JSON)
    assert rig.formats() == [expected]


async def test_usage_is_estimated_when_the_server_reports_none(rig: Rig) -> None:
    rig.server.respond = in_turn(completion("12345", usage=None))
    answer = await rig.model().complete(ASK)
    assert answer.usage == Usage(prompt_tokens=6, completion_tokens=2, is_estimated=True)


async def test_environment_of_another_server_is_not_sent(monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    await rig.model().complete(ASK)
    assert {"openai-organization", "openai-project"}.isdisjoint(rig.server.requests[0].headers)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((status, ChatErrorCode.BAD_REQUEST) for status in (400, 413, 422)),
        *((status, ChatErrorCode.REFUSED_KEY) for status in (401, 403)),
        (404, ChatErrorCode.NOT_FOUND),
    ],
)
async def test_refusal_is_coded_and_not_retried(status: int, code: ChatErrorCode, rig: Rig) -> None:
    rig.server.respond = in_turn(failure(status))
    error = await _failure_of(rig.model(), ASK_JSON)
    assert (error.code, error.attempts, len(rig.server.requests)) == (code, 1, 1)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503])
async def test_passing_trouble_is_retried_with_doubling_waits_then_coded(status: int, rig: Rig) -> None:
    rig.server.respond = in_turn(failure(status))
    error = await _failure_of(rig.model())
    assert error.code == (ChatErrorCode.RATE_LIMITED if status == 429 else ChatErrorCode.SERVER_ERROR)
    assert (error.attempts, len(rig.server.requests), rig.waits) == (3, 3, [0.5, 1.0])


async def test_retry_that_succeeds_is_an_answer(rig: Rig) -> None:
    rig.server.respond = in_turn(failure(503), completion("late"))
    answer = await rig.model().complete(ASK)
    assert (answer.text, answer.attempts) == ("late", 2)


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("7", 7.0),
        ("0", 0.5),  # never less than our own wait
        ("3600", 60.0),
        ("Mon, 30 Nov 2026 12:00:20 GMT", 20.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.5),
        ("Mon, 30 Nov 99999 12:00:00 GMT", 0.5),
        ("soon", 0.5),
        ("nan", 0.5),
        ("inf", 60.0),
    ],
)
async def test_retry_after_is_honoured_up_to_a_minute(retry_after: str, wait: float, rig: Rig) -> None:
    rig.server.respond = in_turn(failure(429, headers={"retry-after": retry_after}), completion("ok"))
    await rig.model().complete(ASK)
    assert rig.waits == [wait]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(delay_seconds=5.0), ChatErrorCode.TIMEOUT),
        (replace(completion("slow"), body_delay_seconds=5.0), ChatErrorCode.TIMEOUT),
        (replace(completion("drip"), delay_seconds=0.1, body_delay_seconds=0.1), ChatErrorCode.TIMEOUT),
        (replace(completion("broken"), reset=True), ChatErrorCode.CONNECTION),
    ],
    ids=["late", "slow body", "late and slow body", "reset in the body"],
)
async def test_time_out_and_broken_connection_are_retried_then_coded(
    reply: Reply, code: ChatErrorCode, rig: Rig
) -> None:
    rig.server.respond = in_turn(reply)
    error = await _failure_of(rig.model(replace(SETTINGS, timeout_seconds=0.15, max_retries=1)))
    assert (error.code, error.attempts, len(rig.server.requests)) == (code, 2, 2)


async def test_refused_connection_is_retried_then_coded(rig: Rig) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = await _failure_of(rig.model(base_url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1"))
    assert (error.code, error.attempts, len(rig.waits)) == (ChatErrorCode.CONNECTION, 3, 2)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(raw=b'{"choices": ['), ChatErrorCode.UNREADABLE),
        (Reply(raw=b"<html>hello</html>", headers={"content-type": "text/html"}), ChatErrorCode.UNREADABLE),
        (Reply(body={"choices": []}), ChatErrorCode.UNREADABLE),
        (Reply(body={"error": {"message": "no"}}), ChatErrorCode.UNREADABLE),
        (completion("half an ans", "length"), ChatErrorCode.TRUNCATED),
        (completion(None, "length"), ChatErrorCode.TRUNCATED),
        (completion("", "content_filter"), ChatErrorCode.FILTERED),
        (completion(None, refusal="I will not."), ChatErrorCode.FILTERED),
        (failure(400, code="content_filter"), ChatErrorCode.FILTERED),
    ],
)
async def test_unusable_reply_is_coded_and_not_retried(reply: Reply, code: ChatErrorCode, rig: Rig) -> None:
    rig.server.respond = in_turn(reply)
    error = await _failure_of(rig.model())
    assert (error.code, error.attempts) == (code, 1)


async def test_answer_without_text_is_asked_again_once(rig: Rig) -> None:
    rig.server.respond = in_turn(completion(" \n"))
    error = await _failure_of(rig.model())
    assert (error.code, error.attempts) == (ChatErrorCode.EMPTY, 2)


async def test_usage_counts_the_answer_without_text_too(rig: Rig) -> None:
    rig.server.respond = in_turn(completion("", usage=(7, 1)), completion("ok", usage=(7, 2)))
    answer = await rig.model().complete(ASK)
    assert answer.usage == Usage(prompt_tokens=14, completion_tokens=3)


async def test_prompt_that_is_no_unicode_text_is_a_bad_request(rig: Rig) -> None:
    error = await _failure_of(rig.model(), replace(ASK, user="\ud800"))
    assert (error.code, len(rig.server.requests)) == (ChatErrorCode.BAD_REQUEST, 0)


async def test_refused_schema_falls_back_to_object_mode_for_good(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.server.respond = in_turn(NO_SCHEMAS, completion("{}"))
    model = rig.model()
    answer = await model.complete(ASK_JSON)
    await model.complete(ASK_JSON)
    assert (answer.attempts, model.fingerprint) == (2, rig.model().fingerprint)
    assert rig.formats() == [SCHEMA_FORMAT, {"type": "json_object"}, {"type": "json_object"}]
    assert our_lines(caplog) == ["model.json_mode_lowered json_mode=object"]


async def test_refused_object_mode_falls_back_to_no_format(rig: Rig) -> None:
    rig.server.respond = in_turn(NO_SCHEMAS, failure(422, "unknown field response_format"), completion("{}"))
    await rig.model().complete(ASK_JSON)
    assert rig.formats() == [SCHEMA_FORMAT, {"type": "json_object"}, None]


async def test_request_that_is_bad_in_every_mode_lowers_nothing(rig: Rig) -> None:
    rig.server.respond = in_turn(NO_SCHEMAS, NO_SCHEMAS, NO_SCHEMAS, completion("{}"))
    model = rig.model()
    assert (await _failure_of(model, ASK_JSON)).code == ChatErrorCode.BAD_REQUEST
    await model.complete(ASK_JSON)
    assert rig.formats()[-1] == SCHEMA_FORMAT


async def test_no_more_calls_are_in_flight_than_permitted(rig: Rig) -> None:
    barrier = threading.Barrier(3)  # passes only when three requests are there at once

    def respond(_body: Body) -> Reply:
        barrier.wait(timeout=5.0)
        return replace(completion("ok"), delay_seconds=0.03)  # time for a fourth to show up

    rig.server.respond = respond
    model = rig.model(replace(SETTINGS, max_concurrency=3))
    await asyncio.gather(*(model.complete(ASK) for _ in range(12)))
    assert rig.server.most_in_flight == 3


async def test_overlapping_calls_count_their_own_attempts(rig: Rig) -> None:
    def respond(body: Body) -> Reply:
        return failure(500) if body.get("seed") == 1 else completion("ok")

    rig.server.respond = respond
    model = rig.model()
    calls = [model.complete(replace(ASK, seed=number % 2)) for number in range(10)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [getattr(outcome, "attempts", None) for outcome in outcomes] == [1, 3] * 5


async def test_connection_pool_has_four_times_the_room(monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
    limits: list[object] = []
    client = openai.DefaultAsyncHttpxClient

    def record(**arguments: object) -> object:
        limits.append(getattr(arguments["limits"], "max_connections", None))
        return client()

    monkeypatch.setattr(openai, "DefaultAsyncHttpxClient", record)
    rig.model(replace(SETTINGS, max_concurrency=64))
    assert limits == [256]


@pytest.mark.parametrize("reply", [Reply(delay_seconds=5.0), replace(completion("slow"), body_delay_seconds=5.0)])
async def test_cancellation_passes_through_and_frees_the_slot(reply: Reply, rig: Rig) -> None:
    rig.server.respond = in_turn(reply, completion("next"))
    model = rig.model(replace(SETTINGS, max_concurrency=1))
    task = asyncio.create_task(model.complete(ASK))
    await asyncio.to_thread(rig.server.received.wait, 5.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await model.complete(ASK)).text == "next"
    assert len(rig.server.requests) == 2


async def test_span_follows_the_genai_conventions(rig: Rig) -> None:
    await rig.model().complete(ASK)
    (span,) = rig.exporter.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == ("chat small", SpanKind.CLIENT, StatusCode.UNSET)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.response.finish_reasons": ("stop",),
        "server.address": "127.0.0.1",
        "server.port": urlsplit(rig.server.base_url).port,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
    }


async def test_failed_attempt_is_logged_by_code_and_named_parameter(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    rig.server.respond = in_turn(failure(400, param="messages", code="context_length_exceeded"))
    await _failure_of(rig.model())
    (line,) = our_lines(caplog)
    event, *fields = line.split(" ")
    assert event == "model.call_failed"
    assert set(fields) == {
        "code=model.bad_request",
        "status=400",
        "attempt=1",
        "purpose=rollout",
        "reason=context_length_exceeded",
        "parameter=messages",
    }


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
async def test_key_and_prompt_echoed_by_the_server_appear_nowhere(
    status: int, caplog: pytest.LogCaptureFixture, rig: Rig
) -> None:
    caplog.set_level(logging.DEBUG)  # the SDK's and the HTTP library's own records too
    echo = f"{KEY} {ASK.system} {ASK.user}"
    rig.server.respond = in_turn(failure(status, echo, code=echo, param=echo, type=echo))
    model = rig.model()
    error = await _failure_of(model)
    (span,) = rig.exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["error.type"] == error.code.value
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert (error.__cause__, error.__context__) == (None, None)
    places = [caplog.text, span.to_json(), repr(error), *traceback.format_exception(error)]
    places += [repr(SETTINGS), repr(model), str(model), repr(vars(model)), model.fingerprint]
    for secret in (KEY, ASK.system, ASK.user):
        assert not [place for place in places if secret in place]


@pytest.mark.parametrize("key", ["", " ", "sk-schlüssel", "sk-two\nlines"])
def test_key_that_no_header_can_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ValueError, match="api_key is blank, or holds characters that no HTTP header can carry"):
        OpenAIChatModel(replace(SETTINGS, api_key=key))


async def test_fingerprint_follows_what_changes_answers_only(rig: Rig) -> None:
    same = replace(SETTINGS, api_key="sk-other", timeout_seconds=1.0, max_retries=0, max_concurrency=1)
    other = [
        replace(SETTINGS, model="large"),
        replace(SETTINGS, max_tokens=5),
        replace(SETTINGS, temperature=0.0),
        replace(SETTINGS, reasoning_effort="high"),
        replace(SETTINGS, json_mode="object"),
    ]
    fingerprint = rig.model().fingerprint
    assert rig.model(same, base_url="http://127.0.0.1:9/v1").fingerprint == fingerprint
    assert len({fingerprint, *(rig.model(settings).fingerprint for settings in other)}) == 6


def test_importing_the_client_does_not_import_the_sdk() -> None:
    program = "import sys, burnish.infrastructure.models.openai_chat; sys.exit('openai' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == 0
