from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest

from burnish.domain.edits import Edit, EditOp, Patch, apply_patch
from burnish.infrastructure.models.chat import ChatError, ChatErrorCode, ChatModel, ChatRequest
from burnish.infrastructure.simulation.coach import SimulatedCoach
from burnish.infrastructure.simulation.rules import Rule, parse_rules

WORDS = ("apple", "bread", "candle", "drum", "engine", "fence", "garden", "hammer", "island", "jacket")
KNOWLEDGE = "\n".join(
    [
        "# Right",
        "- Answer with the queue, a hyphen and the desk, and nothing else.",
        *(f'- When a ticket mentions "{word}", the queue is Q{number}.' for number, word in enumerate(WORDS)),
        "- Otherwise the queue is QQ.",
        "- When several queues fit, the first in this list wins: Q1, Q0.",
        '- When a ticket mentions "school" or "charity", the desk is D1.',
        "- Otherwise the desk is D0.",
    ]
)
START = """---
name: test
---

- Answer with the queue, a hyphen and the desk, and nothing else.
- When a ticket mentions "apple", the queue is Q0.
- Otherwise the queue is QQ.
- Otherwise the desk is D0.

The end.
"""
QUESTIONS = tuple(f"We have a {word} here" for word in WORDS[1:])


def reflect(
    skill: str, questions: Sequence[str], *, budget: int | None = None, salt: str = "", seed: int | None = None
) -> ChatRequest:
    named = "" if budget is None else f"Propose at most {budget} edits."
    failures = "\n\n".join(f"<failure>\n[user]\n{question}\n\n[agent]\nx\n</failure>" for question in questions)
    user = f"{salt}\n<skill>\n{skill}\n</skill>\n\n{named}\n\n{failures}"
    return ChatRequest(system="Reflect.", user=user, purpose="reflect", seed=seed)


def read(text: str) -> tuple[Edit, ...]:
    patch = cast("dict[str, list[dict[str, str]]]", json.loads(text))
    assert list(patch) == ["reasoning", "edits"]
    return tuple(Edit(EditOp(edit["op"]), edit["content"], edit["target"]) for edit in patch["edits"])


async def edits_of(coach: ChatModel, request: ChatRequest) -> tuple[Edit, ...]:
    return read((await coach.complete(request)).text)


def kinds(skill: str, edits: Sequence[Edit]) -> list[str]:
    """What each edit does to the rules, one after another."""
    right = set(parse_rules(KNOWLEDGE).stated)
    found: list[str] = []
    for edit in edits:
        report = apply_patch(skill, Patch((edit,)))
        assert not report.failed
        before, after = set(parse_rules(skill).stated), set(parse_rules(report.content).stated)
        if before == after:
            found.append("useless")
        else:
            found.append("useful" if right & before < right & after and not after - before - right else "harmful")
        skill = report.content
    return found


async def test_the_same_prompt_gets_the_same_answer_in_any_order_and_company() -> None:
    requests = [reflect(START, QUESTIONS, salt=str(number), seed=number % 3) for number in range(40)]
    together = [answer.text for answer in await asyncio.gather(*map(SimulatedCoach(KNOWLEDGE).complete, requests))]
    coach = SimulatedCoach(KNOWLEDGE)
    alone = [(await coach.complete(request)).text for request in reversed(requests)]
    assert together == alone[::-1]
    assert len(set(together)) > 30


async def test_another_seed_gives_other_edits() -> None:
    requests = [reflect(START, QUESTIONS, seed=seed) for seed in (None, 1, 2)]
    answers = [
        await edits_of(SimulatedCoach(KNOWLEDGE, seed=seed), request) for seed in range(3) for request in requests
    ]
    assert len(set(answers)) == len(answers)


