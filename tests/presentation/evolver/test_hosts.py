"""Hosts of every kind: sync and async functions, odd answers, exceptions, scores, traces, usage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from evolver_host import SMALL, START, Host, Json

from burnish.application.result import ErrorCode
from burnish.presentation.evolver import BlockingEvolver, Evolver, EvolverContext, EvolverError, LlmRequest


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    host.write_material(1)
    return host


def text_of(host: Host) -> str:
    return host.document.read_text(encoding="utf-8")


async def test_async_functions(host: Host) -> None:
    async def llm(request: LlmRequest) -> object:
        return host.llm(request)

    async def run_agent(document: str, tasks: list[Json]) -> object:
        return host.run_agent(document, tasks)

    ctx = EvolverContext(workspace=str(host.folder), llm=llm, run_agent=run_agent, validation_data=host.validation_data)
    evolver = Evolver(SMALL)
    await evolver.setup(ctx)
    assert (await evolver.step(ctx))["status"] == "done"
    assert not await evolver.next_step_ends_epoch(ctx)
    assert (await evolver.finalize(ctx))["status"] == "done"
    assert text_of(host) != START


async def test_sync_functions_that_return_awaitables(host: Host) -> None:
    async def later(answer: object) -> object:
        return answer

    llm, run_agent = host.llm, host.run_agent
    host.llm = lambda request: later(llm(request))
    host.run_agent = lambda document, tasks: later(run_agent(document, tasks))
    assert (await Evolver(SMALL).step(host))["status"] == "done"


async def test_blocking_evolver_inside_an_event_loop_is_refused(host: Host) -> None:
    with pytest.raises(EvolverError, match="use Evolver, and await it"):
        BlockingEvolver(SMALL).step(host)


async def test_model_is_called_concurrently_and_the_agent_is_not(host: Host) -> None:
    at_work = {"llm": 0, "agent": 0}
    most = dict(at_work)

    async def counted(name: str, answer: Callable[[], object]) -> object:
        at_work[name] += 1
        most[name] = max(most[name], at_work[name])
        for _ in range(5):
            await asyncio.sleep(0)
        at_work[name] -= 1
        return answer()

    async def llm(request: LlmRequest) -> object:
        return await counted("llm", lambda: host.llm(request))

    async def run_agent(document: str, tasks: list[Json]) -> object:
        return await counted("agent", lambda: host.run_agent(document, tasks))

    ctx = EvolverContext(workspace=host.folder, llm=llm, run_agent=run_agent, validation_data=host.validation_data)
    for number in range(3):
        host.write_material(number)
        await Evolver({**SMALL, "steps_per_epoch": 1}).step(ctx)
    await Evolver({**SMALL, "steps_per_epoch": 1}).finalize(ctx)
    assert most == {"llm": 3, "agent": 1}


FORMS: list[Callable[[str], object]] = [
    lambda text: text,
    lambda text: {"text": text},
    lambda text: SimpleNamespace(text=text, usage=SimpleNamespace(prompt_tokens=5, completion_tokens=1)),
]


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_an_answer(host: Host, form: Callable[[str], object]) -> None:
    host.answer = lambda request: form(json.dumps(host.thought(request)))
    result = BlockingEvolver(SMALL).step(host)
    assert result["status"] == "done"
    assert result["usage"]["optimizer"]["calls"] == 5
    assert result["usage"]["optimizer"]["prompt_tokens"] > 0


@pytest.mark.parametrize("answer", [None, 3, {"txt": "x"}, {"text": ""}, "", "no JSON", {"text": 5}])
def test_answers_that_are_none_fail_the_step(host: Host, answer: object) -> None:
    host.answer = lambda request: answer
    assert BlockingEvolver(SMALL).step(host)["status"] == "failed"
    assert text_of(host) == START


def test_stop_iteration_is_a_failure_like_any_other(host: Host) -> None:
    host.answer = lambda request: next(iter(()))
    assert BlockingEvolver(SMALL).step(host)["status"] == "failed"


@pytest.mark.parametrize("where", ["llm", "run_agent"])
def test_interruption_passes_through_and_the_step_goes_on_later(host: Host, where: str) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    answer = getattr(host, where)
    setattr(host, where, interrupt)
    with pytest.raises(KeyboardInterrupt):
        BlockingEvolver(SMALL).step(host)
    setattr(host, where, answer)
    assert BlockingEvolver(SMALL).step(host)["status"] == "done"


async def test_cancellation_passes_through_and_the_step_goes_on_later(host: Host) -> None:
    reached = asyncio.Event()

    async def hangs(request: LlmRequest) -> object:
        reached.set()
        await asyncio.Event().wait()
        return request

    ctx = EvolverContext(
        workspace=host.folder, llm=hangs, run_agent=host.run_agent, validation_data=host.validation_data
    )
    call = asyncio.create_task(Evolver(SMALL).step(ctx))
    await reached.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert text_of(host) == START
    assert (await Evolver(SMALL).step(host))["status"] == "done"
    assert host.asked().count("run_agent") == 4


async def test_cancellation_nobody_asked_for_is_a_failure_of_the_host(host: Host) -> None:
    async def llm(request: LlmRequest) -> object:
        raise asyncio.CancelledError

    host.llm = llm
    assert (await Evolver(SMALL).step(host))["status"] == "failed"


SPOILT: list[tuple[Callable[[list[Json]], object], str]] = [
    (lambda attempts: None, "run_agent: its answer is no list"),
    (lambda attempts: attempts[1:], "run_agent: there is no attempt at the task 'val-0'"),
    (lambda attempts: [*attempts, attempts[0]], "is attempted twice"),
    (lambda attempts: [{**attempts[0], "task": {"id": "x"}}, *attempts[1:]], "nobody asked for the task 'x'"),
    (
        lambda attempts: [{**attempts[0], "judge": {"score": 2}}, *attempts[1:]],
        'run_agent: attempt 1: "judge.score" is 2',
    ),
    (lambda attempts: ["solved", *attempts[1:]], "run_agent: attempt 1: not a JSON object"),
]


@pytest.mark.parametrize(("spoil", "told"), SPOILT)
def test_agent_that_breaks_the_contract_is_refused_and_nothing_of_it_is_kept(
    host: Host, spoil: Callable[[list[Json]], object], told: str
) -> None:
    answer = host.run_agent
    host.run_agent = lambda document, tasks: spoil([host.attempt(document, task) for task in tasks])
    with pytest.raises(EvolverError) as caught:
        BlockingEvolver(SMALL).step(host)
    assert told in caught.value.line
    assert caught.value.code in {ErrorCode.ROLLOUT_WRONG_ITEMS, ErrorCode.ROLLOUT_INVALID_SCORE}
    host.run_agent = answer
    assert BlockingEvolver(SMALL).step(host)["status"] == "done"


def test_request_says_what_the_parameters_say(host: Host) -> None:
    requests = host.notes_requests()
    BlockingEvolver({**SMALL, "max_tokens": 321, "temperature": 0.25}).step(host)
    assert {request.purpose for request in requests} == {"reflect", "merge", "rank"}
    assert {request.max_tokens for request in requests} == {321}
    assert {request.temperature for request in requests} == {0.25}
    assert all(request.json_schema and request.seed and request.system for request in requests)


def test_request_leaves_open_what_nobody_set(host: Host) -> None:
    requests = host.notes_requests()
    BlockingEvolver(SMALL).step(host)
    assert {request.temperature for request in requests} == {None}
    assert len({request.max_tokens for request in requests}) > 1


def prompts(host: Host, **parameters: object) -> str:
    """What analysts are shown in a step."""
    requests = host.notes_requests()
    BlockingEvolver({**SMALL, **parameters}).step(host)
    return "\n".join(request.user for request in requests if request.purpose == "reflect")


def put(host: Host, **fields: object) -> None:
    """Change the first attempt of the batch."""
    path = min((host.folder / "learning_material" / "current" / "tasks").glob("*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize("shown", [True, False])
def test_trace_summaries_are_shown_when_they_are_wanted(host: Host, *, shown: bool) -> None:
    put(host, codex_trace_summary="it read the wrong file")
    tasks = host.folder / "learning_material" / "current" / "tasks"
    second, third = sorted(tasks.glob("*.json"))[1:3]
    second.with_name(f"{second.stem}.codex_trace_summary.txt").write_text("it searched in vain")
    third.with_suffix("").mkdir()
    (third.with_suffix("") / "codex_trace_summary.txt").write_text("it gave up early")
    told = prompts(host, codex_trace_to_optimizer=shown)
    found = [text in told for text in ("it read the wrong file", "it searched in vain", "it gave up early")]
    assert found == [shown] * 3


def test_analysts_see_task_trajectory_answer_and_feedback(host: Host) -> None:
    turns = [
        {"role": "user", "content": "How many?"},
        {"role": "tool", "name": "search", "content": "x" * 100},
        {"role": "assistant", "content": "Three."},
    ]
    put(host, trajectory=turns, judge={"score": 0.5, "feedback": "it was four"})
    told = prompts(host, obs_chars=20)
    for text in ("[user]\nHow many?", "[tool: search]", "[agent]\nThree.", "why it failed: it was four", "soft 0.5"):
        assert text in told
    assert "x" * 100 not in told


def test_attempt_without_a_trajectory_shows_the_question_and_the_output(host: Host) -> None:
    put(host, trajectory=None, output="forty-two")
    told = prompts(host)
    assert "[user]\nTask 0\n\n[agent]\nforty-two" in told or "[agent]\nforty-two" in told


def test_validation_tasks_are_never_shown(host: Host) -> None:
    requests = host.notes_requests()
    host.loop(BlockingEvolver(SMALL), 6)
    assert requests
    assert not [request for request in requests if "val-" in request.system + request.user]


@pytest.mark.parametrize(("success_score", "hard"), [(1.0, "0.0000"), (0.5, "1.0000"), (0.51, "0.0000")])
def test_scores_of_an_attempt(host: Host, success_score: float, hard: str) -> None:
    attempt = host.attempt
    host.attempt = lambda document, task: {**attempt(document, task), "judge": {"score": 0.5, "extra": {"f1": 0.75}}}
    host.write_material(1)
    BlockingEvolver({**SMALL, "success_score": success_score}).step(host)
    assert f"| initial, on validation | {hard} | 0.7500 | 24 | 0 |" in host.report


def test_soft_score_is_the_score_where_there_is_no_f1(host: Host) -> None:
    attempt = host.attempt
    host.attempt = lambda document, task: {**attempt(document, task), "judge": {"score": 0.5}}
    host.write_material(1)
    BlockingEvolver({**SMALL, "gate_metric": "mixed", "gate_mixed_weight": 0.5}).step(host)
    assert "| initial, on validation | 0.0000 | 0.5000 | 24 | 0 |" in host.report
    assert "What decides is the mixed score on validation: current 0.2500" in host.report


def test_attempts_without_an_answer_are_missing_data(host: Host) -> None:
    put(host, error="the agent crashed")
    assert BlockingEvolver(SMALL).step(host)["status"] == "failed"  # one in five is too many to decide
    assert " | 4 | 1 |" in host.report
    assert "The batch itself lacks answers, so another call would end the same" in host.report


def test_usage_is_that_of_the_step_also_when_it_was_resumed(host: Host) -> None:
    calls: list[str] = []

    def third(name: str) -> None:
        calls.append(name)
        if len(calls) == 6:
            raise KeyboardInterrupt

    host.before = third
    with pytest.raises(KeyboardInterrupt):
        BlockingEvolver({**SMALL, "analyst_workers": 1}).step(host)
    host.before = lambda _: None
    usage = BlockingEvolver({**SMALL, "analyst_workers": 1}).step(host)["usage"]
    assert usage == {
        "optimizer": {"calls": 5, "prompt_tokens": 500, "completion_tokens": 50},
        "target": {"calls": 48, "prompt_tokens": 336, "completion_tokens": 144},
    }


def test_lone_surrogates_in_an_answer_do_not_end_a_step(host: Host) -> None:
    edit = {"op": "append", "target": "", "content": "- use r1 \ud83d", "support": 1}
    host.thought = lambda request: {"reasoning": "", "edits": [edit], "order": [0]}
    assert BlockingEvolver(SMALL).step(host)["status"] == "done"
    text_of(host)


@pytest.mark.parametrize("name", ["llm", "run_agent"])
def test_functions_must_be_there(host: Host, name: str) -> None:
    setattr(host, name, None)
    with pytest.raises(EvolverError, match=rf"ctx\.{name}: must be a function"):
        BlockingEvolver(SMALL).setup(host)
