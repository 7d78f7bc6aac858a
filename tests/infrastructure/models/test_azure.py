"""Azure: the deployment's address, and tokens of the `az` command and of managed identities, through azure-identity."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from model_drivers import ASK, AZURE, Rig
from scripted_server import ScriptedServer, completion, failure, in_turn

from burnish.infrastructure.models.chat import ChatError, ChatErrorCode
from burnish.infrastructure.models.openai_settings import AzureAccess

TOKEN = "eyJ-planted-token-0123456789"


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "of-the-process")
    with ScriptedServer(path=AZURE.path) as server:
        rig = Rig(server, AZURE)
        yield rig
        for model in rig.models:
            await model.aclose()


@pytest.fixture
def az(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the `az` command: it notes how it is called, and prints what `answer` holds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "az"
    command.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncat {tmp_path}/answer\nexit $(cat {tmp_path}/status)\n'
    )
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "status").write_text("0")
    (tmp_path / "answer").write_text(token_told(3600))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def token_told(seconds: float) -> str:
    until = int(time.time() + seconds)
    return json.dumps({"accessToken": TOKEN, "expires_on": until, "expiresOn": "2030-01-01 00:00:00.000000"})


@contextmanager
def identity_server() -> Generator[tuple[str, list[dict[str, str]]]]:
    """What Azure's app service offers a managed identity: an address that gives tokens to those who know a header."""
    asked: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            asked.append({**query, "header": self.headers.get("X-IDENTITY-HEADER", "")})
            body = json.dumps(
                {"access_token": TOKEN, "expires_on": str(int(time.time()) + 3600), "token_type": "Bearer"}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/token", asked
        finally:
            server.shutdown()
            thread.join()


async def test_the_deployment_is_in_the_address_and_the_key_in_its_header(rig: Rig) -> None:
    await rig.model().complete(ASK)
    (request,) = rig.server.requests
    assert request.path == "/openai/deployments/small/chat/completions?api-version=2024-12-01-preview"
    assert "authorization" not in request.headers


async def test_a_prompt_the_filter_refuses_is_filtered(rig: Rig) -> None:
    rig.server.respond = in_turn(failure(400, code="content_filter"))
    with pytest.raises(ChatError) as caught:
        await rig.model().complete(ASK)
    assert (caught.value.code, caught.value.attempts) == (ChatErrorCode.FILTERED, 1)


async def test_the_az_command_gives_one_token_for_many_calls(az: Path, rig: Rig) -> None:
    model = rig.model(azure=AzureAccess(auth="azure_cli"))
    await model.complete(ASK)
    await model.complete(ASK)
    headers = [request.headers for request in rig.server.requests]
    assert [header["authorization"] for header in headers] == [f"Bearer {TOKEN}"] * 2
    assert not [header for header in headers if "api-key" in header]
    (call,) = (az / "calls").read_text().splitlines()
    assert "account get-access-token" in call
    assert "https://cognitiveservices.azure.com" in call


async def test_a_token_that_is_about_to_expire_is_renewed(az: Path, rig: Rig) -> None:
    (az / "answer").write_text(token_told(60))
    model = rig.model(azure=AzureAccess(auth="azure_cli"))
    await model.complete(ASK)
    await model.complete(ASK)
    assert len((az / "calls").read_text().splitlines()) == 2


async def test_no_token_is_a_refused_key(az: Path, rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    (az / "status").write_text("1")
    (az / "answer").write_text("")
    with pytest.raises(ChatError) as caught:
        await rig.model(azure=AzureAccess(auth="azure_cli")).complete(ASK)
    assert (caught.value.code, len(rig.server.requests)) == (ChatErrorCode.REFUSED_KEY, 0)
    assert [line for line in caplog.messages if line.startswith("model.no_token")]


async def test_a_managed_identity_gives_a_token(monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
    with identity_server() as (address, asked):
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", "let-me-in")
        access = AzureAccess(auth="managed_identity", client_id="me", scope="https://scope.example/.default")
        await rig.model(azure=access).complete(ASK)
    assert rig.server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert asked[0]["header"] == "let-me-in"
    assert asked[0]["resource"] == "https://scope.example"
    assert asked[0]["client_id"] == "me"


def test_azure_needs_an_address(rig: Rig) -> None:
    with pytest.raises(ValueError, match="needs the resource's address"):
        AZURE.make(replace(AZURE.settings, base_url=None), rig)


async def test_tokens_are_in_no_log(az: Path, rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    rig.server.respond = in_turn(failure(401, f"the token {TOKEN} is not for me"), completion("ok"))
    with pytest.raises(ChatError):
        await rig.model(azure=AzureAccess(auth="azure_cli")).complete(ASK)
    assert TOKEN not in caplog.text
