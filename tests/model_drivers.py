"""Every backend behind HTTP: how its model is made, how its server speaks, and what a plain request looks like there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from scripted_server import (
    COMPLETIONS_PATH,
    MESSAGES_PATH,
    Body,
    Reply,
    ScriptedServer,
    body_of,
    claude_failure,
    claude_message,
    completion,
    failure,
)

from burnish.infrastructure.models.chat import ChatRequest
from burnish.infrastructure.models.claude_chat import ClaudeChatModel
from burnish.infrastructure.models.claude_settings import ClaudeChatSettings
from burnish.infrastructure.models.openai_chat import OpenAIChatModel
from burnish.infrastructure.models.openai_settings import AzureAccess, OpenAIChatSettings
from burnish.infrastructure.models.qwen_chat import QwenChatModel
from burnish.infrastructure.models.qwen_settings import QwenChatSettings
from burnish.infrastructure.models.served_chat import ServedChatModel
from burnish.infrastructure.models.served_settings import ServedSettings

KEY: Final = "sk-planted-key-0123456789"
NOW: Final = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
ASK: Final = ChatRequest(system="The skill.", user="The question?", purpose="rollout")
SCHEMA: Final = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
ASK_JSON: Final = replace(ASK, json_schema=SCHEMA, schema_name="label")

_AZURE_PATH = "/openai/deployments/small/chat/completions?api-version=2024-12-01-preview"


class Rig:
    """A server, and models that talk to it; `waits` are the seconds they wanted to wait, without jitter: none pass.

    The clock moves by what was waited.
    """

    def __init__(self, server: ScriptedServer, driver: ModelDriver) -> None:
        self.server = server
        self.driver = driver
        self.waits: list[float] = []
        self.models: list[ServedChatModel] = []
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def model(self, *, base_url: str | None = None, **changes: object) -> ServedChatModel:
        """A model of the driver's backend, with other settings than the usual ones."""
        address = base_url or (self.server.base_url if self.driver.has_version else self.server.origin)
        settings = replace(self.driver.settings, base_url=address, **changes)  # type: ignore[arg-type]
        model = self.driver.make(settings, self)
        self.models.append(model)
        return model

    async def sleep(self, seconds: float) -> None:
        """Note it."""
        self.waits.append(seconds)

    def clock(self) -> float:
        """Seconds that were waited."""
        return sum(self.waits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDriver:
    """A backend, and what is its own at it."""

    name: str
    settings: ServedSettings
    make: Callable[[ServedSettings, Rig], ServedChatModel]
    answers: Callable[..., Reply]
    fails: Callable[..., Reply]
    provider: str
    path: str = COMPLETIONS_PATH
    has_version: bool = True
    """Whether the API's address ends with the version, as OpenAI's do."""
    credential: tuple[str, str] = ("authorization", f"Bearer {KEY}")
    body: Mapping[str, object] = field(default_factory=dict[str, object])
    json_bodies: tuple[Mapping[str, object], ...] = ()
    """What a request for JSON adds, in each mode from the strongest to the weakest."""
    refuses_format: str = "response_format is not supported"
    endings: tuple[Reply, Reply] = (Reply(), Reply())
    """An answer at the token limit, and one the provider withheld."""
    empty: Reply = field(default_factory=Reply)
    unreadable: tuple[Reply, ...] = ()


_MESSAGES = [{"role": "system", "content": "The skill."}, {"role": "user", "content": "The question?"}]
_OPENAI_BODY: Body = {"model": "small", "messages": _MESSAGES}
_OPENAI_FORMATS: tuple[Body, ...] = (
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "label", "schema": SCHEMA, "strict": True},
        }
    },
    {"response_format": {"type": "json_object"}},
    {},
)
_OPENAI_ENDINGS = (completion("half an ans", "length"), completion("", "content_filter"))
_NO_CHOICES = (Reply(raw=b'{"choices": ['), Reply(raw=b"<html>hello</html>"), Reply(body={"choices": []}))


