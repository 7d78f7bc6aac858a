"""System B's step records, history, run state and summary, from a run's story."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import PurePath

from burnish.application.events import Aggregated, Applied, Reflected, Selected, Stage
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import EditSource
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason, StepRecord, TrainingRun, skill_hash
from burnish.presentation.run_story import Chapter, RunStory
from burnish.presentation.skillopt_rows import Json, known, source_of

INITIAL = "initial_skill"

_SKIPPED = {StepReason.NO_PATCHES: "skip_no_patches", StepReason.OPTIMIZER_FAILED: "skip_no_patches"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a run stands after a decision: which skills are current and best, and what they score."""

    current_origin: str = INITIAL
    best_origin: str = INITIAL
    best_step: int = 0
    current_score: float | None = None
    best_score: float | None = None

    def after(self, chapter: Chapter, origin: str) -> Standing:
        """The standing once a chapter is decided whose candidate has this origin."""
        standing = self
        for finished in chapter.finished:
            record = finished.record
            best = record.action is GateAction.ACCEPT_NEW_BEST
            standing = replace(
                standing,
                current_origin=origin if record.is_accepted else standing.current_origin,
                best_origin=origin if best else standing.best_origin,
                best_step=record.step if best else standing.best_step,
                current_score=finished.current_score,
                best_score=finished.best_score,
            )
        return standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All of a run's records."""

    steps: tuple[Json, ...]
    epochs: tuple[Json, ...]
    last: Standing


def records_of(story: RunStory, config: TrainSkillConfig) -> Records:
    """A record for every step, and statistics for every epoch."""
    standing = Standing()
    steps: list[Json] = []
    at_end: dict[int, Standing] = {}
    first: dict[int, int] = {}
    for chapter in story.decisions:
        origin = f"slow_update_epoch_{chapter.epoch:02d}" if chapter.ends_epoch else f"step_{chapter.step:04d}"
        standing = at_end[chapter.epoch] = standing.after(chapter, origin)
        if not chapter.ends_epoch:
            number = chapter.step - first.setdefault(chapter.epoch, chapter.step) + 1
            steps.append({**_step(chapter, config, number), **_standing(standing), **_skill(chapter)})
    epochs = [_epoch(epoch, steps, end) for epoch, end in sorted(at_end.items())]
    return Records(steps=tuple(steps), epochs=tuple(epochs), last=standing)


def action_of(record: StepRecord) -> str | None:
    """System B's name of a decision; None for an inconclusive step, which it does not know."""
    if record.reason in {StepReason.FORCED, StepReason.NOTES}:
        return "force_accept"
    return _SKIPPED.get(record.reason) or (None if record.action is None else record.action.value)


def rate_row(chapter: Chapter) -> Json | None:
    """The step's learning rate, for the history of rates; None when it had none."""
    selected = chapter.of(Selected)
    if selected is None:
        return None
    rate: Json = {"step": chapter.step, "epoch": chapter.epoch, "learning_rate": selected.learning_rate}
    return rate | (rate_decision(chapter) or {})


def rate_decision(chapter: Chapter) -> Json | None:
    """What the optimizer decided about the learning rate; None when that was not asked, or not answered with a reason."""
    selected, record = chapter.of(Selected), chapter.record
    if selected is None or record is None or not record.rate_reasoning:
        return None
    return {
        "learning_rate": selected.learning_rate,
        "available_update_items": record.merged,
        "fallback": False,
        "reasoning": record.rate_reasoning,
    }


def _step(chapter: Chapter, config: TrainSkillConfig, number: int) -> Json:
    parts = (_begun, _rolled_out, _proposed, _edited, _judged, _noted)
    return {name: value for part in parts for name, value in part(chapter, config, number)}


Part = Iterator[tuple[str, object]]


def _begun(chapter: Chapter, _config: TrainSkillConfig, number: int) -> Part:
    yield from {"step": chapter.step, "epoch": chapter.epoch, "step_in_epoch": number}.items()


def _rolled_out(chapter: Chapter, _config: TrainSkillConfig, _number: int) -> Part:
    if (scored := chapter.scored(Stage.ROLLOUT)) is not None:
        score = scored.score
        yield from {"rollout_hard": score.hard, "rollout_soft": score.soft, "rollout_n": score.scored}.items()


def _proposed(chapter: Chapter, _config: TrainSkillConfig, _number: int) -> Part:
    if (reflected := chapter.of(Reflected)) is None:
        return
    sources = [source_of(patch) for patch in reflected.patches if patch.edits]
    yield "n_patches", len(sources)
    if None not in sources:
        yield "n_failure_patches", sources.count(EditSource.FAILURE)
        yield "n_success_patches", sources.count(EditSource.SUCCESS)


