"""Anthropic's Claude Code, run without anybody watching."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Final

from burnish.infrastructure.agents.agent_settings import AgentSettings
from burnish.infrastructure.agents.reports import (
    Fields,
    Report,
    code_of,
    count_of,
    events,
    inner,
    objects,
    text_of,
    turn,
)
from burnish.infrastructure.models.chat import ChatErrorCode, Usage

SKILLS: Final = PurePath(".claude", "skills")
"""Where Claude Code looks for skills, in the folder it works in."""


def command(settings: AgentSettings) -> list[str]:
    """Claude Code's command line; the prompt is its input. It uses the tools that are named, and asks for no others.

    Nothing of the user's own settings, sessions and servers takes part.
    """
    words = [settings.command, "--print", "--output-format", "stream-json", "--verbose"]
    words += ["--setting-sources", "project", "--strict-mcp-config", "--no-session-persistence"]
    words += ["--permission-mode", "dontAsk"]
    if settings.tools:
        words += ["--allowedTools", settings.tools]
    if settings.model is not None:
        words += ["--model", settings.model]
    if settings.reasoning_effort is not None:
        words += ["--effort", settings.reasoning_effort]
    return words


def read(output: bytes) -> Report:
    """What Claude Code reports: its result is the answer, calls of tools are what it did."""
    turns, result = list[str](), None
    for event in events(output):
        match event.get("type"):
            case "assistant":
                turns += [told for block in objects(inner(event, "message"), "content") if (told := _told(block))]
            case "user":
                blocks = objects(inner(event, "message"), "content")
                turns += [
                    turn("observation", _result_in(block)) for block in blocks if block.get("type") == "tool_result"
                ]
            case "result":
                result = event
            case _:
                pass
    if result is None:
        return Report(answer=None, failure=ChatErrorCode.UNREADABLE)
    usage = _usage_in(result)
    text = text_of(result, "result")
    if result.get("subtype") != "success" or result.get("is_error") is True:
        return Report(answer=None, usage=usage, failure=code_of(text))
    if not text.strip():
        return Report(answer=None, usage=usage, failure=ChatErrorCode.EMPTY)
    if turns and turns[-1] == turn("agent", text):
        turns.pop()
    return Report(answer=text, turns=tuple(turns), usage=usage)


def _told(block: Fields) -> str:
    match block.get("type"):
        case "text":
            return turn("agent", text_of(block, "text"))
        case "tool_use":
            called = json.dumps(inner(block, "input"), ensure_ascii=False)
            return turn(f"tool: {text_of(block, 'name')}", called)
        case _:
            return ""


def _result_in(block: Fields) -> str:
    return text_of(block, "content") or "\n".join(text_of(part, "text") for part in objects(block, "content"))


def _usage_in(result: Fields) -> Usage | None:
    usage = inner(result, "usage")
    if not usage:
        return None
    cached, written = count_of(usage, "cache_read_input_tokens"), count_of(usage, "cache_creation_input_tokens")
    return Usage(
        prompt_tokens=count_of(usage, "input_tokens") + cached + written,
        completion_tokens=count_of(usage, "output_tokens"),
        cached_tokens=cached,
        cache_written_tokens=written,
    )
