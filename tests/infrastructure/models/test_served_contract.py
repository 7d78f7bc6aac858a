"""What every model behind HTTP promises, through its official SDK and a server on the loopback interface."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

import pytest
from model_drivers import ASK, ASK_JSON, DRIVERS, KEY, ModelDriver, Rig
from opentelemetry.trace import SpanKind, StatusCode
from scripted_server import Reply, ScriptedServer, in_turn

from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage
from burnish.infrastructure.models.served_chat import ServedChatModel
from burnish.infrastructure.models.served_settings import LONGEST_WAIT_SECONDS

_STUCK_SECONDS = 20.0
"""A call of a test that takes longer is not bounded."""


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> ModelDriver:
    chosen: ModelDriver = request.param
    return chosen


@pytest.fixture
async def rig(driver: ModelDriver, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ScriptedServer(in_turn(driver.answers("ok")), path=driver.path) as server:
        rig = Rig(server, driver)
        yield rig
        for model in rig.models:
            await model.aclose()


async def failure_of(model: ServedChatModel, request: ChatRequest = ASK) -> ChatError:
    with pytest.raises(ChatError) as caught:
        async with asyncio.timeout(_STUCK_SECONDS):
            await model.complete(request)
    return caught.value


# --- requests and answers ----------------------------------------------------------------------------------------------


async def test_the_request_is_the_skill_and_the_question_with_the_credential_in_its_header(
    driver: ModelDriver, rig: Rig
) -> None:
    await rig.model().complete(ASK)
    (request,) = rig.server.requests
    assert request.body == driver.body
    name, value = driver.credential
    assert request.headers[name] == value
    assert [header for header, text in request.headers.items() if KEY in text] == [name]


async def test_the_answer_holds_text_and_reported_usage(driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(driver.answers(" A label.\n", usage=(7, 2)))
    usage = Usage(prompt_tokens=7, completion_tokens=2)
    assert await rig.model().complete(ASK) == ChatAnswer(text=" A label.\n", usage=usage, attempts=1)


async def test_usage_is_estimated_and_marked_when_none_is_reported(driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(driver.answers("12345", usage=None))
    answer = await rig.model().complete(ASK)
    assert answer.usage == Usage(prompt_tokens=6, completion_tokens=2, is_estimated=True)
    (span,) = rig.exporter.get_finished_spans()
    assert (span.attributes or {})["burnish.usage.is_estimated"] is True


async def test_the_schema_of_the_answer_is_sent(driver: ModelDriver, rig: Rig) -> None:
    await rig.model().complete(ASK_JSON)
    assert rig.server.requests[0].body == {**driver.body, **driver.json_bodies[0]}


async def test_a_refused_format_is_weakened_at_once_and_for_good(
    driver: ModelDriver, rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    refused = driver.fails(400, driver.refuses_format)
    rig.server.respond = in_turn(refused, refused, driver.answers("{}"))
    model = rig.model()
    fingerprint = model.fingerprint
    answer = await model.complete(ASK_JSON)
    await model.complete(ASK_JSON)
    bodies = [request.body for request in rig.server.requests]
    assert bodies == [{**driver.body, **added} for added in (*driver.json_bodies, driver.json_bodies[-1])]
    assert (answer.attempts, rig.waits, model.fingerprint) == (3, [], fingerprint)
    assert [line for line in caplog.messages if line.startswith("model.")] == ["model.json_mode_lowered json_mode=none"]


async def test_limits_and_temperature_are_sent_and_a_refused_one_is_left_out_from_then_on(
    driver: ModelDriver, rig: Rig
) -> None:
    refused = driver.fails(400, "`temperature` is not supported with this model.")
    rig.server.respond = in_turn(refused, driver.answers("ok"))
    model = rig.model(max_tokens=50, temperature=0.5)
    await model.complete(ASK)
    await model.complete(ASK)
    bodies = [request.body for request in rig.server.requests]
    assert [body.get("temperature") for body in bodies] == [0.5, None, None]
    assert [body.get("max_tokens", body.get("max_completion_tokens")) for body in bodies] == [50, 50, 50]


async def test_a_parameter_is_corrected_once_only(driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(driver.fails(400, "`temperature` is not supported with this model."))
    model = rig.model(temperature=0.5)
    assert (await failure_of(model)).attempts == 2
    rig.server.respond = in_turn(driver.answers("ok"))
    await model.complete(ASK)
    assert rig.server.requests[-1].body["temperature"] == 0.5  # the request itself may have been at fault


async def test_a_value_out_of_range_is_the_user_s_to_put_right(driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(driver.fails(400, "temperature must be at most 1"))
    error = await failure_of(rig.model(temperature=1.5))
    assert (error.code, error.attempts) == (ChatErrorCode.BAD_REQUEST, 1)


# --- the failure table -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """What a server does, what comes of it, and how often it is asked when two retries are permitted."""

    reply: Callable[[ModelDriver], Reply]
    code: ChatErrorCode
    requests: int = 1
    waits: tuple[float, ...] = ()
    timeout_seconds: float = 5.0


def status(number: int, **headers: str) -> Callable[[ModelDriver], Reply]:
    """An error of the API's own kind."""
    return lambda driver: driver.fails(number, headers={name.replace("_", "-"): text for name, text in headers.items()})


