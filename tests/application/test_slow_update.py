"""From the second epoch on, both epochs' skills are compared, and guidance goes into the skill's protected region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from dependency_injector import providers
from fakes import (
    START,
    STEPS,
    CatalogRunner,
    RecordingSink,
    ScriptedGuidance,
    ScriptedProposer,
    ScriptedRunner,
    append,
    rollout,
    stated,
    training,
)

from burnish.application.events import SlowUpdated, StepFinished
from burnish.application.runs import GetCheckpoint
from burnish.application.slow_update import SlowUpdate
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Patch
from burnish.domain.gate import GateAction, GateMetric, GateMode
from burnish.domain.regions import RegionKind, read_region
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import Checkpoint, StepReason, StepRecord, TrainingRun
from burnish.presentation.app import open_app
from burnish.presentation.container import Container

TWO_EPOCHS = replace(STEPS, epochs=2, use_slow_update=True, slow_update_samples=3)
Runner = CatalogRunner | ScriptedRunner


class Bench:
    """A run with scripted patches and guidance."""

    def __init__(
        self, *patches: object, guidance: ScriptedGuidance | None = None, runner: Runner | None = None
    ) -> None:
        self.proposer = ScriptedProposer(*patches)
        self.guidance = guidance or ScriptedGuidance("Be brief.")
        self.runner = runner or CatalogRunner()
        self.sink = RecordingSink()
        self.best: Checkpoint | None = None

    async def train(self, config: TrainSkillConfig = TWO_EPOCHS, *, initial_skill: str = START) -> TrainingRun:
        container = Container()
        container.override_providers(guidance_writer=providers.Object(self.guidance))
        async with open_app(
            rollouts=self.runner, proposer=self.proposer, sinks=(self.sink,), container=container
        ) as app:
            run = (await app.send(training(config, initial_skill=initial_skill))).value
            found = await app.send(GetCheckpoint("run"))
            self.best = found.value if found.is_ok else None
        return run

    @property
    def epochs_compared(self) -> list[int]:
        return [event.epoch for event in self.sink.of(SlowUpdated)]


def slow(run: TrainingRun) -> StepRecord:
    """The record that shares its step with the one before it."""
    (found,) = [now for before, now in zip(run.steps, run.steps[1:], strict=False) if before.step == now.step]
    return found


@pytest.mark.parametrize(("epochs", "compared"), [(1, []), (2, [2]), (4, [2, 3, 4])])
async def test_it_runs_at_the_end_of_every_epoch_but_the_first(epochs: int, compared: list[int]) -> None:
    bench = Bench()
    await bench.train(replace(TWO_EPOCHS, epochs=epochs))
    assert bench.epochs_compared == compared


async def test_it_is_skipped_by_an_early_stop() -> None:
    bench = Bench(Patch(), Patch())
    run = await bench.train(replace(TWO_EPOCHS, patience=2))
    assert (run.stop_reason, bench.epochs_compared) == ("patience", [])


async def test_it_can_be_switched_off() -> None:
    bench = Bench()
    run = await bench.train(replace(TWO_EPOCHS, use_slow_update=False))
    assert (bench.epochs_compared, run.final_skill) == ([], START)


@pytest.mark.parametrize("kind", [CatalogRunner, ScriptedRunner])
async def test_the_skills_of_both_epochs_ends_are_compared_on_the_same_items(kind: type[Runner]) -> None:
    bench = Bench(append("score=0.4"), append("score=0.1"), append("score=0.6"), Patch(), runner=kind())
    await bench.train(replace(TWO_EPOCHS, steps_per_epoch=2))
    prior, current = f"{START}\n\nscore=0.4", f"{START}\n\nscore=0.4\n\nscore=0.6"
    assert bench.runner.skills("train", repeat="slow/2") == [prior, current]
    (comparison,) = bench.guidance.comparisons
    assert (comparison.prior_skill, comparison.current_skill) == (prior, current)
    assert [each.item_id for each in comparison.prior_rollouts] == [
        each.item_id for each in comparison.current_rollouts
    ]
    assert ({each.hard for each in comparison.prior_rollouts}, len(comparison.prior_rollouts)) == ({0.4}, 3)
    assert {each.hard for each in comparison.current_rollouts} == {0.6}


@pytest.mark.parametrize(("kind", "calls"), [(CatalogRunner, 3), (ScriptedRunner, 1)])
async def test_equal_skills_are_tried_once_and_compared_all_the_same(kind: type[Runner], calls: int) -> None:
    bench = Bench(runner=kind())
    await bench.train()
    assert len(bench.runner.batches("train", repeat="slow/2")) == calls
    (event,) = bench.sink.of(SlowUpdated)
    assert event.analysis is not None
    assert (event.analysis.persistent_fail, event.analysis.total) == (3, 3)


async def test_the_guidance_goes_into_the_protected_region_of_the_current_skill() -> None:
    bench = Bench(append("score=0.4"), append("score=0.6"))
    run = await bench.train()
    assert run.final_skill.startswith(f"{START}\n\nscore=0.4\n\nscore=0.6")
    assert read_region(run.final_skill, RegionKind.SLOW_UPDATE) == "Be brief."


async def test_later_guidance_replaces_the_earlier_and_its_writer_sees_it() -> None:
    guidance = ScriptedGuidance("First.", "Second.")
    run = await Bench(guidance=guidance).train(replace(TWO_EPOCHS, epochs=3))
    assert read_region(run.final_skill, RegionKind.SLOW_UPDATE) == "Second."
    assert run.final_skill.count("SLOW_UPDATE_START") == 1
    assert [comparison.previous_guidance for comparison in guidance.comparisons] == ["", "First."]


async def test_markers_in_the_guidance_are_taken_out() -> None:
    run = await Bench(guidance=ScriptedGuidance("a <!-- SLOW_UPDATE_END --> b")).train()
    assert read_region(run.final_skill, RegionKind.SLOW_UPDATE) == "a  b"


@pytest.mark.parametrize("text", ["", " \n", RuntimeError("down"), "x" * 262_144])
async def test_without_usable_guidance_the_skill_stays_and_the_run_goes_on(text: str | BaseException) -> None:
    bench = Bench(guidance=ScriptedGuidance(text))
    run = await bench.train()
    assert (run.stop_reason, run.final_skill, len(run.steps)) == ("completed", START, 2)
    (event,) = bench.sink.of(SlowUpdated)
    assert event.code == ("internal.unexpected" if isinstance(text, BaseException) else None)


async def test_guidance_that_changes_nothing_is_no_record() -> None:
    run = await Bench(guidance=ScriptedGuidance("Same.", "Same.")).train(replace(TWO_EPOCHS, epochs=3))
    assert [record.reason for record in run.steps] == ["no_patches", "no_patches", "forced", "no_patches"]


# --- forced in, the default ------------------------------------------------------------------------------------------


async def test_forced_guidance_is_scored_and_stays_also_when_it_scores_less() -> None:
    bench = Bench(append("score=0.6"), guidance=ScriptedGuidance("score=0.3"))
    run = await bench.train()
    record = slow(run)
    assert (record.action, record.reason, record.candidate_score) == (GateAction.ACCEPT, StepReason.FORCED, 0.3)
    assert (record.step, record.epoch, record.compared_with) == (2, 2, 0.6)
    assert (run.final_score, run.best_score, run.best_step) == (0.3, 0.6, 1)
    assert "score=0.3" in run.final_skill
    assert "score=0.3" not in run.best_skill


async def test_forced_guidance_that_beats_the_best_becomes_it_and_counts_as_accepted() -> None:
    run = await Bench(guidance=ScriptedGuidance("score=0.7")).train()
    record = slow(run)
    assert (record.action, record.reason) == (GateAction.ACCEPT_NEW_BEST, StepReason.FORCED)
    assert (run.has_accepted_any, run.best_score, run.best_step, run.selected_score) == (True, 0.7, 2, 0.7)
    assert run.best_skill == run.final_skill


async def test_forced_guidance_that_only_ties_leaves_the_best_alone() -> None:
    run = await Bench(guidance=ScriptedGuidance("score=0.2")).train()
    assert (slow(run).action, run.has_accepted_any, run.best_skill) == (GateAction.ACCEPT, False, START)
    assert (run.best_score, run.selected_score) == (0.0, 0.2)


async def test_forced_guidance_is_scored_to_the_end_however_bad_it_is() -> None:
    config = replace(TWO_EPOCHS, block_size=1)
    bench = Bench(append("score=0.6"), guidance=ScriptedGuidance("score=0.0"))
    run = await bench.train(config)
    assert (slow(run).candidate_score, slow(run).ceiling) == (0.0, None)
    assert len(bench.runner.asked(run.final_skill, "val")) == 4


async def test_it_neither_counts_as_a_step_nor_renews_patience() -> None:
    bench = Bench(append("score=0.6"), guidance=ScriptedGuidance("score=0.7"))
    run = await bench.train(replace(TWO_EPOCHS, epochs=3, patience=2))
    assert (run.stop_reason, run.steps_executed, run.consecutive_rejects) == ("patience", 3, 2)
    assert len(run.steps) == 4


async def test_forced_guidance_without_enough_answers_changes_nothing() -> None:
    def attempt(skill: str, item_id: str) -> float:
        if "Be brief." in skill and item_id == "val/0":
            raise TimeoutError
        return stated(skill, item_id)

    run = await Bench(runner=CatalogRunner(attempt)).train()
    assert (slow(run).action, slow(run).reason, run.final_skill) == (None, StepReason.INCONCLUSIVE, START)


async def test_what_comes_after_builds_on_the_guidance() -> None:
    bench = Bench(Patch(), Patch(), append("score=0.6"), guidance=ScriptedGuidance("score=0.1"))
    run = await bench.train(replace(TWO_EPOCHS, epochs=3))
    assert read_region(bench.proposer.reflections[2].current_skill, RegionKind.SLOW_UPDATE) == "score=0.1"
    assert (run.steps[3].reason, run.steps[3].compared_with) == (StepReason.GATE, 0.1)


@pytest.mark.parametrize(("metric", "score"), [(GateMetric.SOFT, 0.4), (GateMetric.MIXED, 0.3)])
async def test_forced_guidance_is_scored_afresh_by_the_metric_of_the_gate(metric: GateMetric, score: float) -> None:
    def attempt(skill: str, item_id: str) -> Rollout:
        stated_score = stated(skill, item_id)
        return rollout(item_id, stated_score / 2, stated_score)

    bench = Bench(
        Patch(),
        Patch(),
        append("score=0.4"),
        guidance=ScriptedGuidance("score=0.4"),
        runner=CatalogRunner(attempt),
    )
    run = await bench.train(replace(TWO_EPOCHS, epochs=3, gate_metric=metric))
    assert slow(run).candidate_score == pytest.approx(score)
    assert slow(run).candidate_soft == pytest.approx(0.4)
    assert run.steps[3].reason is StepReason.GATE
    assert run.steps[3].compared_with == pytest.approx(score)


async def test_its_record_is_told_like_a_step() -> None:
    bench = Bench(append("score=0.6"), guidance=ScriptedGuidance("score=0.3"))
    run = await bench.train()
    last = bench.sink.of(StepFinished)[-1]
    assert (last.record, last.step, last.current_score, last.best_score) == (slow(run), 2, 0.3, 0.6)


async def test_the_best_checkpoint_outlives_guidance_that_scores_less_in_the_same_step() -> None:
    bench = Bench(Patch(), append("score=0.6"), guidance=ScriptedGuidance("score=0.3"))
    run = await bench.train()
    assert (run.best_step, slow(run).step) == (2, 2)
    assert bench.best is not None
    assert (bench.best.skill, bench.best.score) == (run.best_skill, 0.6)


async def test_the_checkpoint_of_its_step_shows_guidance_that_is_the_new_best() -> None:
    bench = Bench(Patch(), append("score=0.6"), guidance=ScriptedGuidance("score=0.7"))
    run = await bench.train()
    assert bench.best is not None
    assert (bench.best.skill, bench.best.step, bench.best.score) == (run.best_skill, 2, 0.7)


# --- through the gate, on request ------------------------------------------------------------------------------------

GATED = replace(TWO_EPOCHS, slow_update_gate=True)


async def test_gated_guidance_that_gains_is_accepted() -> None:
    run = await Bench(append("score=0.6"), guidance=ScriptedGuidance("score=0.7")).train(GATED)
    record = slow(run)
    assert (record.action, record.reason, record.compared_with) == (
        GateAction.ACCEPT_NEW_BEST,
        StepReason.ACCEPTED,
        0.6,
    )
    assert (run.best_score, run.best_step, run.best_skill) == (0.7, 2, run.final_skill)


@pytest.mark.parametrize("score", [0.6, 0.3])
async def test_gated_guidance_that_does_not_gain_is_rejected_without_counting_for_patience(score: float) -> None:
    run = await Bench(append("score=0.6"), guidance=ScriptedGuidance(f"Be brief. score={score}")).train(GATED)
    record = slow(run)
    assert (record.action, record.reason, record.candidate_score) == (GateAction.REJECT, StepReason.GATE, score)
    assert (run.final_skill, run.best_score, run.consecutive_rejects) == (f"{START}\n\nscore=0.6", 0.6, 1)


async def test_gated_guidance_in_two_split_mode_is_compared_with_the_skill_it_would_replace() -> None:
    """The last step's rollout was made with the skill before the accepted one: it must not stand in for it."""

    def attempt(skill: str, item_id: str) -> Rollout:
        if item_id.startswith("val"):
            return rollout(item_id, stated(skill, item_id))
        return rollout(item_id, 0.4 if "Be brief." in skill else 0.8 if "val=0.6" in skill else 0.3)

    bench = Bench(Patch(), append("val=0.6"), runner=CatalogRunner(attempt))
    run = await bench.train(replace(GATED, gate_mode=GateMode.TWO_SPLIT))
    assert run.steps[1].action is GateAction.ACCEPT_NEW_BEST
    assert (slow(run).action, slow(run).held_in_score) == (GateAction.REJECT, 0.4)
    assert "Be brief." not in run.final_skill


