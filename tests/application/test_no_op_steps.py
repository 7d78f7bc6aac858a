"""Steps without a candidate: each a reject with its reason, counted by patience, neither scored nor checkpointed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest
from dependency_injector import providers
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    RecordingSink,
    ScriptedAggregator,
    ScriptedProposer,
    ScriptedSelector,
    append,
    steps,
    training,
)

from burnish.application.events import Applied, Reflected, Selected
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.application.runs import GetRun, ListCheckpoints
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason, StopReason, TrainingRun
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

EDIT = Edit(EditOp.APPEND, "score=0.6")
SAME = Patch((Edit(EditOp.REPLACE, "score=0.2", target="score=0.2"),))
ABSENT = Patch((Edit(EditOp.DELETE, target="not there"),))
LONG = append("x" * 262_144)


@dataclass(frozen=True, slots=True)
class Seen:
    run: TrainingRun
    runner: CatalogRunner
    checkpoints: int


@dataclass(frozen=True, slots=True)
class NoOp:
    """What a port of the optimizer answers (or raises), and what its step says."""

    port: str
    answer: object
    reason: StepReason
    code: str | None = None


CALL_FAILED, RETURNED_NULL, UNREADABLE = (
    f"skill_training.reflect.{name}" for name in ("proposer_call_failed", "proposer_returned_null", "unreadable_patch")
)
FAILED = StepReason.OPTIMIZER_FAILED
UNTYPED: tuple[object, ...] = ([EDIT], ("append",), (Edit("append", "a"),), (replace(EDIT, content=None),))  # type: ignore[arg-type]  # as untyped hosts write them

NO_OPS = [
    NoOp("proposer", Patch(), StepReason.NO_PATCHES),
    NoOp("proposer", SAME, StepReason.NO_CHANGE),
    NoOp("proposer", ABSENT, StepReason.NO_CHANGE),
    NoOp("proposer", LONG, StepReason.TOO_LONG),
    NoOp("proposer", None, FAILED, RETURNED_NULL),
    NoOp("proposer", RuntimeError("down"), FAILED, CALL_FAILED),
    NoOp("proposer", TimeoutError(), FAILED, CALL_FAILED),
    NoOp("proposer", asyncio.CancelledError(), FAILED, CALL_FAILED),
    NoOp("proposer", PortError(ErrorCode.UNREADABLE_PATCH), FAILED, UNREADABLE),
    NoOp("proposer", "append this", FAILED, UNREADABLE),
    *(NoOp("proposer", Patch(edits), FAILED, UNREADABLE) for edits in UNTYPED),  # type: ignore[arg-type]  # see there
    NoOp("proposer", Patch((EDIT,), reasoning=None), FAILED, UNREADABLE),  # type: ignore[arg-type]  # see there
    NoOp("aggregator", Patch(), StepReason.NO_EDITS),
    NoOp("aggregator", RuntimeError("down"), FAILED, CALL_FAILED),
    NoOp("aggregator", asyncio.CancelledError(), FAILED, CALL_FAILED),
    NoOp("aggregator", None, FAILED, UNREADABLE),
    NoOp("selector", Patch(), StepReason.NO_EDITS),
    NoOp("selector", RuntimeError("down"), FAILED, CALL_FAILED),
    NoOp("selector", PortError(ErrorCode.UNREADABLE_PATCH), FAILED, UNREADABLE),
    NoOp("selector", [EDIT], FAILED, UNREADABLE),
]
FAKES = {"proposer": ScriptedProposer, "aggregator": ScriptedAggregator, "selector": ScriptedSelector}


async def one_step(case: NoOp) -> Seen:
    """A run of one step whose optimizer has an edit, unless the case says otherwise."""
    runner = CatalogRunner()
    ports = {"proposer": ScriptedProposer(append("a")), case.port: FAKES[case.port](case.answer)}
    container = Container()
    container.override_providers(**{name: providers.Object(port) for name, port in ports.items()})
    async with open_app(rollouts=runner, container=container) as app:
        await app.send(training())
        run = await app.send(GetRun("run"))
        checkpoints = await app.send(ListCheckpoints("run"))
    return Seen(run.value, runner, len(checkpoints.value))


def name_of(case: NoOp) -> str:
    return f"{case.port} {case.reason.value} {type(case.answer).__name__}"


@pytest.mark.parametrize("case", NO_OPS, ids=name_of)
async def test_a_step_without_a_candidate_is_a_reject_with_its_reason(case: NoOp) -> None:
    seen = await one_step(case)
    (record,) = seen.run.steps
    assert (record.action, record.reason, record.code) == (GateAction.REJECT, case.reason, case.code)
    measured = (
        record.candidate_hard,
        record.candidate_score,
        record.ceiling,
        record.held_in_score,
        record.compared_with,
    )
    assert measured == (None, None, None, None, None)
    assert (seen.run.consecutive_rejects, seen.run.final_skill) == (1, START)
    assert seen.runner.skills("val") == [START]
    assert seen.checkpoints == 0


async def test_rejects_of_any_reason_count_for_patience_together() -> None:
    proposer = ScriptedProposer(Patch(), SAME, LONG, None, append("score=0.1"), append("score=0.9"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(steps(6, patience=5)))).value
    assert [record.reason for record in run.steps] == [
        "no_patches",
        "no_change",
        "too_long",
        "optimizer_failed",
        "gate",
    ]
    assert (run.stop_reason, run.consecutive_rejects, run.steps_executed) == (StopReason.PATIENCE, 5, 5)


async def test_numbers_of_edits_are_recorded_stage_by_stage() -> None:
    same, other = Edit(EditOp.APPEND, "one"), Edit(EditOp.APPEND, "two", support_count=5)
    patch = Patch((same, same, Edit(EditOp.DELETE, target="absent"), other))
    sink, proposer = RecordingSink(), ScriptedProposer(patch)
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, sinks=(sink,)) as app:
        run = (await app.send(training(replace(STEPS, lr_start=3)))).value
    (record,) = run.steps
    counts = (record.proposed, record.learning_rate, record.selected, record.applied, record.failed)
    assert counts == (4, 3, 3, 2, 1)
    assert [event.proposed for event in sink.of(Reflected)] == [4]
    (selected,), (applied,) = sink.of(Selected), sink.of(Applied)
    assert [edit.content for edit in selected.edits] == ["two", "one", ""]
    assert [failed.reason for failed in applied.failed] == ["target not found in current skill document"]


async def test_a_selector_that_keeps_too_many_edits_is_cut_to_the_learning_rate() -> None:
    many = append("one", "two", "three")
    proposer, selector = ScriptedProposer(append("x")), ScriptedSelector(many)
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, selector=selector) as app:
        run = (await app.send(training(replace(STEPS, lr_start=2)))).value
    assert (run.steps[0].selected, run.steps[0].applied) == (2, 2)


async def test_a_candidate_of_the_greatest_length_is_tried() -> None:
    runner = CatalogRunner()
    proposer = ScriptedProposer(append("x" * (262_144 - len(START) - 2)))
    async with open_app(rollouts=runner, proposer=proposer) as app:
        run = (await app.send(training())).value
    assert run.steps[0].reason is StepReason.GATE
    assert [len(skill) for skill in runner.skills("val")] == [len(START), 262_144]


async def test_every_step_records_the_skill_it_ends_with() -> None:
    proposer = ScriptedProposer(append("score=0.6"), Patch())
    async with open_app(rollouts=CatalogRunner(), proposer=proposer) as app:
        run = (await app.send(training(steps(2)))).value
    accepted, idle = run.steps
    assert accepted.skill_characters == idle.skill_characters == len(run.final_skill)
    assert accepted.skill_hash == idle.skill_hash != ""
