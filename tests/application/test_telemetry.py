"""A span for every message and every stage, and numbers; of failures they show codes and types, never texts."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from fakes import STEPS, Barrier, CatalogRunner, ScriptedProposer, Telescope, append, stated, steps, training
from opentelemetry import metrics, trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from burnish.application.runs import GetRun
from burnish.presentation.app import open_app

EVERYTHING = replace(
    STEPS, epochs=2, use_slow_update=True, use_meta_skill=True, promote_final=True, eval_test=True, train_batch_size=3
)


def parent_of(span: ReadableSpan, spans: list[ReadableSpan]) -> str:
    ids = {each.context.span_id: each.name for each in spans if each.context is not None}
    return "" if span.parent is None else ids[span.parent.span_id]


async def test_a_run_is_a_span_with_its_stages_inside(telescope: Telescope) -> None:
    runner = CatalogRunner(test=2)
    proposer = ScriptedProposer(append("score=0.6"))
    async with open_app(rollouts=runner, proposer=proposer, container=telescope.container) as app:
        assert (await app.send(training(EVERYTHING))).is_ok
    spans = telescope.spans()
    assert Counter((span.name, parent_of(span, spans)) for span in spans) == {
        ("mediator TrainSkill", ""): 1,
        ("stage rollout", "mediator TrainSkill"): 2,
        ("stage reflect", "mediator TrainSkill"): 2,
        ("stage aggregate", "mediator TrainSkill"): 2,
        ("stage select", "mediator TrainSkill"): 2,
        ("stage apply", "mediator TrainSkill"): 2,
        ("stage gate", "mediator TrainSkill"): 3,
        ("stage slow_update", "mediator TrainSkill"): 1,
        ("mediator SlowUpdate", "stage slow_update"): 1,
        ("stage meta_skill", "mediator TrainSkill"): 2,
        ("mediator MetaSkillUpdate", "stage meta_skill"): 2,
        ("stage promote_final", "mediator TrainSkill"): 1,
        ("stage test", "mediator TrainSkill"): 1,
    }


async def test_queries_are_spans_too(telescope: Telescope) -> None:
    async with open_app(container=telescope.container) as app:
        await app.send(GetRun("nobody"))
    (span,) = telescope.spans()
    assert (span.name, dict(span.attributes or {})) == (
        "mediator GetRun",
        {"error.type": "skill_training.run.not_found"},
    )
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)


async def test_a_stage_that_raises_shows_the_type_of_its_error(telescope: Telescope) -> None:
    async with open_app(rollouts=CatalogRunner(), container=telescope.container) as app:
        await app.send(training())
    (reflect,) = telescope.spans("stage reflect")
    assert dict(reflect.attributes or {}) == {"error.type": "NotConfiguredError"}
    assert reflect.events == ()


async def test_no_span_carries_an_exceptions_text_or_trace(telescope: Telescope) -> None:
    proposer = ScriptedProposer(RuntimeError("PLANTED"))
    async with open_app(rollouts=CatalogRunner(), proposer=proposer, container=telescope.container) as app:
        await app.send(training())
    assert [span.events for span in telescope.spans() if span.events] == []
    assert "PLANTED" not in "".join(span.to_json() for span in telescope.spans())


async def test_the_status_of_a_span_has_no_words(telescope: Telescope) -> None:
    runner = CatalogRunner(lambda skill, item_id: 7.0)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(), container=telescope.container) as app:
        await app.send(training())
    (stage,) = telescope.spans("stage rollout")
    assert dict(stage.attributes or {}) == {"error.type": "PortError"}
    assert {span.status.description for span in telescope.spans()} == {None}


async def test_the_word_a_task_was_cancelled_with_is_in_no_span(telescope: Telescope) -> None:
    barrier = Barrier()
    runner = CatalogRunner(before=barrier)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(), container=telescope.container) as app:
        task = asyncio.create_task(app.send(training()))
        await barrier.reached.wait()
        task.cancel("PLANTED")
        with pytest.raises(asyncio.CancelledError):
            await task
    assert {span.name for span in telescope.spans()} == {"mediator TrainSkill", "stage rollout"}
    assert "PLANTED" not in "".join(span.to_json() for span in telescope.spans())


async def test_messages_are_counted_by_outcome(telescope: Telescope) -> None:
    async with open_app(container=telescope.container) as app:
        await app.send(GetRun("nobody"))
        await app.send(GetRun("nobody"))
        await app.send(GetRun(""))
    assert telescope.sums("burnish.messages") == {
        (("message", "GetRun"), ("outcome", "request.invalid")): 1,
        (("message", "GetRun"), ("outcome", "skill_training.run.not_found")): 2,
    }


async def test_steps_and_rollouts_are_counted_by_how_they_ended(telescope: Telescope) -> None:
    def one_fails(skill: str, item_id: str) -> float:
        if item_id == "train/0":
            raise TimeoutError
        return stated(skill, item_id)

    proposer = ScriptedProposer(append("score=0.6"), append("score=0.5"), RuntimeError("down"))
    config = steps(3, max_error_rate=0.5)
    async with open_app(rollouts=CatalogRunner(one_fails), proposer=proposer, container=telescope.container) as app:
        await app.send(training(config))
    assert telescope.sums("burnish.steps") == {
        (("decision", "accept_new_best"), ("reason", "accepted")): 1,
        (("decision", "reject"), ("reason", "gate")): 1,
        (("decision", "reject"), ("reason", "optimizer_failed")): 1,
    }
    assert telescope.sums("burnish.rollouts") == {
        (("outcome", "answered"), ("stage", "baseline")): 4,
        (("outcome", "answered"), ("stage", "rollout")): 9,
        (("outcome", "missing"), ("stage", "rollout")): 3,
    }


async def test_every_stage_is_timed(telescope: Telescope) -> None:
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer(), container=telescope.container) as app:
        await app.send(training())
    assert telescope.sums("burnish.stage.duration") == {
        (("stage", stage),): 1 for stage in ("rollout", "reflect", "aggregate", "select", "apply", "gate")
    }


async def test_a_hosts_own_providers_are_left_alone() -> None:
    before = trace.get_tracer_provider(), metrics.get_meter_provider()
    async with open_app(rollouts=CatalogRunner(), proposer=ScriptedProposer()) as app:
        assert (await app.send(training())).is_ok
    assert (trace.get_tracer_provider(), metrics.get_meter_provider()) == before


async def test_attributes_hold_neither_texts_nor_item_ids(telescope: Telescope) -> None:
    proposer = ScriptedProposer(append("PLANTED score=0.6"))
    async with open_app(rollouts=CatalogRunner(test=2), proposer=proposer, container=telescope.container) as app:
        await app.send(training(EVERYTHING, skill_id="a-skill-id", initial_skill="PLANTED score=0.1"))
    metrics_data = telescope.reader.get_metrics_data()
    assert metrics_data is not None
    told = metrics_data.to_json() + "".join(span.to_json() for span in telescope.spans())
    assert [word for word in ("PLANTED", "train/0", "val/0", "a-skill-id") if word in told] == []
