"""Secrets are taken out of texts for logs, by what they are and by what they look like, and quickly."""

from __future__ import annotations

import time

import pytest

from burnish.application.redaction import REDACTED, redact


@pytest.mark.parametrize(
    "text",
    [
        "sk-live-PLANTED0123456789",
        "401: invalid key sk-live-PLANTED0123456789 given",
        "SharedAccessSignature sig=PLANTEDabc%2B123",
        "SharedAccessSignature sr=https%3A%2F%2Fbus&sig=PLANTEDabc%2B123&se=1",
        "password=PLANTED-hunter2",
        "password: PLANTED-hunter2",
        "{'password': 'PLANTED hunter2'}",
        '{"db_password":"a \\"PLANTED\\" one"}',
        "PASSWD = 'PLANTED'",
        "Bearer PLANTED.tok.en123456",
        "Authorization: Bearer PLANTED.tok.en123456",
        "authorization: basic UExBTlRFRA==PLANTED",
        "api-key: PLANTED",
        "OPENAI_API_KEY=PLANTED",
        "?api_key=PLANTED&x=1",
        "postgresql://ada:PLANTED@db/runs",
        "AccountKey=PLANTED;EndpointSuffix=x",
        "x-my-token-id: PLANTED",
        "client_secret=PLANTED",
        "the secret-PLANTED-value",
        "key_PLANTED_abc123def456",
        "eyJhbGciOiJIUzI1NiJ9.PLANTED.c2lnbmF0dXJl1",
    ],
)
def test_what_has_the_shape_of_a_secret_is_redacted(text: str) -> None:
    assert "PLANTED" not in redact(text)
    assert REDACTED in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "division by zero",
        "HTTP 429: too many requests, retry after 20 seconds",
        "no such file: /srv/burnish/runs/items.jsonl",
        "cannot reach http://127.0.0.1:8000/v1/chat/completions",
        "expected 3 values, got 4",
    ],
)
def test_an_innocent_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_known_secrets_are_found_anywhere_in_a_text() -> None:
    assert redact("xhunter22secondsx", known=["hunter22"]) == f"x{REDACTED}secondsx"


def test_a_known_secret_that_holds_another_goes_as_a_whole() -> None:
    assert redact("correct horse battery", known=["correct ", "correct horse"]) == f"{REDACTED} battery"


def test_a_known_secret_too_short_to_look_for_is_left() -> None:
    assert redact("to be or not to be", known=["to be", ""]) == "to be or not to be"


@pytest.mark.parametrize(
    "piece", ["a", "-", "a-", ".", "/", "=", "token", "token ", "secret", "QUJD0123+/", "password", "://a:", '"', " "]
)
def test_the_time_it_takes_grows_with_the_text_only(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.perf_counter()
    redact(text)
    assert time.perf_counter() - started < 2.0
