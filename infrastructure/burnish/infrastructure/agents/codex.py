"""OpenAI's Codex, run without anybody watching."""

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

SKILLS: Final = PurePath(".agents", "skills")
"""Where Codex looks for skills, in the folder it works in."""


def command(settings: AgentSettings) -> list[str]:
    """Codex's command line; the prompt is its input."""
    words = [settings.command, "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never"]
    words += ["--sandbox", settings.sandbox, *_option("approval_policy", "never")]
    if settings.network_access:
        words += ["-c", "sandbox_workspace_write.network_access=true"]
    if settings.model is not None:
        words += ["--model", settings.model]
    if settings.reasoning_effort is not None:
        words += _option("model_reasoning_effort", settings.reasoning_effort)
    return [*words, "-"]


def read(output: bytes) -> Report:
    """What Codex reports: its last message is the answer, commands and changed files are what it did."""
    messages, turns, complaint, usage = list[str](), list[str](), "", None
    is_complete = False
    for event in events(output):
        match event.get("type"):
            case "item.completed":
                item = inner(event, "item")
                match item.get("type"):
                    case "agent_message":
                        messages.append(text_of(item, "text"))
                        turns.append(turn("agent", messages[-1]))
                    case "command_execution":
                        lines = (f"$ {text_of(item, 'command')}", text_of(item, "aggregated_output").rstrip("\n"))
                        turns.append(turn("tool: shell", "\n".join((*lines, f"exit {item.get('exit_code')}"))))
                    case "file_change":
                        changes = [f"{text_of(one, 'kind')} {text_of(one, 'path')}" for one in objects(item, "changes")]
                        turns.append(turn("tool: files", "\n".join(changes)))
                    case "mcp_tool_call" | "web_search":
                        told = " ".join(filter(None, (text_of(item, name) for name in ("server", "tool", "query"))))
                        turns.append(turn(f"tool: {item.get('type')}", told))
                    case _:
                        pass
            case "turn.completed":
                is_complete = True
                usage = _usage_in(event)
            case "turn.failed":
                complaint = text_of(inner(event, "error"), "message") or "failed"
            case "error":
                complaint = complaint or text_of(event, "message")
            case _:
                pass
    if is_complete and messages:
        return Report(answer=messages[-1], turns=tuple(turns[: _last_message(turns)]), usage=usage)
    failure = ChatErrorCode.EMPTY if is_complete else code_of(complaint) if complaint else ChatErrorCode.UNREADABLE
    return Report(answer=None, usage=usage, failure=failure)


def _option(name: str, value: str) -> list[str]:
    return ["-c", f"{name}={json.dumps(value)}"]


def _last_message(turns: list[str]) -> int:
    return max(place for place, text in enumerate(turns) if text.startswith("[agent]"))


def _usage_in(event: Fields) -> Usage | None:
    usage = inner(event, "usage")
    if not usage:
        return None
    return Usage(
        prompt_tokens=count_of(usage, "input_tokens"),
        completion_tokens=count_of(usage, "output_tokens"),
        cached_tokens=count_of(usage, "cached_input_tokens"),
    )
