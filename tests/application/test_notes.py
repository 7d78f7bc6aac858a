"""Execution lapses become notes of the current skill, which is measured before anything is compared with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from fakes import START, STEPS, CatalogRunner, RecordingSink, append, rollout, training

from burnish.application.events import PassScored, Reflected, Stage, StepFinished
from burnish.application.optimizer_ports import Focus, NotesInput, ReflectionInput
from burnish.application.result import Result
from burnish.application.runs import ListCheckpoints
from burnish.domain.appendix import notes_of
from burnish.domain.config import AppendixSource, TrainSkillConfig, UpdateMode
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import Checkpoint, StepReason, StepRecord, TrainingRun, skill_hash
from burnish.presentation.app import open_app

AWARE = replace(STEPS, use_skill_aware_reflection=True)
NOTED, UP, DOWN = "Read the last line.", "Mind the rules: val=0.6", "Mind nothing: val=0.1"

Propose = Callable[[ReflectionInput], Patch]


@dataclass
class World:
    """An agent that is as good as its skill says, analysts, and a consolidator; what they were asked is kept."""

    propose_: Propose
    consolidate_: Callable[[NotesInput], Sequence[str]] | None = None
    attempt: Callable[[str, str], Rollout | float] | None = None
    reflections: list[ReflectionInput] = field(default_factory=list[ReflectionInput])
    consolidations: list[NotesInput] = field(default_factory=list[NotesInput])
    sink: RecordingSink = field(default_factory=RecordingSink)
    checkpoints: Sequence[Checkpoint] = ()

    def __post_init__(self) -> None:
        self.runner = CatalogRunner() if self.attempt is None else CatalogRunner(self.attempt)

    async def propose(self, reflection: ReflectionInput) -> Patch:
        self.reflections.append(reflection)
        return self.propose_(reflection)

    async def consolidate(self, request: NotesInput) -> Sequence[str]:
        self.consolidations.append(request)
        assert self.consolidate_ is not None
        return self.consolidate_(request)

    async def send(self, config: TrainSkillConfig, initial_skill: str = START) -> Result[TrainingRun]:
        consolidator = None if self.consolidate_ is None else self
        async with open_app(
            rollouts=self.runner, proposer=self, note_consolidator=consolidator, sinks=(self.sink,)
        ) as app:
            result = await app.send(training(config, initial_skill=initial_skill))
            self.checkpoints = (await app.send(ListCheckpoints("run"))).value
        return result

    async def train(self, config: TrainSkillConfig = AWARE, initial_skill: str = START) -> TrainingRun:
        return (await self.send(config, initial_skill)).value


def noting(*notes: str, edits: Sequence[str] = ()) -> Propose:
    """Analysts who all say the same."""
    return lambda _: replace(append(*edits), notes=notes)


def of_notes(run: TrainingRun) -> list[StepRecord]:
    return [record for record in run.steps if record.is_of_notes]


async def test_notes_alone_change_the_skill_and_are_measured() -> None:
    world = World(noting(UP))
    run = await world.train()
    own, notes = run.steps
    assert (own.reason, own.lapses, own.is_of_notes) == (StepReason.NO_PATCHES, 1, False)
    assert (notes.reason, notes.action, notes.step, notes.epoch) == (StepReason.NOTES, "accept_new_best", 1, 1)
    assert (notes.notes_added, notes.notes_total, notes.notes_consolidated) == (1, 1, 0)
    assert (notes.candidate_score, notes.compared_with) == (0.6, 0.2)
    assert notes.skill_hash == skill_hash(run.final_skill)
    assert notes_of(run.final_skill) == (UP,)
    assert run.final_skill.startswith(START)
    assert (run.best_skill, run.best_score, run.best_step) == (run.final_skill, 0.6, 1)
    assert (run.steps_executed, run.consecutive_rejects) == (1, 1)


async def test_notes_go_into_the_accepted_candidate_and_lower_the_current_skill_but_not_the_best() -> None:
    world = World(noting(DOWN, edits=["val=0.5"]))
    run = await world.train()
    own, notes = run.steps
    assert (own.reason, own.lapses) == (StepReason.ACCEPTED, 1)
    assert (notes.reason, notes.action, notes.candidate_score, notes.compared_with) == ("notes", "accept", 0.1, 0.5)
    assert run.best_skill == f"{START}\n\nval=0.5"
    assert (run.best_score, run.final_score) == (0.5, 0.1)
    assert notes_of(run.final_skill) == (DOWN,)
    assert run.consecutive_rejects == 0


async def test_a_rejected_candidate_leaves_its_notes_in_the_skill_it_lost_against() -> None:
    run = await World(noting(NOTED, edits=["val=0.1"])).train()
    assert [record.reason for record in run.steps] == [StepReason.GATE, StepReason.NOTES]
    assert notes_of(run.final_skill) == (NOTED,)
    assert "val=0.1" not in run.final_skill
    assert (run.best_skill, run.has_accepted_any, run.final_score) == (START, False, 0.2)


async def test_the_next_candidate_is_compared_with_the_score_of_the_noted_skill() -> None:
    scores = iter([*(["val=0.3"], [DOWN]), *(["val=0.2"], [])])

    def propose(_: ReflectionInput) -> Patch:
        edits, notes = next(scores), next(scores)
        return Patch(tuple(Edit(EditOp.INSERT_AFTER, edit, target="# Skill") for edit in edits), notes=tuple(notes))

    world = World(propose)
    run = await world.train(replace(AWARE, steps_per_epoch=2))
    first, notes, second = run.steps
    assert (first.compared_with, notes.candidate_score) == (0.2, 0.1)
    assert second.compared_with == 0.1
    asked = world.runner.skills("val")
    assert run.steps[1].skill_hash in {skill_hash(skill) for skill in asked}


async def test_known_and_blank_notes_measure_nothing() -> None:
    initial = f"{START}\n\n<!-- APPENDIX_START -->\n- {NOTED}\n<!-- APPENDIX_END -->\n"
    world = World(noting("read the  LAST line", " ", "...", "\n"))
    run = await world.train(initial_skill=initial)
    assert [(record.reason, record.lapses) for record in run.steps] == [(StepReason.NO_PATCHES, 1)]
    assert run.final_skill == initial
    assert world.runner.skills("val") == [initial]


async def test_with_the_feature_off_notes_are_ignored_and_nobody_is_asked_for_them() -> None:
    world = World(noting(UP))
    run = await world.train(STEPS)
    assert [(record.reason, record.lapses) for record in run.steps] == [(StepReason.NO_PATCHES, 0)]
    assert run.final_skill == START
    assert [reflection.wants_notes for reflection in world.reflections] == [False]
    assert all(not patch.notes for event in world.sink.of(Reflected) for patch in event.patches)


@pytest.mark.parametrize(
    ("source", "expected"),
    [(AppendixSource.BOTH, ("From failures", "From successes")), (AppendixSource.FAILURE_ONLY, ("From failures",))],
)
async def test_the_source_says_whose_notes_count(source: AppendixSource, expected: tuple[str, ...]) -> None:
    def half(_: str, item_id: str) -> float:
        return float(item_id in {"train/0", "train/1"}) if item_id.startswith("train") else 0.5

    world = World(lambda reflection: Patch(notes=(f"From {reflection.focus}",)), attempt=half)
    run = await world.train(replace(AWARE, skill_aware_appendix_source=source))
    assert notes_of(run.final_skill) == expected
    wanted = {reflection.focus: reflection.wants_notes for reflection in world.reflections}
    assert wanted == {Focus.FAILURES: True, Focus.SUCCESSES: source is AppendixSource.BOTH}


async def test_notes_of_several_analysts_are_kept_in_the_order_of_their_minibatches() -> None:
    names = iter(["one", "two", "ONE.", "three"])
    world = World(lambda _: Patch(notes=(next(names),)))
    run = await world.train(replace(AWARE, minibatch_size=1))
    assert notes_of(run.final_skill) == ("one", "two", "three")
    assert (run.steps[0].lapses, run.steps[1].notes_added) == (3, 3)
    assert next(iter(world.sink.of(Reflected))).notes == ("one", "two", "three")


async def test_whole_rewrites_come_with_notes_too() -> None:
    patch = Patch((Edit(EditOp.REWRITE, "# New\n\nval=0.5\n"),), notes=(NOTED,))
    run = await World(lambda _: patch).train(replace(AWARE, update_mode=UpdateMode.FULL_REWRITE_MINIBATCH))
    assert [record.reason for record in run.steps] == [StepReason.ACCEPTED, StepReason.NOTES]
    assert notes_of(run.final_skill) == (NOTED,)


async def test_nothing_is_noted_after_a_step_that_decided_nothing() -> None:
    def train_fails(skill: str, item_id: str) -> Rollout:
        return rollout(item_id, 0.2, error="down" if item_id.startswith("train") and item_id != "train/0" else None)

    world = World(noting(UP), attempt=train_fails)
    assert not (await world.send(AWARE)).is_ok
    (finished,) = world.sink.of(StepFinished)
    assert (finished.record.reason, finished.skill) == (StepReason.INCONCLUSIVE, START)
    assert not world.reflections


async def test_nothing_is_noted_when_the_candidate_could_not_be_scored() -> None:
    def candidate_fails(skill: str, item_id: str) -> Rollout:
        return rollout(item_id, 0.2, error="down" if "better" in skill else None)

    run = await World(noting(UP, edits=["better"]), attempt=candidate_fails).train()
    assert [(record.reason, record.lapses) for record in run.steps] == [(StepReason.INCONCLUSIVE, 1)]
    assert run.final_skill == START


async def test_a_noted_skill_that_too_few_items_can_score_is_not_adopted() -> None:
    def fails_with_notes(skill: str, item_id: str) -> Rollout:
        return rollout(item_id, 0.2, error="down" if NOTED in skill else None)

    run = await World(noting(NOTED), attempt=fails_with_notes).train()
    own, notes = run.steps
    assert (own.reason, notes.reason, notes.action) == (StepReason.NO_PATCHES, StepReason.INCONCLUSIVE, None)
    assert (notes.notes_added, notes.is_of_notes) == (1, True)
    assert run.final_skill == START


async def test_notes_that_make_the_skill_too_long_are_left_out_and_told() -> None:
    world = World(noting("x" * 200))
    run = await world.train(replace(AWARE, max_skill_tokens=40))
    own, notes = run.steps
    assert (own.reason, notes.reason, notes.action, notes.notes_added) == ("no_patches", "too_long", "reject", 1)
    assert run.final_skill == START
    assert run.consecutive_rejects == 1
    assert world.runner.skills("val") == [START]
    longest = f"{START}\n".ljust(262_144, "y")
    run = await World(noting(NOTED)).train(initial_skill=longest)
    assert (run.steps[1].reason, run.final_skill) == ("too_long", longest)


async def test_front_matter_and_other_regions_stay_byte_for_byte() -> None:
    initial = "---\r\nname: x\r\n---\n# Skill\n\n\n\nscore=0.2\n<!-- LOCKED_START -->\nstay\n<!-- LOCKED_END -->"
    run = await World(noting(NOTED)).train(initial_skill=initial)
    assert run.final_skill.startswith(initial)
    assert notes_of(run.final_skill) == (NOTED,)


# Consolidation

LIMITED = replace(AWARE, skill_aware_consolidate_threshold=1)
TWO = noting("One.", "Two.")


async def test_too_many_notes_become_fewer() -> None:
    world = World(TWO, lambda _: ["Both."])
    run = await world.train(LIMITED)
    (notes,) = of_notes(run)
    assert notes_of(run.final_skill) == ("Both.",)
    assert (notes.notes_added, notes.notes_total, notes.notes_consolidated, notes.fallbacks) == (2, 1, 1, ())
    (request,) = world.consolidations
    assert (request.notes, request.threshold) == (("One.", "Two."), 1)
    assert notes_of(request.current_skill) == request.notes
    assert request.seed > 0


@pytest.mark.parametrize("threshold", [0, 2])
async def test_up_to_the_threshold_or_without_one_nobody_is_asked(threshold: int) -> None:
    world = World(TWO, lambda _: ["Both."])
    run = await world.train(replace(AWARE, skill_aware_consolidate_threshold=threshold))
    assert (notes_of(run.final_skill), world.consolidations) == (("One.", "Two."), [])


@pytest.mark.parametrize(
    "answer", [["One.", "Two."], ["a", "b", "c"], ["One.", " "], ["..."], [], "One", None, [1], ["a", "A"]]
)
async def test_an_answer_that_is_no_better_leaves_the_notes_as_they_are(answer: Sequence[str]) -> None:
    run = await World(TWO, lambda _: answer).train(LIMITED)
    (notes,) = of_notes(run)
    assert notes_of(run.final_skill) == ("One.", "Two.")
    assert (notes.notes_total, notes.notes_consolidated, notes.fallbacks) == (2, 0, ("consolidate",))
    assert notes.reason is StepReason.NOTES


async def test_a_consolidator_that_fails_leaves_the_notes_as_they_are() -> None:
    def fail(_: NotesInput) -> Sequence[str]:
        raise ConnectionError

    run = await World(TWO, fail).train(LIMITED)
    assert (notes_of(run.final_skill), of_notes(run)[0].fallbacks) == (("One.", "Two."), ("consolidate",))


async def test_a_run_that_needs_a_consolidator_and_has_none_is_refused_by_name() -> None:
    failure = (await World(TWO).send(LIMITED)).failure
    assert failure is not None
    assert (failure.code, failure.fields) == ("skill_training.optimizer.role_not_configured", ("note_consolidator",))
    assert (await World(TWO).send(replace(LIMITED, use_skill_aware_reflection=False))).is_ok


# What is told and kept


async def test_both_records_are_told_each_with_the_skill_and_the_score_after_it() -> None:
    world = World(noting(DOWN, edits=["val=0.5"]))
    run = await world.train()
    own, notes = world.sink.of(StepFinished)
    assert (own.skill, own.current_score, own.best_score) == (f"{START}\n\nval=0.5", 0.5, 0.5)
    assert (notes.skill, notes.current_score, notes.best_score) == (run.final_skill, 0.1, 0.5)
    (scored,) = [event for event in world.sink.of(PassScored) if event.stage is Stage.NOTES]
    assert (scored.text, scored.score.hard, len(scored.rollouts)) == (run.final_skill, 0.1, 4)


async def test_the_snapshot_of_an_accepted_step_is_replaced_only_by_a_better_one() -> None:
    worse = World(noting(DOWN, edits=["val=0.5"]))
    await worse.train()
    assert [(kept.skill, kept.score) for kept in worse.checkpoints] == [(f"{START}\n\nval=0.5", 0.5)]
    better = World(noting(UP, edits=["val=0.5"]))
    run = await better.train()
    assert [(kept.skill, kept.skill_hash) for kept in better.checkpoints] == [(run.best_skill, run.steps[1].skill_hash)]
    alone = World(noting(DOWN))
    run = await alone.train()
    assert [(kept.skill, kept.score) for kept in alone.checkpoints] == [(run.final_skill, 0.1)]


async def test_secrets_in_notes_are_masked() -> None:
    world = World(noting("Use hunter22 to log in."))
    async with open_app(rollouts=world.runner, proposer=world, secrets=["hunter22"]) as app:
        run = (await app.send(training(AWARE))).value
    assert "hunter22" not in run.final_skill
    assert len(notes_of(run.final_skill)) == 1


@pytest.mark.parametrize("notes", ["a note", ["a note"], (1,), None])
async def test_notes_that_are_no_tuple_of_texts_are_an_unreadable_patch(notes: object) -> None:
    patch = Patch(notes=notes)  # type: ignore[arg-type]  # as an untyped host hands it over
    world = World(lambda _: patch)
    assert not (await world.send(AWARE)).is_ok
    (finished,) = world.sink.of(StepFinished)
    assert finished.record.code == "skill_training.reflect.unreadable_patch"
