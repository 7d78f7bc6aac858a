"""A real HTTP server on 127.0.0.1 that answers POST /v1/chat/completions as a test's function says."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self, cast

COMPLETIONS_PATH = "/v1/chat/completions"
MESSAGES_PATH = "/v1/messages"
Body = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back to the client: `body` as JSON, or the bytes of `raw` as they are.

    `delay_seconds` passes before the first byte, `body_delay_seconds` in the middle of the body. With `reset` the
    connection is broken off there. `headers` win over the ones the server sets.
    """

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay_seconds: float = 0.0
    body_delay_seconds: float = 0.0
    reset: bool = False
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as it arrived; names of headers in lower case."""

    body: Body
    headers: Mapping[str, str]
    path: str = ""


Respond = Callable[[Body], Reply]


def completion(
    text: str | None,
    finish_reason: str = "stop",
    usage: tuple[int, int] | None = (12, 3),
    *,
    refusal: str | None = None,
) -> Reply:
    """A reply with one choice; `usage` counts the tokens of prompt and answer, None leaves them out."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    body: Body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }
    if usage is not None:
        prompt_tokens, completion_tokens = usage
        body["usage"] = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }
    return Reply(body=body)


def claude_message(
    text: str | None,
    stop_reason: str = "end_turn",
    usage: Mapping[str, int] | None = None,
    *,
    tool_input: object = None,
) -> Reply:
    """A message as Anthropic's API sends it: a text, none (None), or the call of a tool; `usage` is added to 12 and 3."""
    content: list[Body] = [] if text is None else [{"type": "text", "text": text}]
    if tool_input is not None:
        content.append({"type": "tool_use", "id": "toolu_1", "name": "label", "input": tool_input})
    return Reply(
        body={
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 12, "output_tokens": 3, **(usage or {})},
        }
    )


def claude_failure(status: int, message: str = "no", *, headers: Mapping[str, str] | None = None) -> Reply:
    """A reply with an error object as Anthropic's API sends it."""
    error = {"type": "invalid_request_error", "message": message}
    return Reply(status=status, body={"type": "error", "error": error}, headers=headers or {})


def body_of(reply: Reply) -> Body:
    """The object that a reply holds."""
    return cast("Body", reply.body)


def failure(status: int, message: str = "no", *, headers: Mapping[str, str] | None = None, **fields: str) -> Reply:
    """A reply with an error object as OpenAI sends it; `fields` are its `code`, `param` and `type`."""
    return Reply(status=status, body={"error": {"message": message, **fields}}, headers=headers or {})


def in_turn(*replies: Reply) -> Respond:
    """Each reply once, in this order, the last one for ever."""
    remaining = list(replies)
    lock = threading.Lock()

    def respond(_body: Body) -> Reply:
        with lock:
            return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    return respond


class ScriptedServer:
    """A context manager around the server; its threads end with it, and the first exception of `respond` is raised.

    `respond` is called on the server's threads, one for each connection. `received` is set with the first request.
    Requests to other paths than `path`, which may have a query, are answered with 404.
    """

    def __init__(self, respond: Respond | None = None, *, path: str = COMPLETIONS_PATH) -> None:
        self.respond: Respond = respond or in_turn(completion("ok"))
        self.path = path
        self.requests: list[RecordedRequest] = []
        self.received = threading.Event()
        self.most_in_flight = 0
        self._in_flight = 0
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._errors: list[Exception] = []
        self._http = _Server(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def base_url(self) -> str:
        """What a client of OpenAI's takes as the API's address, with /v1 at its end."""
        return f"{self.origin}/v1"

    @property
    def origin(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.hang_up()
        self._http.server_close()
        self._thread.join()
        if exception is None and self._errors:
            raise self._errors[0]

    def answer(self, body: Body, headers: Mapping[str, str], path: str) -> Reply:
        """Record the request and ask `respond`, whose exception becomes a 500."""
        with self._lock:
            self.requests.append(RecordedRequest(body, headers, path))
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        self.received.set()
        try:
            reply = self.respond(body)
            self.pause(reply.delay_seconds)
        except Exception as error:  # whatever a test's function raises is shown when the server closes
            self._errors.append(error)
            reply = failure(500, "respond raised")
        finally:
            with self._lock:
                self._in_flight -= 1
        return reply

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than the server is open."""
        if seconds > 0:
            self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them
    request_queue_size = 128

    def __init__(self, scripted: ScriptedServer) -> None:
        self.scripted = scripted
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, address = self.socket.accept()
        with self._connections_lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        with self._connections_lock:
            self._connections.discard(cast("socket.socket", request))
        self.close_request(request)  # without the orderly end that would come before it: a reset has none

    def hang_up(self) -> None:
        """Wake the threads that wait for a next request on an idle connection."""
        with self._connections_lock:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        scripted = cast("_Server", self.server).scripted
        content = self.rfile.read(int(self.headers.get("content-length", "0")))
        body = self._json_object(content)
        if self.path != scripted.path:
            reply = failure(404, "no such path")
        elif body is None:
            reply = failure(400, "not a JSON object")
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = scripted.answer(body, headers, self.path)
        try:
            self._send(reply, scripted)
        except OSError:
            self.close_connection = True  # the client gave up waiting

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the library's
        """Stay silent: a test's output is its own."""

    @staticmethod
    def _json_object(content: bytes) -> Body | None:
        try:
            parsed: object = json.loads(content)
        except ValueError:
            return None
        return cast("Body", parsed) if isinstance(parsed, dict) else None

    def _send(self, reply: Reply, scripted: ScriptedServer) -> None:
        content = json.dumps(reply.body).encode() if reply.raw is None else reply.raw
        headers = {"content-type": "application/json", "content-length": str(len(content)), **reply.headers}
        head = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
        message = "\r\n".join([*head, "", ""]).encode("latin-1") + content
        middle = len(message) - (len(content) + 1) // 2
        if not reply.reset and reply.body_delay_seconds == 0:
            self.connection.sendall(message)
            return
        self.connection.sendall(message[:middle])
        scripted.pause(reply.body_delay_seconds)
        if not reply.reset:
            self.connection.sendall(message[middle:])
            return
        # No lingering: closing sends a reset, not an orderly end.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
