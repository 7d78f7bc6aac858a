"""A run's story as the files of system B's run folder.

Each stage of a step has a function that yields its files; another stage is another function in `_STEP_FILES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath

from burnish.application.events import (
    Aggregated,
    Applied,
    MemoryUpdated,
    PassScored,
    Reflected,
    Selected,
    SlowUpdated,
    Stage,
)
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import EditSource
from burnish.domain.regions import RegionKind, read_region
from burnish.domain.runs import StopReason, TrainingRun, skill_hash
from burnish.presentation.run_story import Chapter, RunStory
from burnish.presentation.skillopt_records import action_of, rate_decision, rate_row, records_of, runtime_state, summary
from burnish.presentation.skillopt_rows import (
    Json,
    apply_report,
    as_json,
    as_lines,
    known,
    pairs,
    patch_row,
    results,
    source_of,
    task_types,
    without_trajectories,
)

Files = Iterator[tuple[str, str]]
"""Paths below the folder, with `/`, and what the files hold."""

_TESTS = {
    "initial": "test_eval_baseline",
    "best": "test_eval",
    "final": "test_eval_final",
    "one_shot": "test_eval_one_shot",  # burnish's own
}
_SOURCES = {EditSource.FAILURE: "fail_", EditSource.SUCCESS: "succ_", None: ""}


def skillopt_files(
    story: RunStory, run: TrainingRun, *, initial_skill: str, config: TrainSkillConfig, flat: Mapping[str, object]
) -> Files:
    """All files of the run; `flat` is its configuration, whose `out_root` is the folder's absolute path.

    A run that has not ended has no summary, and no scores of its end.
    """
    records = records_of(story, config)
    folder = PurePath(str(flat["out_root"]))
    yield "config.json", as_json(dict(flat))
    yield "history.json", as_json(records.steps)
    yield "runtime_state.json", as_json(runtime_state(records, run, folder))
    if run.stop_reason not in {None, StopReason.CANCELLED, StopReason.FAILED}:
        yield "summary.json", as_json(summary(records, run, flat, story))
    yield "best_skill.md", run.best_skill
    yield from _skills(story, initial_skill)
    yield "lr_history.jsonl", as_lines(row for step in story.steps if (row := rate_row(step)) is not None)
    yield from _pass("selection_eval_baseline", story.opening.scored(Stage.BASELINE))
    for step, record in zip(story.steps, records.steps, strict=True):
        yield from _below(f"steps/step_{step.step:04d}", _step(step, record))
    for epoch in story.epochs:
        yield from _below(f"slow_update/epoch_{epoch.epoch:02d}", _slow_update(epoch))
        yield from _below(f"meta_skill/epoch_{epoch.epoch:02d}", _meta_skill(epoch))
    yield from _pass("final_selection_eval", story.ending.scored(Stage.PROMOTE_FINAL, "final"))
    for name, place in _TESTS.items():
        if (scored := story.ending.scored(Stage.TEST, name)) is not None:
            yield from _pass(place, scored)
            yield f"{place}/summary.json", as_json(task_types(scored))


def _skills(story: RunStory, initial_skill: str) -> Files:
    """The current skill after every step; a slow update's takes the place of its epoch's last."""
    texts = {0: initial_skill}
    for chapter in story.decisions:
        for finished in chapter.finished:
            texts[chapter.step] = finished.skill
    for step, text in texts.items():
        yield f"skills/skill_v{step:04d}.md", text


def _step(step: Chapter, record: Json) -> Files:
    for files in _STEP_FILES:
        yield from files(step)
    yield "step_record.json", as_json(record)


def _rollout(step: Chapter) -> Files:
    yield from _pass("rollout", step.scored(Stage.ROLLOUT))


def _patches(step: Chapter) -> Files:
    if (reflected := step.of(Reflected)) is None:
        return
    numbers = dict.fromkeys(_SOURCES.values(), 0)
    for patch in reflected.patches:
        if not patch.edits and not patch.notes:
            continue
        source = source_of(patch)
        name = _SOURCES[source]
        row: Json = {"patch": patch_row(patch.reasoning, patch.edits)}
        row |= known(
            source_type=None if source is None else source.value,
            appendix_notes=list(patch.notes) if patch.notes else None,
        )
        yield f"patches/minibatch_{name}{numbers[name]:03d}.json", as_json(row)
        numbers[name] += 1


def _merged(step: Chapter) -> Files:
    aggregated = step.of(Aggregated)
    if aggregated is not None and aggregated.patch is not None and aggregated.patch.edits:
        yield "merged_patch.json", as_json(patch_row(aggregated.patch.reasoning, aggregated.patch.edits))


def _rate(step: Chapter) -> Files:
    if (decision := rate_decision(step)) is not None:
        yield "lr_decision.json", as_json(decision)


def _ranked(step: Chapter) -> Files:
    selected = step.of(Selected)
    if selected is not None and selected.edits:
        yield "ranked_edits.json", as_json(patch_row(selected.reasoning, selected.edits))


def _applied(step: Chapter) -> Files:
    selected, applied = step.of(Selected), step.of(Applied)
    if selected is not None and applied is not None and selected.edits:
        yield "edit_apply_report.json", as_json(apply_report(selected, applied))
        yield "candidate_skill.md", applied.candidate


def _selection(step: Chapter) -> Files:
    yield from _pass("selection_eval", step.scored(Stage.GATE))


def _notes(step: Chapter) -> Files:
    reflected, finished = step.of(Reflected), step.finished
    if reflected is None or not reflected.notes or not finished:
        return
    after = read_region(finished[-1].skill, RegionKind.APPENDIX) or ""
    yield "appendix_notes.json", as_json({"step_notes": list(reflected.notes), "appendix_after": after})
    yield from _pass("appendix_eval", step.scored(Stage.NOTES))  # burnish's own


_STEP_FILES: tuple[Callable[[Chapter], Files], ...] = (
    _rollout,
    _patches,
    _merged,
    _rate,
    _ranked,
    _applied,
    _selection,
    _notes,
)
"""The files of a step, stage after stage."""


def _slow_update(epoch: Chapter) -> Files:
    updated = epoch.of(SlowUpdated)
    if updated is None:
        return
    prior, current = epoch.scored(Stage.SLOW_UPDATE, "prior"), epoch.scored(Stage.SLOW_UPDATE, "current")
    candidate, record = epoch.scored(Stage.GATE), epoch.record
    content = "" if updated.analysis is None else updated.analysis.guidance
    row = known(
        slow_update_content=content,
        action="no_content" if not content.strip() else None if record is None else action_of(record),
        code=updated.code,
        prev_hard=None if prior is None else prior.score.hard,
        curr_hard=None if current is None else current.score.hard,
        candidate_hash=None if candidate is None else skill_hash(candidate.text),
        selection_hard=None if record is None else record.candidate_hard,
        selection_soft=None if record is None else record.candidate_soft,
    )
    yield "slow_result.json", as_json(row)
    if prior is not None and current is not None:
        compared = pairs(prior, current)
        yield "comparison_pairs.json", as_json(compared)
        yield "comparison_pairs_all.json", as_json(without_trajectories(compared))
    yield from _pass("rollout_prev", prior)
    yield from _pass("rollout_curr", current)
    if candidate is not None:
        yield "candidate_skill.md", candidate.text
    yield from _pass("selection_eval", candidate)


def _meta_skill(epoch: Chapter) -> Files:
    if (updated := epoch.of(MemoryUpdated)) is not None:
        row = known(
            meta_skill_content=updated.memory,
            action="write_meta_skill" if updated.code is None else None,
            code=updated.code,
        )
        yield "meta_skill_result.json", as_json(row)


def _pass(place: str, scored: PassScored | None) -> Files:
    if scored is not None:
        yield f"{place}/results.jsonl", results(scored)


def _below(place: str, files: Iterable[tuple[str, str]]) -> Files:
    for path, text in files:
        yield f"{place}/{path}", text