def _edited(chapter: Chapter, config: TrainSkillConfig, _number: int) -> Part:
    if (aggregated := chapter.of(Aggregated)) is not None:
        yield "n_edits_merged", aggregated.edits
    if (selected := chapter.of(Selected)) is not None:
        yield "n_edits_ranked", len(selected.edits)
        yield "edit_budget", selected.learning_rate
        yield "lr_control_mode", config.lr_control_mode.value
        if selected.edits and all(edit.support_count is not None for edit in selected.edits):
            yield "support_counts", [edit.support_count for edit in selected.edits]
    if (applied := chapter.of(Applied)) is not None:
        done, left = len(applied.applied), len(applied.failed)
        yield "edit_apply_summary", {"total": done + left, "applied": done, "skipped": left, "errors": 0}


def _judged(chapter: Chapter, config: TrainSkillConfig, _number: int) -> Part:
    record = chapter.record
    if record is None:
        return
    if (scored := chapter.scored(Stage.GATE)) is not None:
        yield "candidate_hash", skill_hash(scored.text)
        yield "candidate_skill_len", len(scored.text)
        yield "gate_metric", config.gate_metric.value
    yield from known(
        selection_hard=record.candidate_hard,
        selection_soft=record.candidate_soft,
        candidate_gate_score=record.candidate_score,
        action=action_of(record),
        reason=record.reason.value,
        code=record.code,
    ).items()


def _noted(chapter: Chapter, config: TrainSkillConfig, _number: int) -> Part:
    if chapter.record is not None and config.use_skill_aware_reflection:
        yield "n_execution_lapse_notes", chapter.record.lapses
    if (record := chapter.notes) is not None:
        is_kept = record.is_accepted
        yield "n_appendix_notes_added", record.notes_added if is_kept else 0
        yield "n_appendix_notes_total", record.notes_total if is_kept else record.notes_total - record.notes_added
        yield "n_appendix_notes_consolidated", record.notes_consolidated if is_kept else 0


def _standing(standing: Standing) -> Json:
    return {
        **known(current_score=standing.current_score, best_score=standing.best_score),
        "best_step": standing.best_step,
        "current_origin": standing.current_origin,
        "best_origin": standing.best_origin,
    }


def _skill(chapter: Chapter) -> Json:
    record = chapter.notes or chapter.record
    return {} if record is None else {"skill_len": record.skill_characters}


def _epoch(epoch: int, steps: list[Json], end: Standing) -> Json:
    own = [step for step in steps if step["epoch"] == epoch]
    return {
        "epoch": epoch,
        "steps": len(own),
        **_counts(own, ""),
        **known(best_score_at_epoch_end=end.best_score, current_score_at_epoch_end=end.current_score),
    }


def _counts(steps: list[Json], prefix: str) -> Json:
    actions = [str(step.get("action", "")) for step in steps]
    return {
        f"{prefix}accepts": sum(action.startswith("accept") for action in actions),
        f"{prefix}rejects": actions.count("reject"),
        f"{prefix}skips": sum(action.startswith("skip") for action in actions),
    }


def runtime_state(records: Records, run: TrainingRun, folder: PurePath) -> Json:
    """Where the run stands; `folder` is the absolute path of the whole."""
    last = _at_end(records, run)
    steps = len(records.steps)
    return {
        "last_completed_step": steps,
        "current_skill_path": str(folder / "skills" / f"skill_v{steps:04d}.md"),
        "best_skill_path": str(folder / "best_skill.md"),
        **_standing(last),
    }


def summary(records: Records, run: TrainingRun, config: Mapping[str, object], story: RunStory) -> Json:
    """What came of a run that has ended."""
    last = _at_end(records, run)
    final = story.ending.scored(Stage.PROMOTE_FINAL, "final")
    baseline, test = story.opening.scored(Stage.BASELINE), run.test
    tokens = {
        f"{total.role}/{total.stage}": {
            "calls": total.calls,
            "prompt_tokens": total.prompt_tokens,
            "completion_tokens": total.completion_tokens,
        }
        for total in run.usage
    }
    return {
        "version": f"burnish {version('burnish')}",
        "config": dict(config),
        **known(
            baseline_selection_hard=None if baseline is None else baseline.score.hard,
            best_selection_hard=last.best_score,
            final_selection_hard=None if final is None else final.score.hard,
            final_selection_soft=None if final is None else final.score.soft,
        ),
        "best_step": last.best_step,
        "current_origin": last.current_origin,
        "best_origin": last.best_origin,
        "total_steps": len(records.steps),
        **_counts(list(records.steps), "total_"),
        "epoch_stats": list(records.epochs),
        **(
            {}
            if test is None
            else {
                "baseline_test_hard": test.initial.hard,
                "baseline_test_soft": test.initial.soft,
                "test_hard": test.best.hard,
                "test_soft": test.best.soft,
                "final_test_hard": test.final.hard,
                "final_test_soft": test.final.soft,
                "test_delta_hard": test.best.hard - test.initial.hard,
                "final_test_delta_hard": test.final.hard - test.initial.hard,
            }
        ),
        "token_summary": tokens,
    }


def _at_end(records: Records, run: TrainingRun) -> Standing:
    """The last standing, or what a promotion of the final skill made of it."""
    if not run.promoted_final:
        return records.last
    last = records.last
    return replace(last, best_origin=last.current_origin, best_step=run.best_step, best_score=run.best_score)
