"""Many calls of models at once: how far from the ideal they end, and whether memory stays where it was."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from burnish.infrastructure.models.chat import ChatModel, ChatRequest
from burnish.infrastructure.models.claude_chat import ClaudeChatModel
from burnish.infrastructure.models.claude_settings import ClaudeChatSettings
from burnish.infrastructure.models.openai_chat import OpenAIChatModel
from burnish.infrastructure.models.openai_settings import OpenAIChatSettings

CALLS = 500
AT_ONCE = 64
LATENCIES = {2.0: 1.15, 0.2: 1.5}
"""Seconds an answer takes, and how many times the ideal the calls may take together."""
MEMORY_BAR = 1.05
"""The process's memory after six rounds, compared with that after two."""

_COMPLETION = {
    "choices": [{"message": {"content": "The label."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 700, "completion_tokens": 3},
}
_MESSAGE = {
    "content": [{"type": "text", "text": "The label."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 700, "output_tokens": 3},
}
_REQUEST = ChatRequest(system="# Skill\n" + "- A rule to follow.\n" * 150, user="The question?", purpose="rollout")


def openai_at(origin: str) -> ChatModel:
    return OpenAIChatModel(
        OpenAIChatSettings(model="small", base_url=f"{origin}/v1", api_key="none-needed", max_concurrency=AT_ONCE)
    )


def claude_at(origin: str) -> ChatModel:
    return ClaudeChatModel(
        ClaudeChatSettings(model="small", base_url=origin, api_key="none-needed", max_concurrency=AT_ONCE)
    )


MODELS: dict[str, Callable[[str], ChatModel]] = {"openai_chat": openai_at, "claude_chat": claude_at}


async def ratios() -> dict[tuple[str, float], float]:
    """Times the ideal, by backend and latency; the ideal is full rounds of answers."""
    found: dict[tuple[str, float], float] = {}
    for backend, model_at in MODELS.items():
        for latency in LATENCIES:
            with server(latency) as origin:
                model = model_at(origin)
                await many(model, AT_ONCE)  # connections are made once
                started = time.perf_counter()
                await many(model, CALLS)
                found[backend, latency] = (time.perf_counter() - started) / (math.ceil(CALLS / AT_ONCE) * latency)
                await model.aclose()
    return found


async def memory_growth() -> float:
    """The process's memory after more calls, compared with that after the first."""
    with server(0.0) as origin:
        model = openai_at(origin)
        sizes: list[int] = []
        for _ in range(6):
            await many(model, CALLS)
            sizes.append(_resident_pages())
        await model.aclose()
    return sizes[-1] / sizes[1]


async def many(model: ChatModel, calls: int) -> None:
    await asyncio.gather(*(model.complete(_REQUEST) for _ in range(calls)))


@contextmanager
def server(latency: float) -> Generator[str]:
    """The address of a server in a process of its own, which answers everything after so many seconds."""
    process = subprocess.Popen([sys.executable, __file__, str(latency)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


def _resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])


async def _serve(latency: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
            )
            await reader.readexactly(length)
            await asyncio.sleep(latency)
            body = json.dumps(_MESSAGE if b"/messages" in head.split(b"\r\n")[0] else _COMPLETION).encode()
            length_line = f"Content-Length: {len(body)}\r\n"
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + length_line.encode() + b"\r\n" + body
            )
            await writer.drain()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    listening = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=512)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
