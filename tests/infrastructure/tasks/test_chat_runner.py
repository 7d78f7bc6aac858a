"""The chat runner: what the model is asked, and what becomes of its answers and failures."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.application.ports import ItemCatalog, PortError, RolloutRunner
from burnish.application.result import ErrorCode
from burnish.application.usage import collecting_usage
from burnish.domain.rollouts import Rollout, RolloutBatch
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatModel, ChatRequest, Usage
from burnish.infrastructure.models.metered import MeteredModel
from burnish.infrastructure.simulation.apprentice import SimulatedApprentice
from burnish.infrastructure.tasks.chat_runner import ChatTaskRunner
from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.python_scorer import PythonScorer
from burnish.infrastructure.tasks.scorers import ExactMatch, Numeric, Scorer
from burnish.infrastructure.tasks.splits import Splits

SKILL = "---\nname: s\n---\n\n# Skill\r\n- Be right.\n"
CALM = Item("calm", "Ticket: calm?", ("NWR-7F/2",), "login", {"context": "C"})
LOUD = Item("loud", "Ticket: LOUD?", ("MOX-5B/5",), "other", {"context": "D"})
SPLITS = Splits(train=(CALM, LOUD), val=(Item("v", "V?", ("1",)),), test=())


class FakeModel:
    """Answers by the user message; a code stands for a failure."""

    def __init__(self, answers: Mapping[str, str | ChatErrorCode], *, fingerprint: str = "fake/1") -> None:
        self.answers = answers
        self.requests: list[ChatRequest] = []
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        self.requests.append(request)
        await asyncio.sleep(0)
        answer = self.answers[request.user]
        if isinstance(answer, ChatErrorCode):
            raise ChatError(answer)
        return ChatAnswer(text=answer, usage=Usage(prompt_tokens=1, completion_tokens=1))

    async def aclose(self) -> None:
        """Nothing to give back."""


def _model() -> FakeModel:
    return FakeModel({CALM.question: "So:\n<answer>nwr-7f/2</answer>", LOUD.question: "MOX-7F/5"})


def _runner(
    model: ChatModel | None = None, *, scorer: Scorer | None = None, template: str = "{question}", instruction: str = ""
) -> ChatTaskRunner:
    return ChatTaskRunner(
        splits=SPLITS,
        model=model or _model(),
        scorer=scorer or ExactMatch(),
        template=template,
        answer_instruction=instruction,
    )


def _batch(*item_ids: str, seed: int = 7, repeat: str = "0", size: int = 8) -> RolloutBatch:
    return RolloutBatch("train", item_ids=item_ids, seed=seed, repeat=repeat, size=size)


def _python(answer: object) -> PythonScorer:
    return PythonScorer("checks:score", "", lambda _prediction, _item: answer)


async def test_it_is_a_runner_that_knows_its_items() -> None:
    runner = _runner()
    assert isinstance(runner, RolloutRunner)
    assert isinstance(runner, ItemCatalog)
    assert [await runner.item_ids(split) for split in ("train", "val", "test", "valid_seen")] == [
        ("calm", "loud"),
        ("v",),
        (),
        (),
    ]


async def test_answers_are_scored_in_the_order_asked_for() -> None:
    rollouts = await _runner().run(SKILL, _batch("loud", "calm"))
    assert list(rollouts) == [
        Rollout(
            "loud",
            hard=0.0,
            soft=0.0,
            trajectory="[user]\nTicket: LOUD?\n\n[agent]\nMOX-7F/5",
            task_type="other",
            prediction="MOX-7F/5",
            fail_reason='expected "MOX-5B/5", got "MOX-7F/5"',
        ),
        Rollout(
            "calm",
            hard=1.0,
            soft=1.0,
            trajectory="[user]\nTicket: calm?\n\n[agent]\nSo:\n<answer>nwr-7f/2</answer>",
            task_type="login",
            prediction="nwr-7f/2",
        ),
    ]


@pytest.mark.parametrize("code", list(ChatErrorCode))
async def test_a_failed_call_is_missing_data(code: ChatErrorCode) -> None:
    model = FakeModel({CALM.question: code, LOUD.question: "MOX-5B/5"})
    failed, answered = await _runner(model).run(SKILL, _batch("calm", "loud"))
    assert failed == Rollout("calm", hard=0.0, soft=0.0, task_type="login", error=code.value)
    assert answered.is_success


@pytest.mark.parametrize(
    ("skill", "instruction", "system"),
    [
        (SKILL, "", SKILL),
        (SKILL, "Reply in <answer> tags.", f"{SKILL}\n\nReply in <answer> tags."),
        ("", "Reply in <answer> tags.", "Reply in <answer> tags."),
        ("", "", ""),
    ],
)
async def test_the_system_prompt_is_the_skill_first_and_the_same_for_all(
    skill: str, instruction: str, system: str
) -> None:
    model = _model()
    await _runner(model, instruction=instruction).run(skill, _batch("calm", "loud"))
    assert [request.system.encode() for request in model.requests] == [system.encode()] * 2
    assert {request.purpose for request in model.requests} == {"rollout"}


async def test_the_user_message_is_the_filled_template() -> None:
    model = FakeModel({"C / Ticket: calm?": "x", "D / Ticket: LOUD?": "y"})
    splits = Splits(SPLITS.train, ())
    runner = ChatTaskRunner(splits=splits, model=model, scorer=ExactMatch(), template="{context} / {question}")
    await runner.run(SKILL, _batch("calm", "loud"))
    assert [request.user for request in model.requests] == ["C / Ticket: calm?", "D / Ticket: LOUD?"]


async def _seeds(*batches: RolloutBatch) -> list[int | None]:
    model = _model()
    for batch in batches:
        await _runner(model).run(SKILL, batch)
    return [request.seed for request in model.requests]


async def test_a_seed_depends_on_batch_seed_repeat_and_item_but_not_on_the_company() -> None:
    together = await _seeds(_batch("calm", "loud"))
    alone = await _seeds(_batch("loud"), _batch("calm"))
    assert together == alone[::-1]
    others = await _seeds(_batch("calm", seed=8), _batch("calm", repeat="1"))
    seeds = {*together, *others}
    assert len(seeds) == 4
    assert all(seed is not None and 0 < seed < 2**31 for seed in seeds)


async def test_without_ids_at_most_size_items_are_drawn() -> None:
    runner = _runner()
    assert [rollout.item_id for rollout in await runner.run(SKILL, _batch(size=5))] == ["calm", "loud"]
    assert len(await runner.run(SKILL, _batch(size=1))) == 1
    assert list(await runner.run(SKILL, RolloutBatch("test"))) == []


@pytest.mark.parametrize("batch", [_batch("calm", "v"), RolloutBatch("valid_seen", item_ids=("v",))])
async def test_an_unknown_item_is_refused_before_the_first_call(batch: RolloutBatch) -> None:
    model = _model()
    with pytest.raises(PortError) as caught:
        await _runner(model).run(SKILL, batch)
    assert (caught.value.code, caught.value.fields) == (ErrorCode.ROLLOUT_WRONG_ITEMS, ("v",))
    assert model.requests == []


async def test_a_scorer_that_raises_is_named_with_its_item() -> None:
    with pytest.raises(PortError) as caught:
        await _runner(scorer=_python("no score")).run(SKILL, _batch("loud"))
    assert (caught.value.code, caught.value.fields) == (ErrorCode.ROLLOUT_INVALID_SCORE, ("loud",))


async def test_a_scorer_that_lets_a_stop_iteration_out_does_not_hang() -> None:
    scorer = PythonScorer("checks:score", "", lambda _prediction, _item: next(iter(())))
    async with asyncio.timeout(5):
        with pytest.raises(PortError):
            await _runner(scorer=scorer).run(SKILL, _batch("loud"))


@pytest.mark.parametrize("answer", [1.5, -0.1, math.inf])
async def test_a_score_out_of_range_is_passed_on(answer: float) -> None:
    [rollout] = await _runner(scorer=_python(answer)).run(SKILL, _batch("loud"))
    assert (rollout.hard, rollout.soft) == (answer, answer)


async def test_a_python_function_runs_beside_the_event_loop() -> None:
    threads: list[int] = []

    def score(prediction: str, item: dict[str, object]) -> bool:
        threads.append(threading.get_ident())
        return True

    await _runner(scorer=PythonScorer("checks:score", "", score)).run(SKILL, _batch("loud"))
    assert threads != [threading.get_ident()]


async def test_other_errors_of_the_model_and_cancellation_pass_through() -> None:
    with pytest.raises(KeyError):
        await _runner(FakeModel({})).run(SKILL, _batch("loud"))
    task = asyncio.create_task(_runner_that_waits().run(SKILL, _batch("loud")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class _WaitingModel(FakeModel):
    async def complete(self, request: ChatRequest) -> ChatAnswer:
        await asyncio.Event().wait()
        raise AssertionError


def _runner_that_waits() -> ChatTaskRunner:
    return _runner(_WaitingModel({}))


def test_the_fingerprint_changes_with_everything_that_decides_an_answer_or_a_score() -> None:
    runners = [
        _runner(),
        _runner(FakeModel({}, fingerprint="fake/2")),
        _runner(template="Q: {question}"),
        _runner(instruction="Be brief."),
        _runner(scorer=_python(1.0)),
        _runner(scorer=PythonScorer("checks:score", "other source", lambda _prediction, _item: 1.0)),
    ]
    assert len({runner.fingerprint for runner in runners}) == len(runners)
    assert _runner().fingerprint == _runner().fingerprint
    assert len(_runner().fingerprint) == 64


def test_an_item_has_a_fingerprint_of_all_its_fields() -> None:
    runner = _runner()
    fingerprint = runner.item_fingerprint("train", "calm")
    assert len(fingerprint) == 64
    assert fingerprint == _runner(template="Q: {question}").item_fingerprint("train", "calm")
    changed = Item("calm", CALM.question, CALM.answers, CALM.task_type, {"context": "changed"})
    other = ChatTaskRunner(splits=Splits((changed,), ()), model=_model(), scorer=ExactMatch())
    assert other.item_fingerprint("train", "calm") != fingerprint
    for split, item_id in (("train", "v"), ("nowhere", "v")):
        with pytest.raises(LookupError):
            runner.item_fingerprint(split, item_id)


def test_an_item_without_a_field_of_the_template_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        _runner(template="{context} {question}")
    assert caught.value.line == (
        "item 'v' of val: has no field 'context' for the prompt template; "
        "add it to the item, or take it out of the template"
    )


def test_an_item_the_scorer_cannot_judge_is_refused() -> None:
    splits = Splits((Item("n", "N?", ("none",)),), ())
    with pytest.raises(DataError) as caught:
        ChatTaskRunner(splits=splits, model=_model(), scorer=Numeric())
    line = "item 'n' of train: an answer holds no number; correct it, or choose another scorer"
    assert caught.value.line == line


# --- what it can cost ------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(
    skill=st.sampled_from([SKILL, "", "é漢🙂" * 20]),
    item_ids=st.lists(st.sampled_from(["calm", "loud"]), unique=True),
    size=st.integers(1, 3),
    max_tokens=st.sampled_from([1, 2, 100]),
)
async def test_no_batch_uses_more_tokens_than_it_said_it_could(
    skill: str, item_ids: list[str], size: int, max_tokens: int
) -> None:
    runner = ChatTaskRunner(
        splits=SPLITS,
        model=MeteredModel(SimulatedApprentice(), "target"),
        scorer=ExactMatch(),
        answer_instruction="Answer.",
        max_tokens=max_tokens,
    )
    batch = _batch(*item_ids, size=size)
    most = runner.usage_at_most(skill, batch)
    with collecting_usage() as notes:
        await runner.run(skill, batch)
    assert most is not None
    assert {note.role for note in most} == {note.role for note in notes} == {"target"}
    assert sum(note.prompt_tokens for note in notes) <= sum(note.prompt_tokens for note in most)
    assert sum(note.completion_tokens for note in notes) <= sum(note.completion_tokens for note in most)


def test_without_a_longest_answer_nobody_knows_what_a_batch_costs() -> None:
    assert _runner().usage_at_most(SKILL, _batch("calm")) is None


def test_the_cost_of_an_item_nobody_has_is_refused() -> None:
    runner = ChatTaskRunner(splits=SPLITS, model=_model(), scorer=ExactMatch(), max_tokens=9)
    with pytest.raises(PortError) as raised:
        runner.usage_at_most(SKILL, _batch("nobody"))
    assert raised.value.code is ErrorCode.ROLLOUT_WRONG_ITEMS


async def test_the_longest_answer_is_asked_for_and_part_of_the_fingerprint() -> None:
    model = _model()
    runner = ChatTaskRunner(splits=SPLITS, model=model, scorer=ExactMatch(), max_tokens=9)
    await runner.run(SKILL, _batch("calm"))
    assert [request.max_tokens for request in model.requests] == [9]
    assert runner.fingerprint != _runner(model).fingerprint


@pytest.mark.parametrize("shows", [True, False])
async def test_the_expected_answer_is_told_only_where_the_task_allows_it(shows: bool) -> None:  # noqa: FBT001
    runner = ChatTaskRunner(
        splits=SPLITS, model=FakeModel({CALM.question: "wrong"}), scorer=ExactMatch(), shows_reference=shows
    )
    (rollout,) = await runner.run(SKILL, RolloutBatch("train", item_ids=("calm",)))
    assert ("NWR-7F/2" in rollout.fail_reason) is shows
    assert "NWR-7F/2" not in rollout.trajectory
    assert "wrong" in rollout.fail_reason
    other = ChatTaskRunner(splits=SPLITS, model=FakeModel({}), scorer=ExactMatch(), shows_reference=not shows)
    assert runner.fingerprint != other.fingerprint
