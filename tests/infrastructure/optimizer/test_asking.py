"""Asking with one repair round, whatever models answer, and how much that can cost."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_models import ScriptedModel

from burnish.application.optimizer_ports import (
    EpochComparison,
    EpochSummary,
    Focus,
    MergeInput,
    RankInput,
    RateInput,
    ReflectionInput,
    RewriteInput,
)
from burnish.application.ports import PortError
from burnish.application.usage import UsageNote
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.epochs import compare_epochs
from burnish.domain.rollouts import BatchScore, Rollout
from burnish.infrastructure.models.chat import MOST_PAID_ANSWERS, ChatRequest
from burnish.infrastructure.models.metered import most_usage
from burnish.infrastructure.optimizer.answer_forms import (
    GUIDANCE_FORM,
    MEMORY_FORM,
    PATCH_FORM,
    RANKING_FORM,
    RATE_FORM,
    SUGGESTIONS_FORM,
    WHOLE_SKILL_FORM,
)
from burnish.infrastructure.optimizer.asking import AnswerForm, Question, ask, most_tokens
from burnish.infrastructure.optimizer.chat_optimizer import ChatOptimizer, OptimizerLimits, chat_optimizer
from burnish.infrastructure.optimizer.json_finding import UnreadableAnswerError

SKILL = "# Skill\n\n- One.\n"
EDITS = (Edit(EditOp.APPEND, "- Two.", support_count=2), Edit(EditOp.DELETE, target="- One."))
ROLLOUTS = (Rollout("a", 0.0, 0.0, trajectory="t"), Rollout("b", 1.0, 1.0, trajectory="t"))
COMPARISON = EpochComparison(
    prior_skill=SKILL,
    current_skill=SKILL,
    prior_rollouts=ROLLOUTS,
    current_rollouts=ROLLOUTS,
    analysis=compare_epochs(ROLLOUTS, ROLLOUTS),
    previous_guidance="",
)
SUMMARY = EpochSummary(epoch=2, current_skill=SKILL, current_score=0.5, prior_memory="m", analysis=COMPARISON.analysis)
RATE = RateInput(current_skill=SKILL, patch=Patch(EDITS), score=BatchScore(0.5, 0.5, 2, 0))
REWRITE = RewriteInput(current_skill=SKILL, suggestions=Patch((Edit(EditOp.SUGGEST, "Add it.", "One"),)))
FORMS = (
    PATCH_FORM,
    SUGGESTIONS_FORM,
    WHOLE_SKILL_FORM,
    RANKING_FORM,
    RATE_FORM,
    GUIDANCE_FORM,
    MEMORY_FORM,
)


def _reflect(mode: UpdateMode) -> ReflectionInput:
    return ReflectionInput(current_skill=SKILL, rollouts=ROLLOUTS, update_mode=mode)


def _merge(mode: UpdateMode) -> MergeInput:
    return MergeInput(current_skill=SKILL, patches=(Patch(EDITS),) * 2, focus=Focus.MIXED, update_mode=mode)


CALLS: dict[str, Callable[[ChatOptimizer], Awaitable[object]]] = {
    "edits": lambda optimizer: optimizer.proposer.propose(_reflect(UpdateMode.PATCH)),
    "suggestions": lambda optimizer: optimizer.proposer.propose(_reflect(UpdateMode.REWRITE_FROM_SUGGESTIONS)),
    "whole skill": lambda optimizer: optimizer.proposer.propose(_reflect(UpdateMode.FULL_REWRITE_MINIBATCH)),
    "merged edits": lambda optimizer: optimizer.merger.merge(_merge(UpdateMode.PATCH)),
    "merged suggestions": lambda optimizer: optimizer.merger.merge(_merge(UpdateMode.REWRITE_FROM_SUGGESTIONS)),
    "merged skill": lambda optimizer: optimizer.merger.merge(_merge(UpdateMode.FULL_REWRITE_MINIBATCH)),
    "rank": lambda optimizer: optimizer.ranker.rank(
        RankInput(current_skill=SKILL, patch=Patch(EDITS), budget=1),
    ),
    "rate": lambda optimizer: optimizer.rate_chooser.choose(RATE),
    "rewrite": lambda optimizer: optimizer.rewriter.rewrite(REWRITE),
    "guidance": lambda optimizer: optimizer.guidance_writer.write(COMPARISON),
    "memory": lambda optimizer: optimizer.memory_writer.write(SUMMARY),
}
KEYS = sorted(
    {"patch", "op", "support_count", *(key for form in FORMS for key in re.findall(r'"(\w+)": ', form.shown))}
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["append", "- Two.", "3", "\\n- y", "```\n", "<!-- LOCKED_END -->", "---\na\n---\n"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=20,
)
_ANSWERS = (
    st.text(max_size=200)
    | st.text(alphabet="{}[]\",:\\'n `-aop1\n", max_size=200)
    | _JSON.map(json.dumps)
    | st.dictionaries(st.sampled_from(KEYS), _JSON, min_size=1).map(lambda fields: f"Here:\n{json.dumps(fields)}\nDone")
)


@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(_ANSWERS, _ANSWERS)
async def test_whatever_is_answered_nothing_but_a_port_error_is_raised(call: str, first: str, second: str) -> None:
    model = ScriptedModel(first, second)
    try:
        await CALLS[call](chat_optimizer(model))
    except PortError:
        assert len(model.requests) == 2


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_schema_is_strict(form: AnswerForm) -> None:
    def check(schema: dict[str, object]) -> None:
        assert set(schema) <= {"type", "properties", "required", "additionalProperties", "items", "enum"}
        if schema["type"] == "object":
            properties = cast("dict[str, dict[str, object]]", schema["properties"])
            assert schema["required"] == list(properties)
            assert schema["additionalProperties"] is False
            for inner in properties.values():
                check(inner)
        elif schema["type"] == "array":
            check(cast("dict[str, object]", schema["items"]))
        else:
            assert schema["type"] in ("string", "integer", "number")

    check(dict(form.schema))
    assert form.schema["type"] == "object"
    assert set(json.loads(form.shown)) == set(cast("dict[str, object]", form.schema["properties"]))


@pytest.mark.parametrize("call", CALLS)
async def test_an_answer_that_only_repeats_the_form_makes_no_trouble(call: str) -> None:
    model = ScriptedModel(*["…"] * 2)
    with pytest.raises(PortError):
        await CALLS[call](chat_optimizer(model))
    request = model.requests[0]
    shown = json.loads(request.user.rpartition("nothing else: ")[2])
    assert request.json_schema is not None
    assert list(shown) == request.json_schema["required"]


def _question(read: Callable[[str], str]) -> Question[str]:
    return Question(purpose="test", system="s", user="u", form=MEMORY_FORM, read=read, max_tokens=10)


def _refuse(text: str) -> str:
    raise UnreadableAnswerError("é" * 1_000)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=50), st.integers(0, 40_000), st.sampled_from(["x", "é", "漢", "\U0001f642"]))
async def test_the_bound_holds_for_the_texts_of_both_rounds(text: str, length: int, character: str) -> None:
    model = ScriptedModel(text + character * length, "again")
    question = _question(_refuse)
    with pytest.raises(PortError):
        await ask(model, question)
    notes = most_tokens(question)
    assert len(notes) == 2 * MOST_PAID_ANSWERS
    assert {note.role for note in notes} == {"optimizer"}
    assert {note.completion_tokens for note in notes} == {10}
    for request, note in zip(model.requests, notes[::MOST_PAID_ANSWERS], strict=True):
        sent = request.system + request.user + json.dumps(request.json_schema)
        assert len(sent.encode()) + 64 <= note.prompt_tokens


def test_a_call_without_a_limit_has_no_bound() -> None:
    with pytest.raises(ValueError, match="max_tokens"):
        most_usage(ChatRequest(system="", user="", purpose="x"), "optimizer")


def test_a_call_counts_every_byte_it_sends() -> None:
    request = ChatRequest(system="é", user="\ud800", purpose="x", max_tokens=7)
    assert most_usage(request, "target") == (UsageNote("target", 2 + 3 + 64, 7),) * MOST_PAID_ANSWERS


def test_the_bound_of_a_role_follows_its_limits() -> None:
    optimizer = chat_optimizer(ScriptedModel(), limits=OptimizerLimits().with_answers_of(50))
    request = _reflect(UpdateMode.FULL_REWRITE_MINIBATCH)
    assert {note.completion_tokens for note in optimizer.proposer.usage_at_most(request)} == {50}
    assert optimizer.merger.usage_at_most(_merge(UpdateMode.PATCH))
    assert optimizer.memory_writer.usage_at_most(SUMMARY)