def _openai(settings: ServedSettings, rig: Rig) -> ServedChatModel:
    assert isinstance(settings, OpenAIChatSettings)
    return OpenAIChatModel(
        settings,
        tracer=rig.provider.get_tracer("burnish"),
        sleep=rig.sleep,
        draw=lambda: 0.0,
        now=lambda: NOW,
        clock=rig.clock,
    )


def _claude(settings: ServedSettings, rig: Rig) -> ServedChatModel:
    assert isinstance(settings, ClaudeChatSettings)
    return ClaudeChatModel(
        settings,
        tracer=rig.provider.get_tracer("burnish"),
        sleep=rig.sleep,
        draw=lambda: 0.0,
        now=lambda: NOW,
        clock=rig.clock,
    )


def _qwen(settings: ServedSettings, rig: Rig) -> ServedChatModel:
    assert isinstance(settings, QwenChatSettings)
    return QwenChatModel(
        settings,
        tracer=rig.provider.get_tracer("burnish"),
        sleep=rig.sleep,
        draw=lambda: 0.0,
        now=lambda: NOW,
        clock=rig.clock,
    )


def _claude_answer(text: str | None, *, usage: tuple[int, int] | None = (12, 3)) -> Reply:
    if usage is None:
        reply = claude_message(text)
        return replace(reply, body={name: value for name, value in body_of(reply).items() if name != "usage"})
    return claude_message(text, usage={"input_tokens": usage[0], "output_tokens": usage[1]})


def _openai_answer(text: str | None, *, usage: tuple[int, int] | None = (12, 3)) -> Reply:
    return completion(text, usage=usage)


_OPENAI = OpenAIChatSettings(model="small", base_url=None, api_key=KEY, timeout_seconds=5.0, max_retries=2)

OPENAI: Final = ModelDriver(
    name="openai_chat",
    settings=_OPENAI,
    make=_openai,
    answers=_openai_answer,
    fails=failure,
    provider="openai",
    body=_OPENAI_BODY,
    json_bodies=_OPENAI_FORMATS,
    endings=_OPENAI_ENDINGS,
    empty=completion(None),
    unreadable=_NO_CHOICES,
)
COMPATIBLE: Final = replace(OPENAI, name="openai_compatible", settings=replace(_OPENAI, token_parameter="max_tokens"))
AZURE: Final = replace(
    OPENAI,
    name="azure",
    settings=replace(_OPENAI, azure=AzureAccess(), is_openai=True),
    path=_AZURE_PATH,
    has_version=False,
    credential=("api-key", KEY),
    provider="azure.ai.openai",
)
QWEN: Final = replace(
    OPENAI,
    name="qwen_chat",
    settings=QwenChatSettings(model="small", base_url=None, api_key=KEY, timeout_seconds=5.0, max_retries=2),
    make=_qwen,
    provider="qwen",
)
CLAUDE: Final = ModelDriver(
    name="claude_chat",
    settings=ClaudeChatSettings(model="small", base_url=None, api_key=KEY, timeout_seconds=5.0, max_retries=2),
    make=_claude,
    answers=_claude_answer,
    fails=claude_failure,
    provider="anthropic",
    path=MESSAGES_PATH,
    has_version=False,
    body={
        "model": "small",
        "max_tokens": 16384,
        "system": [{"type": "text", "text": "The skill.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "The question?"}],
    },
    json_bodies=(
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {
            "tools": [{"name": "label", "description": "Takes the answer.", "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "label"},
        },
        {},
    ),
    refuses_format="output_config.format: Extra inputs are not permitted; tools are not supported either",
    endings=(claude_message("half an ans", "max_tokens"), claude_message("", "refusal")),
    empty=claude_message(None),
    unreadable=(Reply(raw=b'{"content": ['), Reply(raw=b"<html>hello</html>"), Reply(body={"content": None})),
)
DRIVERS: Final = (OPENAI, COMPATIBLE, AZURE, CLAUDE, QWEN)