RETRIED = (0.5, 1.0)
SLOW = 0.15
TABLE = {
    "400": Row(status(400), ChatErrorCode.BAD_REQUEST),
    "401": Row(status(401), ChatErrorCode.REFUSED_KEY),
    "403": Row(status(403), ChatErrorCode.REFUSED_KEY),
    "404": Row(status(404), ChatErrorCode.NOT_FOUND),
    "408": Row(status(408), ChatErrorCode.SERVER_ERROR, 3, RETRIED),
    "409": Row(status(409), ChatErrorCode.SERVER_ERROR, 3, RETRIED),
    "413": Row(status(413), ChatErrorCode.BAD_REQUEST),
    "422": Row(status(422), ChatErrorCode.BAD_REQUEST),
    "425": Row(status(425), ChatErrorCode.SERVER_ERROR, 3, RETRIED),
    "429": Row(status(429), ChatErrorCode.RATE_LIMITED, 3, RETRIED),
    "429 with Retry-After": Row(status(429, retry_after="7"), ChatErrorCode.RATE_LIMITED, 3, (7.0, 7.0)),
    "429 with a long Retry-After": Row(status(429, retry_after="3600"), ChatErrorCode.RATE_LIMITED, 3, (60.0, 60.0)),
    "429 with a date": Row(
        status(429, retry_after="Mon, 30 Nov 2026 12:00:20 GMT"), ChatErrorCode.RATE_LIMITED, 3, (20.0, 20.0)
    ),
    "500": Row(status(500), ChatErrorCode.SERVER_ERROR, 3, RETRIED),
    "502": Row(status(502), ChatErrorCode.SERVER_ERROR, 3, RETRIED),
    "503": Row(status(503), ChatErrorCode.SERVER_ERROR, 3, RETRIED),
    "529": Row(status(529), ChatErrorCode.SERVER_ERROR, 3, RETRIED),
    "502 of a proxy": Row(
        lambda _: Reply(status=502, raw=b"<html>Bad Gateway</html>", headers={"content-type": "text/html"}),
        ChatErrorCode.SERVER_ERROR,
        3,
        RETRIED,
    ),
    "reset in the body": Row(
        lambda driver: replace(driver.answers("broken"), reset=True), ChatErrorCode.CONNECTION, 3, RETRIED
    ),
    "late": Row(lambda _: Reply(delay_seconds=5.0), ChatErrorCode.TIMEOUT, 3, RETRIED, SLOW),
    "slow body": Row(
        lambda driver: replace(driver.answers("slow"), body_delay_seconds=5.0), ChatErrorCode.TIMEOUT, 3, RETRIED, SLOW
    ),
    "late and slow body": Row(
        lambda driver: replace(driver.answers("drip"), delay_seconds=0.1, body_delay_seconds=0.1),
        ChatErrorCode.TIMEOUT,
        3,
        RETRIED,
        SLOW,
    ),
    "half of the JSON": Row(lambda driver: driver.unreadable[0], ChatErrorCode.UNREADABLE),
    "no JSON": Row(lambda driver: driver.unreadable[1], ChatErrorCode.UNREADABLE),
    "no choices": Row(lambda driver: driver.unreadable[2], ChatErrorCode.UNREADABLE),
    "an error with status 200": Row(lambda _: Reply(body={"error": {"message": "no"}}), ChatErrorCode.UNREADABLE),
    "no text": Row(lambda driver: driver.empty, ChatErrorCode.EMPTY, 2, (0.5,)),
    "blank text": Row(lambda driver: driver.answers(" \n"), ChatErrorCode.EMPTY, 2, (0.5,)),
    "length": Row(lambda driver: driver.endings[0], ChatErrorCode.TRUNCATED),
    "content filter": Row(lambda driver: driver.endings[1], ChatErrorCode.FILTERED),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
async def test_failure_is_coded_and_retried_only_where_it_may_pass(row: Row, driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(row.reply(driver))
    error = await failure_of(rig.model(timeout_seconds=row.timeout_seconds))
    assert (error.code, error.attempts) == (row.code, row.requests)
    if row.timeout_seconds > SLOW:  # a request that was given up may not have been noticed
        assert len(rig.server.requests) == row.requests
    assert rig.waits == list(row.waits)
    assert max(rig.waits, default=0.0) <= LONGEST_WAIT_SECONDS


async def test_a_refused_connection_is_retried_then_coded(driver: ModelDriver, rig: Rig) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = await failure_of(rig.model(base_url=f"http://127.0.0.1:{unused.getsockname()[1]}"))
    assert (error.code, error.attempts, len(rig.waits)) == (ChatErrorCode.CONNECTION, 3, 2)


async def test_a_retry_that_succeeds_is_an_answer(driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(driver.fails(529), driver.answers("late"))
    answer = await rig.model().complete(ASK)
    assert (answer.text, answer.attempts) == ("late", 2)


# --- limits ------------------------------------------------------------------------------------------------------------


async def test_a_429_halves_what_may_be_in_flight_and_answers_bring_it_back(driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(driver.fails(429), driver.answers("ok"))
    model = rig.model(max_concurrency=4)
    seen = [model.concurrency]
    for _ in range(6):
        await model.complete(ASK)
        seen.append(model.concurrency)
    assert seen == [4, 2, 3, 3, 3, 4, 4]


async def test_requests_a_minute_are_spread_over_it(driver: ModelDriver, rig: Rig) -> None:
    model = rig.model(requests_per_minute=30)
    for _ in range(3):
        await model.complete(ASK)
    assert rig.waits == [2.0, 2.0]


async def test_tokens_a_minute_are_counted_as_they_were_used(driver: ModelDriver, rig: Rig) -> None:
    rig.server.respond = in_turn(driver.answers("ok", usage=(50, 10)))
    model = rig.model(tokens_per_minute=600)
    for _ in range(3):
        await model.complete(ASK)
    assert rig.waits == pytest.approx([6.0, 6.0])


# --- spans and secrets -------------------------------------------------------------------------------------------------


async def test_the_span_follows_the_genai_conventions(driver: ModelDriver, rig: Rig) -> None:
    await rig.model(max_tokens=50, temperature=0.5).complete(replace(ASK_JSON, seed=3))
    (span,) = rig.exporter.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == ("chat small", SpanKind.CLIENT, StatusCode.UNSET)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": driver.provider,
        "gen_ai.request.model": "small",
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": 3,
        "gen_ai.output.type": "json",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "server.address": "127.0.0.1",
        "server.port": int(rig.server.origin.rpartition(":")[2]),
    }


@pytest.mark.parametrize("number", [200, 400, 401, 429, 500])
async def test_key_and_prompt_echoed_by_the_server_appear_nowhere(
    number: int, caplog: pytest.LogCaptureFixture, driver: ModelDriver, rig: Rig
) -> None:
    caplog.set_level(logging.DEBUG)  # the SDK's and the HTTP library's own records too
    rig.server.respond = in_turn(driver.fails(number, f"{KEY} {ASK.system} {ASK.user}"))
    model = rig.model()
    error = await failure_of(model)
    (span,) = rig.exporter.get_finished_spans()
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert (error.__cause__, error.__context__) == (None, None)
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("burnish."))
    places = [ours, span.to_json(), repr(error), *traceback.format_exception(error)]
    places += [repr(driver.settings), repr(model), str(model), repr(vars(model)), model.fingerprint]
    for secret in (KEY, ASK.system, ASK.user):
        assert not [place for place in places if secret in place]
    assert driver.credential[1] not in caplog.text


@pytest.mark.parametrize("key", ["", " ", "sk-schlüssel", "sk-two\nlines"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key: str, driver: ModelDriver) -> None:
    with ScriptedServer() as server, pytest.raises(ValueError, match="api_key is blank, or holds characters"):
        Rig(server, driver).model(api_key=key)


def test_the_fingerprint_follows_what_changes_answers_only(driver: ModelDriver) -> None:
    settings = driver.settings
    same = replace(settings, api_key="sk-other", base_url="http://other", timeout_seconds=1.0, max_concurrency=1)
    same = replace(same, requests_per_minute=1, tokens_per_minute=1, max_retries=0)
    assert same.fingerprint == settings.fingerprint
    others = [replace(settings, model="large"), replace(settings, max_tokens=5), replace(settings, temperature=0.0)]
    others.append(replace(settings, reasoning_effort="high"))
    assert len({settings.fingerprint, *(other.fingerprint for other in others)}) == 5
