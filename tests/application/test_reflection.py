"""Asking the optimizer for edits outside of a run."""

from __future__ import annotations

import asyncio

import pytest
from fakes import ScriptedProposer, append, rollout

from burnish.application.ports import PortError
from burnish.application.reflect_on_failures import ReflectOnFailures
from burnish.application.result import ErrorCode, Result
from burnish.domain.edits import Patch
from burnish.presentation.app import open_app

FAILURE, SUCCESS, UNANSWERED = rollout("a", 0.0), rollout("b", 1.0), rollout("c", 0.0, error="agent.refused")


async def reflect(proposer: ScriptedProposer, **fields: object) -> Result[Patch]:
    given = {"current_skill": "skill", "rollouts": (FAILURE, SUCCESS), **fields}
    async with open_app(proposer=proposer) as app:
        return await app.send(ReflectOnFailures(**given))  # type: ignore[arg-type]  # by name


async def test_the_proposers_patch_is_handed_on_as_it_is() -> None:
    patch = append("a", "a", "b")
    assert (await reflect(ScriptedProposer(patch))).value == patch


async def test_an_empty_patch_is_an_answer() -> None:
    assert (await reflect(ScriptedProposer(Patch()))).value == Patch()


async def test_the_proposer_reads_what_the_message_holds() -> None:
    proposer = ScriptedProposer()
    await reflect(proposer, meta_skill_memory="memory", include_successes=False)
    (reflection,) = proposer.reflections
    assert (reflection.current_skill, reflection.meta_skill_memory) == ("skill", "memory")
    assert (reflection.rollouts, reflection.include_successes) == ((FAILURE, SUCCESS), False)
    assert reflection.edit_budget is None


async def test_rollouts_without_an_answer_are_not_shown() -> None:
    proposer = ScriptedProposer()
    await reflect(proposer, rollouts=(UNANSWERED, FAILURE))
    assert proposer.reflections[0].rollouts == (FAILURE,)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (RuntimeError("down"), "skill_training.reflect.proposer_call_failed"),
        (asyncio.CancelledError(), "skill_training.reflect.proposer_call_failed"),
        (TimeoutError(), "skill_training.reflect.proposer_call_failed"),
        (PortError(ErrorCode.UNREADABLE_PATCH), "skill_training.reflect.unreadable_patch"),
        (None, "skill_training.reflect.proposer_returned_null"),
        ("text", "skill_training.reflect.unreadable_patch"),
    ],
)
async def test_a_failure_has_its_code(answer: object, code: str) -> None:
    failure = (await reflect(ScriptedProposer(answer))).failure
    assert failure is not None
    assert (failure.code, failure.fields) == (code, ())


async def test_without_a_proposer_the_remedy_is_told() -> None:
    async with open_app() as app:
        failure = (await app.send(ReflectOnFailures(current_skill="s", rollouts=(FAILURE,)))).failure
    assert failure is not None
    assert failure.code == "skill_training.reflect.not_configured"
    assert "proposer" in failure.code.remedy
