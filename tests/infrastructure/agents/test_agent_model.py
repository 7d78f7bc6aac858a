"""Agents' command lines, as stand-ins that are started for real."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from stub_agents import StubAgent, claude_says, codex_says, is_running

from burnish.infrastructure.agents.agent_model import AgentModel
from burnish.infrastructure.agents.agent_settings import AgentName, AgentSettings
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage

KEY = "sk-planted-key-0123456789"
SKILL = "# Labels\n\n- Say the label only.\r\n"
ASK = ChatRequest(system=f"{SKILL}\n\nOne word.", user="The question?", purpose="rollout", skill=SKILL, seed=7)
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Driver:
    """An agent, and what is its own."""

    name: AgentName
    key: str
    skills: str
    says: Callable[..., list[object]]
    fails: Callable[[str], list[object]]


def _codex_fails(message: str) -> list[object]:
    return [{"type": "error", "message": message}, {"type": "turn.failed", "error": {"message": message}}]


def _claude_fails(message: str) -> list[object]:
    return claude_says(message, is_error=True)


CODEX = Driver("codex", "CODEX_API_KEY", ".agents/skills", codex_says, _codex_fails)
CLAUDE = Driver("claude-code", "ANTHROPIC_API_KEY", ".claude/skills", claude_says, _claude_fails)


class Rig:
    """A stand-in for an agent, and models that start it; no wait takes any time."""

    def __init__(self, folder: Path, driver: Driver) -> None:
        self.driver = driver
        self.stub = StubAgent(folder, driver.name)
        self.stub.says(*driver.says("The label."))
        self.waits: list[float] = []
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.settings = AgentSettings(
            agent=driver.name,
            command=str(self.stub.path),
            environ={driver.key: KEY, "HOME": "/somewhere"},
            timeout_seconds=_PATIENCE_SECONDS,
            max_retries=2,
        )

    def model(self, settings: AgentSettings | None = None) -> AgentModel:
        tracer = self.provider.get_tracer("burnish")
        settings = settings or self.settings
        return AgentModel(settings, tracer=tracer, sleep=self.sleep, draw=lambda: 0.0, clock=lambda: sum(self.waits))

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    @property
    def call(self) -> Mapping[str, object]:
        (call,) = self.stub.calls
        return call


@pytest.fixture(params=[CODEX, CLAUDE], ids=lambda driver: driver.name)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    return Rig(tmp_path, request.param)


async def failure_of(model: AgentModel) -> ChatError:
    with pytest.raises(ChatError) as caught:
        await model.complete(ASK)
    return caught.value


# --- how it is started ---------------------------------------------------------------------------------------------------


async def test_the_skill_is_where_the_agent_looks_for_it_and_the_rest_in_the_prompt(rig: Rig) -> None:
    await rig.model().complete(ASK)
    path = f"{rig.driver.skills}/trained-skill/SKILL.md"
    files = cast("dict[str, str]", rig.call["files"])
    assert list(files) == [path]
    assert files[path].startswith("---\nname: trained-skill\ndescription: ")
    assert files[path].endswith(f"---\n\n{SKILL}")
    prompt = str(rig.call["input"])
    assert prompt == (
        f"Read the skill trained-skill ({path}) in full before anything else, and follow it.\n\n"
        "One word.\n\nThe question?"
    )


async def test_a_skill_with_a_name_and_a_description_stays_to_the_letter(rig: Rig) -> None:
    skill = "---\nname: ticket-routing\ndescription: Routes tickets.\n---\n# Rules\r\n"
    await rig.model().complete(replace(ASK, system=skill, skill=skill))
    assert rig.call["files"] == {f"{rig.driver.skills}/ticket-routing/SKILL.md": skill}


async def test_without_a_skill_the_folder_is_empty(rig: Rig) -> None:
    await rig.model().complete(replace(ASK, system="One word.", skill=""))
    assert (rig.call["files"], rig.call["input"]) == ({}, "One word.\n\nThe question?")


async def test_the_processes_see_nothing_but_what_they_are_given(monkeypatch: pytest.MonkeyPatch, rig: Rig) -> None:
    monkeypatch.setenv("SOMEBODY_ELSES_TOKEN", "secret")
    await rig.model().complete(ASK)
    environ = cast("dict[str, str]", rig.call["environ"])
    # The interpreter of the stand-in sets LC_CTYPE itself.
    assert environ.keys() - {"LC_CTYPE"} == {rig.driver.key, "HOME", "TMPDIR", "BURNISH_PROCESS_TREE"}
    assert environ[rig.driver.key] == KEY
    assert KEY not in f"{rig.call['arguments']} {rig.call['input']}"


async def test_nothing_of_the_folder_is_left(rig: Rig) -> None:
    await rig.model().complete(ASK)
    assert not Path(str(rig.call["folder"])).parent.exists()


async def test_codex_is_started_as_set(tmp_path: Path) -> None:
    rig = Rig(tmp_path, CODEX)
    settings = replace(rig.settings, model="small", reasoning_effort="high", sandbox="read-only", network_access=True)
    await rig.model(settings).complete(ASK)
    assert rig.call["arguments"] == [
        *("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--color", "never"),
        *(
            "--sandbox",
            "read-only",
            "-c",
            'approval_policy="never"',
            "-c",
            "sandbox_workspace_write.network_access=true",
        ),
        *("--model", "small", "-c", 'model_reasoning_effort="high"', "-"),
    ]


async def test_claude_code_is_started_as_set(tmp_path: Path) -> None:
    rig = Rig(tmp_path, CLAUDE)
    settings = replace(rig.settings, model="small", reasoning_effort="high", tools="Skill,Read")
    await rig.model(settings).complete(ASK)
    assert rig.call["arguments"] == [
        *("--print", "--output-format", "stream-json", "--verbose", "--setting-sources", "project"),
        *("--strict-mcp-config", "--no-session-persistence", "--permission-mode", "dontAsk"),
        *("--allowedTools", "Skill,Read", "--model", "small", "--effort", "high"),
    ]


# --- what it reports -----------------------------------------------------------------------------------------------------


async def test_codex_s_last_message_is_the_answer_and_its_work_the_trace(tmp_path: Path) -> None:
    rig = Rig(tmp_path, CODEX)
    work = [
        {"type": "agent_message", "text": "I look."},
        {"type": "command_execution", "command": "ls", "aggregated_output": "a\nb\n", "exit_code": 0},
        {"type": "file_change", "changes": [{"path": "note.md", "kind": "add"}]},
        {"type": "reasoning", "text": "Hm."},
    ]
    before = [{"type": "item.completed", "item": item} for item in work]
    rig.stub.says("not JSON", *codex_says("The label.", *before))
    answer = await rig.model().complete(ASK)
    assert answer == ChatAnswer(
        text="The label.",
        usage=Usage(prompt_tokens=120, completion_tokens=30, cached_tokens=100),
        trace="[agent]\nI look.\n\n[tool: shell]\n$ ls\na\nb\nexit 0\n\n[tool: files]\nadd note.md",
    )


async def test_claude_code_s_result_is_the_answer_and_its_work_the_trace(tmp_path: Path) -> None:
    rig = Rig(tmp_path, CLAUDE)
    call = {"type": "tool_use", "id": "1", "name": "Read", "input": {"file_path": "é.md"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "a\nb"}]}
    before = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}, call]}},
        {"type": "user", "message": {"content": [result]}},
    ]
    rig.stub.says(*claude_says("The label.", *before))
    answer = await rig.model().complete(ASK)
    assert answer == ChatAnswer(
        text="The label.",
        usage=Usage(prompt_tokens=120, completion_tokens=30, cached_tokens=70, cache_written_tokens=40),
        trace='[agent]\nI look.\n\n[tool: Read]\n{"file_path": "é.md"}\n\n[observation]\na\nb',
    )


async def test_a_trace_is_for_those_who_want_it_only(rig: Rig) -> None:
    item = {"type": "item.completed", "item": {"type": "agent_message", "text": "I look."}}
    told = {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look."}]}}
    rig.stub.says(*rig.driver.says("The label.", item if rig.driver is CODEX else told))
    assert (await rig.model().complete(ASK)).trace == "[agent]\nI look."
    assert (await rig.model(replace(rig.settings, shows_trace=False)).complete(ASK)).trace == ""


async def test_usage_is_estimated_and_marked_when_none_is_reported(tmp_path: Path) -> None:
    rig = Rig(tmp_path, CODEX)
    rig.stub.says(*codex_says("12345")[:-1], {"type": "turn.completed"})
    assert (await rig.model().complete(ASK)).usage.is_estimated


async def test_the_span_follows_the_genai_conventions(rig: Rig) -> None:
    await rig.model(replace(rig.settings, model="small")).complete(ASK)
    (span,) = rig.exporter.get_finished_spans()
    attributes = dict(span.attributes or {})
    assert span.name == f"invoke_agent {rig.driver.name}"
    assert attributes["gen_ai.operation.name"] == "invoke_agent"
    assert attributes["gen_ai.agent.name"] == rig.driver.name
    assert attributes["gen_ai.request.model"] == "small"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (120, 30)


# --- failures ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "code", "calls"),
    [
        ("unexpected status 401 Unauthorized", ChatErrorCode.REFUSED_KEY, 1),
        ("Invalid API key · Please run /login", ChatErrorCode.REFUSED_KEY, 1),
        ("The model 'x' does not exist (404)", ChatErrorCode.NOT_FOUND, 1),
        ("Prompt is too long", ChatErrorCode.BAD_REQUEST, 1),
        ("exceeded retry limit, last status: 429 Too Many Requests", ChatErrorCode.RATE_LIMITED, 3),
        ("You've hit your usage limit.", ChatErrorCode.RATE_LIMITED, 3),
        ("API Error: 529 overloaded_error", ChatErrorCode.RATE_LIMITED, 3),
        ("stream disconnected before completion", ChatErrorCode.SERVER_ERROR, 3),
    ],
)
async def test_a_failure_it_reports_is_coded_and_retried_where_it_may_pass(
    message: str, code: ChatErrorCode, calls: int, rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.stub.acts({"lines": rig.driver.fails(f"{message} {KEY}"), "status": 1})
    error = await failure_of(rig.model())
    assert (error.code, error.attempts, len(rig.stub.calls)) == (code, calls, calls)
    assert rig.waits == [2.0, 4.0][: calls - 1]
    (span,) = rig.exporter.get_finished_spans()
    assert KEY not in f"{caplog.text} {span.to_json()} {error!r} {rig.settings!r}"


@pytest.mark.parametrize(
    ("act", "code", "calls"),
    [
        ({}, ChatErrorCode.UNREADABLE, 1),
        ({"lines": ["[1, 2", "null"]}, ChatErrorCode.UNREADABLE, 1),
        ({"status": 3}, ChatErrorCode.SERVER_ERROR, 3),
    ],
    ids=["nothing", "no JSON", "a bad end"],
)
async def test_a_report_that_is_none_is_coded(
    act: Mapping[str, object], code: ChatErrorCode, calls: int, rig: Rig
) -> None:
    rig.stub.acts(act)
    error = await failure_of(rig.model())
    assert (error.code, len(rig.stub.calls)) == (code, calls)


async def test_an_answer_of_a_command_that_ends_badly_counts_for_nothing(rig: Rig) -> None:
    rig.stub.acts({"lines": rig.driver.says("half"), "status": 1}, {"lines": rig.driver.says("whole")})
    answer = await rig.model().complete(ASK)
    assert (answer.text, answer.attempts, answer.usage.prompt_tokens) == ("whole", 2, 240)


async def test_no_answer_is_asked_for_once_more(rig: Rig) -> None:
    lines = claude_says("") if rig.driver is CLAUDE else [codex_says("")[-1]]
    rig.stub.says(*lines)
    error = await failure_of(rig.model())
    assert (error.code, error.attempts) == (ChatErrorCode.EMPTY, 2)


async def test_a_command_that_is_not_there_is_not_found(rig: Rig) -> None:
    error = await failure_of(rig.model(replace(rig.settings, command=str(rig.stub.path.parent / "nowhere"))))
    assert error.code is ChatErrorCode.NOT_FOUND


def test_the_fingerprint_follows_what_changes_answers_only(rig: Rig) -> None:
    settings = rig.settings
    same = replace(settings, command="elsewhere", environ={}, timeout_seconds=1.0, max_concurrency=1, max_retries=0)
    own = replace(settings, sandbox="read-only") if rig.driver is CODEX else replace(settings, tools="Read")
    others = [replace(settings, model="m"), replace(settings, reasoning_effort="low"), own]
    others.append(replace(settings, shows_trace=False))
    assert same.fingerprint == settings.fingerprint
    assert len({settings.fingerprint, *(other.fingerprint for other in others)}) == 5


# --- the end of a process tree -----------------------------------------------------------------------------------------


async def gone(pids: list[int]) -> bool:
    """Whether none of them runs after a second at most."""
    until = time.monotonic() + 1.0
    while any(map(is_running, pids)):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.01)
    return True


async def test_all_it_started_is_gone_after_a_time_out(rig: Rig) -> None:
    rig.stub.acts({"family": True, "seconds": 600})
    error = await failure_of(rig.model(replace(rig.settings, timeout_seconds=3.0)))
    assert (error.code, error.attempts) == (ChatErrorCode.TIMEOUT, 1)
    family = list(rig.stub.family)
    assert len(family) == 3
    assert await gone(family)


async def test_all_it_started_is_gone_after_a_cancellation(rig: Rig) -> None:
    rig.stub.acts({"family": True, "seconds": 600})
    task = asyncio.create_task(rig.model().complete(ASK))
    await asyncio.to_thread(rig.stub.await_family, _PATIENCE_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(list(rig.stub.family))


async def test_what_it_leaves_behind_is_gone_when_it_has_answered(rig: Rig) -> None:
    rig.stub.acts({"family": True, "lines": rig.driver.says("The label.")})
    assert (await rig.model().complete(ASK)).text == "The label."
    assert await gone(list(rig.stub.family))


async def test_no_more_run_at_once_than_permitted(rig: Rig) -> None:
    model = rig.model(replace(rig.settings, max_concurrency=2))
    answers = await asyncio.gather(*(model.complete(ASK) for _ in range(5)))
    assert [answer.text for answer in answers] == ["The label."] * 5
    assert len({str(call["folder"]) for call in rig.stub.calls}) == 5
