"""What is Qwen's own: thinking that is switched on and off, and kept out of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_drivers import ASK, QWEN, Rig
from scripted_server import ScriptedServer, body_of, completion, failure, in_turn

from burnish.infrastructure.models.chat import ChatError, ChatErrorCode
from burnish.infrastructure.models.qwen_chat import without_thoughts


@pytest.fixture
async def rig(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ScriptedServer() as server:
        rig = Rig(server, QWEN)
        yield rig
        for model in rig.models:
            await model.aclose()


@pytest.mark.parametrize(
    ("mode", "added"),
    [
        ("server_default", {}),
        ("enabled", {"chat_template_kwargs": {"enable_thinking": True}}),
        ("disabled", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
async def test_thinking_is_switched_as_set(mode: str, added: dict[str, object], rig: Rig) -> None:
    await rig.model(thinking_mode=mode).complete(ASK)
    assert rig.server.requests[0].body == {**QWEN.body, **added}


async def test_a_server_without_that_switch_is_given_the_cloud_s_and_then_none(rig: Rig) -> None:
    refusals = [failure(400, f"Unknown field: {name}") for name in ("chat_template_kwargs", "enable_thinking")]
    rig.server.respond = in_turn(*refusals, completion("ok"))
    await rig.model(thinking_mode="disabled").complete(ASK)
    names = ("chat_template_kwargs", "enable_thinking")
    sent = [[request.body.get(name) for name in names] for request in rig.server.requests]
    assert sent == [[{"enable_thinking": False}, None], [None, False], [None, None]]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\nHm.\n</think>\n\nThe label.", "The label."),
        ("\n<think></think>\n\nThe label.\n", "The label.\n"),
        ("Hm, the label?\n</think>\n\nThe label.", "The label."),
        ("<think>\nno end", ""),
        ("Write <think> and </think> around it.", "Write <think> and </think> around it."),
        (" The label.", " The label."),
        ("", ""),
    ],
)
def test_thoughts_are_no_part_of_the_answer(text: str, answer: str) -> None:
    assert without_thoughts(text) == answer


@given(st.text(alphabet="ab <>/think\n"), st.text(alphabet="ab\n "))
def test_what_follows_thoughts_is_kept(thoughts: str, answer: str) -> None:
    assert without_thoughts(f"<think>{thoughts.replace('</think>', '')}</think>{answer}") == answer.lstrip()


async def test_an_answer_of_thoughts_only_is_empty(rig: Rig) -> None:
    rig.server.respond = in_turn(completion("<think>\nHm."))
    with pytest.raises(ChatError) as caught:
        await rig.model().complete(ASK)
    assert (caught.value.code, caught.value.attempts) == (ChatErrorCode.EMPTY, 2)


async def test_thoughts_in_a_field_of_their_own_are_left_there(rig: Rig) -> None:
    reply = completion("The label.")
    choices = cast("list[dict[str, dict[str, str]]]", body_of(reply)["choices"])
    choices[0]["message"]["reasoning_content"] = "Hm."
    rig.server.respond = in_turn(reply)
    assert (await rig.model().complete(ASK)).text == "The label."


async def test_without_an_address_it_is_asked_where_it_usually_is(rig: Rig) -> None:
    assert QWEN.make(QWEN.settings, rig).fingerprint == QWEN.settings.fingerprint
