"""Which agent is started, and how; apart from what starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from burnish.infrastructure.models.served_settings import digest_of

AgentName = Literal["codex", "claude-code"]
Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """An agent's command line.

    `command` is a name on the path or a path; `environ` all that its processes see of ours, keys included. `model` and
    `reasoning_effort` None: the agent's own. `sandbox` and `network_access` are for codex, `tools` for Claude Code.
    `timeout_seconds` bounds one attempt; a failure that may pass is retried `max_retries` times.
    """

    agent: AgentName
    command: str
    environ: Mapping[str, str] = field(repr=False)
    model: str | None = None
    reasoning_effort: str | None = None
    sandbox: Sandbox = "workspace-write"
    network_access: bool = False
    tools: str = ""
    shows_trace: bool = True
    timeout_seconds: float = 120.0
    max_retries: int = 4
    max_concurrency: int = 4
    requests_per_minute: int | None = None

    @property
    def fingerprint(self) -> str:
        """A SHA-256 over what decides about answers; the agent's own version and configuration are not known."""
        own = {"sandbox": self.sandbox, "network_access": self.network_access}
        return digest_of(
            f"agents/{self.agent}",
            {
                "model": self.model,
                "reasoning_effort": self.reasoning_effort,
                "shows_trace": self.shows_trace,
                **(own if self.agent == "codex" else {"tools": self.tools}),
            },
        )