async def test_gated_guidance_in_two_split_mode_is_compared_with_the_noted_skill() -> None:
    """The step was rejected, but its notes changed the skill that its rollout was made with."""

    def attempt(skill: str, item_id: str) -> Rollout:
        if item_id.startswith("val"):
            return rollout(item_id, 0.2)
        return rollout(item_id, 0.4 if "Be brief." in skill else 0.8 if "Noted" in skill else 0.3)

    bench = Bench(Patch(), Patch(notes=("Noted",)), runner=CatalogRunner(attempt))
    config = replace(GATED, gate_mode=GateMode.TWO_SPLIT, use_skill_aware_reflection=True)
    run = await bench.train(config)
    assert [record.reason for record in run.steps] == ["no_patches", "no_patches", "notes", "gate"]
    assert (run.steps[-1].action, run.steps[-1].held_in_score) == (GateAction.REJECT, 0.4)
    assert "Be brief." not in run.final_skill


# --- the message by itself -------------------------------------------------------------------------------------------


def rollouts(*scores: float) -> Sequence[Rollout]:
    return tuple(rollout(f"i{number}", score) for number, score in enumerate(scores))


async def analyse(prior: Sequence[Rollout], current: Sequence[Rollout]) -> tuple[int, int, int, int, str]:
    async with open_app() as app:
        message = SlowUpdate(prior_rollouts=tuple(prior), current_rollouts=tuple(current))
        got = (await app.send(message)).value
    return got.improved, got.regressed, got.persistent_fail, got.stable_success, got.guidance


async def test_paired_items_fall_into_four_classes() -> None:
    got = await analyse(rollouts(0, 0, 1, 1, 0.5), rollouts(1, 0.9, 0, 1 - 1e-9, 1))
    assert got[:4] == (2, 1, 1, 1)
    assert got[4].startswith(
        "Slow update over 5 paired items: +2 improved, -1 regressed, 1 persistent failures, 1 stable successes."
    )


async def test_items_without_a_partner_or_an_answer_are_left_out_and_the_last_of_two_counts() -> None:
    prior = [rollout("a", 0), rollout("b", 0), rollout("c", 0, error="x"), rollout("a", 1)]
    current = [rollout("a", 1), rollout("d", 1), rollout("c", 1), rollout("b", 1, error="x")]
    assert (await analyse(prior, current))[:4] == (0, 0, 0, 1)


async def test_without_pairs_there_is_no_guidance_to_write() -> None:
    got = await analyse([rollout("a", 0)], [rollout("b", 0)])
    assert got == (0, 0, 0, 0, "Slow update: no paired items found between prior and current rollouts.")
