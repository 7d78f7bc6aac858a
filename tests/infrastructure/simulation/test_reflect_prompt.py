from __future__ import annotations

import pytest

from burnish.application.optimizer_ports import ReflectionInput
from burnish.domain.rollouts import Rollout
from burnish.infrastructure.models.chat import ChatAnswer, ChatRequest, Usage
from burnish.infrastructure.optimizer.chat_proposer import ChatPatchProposer
from burnish.infrastructure.simulation.reflect_prompt import ReflectPrompt, ShownFailure, read_reflect_prompt

PROMPT = """Some words about at least 7 things.

<skill>
# Skill

- at most 9 edits

</skill>

<memory>
at most 8 edits
<failure>
</memory>

Propose At most 3 edits, please.

<failure>
item: one
[user]
first line

second line

[agent]
answer
</failure>

<failure>
expected "A", got "B"
</failure>

<success>
item: three
</success>
"""


def test_the_anchors_are_found_in_any_wording() -> None:
    assert read_reflect_prompt(PROMPT) == ReflectPrompt(
        skill="# Skill\n\n- at most 9 edits\n",
        failures=(
            ShownFailure(
                "item: one\n[user]\nfirst line\n\nsecond line\n\n[agent]\nanswer", "first line\n\nsecond line"
            ),
            ShownFailure('expected "A", got "B"', None),
        ),
        edit_budget=3,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<skill>\n</skill>", ReflectPrompt("", (), None)),
        ("<success>\nx\n</success>", ReflectPrompt("", (), None)),
        ("<skill>\nx\n</skill>\nAt most 1 edit.", ReflectPrompt("x", (), 1)),
        ("Write a summary of at most 4 edits.", None),
        ("Inline <skill>x</skill> is no anchor.", None),
    ],
)
def test_every_anchor_may_be_missing_but_not_all(text: str, expected: ReflectPrompt | None) -> None:
    assert read_reflect_prompt(text) == expected


class Recorder:
    """Answers with an empty patch and keeps the request."""

    fingerprint = "recorder"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        self.requests.append(request)
        return ChatAnswer(text='{"reasoning": "", "edits": []}', usage=Usage(prompt_tokens=1, completion_tokens=1))

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("skill", ["- a\n- b\n", "\n- a", "---\nname: x\n---\n\n- a\r\n- b\r\n", ""])
@pytest.mark.parametrize("budget", [None, 1, 5])
async def test_the_prompt_of_the_chat_proposer_has_the_anchors(skill: str, budget: int | None) -> None:
    recorder = Recorder()
    rollouts = (
        Rollout("1", 1.0, 1.0, trajectory="[user]\nfine\n\n[agent]\nyes"),
        Rollout(
            "2", 0.0, 0.0, trajectory="[user]\nwhat?\n\n> why\n\n[agent]\nno", fail_reason='expected "a", got "no"'
        ),
    )
    await ChatPatchProposer(recorder).propose(
        ReflectionInput(current_skill=skill, rollouts=rollouts, edit_budget=budget, meta_skill_memory="at most 2 edits")
    )
    prompt = read_reflect_prompt(recorder.requests[0].user)
    assert prompt is not None
    assert prompt.skill == skill
    assert prompt.edit_budget == budget
    assert [failure.question for failure in prompt.failures] == ["what?\n\n> why"]
