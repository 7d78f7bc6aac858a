"""An agent's command line, asked like a chat model: a work folder, a process and a report for each question."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import PurePath
from time import monotonic
from typing import Final

from opentelemetry import trace
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt

from burnish.application.log import get_logger
from burnish.domain.text_size import estimated_tokens
from burnish.infrastructure.agents import claude_code, codex
from burnish.infrastructure.agents.agent_settings import AgentName, AgentSettings
from burnish.infrastructure.agents.processes import TimedOutError, run_command
from burnish.infrastructure.agents.reports import Report
from burnish.infrastructure.agents.work_folder import work_folder
from burnish.infrastructure.models import genai
from burnish.infrastructure.models.adaptive_limit import AdaptiveLimit
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest, Usage
from burnish.infrastructure.models.pace import Pace

_FIRST_WAIT_SECONDS: Final = 2.0
_LONGEST_WAIT_SECONDS: Final = 60.0
_MAY_PASS: Final = frozenset({ChatErrorCode.RATE_LIMITED, ChatErrorCode.SERVER_ERROR})

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Agent:
    skills: PurePath
    command: Callable[[AgentSettings], list[str]]
    read: Callable[[bytes], Report]
    provider: str


_AGENTS: Final[dict[AgentName, _Agent]] = {
    "codex": _Agent(codex.SKILLS, codex.command, codex.read, genai.PROVIDER_OPENAI),
    "claude-code": _Agent(claude_code.SKILLS, claude_code.command, claude_code.read, genai.PROVIDER_ANTHROPIC),
}


class AgentModel:
    """A `ChatModel` that starts the agent anew for each request, in a folder of its own that is gone afterwards.

    The skill of the request is where the agent looks for skills, all else in its prompt. Failures that may pass are
    retried with doubling waits; a time-out is not, since it took all the time there was, and an answer without text is
    asked for once more. No process outlives its time-out or a cancellation.
    """

    def __init__(
        self,
        settings: AgentSettings,
        *,
        tracer: trace.Tracer | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._settings = settings
        self._agent = _AGENTS[settings.agent]
        self._tracer = tracer or trace.get_tracer("burnish")
        self._sleep = sleep
        self._draw = draw
        self._limit = AdaptiveLimit(settings.max_concurrency, clock=clock, sleep=sleep)
        self._pace = Pace(
            requests_per_minute=settings.requests_per_minute, tokens_per_minute=None, clock=clock, sleep=sleep
        )

    @property
    def fingerprint(self) -> str:
        """The settings'."""
        return self._settings.fingerprint

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Start the agent, wait, and read its report; raises ChatError when it has no answer."""
        call = _Call(request)
        attributes = {
            genai.OPERATION_NAME: genai.OPERATION_INVOKE_AGENT,
            genai.PROVIDER_NAME: self._agent.provider,
            genai.AGENT_NAME: self._settings.agent,
            **({} if self._settings.model is None else {genai.REQUEST_MODEL: self._settings.model}),
        }
        with self._tracer.start_as_current_span(
            f"{genai.OPERATION_INVOKE_AGENT} {self._settings.agent}",
            kind=trace.SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            outcome: ChatAnswer | ChatErrorCode = await AsyncRetrying(
                sleep=self._sleep,
                stop=stop_after_attempt(self._settings.max_retries + 1),
                wait=self._wait_seconds,
                retry=retry_if_result(call.may_pass),
                retry_error_callback=_last_outcome,
            )(self._attempt, call)
            if call.usage is not None:
                span.set_attributes(genai.usage_attributes(call.usage))
            if isinstance(outcome, ChatErrorCode):
                span.set_attribute(genai.ERROR_TYPE, outcome.value)
                span.set_status(trace.StatusCode.ERROR)
                raise ChatError(outcome, attempts=call.attempts, usage=call.usage)
            return outcome

    async def aclose(self) -> None:
        """Nothing is open between requests."""

    async def _attempt(self, call: _Call) -> ChatAnswer | ChatErrorCode:
        async with self._limit.slot() as slot:
            await self._pace.wait(0)
            call.attempts += 1
            report = await self._report(call.request)
            if report.failure is ChatErrorCode.RATE_LIMITED:
                self._limit.refused(slot, 0.0)
            elif report.answer is not None:
                self._limit.answered()
        if report.usage is not None:
            call.usage = report.usage if call.usage is None else call.usage + report.usage
        if report.answer is None:
            code = report.failure or ChatErrorCode.UNREADABLE
            call.empty_answers += code is ChatErrorCode.EMPTY
            log.warning("agent.call_failed", agent=self._settings.agent, code=code.value, attempt=call.attempts)
            return code
        usage = call.usage or Usage(
            prompt_tokens=estimated_tokens(call.request.system + call.request.user),
            completion_tokens=estimated_tokens("".join((*report.turns, report.answer))),
            is_estimated=True,
        )
        call.usage = usage
        shown = "\n\n".join(report.turns) if self._settings.shows_trace else ""
        return ChatAnswer(text=report.answer, usage=usage, attempts=call.attempts, trace=shown)

    async def _report(self, request: ChatRequest) -> Report:
        settings = self._settings
        try:
            with work_folder(request.skill, self._agent.skills) as folder:
                finished = await run_command(
                    self._agent.command(settings),
                    cwd=folder.work,
                    environ={**settings.environ, "TMPDIR": str(folder.scratch)},
                    text=prompt_for(request, folder.skill, self._agent.skills),
                    scratch=folder.scratch,
                    timeout_seconds=settings.timeout_seconds,
                )
        except TimedOutError:
            return Report(answer=None, failure=ChatErrorCode.TIMEOUT)
        except OSError as error:
            log.warning("agent.not_started", agent=settings.agent, error_type=type(error).__name__)
            return Report(answer=None, failure=ChatErrorCode.NOT_FOUND)
        report = self._agent.read(finished.output)
        if report.answer is not None and finished.status != 0:
            return Report(answer=None, usage=report.usage, failure=ChatErrorCode.SERVER_ERROR)
        if report.failure is ChatErrorCode.UNREADABLE and finished.status != 0:
            return Report(answer=None, usage=report.usage, failure=ChatErrorCode.SERVER_ERROR)
        return report

    def _wait_seconds(self, state: RetryCallState) -> float:
        wait = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** (state.attempt_number - 1))
        return wait * (1.0 - self._draw() / 2)


def prompt_for(request: ChatRequest, skill: str, skills: PurePath) -> str:
    """What the agent is told: to follow the skill, if there is one, the rest of the system prompt, and the question."""
    rest = request.system.removeprefix(request.skill).strip()
    use = f"Read the skill {skill} ({skills / skill / 'SKILL.md'}) in full before anything else, and follow it."
    form = "" if request.json_schema is None else "Answer with one JSON object and nothing else."
    return "\n\n".join(filter(None, (use if skill else "", rest, request.user, form)))


@dataclass(slots=True)
class _Call:
    """What one `complete` has been through so far."""

    request: ChatRequest
    attempts: int = 0
    empty_answers: int = 0
    usage: Usage | None = None

    def may_pass(self, outcome: ChatAnswer | ChatErrorCode) -> bool:
        """Whether the agent is to be asked again."""
        return outcome in _MAY_PASS or (outcome is ChatErrorCode.EMPTY and self.empty_answers == 1)


def _last_outcome(state: RetryCallState) -> ChatAnswer | ChatErrorCode:
    assert state.outcome is not None, "tenacity asks after an attempt only"
    outcome: ChatAnswer | ChatErrorCode = state.outcome.result()
    return outcome
