"""What type checkers see: mypy and pyright check this file; an `ignore` nobody needs any more is an error for mypy."""

from __future__ import annotations

from typing import assert_type

from fakes import START, STEPS, CatalogRunner, ScriptedProposer

from burnish.api import (
    BatchScore,
    EvaluateSkill,
    GateCandidateSkill,
    GateEvaluation,
    GateResult,
    MetaSkillUpdate,
    Patch,
    ReflectOnFailures,
    Result,
    Rollout,
    SlowUpdate,
    SlowUpdateAnalysis,
    TrainingRun,
    TrainSkill,
    open_app,
)
from burnish.application.mediator import Command, Mediator, Route
from burnish.application.result import ErrorCode
from burnish.application.runs import GetCheckpoint, GetRun, ListCheckpoints, ListRuns
from burnish.domain.runs import Checkpoint


class TrainHandler:
    async def handle(self, message: TrainSkill, /) -> Result[TrainingRun]:
        return Result.fail(ErrorCode.UNEXPECTED)


class TextHandler:
    """Answers the right message with the wrong thing."""

    async def handle(self, message: TrainSkill, /) -> Result[str]:
        return Result.ok("trained")


class MemoryHandler:
    """Answers another message."""

    async def handle(self, message: MetaSkillUpdate, /) -> Result[str]:
        return Result.ok("")


class PlainHandler:
    """Answers without a result."""

    async def handle(self, message: TrainSkill, /) -> TrainingRun:
        raise NotImplementedError


class AnyCommandHandler:
    """Takes more messages than it must."""

    async def handle(self, message: Command[TrainingRun], /) -> Result[TrainingRun]:
        return Result.fail(ErrorCode.UNEXPECTED)


ROLLOUTS = (Rollout("a", 0.0, 0.0),)
EVALUATION = GateEvaluation("a", 0.5, 0.5, "b", 0.4, "c", 0.4, best_step=0, global_step=1)


async def test_every_message_is_answered_with_its_own_type() -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        assert_type(await app.send(TrainSkill("run", "skill", START, STEPS)), Result[TrainingRun])
        assert_type(await app.send(GateCandidateSkill(EVALUATION)), Result[GateResult])
        assert_type(await app.send(ReflectOnFailures(current_skill="s", rollouts=ROLLOUTS)), Result[Patch])
        assert_type(
            await app.send(SlowUpdate(prior_rollouts=ROLLOUTS, current_rollouts=ROLLOUTS)), Result[SlowUpdateAnalysis]
        )
        memory = MetaSkillUpdate(run_id="r", skill_id="s", epoch=1, current_skill="", current_score=0.0)
        assert_type(await app.send(memory), Result[str])
        assert_type(await app.send(EvaluateSkill(skill="", split="val")), Result[BatchScore])
        assert_type(await app.send(GetRun("run")), Result[TrainingRun])
        assert_type(await app.send(ListRuns()), Result[tuple[TrainingRun, ...]])
        assert_type(await app.send(GetCheckpoint("run")), Result[Checkpoint])
        assert_type(await app.send(ListCheckpoints("run")), Result[tuple[Checkpoint, ...]])


async def test_a_mediator_answers_with_the_messages_own_type() -> None:
    mediator = Mediator()
    mediator.register([TrainSkill.handled_by(TrainHandler())])
    assert_type(await mediator.send(TrainSkill("run", "skill", START, STEPS)), Result[TrainingRun])


def test_values_have_the_answers_type() -> None:
    result = Result.ok(3)
    assert_type(result, Result[int])
    assert_type(result.value, int)


def test_a_failure_stands_for_any_answer() -> None:
    failed: Result[TrainingRun] = Result.fail(ErrorCode.RUN_NOT_FOUND)
    as_any: Result[object] = Result.ok(3)
    assert not failed.is_ok
    assert as_any.is_ok


def test_a_handler_that_does_not_fit_its_message_is_a_type_error() -> None:
    routes: list[Route] = [
        TrainSkill.handled_by(TrainHandler()),
        TrainSkill.handled_by(AnyCommandHandler()),
        TrainSkill.handled_by(TextHandler()),  # type: ignore[arg-type]  # another answer
        TrainSkill.handled_by(MemoryHandler()),  # type: ignore[arg-type]  # another message
        TrainSkill.handled_by(PlainHandler()),  # type: ignore[arg-type]  # no result
        TrainSkill.handled_by(TrainHandler),  # type: ignore[arg-type]  # a class, no object
    ]
    assert {route.message for route in routes} == {TrainSkill}


async def test_a_misspelt_field_and_a_wrong_answer_are_type_errors() -> None:
    def misspelt() -> object:
        return TrainSkill(run="run", skill_id="s", initial_skill="", config=STEPS)  # type: ignore[call-arg]  # run_id

    async def wrong_answer() -> Result[str]:
        return await Mediator().send(GetRun("run"))  # type: ignore[arg-type]  # a run is no text

    def wrong_code() -> object:
        return Result.fail(3)  # type: ignore[arg-type]  # no code

    assert misspelt is not wrong_code
    assert wrong_answer is not None