@pytest.mark.parametrize("weights", [(0.7, 0.2, 0.1), (0.2, 0.2, 0.6), (3.0, 0.0, 1.0)])
async def test_the_kinds_of_edits_come_in_their_shares(weights: tuple[float, float, float]) -> None:
    coach = SimulatedCoach(KNOWLEDGE, *weights)
    counts: Counter[str] = Counter()
    for number in range(250):
        edits = await edits_of(coach, reflect(START, QUESTIONS, salt=str(number)))
        assert len(edits) == 4
        counts.update(kinds(START, edits))
    for kind, weight in zip(("useful", "useless", "harmful"), weights, strict=True):
        assert counts[kind] / counts.total() == pytest.approx(weight / sum(weights), abs=0.04)


async def test_a_useful_edit_brings_a_rule_behind_the_failures_shown() -> None:
    coach = SimulatedCoach(KNOWLEDGE, useful=1, useless=0, harmful=0)
    skill = apply_patch(
        START, Patch(await edits_of(coach, reflect(START, ["a drum and bread for our school"])))
    ).content
    assert set(parse_rules(skill).stated) - set(parse_rules(START).stated) == {
        *parse_rules('- When a ticket mentions "drum", the queue is Q3.').stated,
        *parse_rules('- When a ticket mentions "bread", the queue is Q1.').stated,
        *parse_rules("- When several queues fit, the first in this list wins: Q1, Q0.").stated,
        *parse_rules('- When a ticket mentions "school" or "charity", the desk is D1.').stated,
    }


async def test_the_rule_behind_most_failures_comes_first() -> None:
    coach = SimulatedCoach(KNOWLEDGE, useful=1, useless=0, harmful=0)
    (edit,) = await edits_of(coach, reflect(START, ["a drum", "a fence", "one fence"], budget=1))
    assert '"fence"' in edit.content


async def test_expected_answers_show_the_way_where_no_question_is_marked() -> None:
    coach = SimulatedCoach(KNOWLEDGE, useful=1, useless=0, harmful=0)
    request = ChatRequest(
        system="", user='<skill>\n</skill>\n<failure>\nexpected "Q5-D1", got "x"\n</failure>', purpose="reflect"
    )
    contents = " ".join(edit.content for edit in await edits_of(coach, request))
    assert [name for name in ("Answer with", '"fence"', '"school"', '"drum"') if name in contents] == [
        "Answer with",
        '"fence"',
        '"school"',
    ]


@pytest.mark.parametrize(("budget", "expected"), [(None, 4), (0, 0), (1, 1), (6, 6), (100, 9)])
async def test_there_are_as_many_edits_as_budget_and_lessons_allow(budget: int | None, expected: int) -> None:
    coach = SimulatedCoach(KNOWLEDGE, useful=1, useless=0, harmful=0)
    assert len(await edits_of(coach, reflect(START, QUESTIONS, budget=budget))) == expected


@pytest.mark.parametrize(
    ("skill", "questions"), [(KNOWLEDGE, QUESTIONS), (START, ["an apple", "nothing known"]), (START, [])]
)
async def test_without_a_lesson_it_does_nothing_or_nothing_of_effect(skill: str, questions: list[str]) -> None:
    assert await edits_of(SimulatedCoach(KNOWLEDGE, 1, 0, 0), reflect(skill, questions)) == ()
    found = [
        kinds(skill, await edits_of(SimulatedCoach(KNOWLEDGE), reflect(skill, questions, salt=str(number))))
        for number in range(60)
    ]
    assert {tuple(each) for each in found} == {(), ("useless",)}


async def test_useless_edits_never_repeat_themselves() -> None:
    coach, skill = SimulatedCoach(KNOWLEDGE, 0, 1, 0), START
    for _ in range(20):
        skill = apply_patch(skill, Patch(await edits_of(coach, reflect(skill, QUESTIONS)))).content
    added = skill.removeprefix(START).split("\n\n")
    assert len(set(added)) == len(added) > 60
    assert parse_rules(skill) == parse_rules(START)


@pytest.mark.parametrize("skill", [START, KNOWLEDGE, "", "No rules yet.\n"])
async def test_harmful_edits_make_rules_wrong_or_take_right_ones_away(skill: str) -> None:
    coach = SimulatedCoach(KNOWLEDGE, 0, 0, 1)
    ops: set[EditOp] = set()
    for number in range(40):
        edits = await edits_of(coach, reflect(skill, [], budget=3, salt=str(number)))
        assert set(kinds(skill, edits)) == {"harmful"}
        ops.update(edit.op for edit in edits)
    assert ops == ({EditOp.APPEND, EditOp.DELETE} if "mentions" in skill else {EditOp.APPEND})


