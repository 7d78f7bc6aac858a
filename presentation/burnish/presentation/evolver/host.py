"""What the host hands over with a call: folders, validation tasks, a chat call and its agent; sync or async."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Protocol, TypeAlias

Tasks: TypeAlias = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmRequest:
    """One chat call: a system prompt and a user message.

    `purpose` names it (reflect, merge, rank, guidance, memory). The answer must match `json_schema`: hand it to an
    endpoint that can enforce it, or leave it, the user message says the same. None leaves a parameter to the endpoint.
    """

    system: str
    user: str
    purpose: str
    json_schema: Mapping[str, object] | None = None
    schema_name: str = "answer"
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None


Llm: TypeAlias = Callable[[LlmRequest], object]
"""Answers with a text, or with a mapping or object of `text` and `usage` (`prompt_tokens`, `completion_tokens`)."""

RunAgent: TypeAlias = Callable[[str, list[dict[str, object]]], object]
"""Runs the agent with a document on tasks; answers with one judged attempt a task, in the form of the task files."""


class EvolverHost(Protocol):
    """What a call needs; any object with these attributes will do."""

    @property
    def workspace(self) -> str | PathLike[str]:
        """The folder with `learning_material/`, `adapter/`, `state/` and `output/`."""
        ...

    @property
    def llm(self) -> Llm:
        """The model that reads attempts and writes edits; called concurrently."""
        ...

    @property
    def run_agent(self) -> RunAgent:
        """The agent and its judge; called with at most 16 tasks, one call at a time."""
        ...

    @property
    def validation_data(self) -> Tasks:
        """The tasks that decide, JSON objects with an `id`; none of them is ever shown to the model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolverContext:
    """An `EvolverHost` for those who have none of their own."""

    workspace: str | PathLike[str]
    llm: Llm
    run_agent: RunAgent
    validation_data: Tasks


class HostCalls:
    """Calls the host's functions: async ones here, sync ones in threads."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def call(self, function: Callable[..., object], *arguments: object) -> object:
        """What it returns, awaited if need be; what it raises is raised."""
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - asks what kind of callable it is
            answer = function(*arguments)
        else:
            called = partial(copy_context().run, _guarded, function, *arguments)
            answer = await asyncio.get_running_loop().run_in_executor(self._threads, called)
        return await answer if inspect.isawaitable(answer) else answer


@contextmanager
def calling(*, at_once: int) -> Generator[HostCalls]:
    """Calls of so many sync functions at once. What still runs when the block is left early is not waited for."""
    threads = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="burnish-evolver")
    try:
        yield HostCalls(threads)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _guarded(function: Callable[..., object], *arguments: object) -> object:
    """Its answer; a StopIteration, which no future can carry, becomes a RuntimeError."""
    try:
        return function(*arguments)
    except StopIteration as error:
        raise RuntimeError("the host's function raised StopIteration") from error