@pytest.mark.parametrize(
    ("wrong", "op"),
    [
        ('- When a ticket mentions "apple", the queue is Q9.', EditOp.DELETE),
        ("- Otherwise the desk is D7.", EditOp.DELETE),
    ],
)
async def test_a_later_contradiction_is_taken_away(wrong: str, op: EditOp) -> None:
    coach = SimulatedCoach(KNOWLEDGE, 1, 0, 0)
    (edit,) = await edits_of(coach, reflect(f"{START}\n{wrong}\n", ["an apple"]))
    assert (edit.op, edit.target.strip()) == (op, wrong)


async def test_a_wrong_or_incomplete_rule_is_replaced_in_its_place() -> None:
    coach = SimulatedCoach(KNOWLEDGE, 1, 0, 0)
    old = '- When a ticket mentions "school", the desk is D4.'
    (edit,) = await edits_of(coach, reflect(START.replace("\n\nThe end.", f"\n{old}\n\nThe end."), ["our school"]))
    assert (edit.op, edit.target) == (EditOp.REPLACE, old)
    assert edit.content == '- When a ticket mentions "school" or "charity", the desk is D1.'


async def test_a_new_rule_stands_beside_its_like_outside_of_protected_regions() -> None:
    coach = SimulatedCoach(KNOWLEDGE, 1, 0, 0)
    (edit,) = await edits_of(coach, reflect(START, ["a drum"]))
    assert (edit.op, edit.target) == (EditOp.INSERT_AFTER, "- Otherwise the queue is QQ.")
    locked = "<!-- LOCKED_START -->\n- Otherwise the queue is QQ.\n<!-- LOCKED_END -->\n"
    (edit,) = await edits_of(coach, reflect(locked, ["a drum"], budget=1))
    assert edit.op is EditOp.APPEND


async def test_a_deletion_of_what_is_right_shows_in_the_rules() -> None:
    right = set(parse_rules(START).stated)
    lost: set[Rule] = set()
    for number in range(60):
        edits = await edits_of(SimulatedCoach(KNOWLEDGE, 0, 0, 1), reflect(START, [], budget=1, salt=str(number)))
        lost |= right - set(parse_rules(apply_patch(START, Patch(edits)).content).stated)
    assert lost == right


async def test_a_request_that_is_no_reflect_prompt_is_refused() -> None:
    with pytest.raises(ChatError) as caught:
        await SimulatedCoach(KNOWLEDGE).complete(ChatRequest(system="", user="Write a poem.", purpose="poem"))
    assert caught.value.code is ChatErrorCode.BAD_REQUEST


async def test_tokens_are_estimated() -> None:
    answer = await SimulatedCoach(KNOWLEDGE).complete(reflect(START, QUESTIONS))
    assert answer.usage.is_estimated
    assert answer.usage.completion_tokens == -(-len(answer.text) // 4)


def test_the_fingerprint_names_the_simulation_its_parameters_and_its_knowledge() -> None:
    fingerprint = SimulatedCoach(KNOWLEDGE, seed=5).fingerprint
    assert fingerprint.startswith("simulated-coach(useful=0.7, useless=0.2, harmful=0.1, seed=5, knowledge=")
    others = (SimulatedCoach(KNOWLEDGE + "\n", seed=5), SimulatedCoach(KNOWLEDGE), SimulatedCoach(KNOWLEDGE, 1, seed=5))
    assert fingerprint not in {other.fingerprint for other in others}


@pytest.mark.parametrize("weights", [(0, 0, 0), (-1, 1, 1), (float("nan"), 1, 1), (float("inf"), 0, 0)])
def test_weights_that_make_no_shares_are_refused(weights: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="weights"):
        SimulatedCoach(KNOWLEDGE, *weights)


def test_knowledge_without_a_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule"):
        SimulatedCoach("Be kind.")
