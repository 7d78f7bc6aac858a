"""`output/report.md` and the one-line summary: what a call did, for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from burnish.application.events import Aggregated, Applied, MemoryUpdated, PassScored, Selected, SlowUpdated, Stage
from burnish.application.evolution import Evolution
from burnish.application.training_state import ScoredSkill
from burnish.domain.edits import Edit
from burnish.domain.gate import GateAction
from burnish.domain.rollouts import BatchScore
from burnish.domain.runs import StepReason, StepRecord
from burnish.presentation.evolver.decisions import (
    FINAL_PROMOTION,
    INCONCLUSIVE,
    KEPT_BEST,
    compared,
    explained,
    shortcomings,
    title_of,
)
from burnish.presentation.evolver.listening import Told
from burnish.presentation.evolver.parameters import EvolverParameters

Usage = Mapping[str, Mapping[str, int]]

_LONGEST_QUOTE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A call's texts: the report, and its first sentences as a summary."""

    summary: str
    report: str


def report_step(
    number: int,
    before: Evolution,
    after: Evolution,
    *,
    told: Told,
    usage: Usage,
    parameters: EvolverParameters,
    validation_tasks: int,
) -> Reported:
    """The texts of a step; `number` is the host's."""
    record, *others = after.state.records
    title = title_of(record)
    decision = " ".join(filter(None, (f"{title}.", explained(record), shortcomings(record))))
    news = [decision, *_boundary(told, others)]
    news.append(_document(before.state.current.text, after.state.current.text))
    following = _next(after, parameters, validation_tasks, lacks_answers=_batch_lacks_answers(told, after))
    sections = [
        f"# Step {number}: {title}",
        "\n\n".join(news),
        _section("Scores", _scores(before, after, told)),
        _section("Edits", _edits(told)),
        _section("Calls", _calls(usage)),
        _section("Next", [following]),
    ]
    told_again = [following] if after.has_failed or parameters.steps_per_epoch is not None else []
    return Reported(
        summary=" ".join([f"Step {number}:", *news, *told_again]), report="\n\n".join(filter(None, sections)) + "\n"
    )


def report_end(after: Evolution, told: Told, usage: Usage, *, is_inconclusive: bool) -> Reported:
    """The texts of the last call."""
    state = after.state
    title = INCONCLUSIVE if is_inconclusive else FINAL_PROMOTION if state.promoted_final else KEPT_BEST
    scores = {event.skill: event.score for event in told.passes(Stage.PROMOTE_FINAL)}
    if is_inconclusive:
        why = "Too many tasks stayed without an answer to compare the final with the best document. The best one is in"
        why += " place; call finalize again, and what stayed without an answer is asked again."
    elif state.promoted_final:
        why = "The final document beat the best one where both were scored afresh."
    elif scores:
        why = "The final document did not beat the best one where both were scored afresh."
    elif not state.has_accepted_any:
        why = "Nothing was ever accepted: the initial document stays."
    elif state.current.text == state.best.text:
        why = "The final document is the best one."
    else:
        why = "The final document is not the best one, and promote_final is off."
    rows = [f"| {name} | {_pair(score)} |" for name, score in scores.items()]
    sections = [
        f"# End: {title}",
        why,
        _section("Fresh scores", [*_HEAD, *rows] if rows else []),
        _section("Calls", _calls(usage)),
    ]
    return Reported(summary=f"End: {title}. {why}", report="\n\n".join(filter(None, sections)) + "\n")


_HEAD = ("| document | hard | soft | tasks | without an answer |", "|---|---|---|---|---|")


def _section(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(lines) if lines else ""


def _document(before: str, after: str) -> str:
    if before == after:
        return "The document is unchanged."
    return f"The document changed: {len(before)} characters before, {len(after)} after."


def _scores(before: Evolution, after: Evolution, told: Told) -> list[str]:
    """The batch, what was measured in this step, and what stands at its end."""
    rows: list[str] = []
    names = {Stage.BASELINE: "initial, on validation", Stage.ROLLOUT: "current, on the step's batch"}
    for stage, name in names.items():
        rows += [f"| {name} | {_pair(event.score)} |" for event in told.passes(stage)]
    for event in told.passes(Stage.GATE):
        if event.score.scored or event.score.missing:
            rows.append(f"| {_candidate(event, told)} | {_pair(event.score)} |")
    rows += [
        f"| {event.skill} epoch's, on train tasks | {_pair(event.score)} |" for event in told.passes(Stage.SLOW_UPDATE)
    ]
    state, config = after.state, after.state.config
    metric = config.gate_metric.value
    standing = [f"{name} {_score(skill, after)}" for name, skill in (("current", state.current), ("best", state.best))]
    earlier = f", current before {_score(before.state.current, before)}" if before.state.baseline is not None else ""
    decides = f"What decides is the {metric} score on validation: {', '.join(standing)}{earlier}."
    return [*_HEAD, *rows, "", decides] if rows else [decides]


def _candidate(event: PassScored, told: Told) -> str:
    applied = told.last(Applied)
    of_step = applied is not None and applied.candidate == event.text
    return f"{'candidate' if of_step else 'with the guidance'}, on validation"


def _score(skill: ScoredSkill, evolution: Evolution) -> str:
    score = skill.score(evolution.state.config)
    return "not measured" if score is None else f"{score:.4f}"


def _pair(score: BatchScore) -> str:
    return f"{score.hard:.4f} | {score.soft:.4f} | {score.scored} | {score.missing}"


def _edits(told: Told) -> list[str]:
    """Every edit with its fate."""
    applied, selected, merged = told.last(Applied), told.last(Selected), told.last(Aggregated)
    lines: list[str] = []
    if applied is not None:
        lines += [f"- applied: {_edit(edit)}" for edit in applied.applied]
        lines += [f"- failed: {_edit(failed.edit)}: {failed.reason}" for failed in applied.failed]
    if selected is not None and merged is not None and merged.patch is not None:
        left_out = [edit for edit in merged.patch.edits if edit not in selected.edits]
        lines += [f"- not selected: {_edit(edit)}" for edit in left_out]
        if lines:
            lines.append(f"\nAt most {selected.learning_rate} edits were allowed in this step.")
    return lines


def _edit(edit: Edit) -> str:
    parts = [edit.op.value, *(_quoted(text) for text in (edit.target, edit.content) if text)]
    support = "" if edit.support_count is None else f" (support {edit.support_count})"
    return " ".join(parts) + support


def _quoted(text: str) -> str:
    cut = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    return "`" + json.dumps(cut, ensure_ascii=False).replace("`", "'") + "`"


def _boundary(told: Told, records: Sequence[StepRecord]) -> Iterator[str]:
    """What the end of an epoch did, a paragraph each."""
    compared_epochs, memory = told.last(SlowUpdated), told.last(MemoryUpdated)
    if compared_epochs is not None:
        yield f"Slow update: {_slow_update(compared_epochs, records)}"
    if memory is not None and memory.code is not None:
        yield f"Memory: failed ({memory.code}), the old one stays."
    elif memory is not None:
        yield f"Memory: {memory.characters} characters for the optimizer's next epoch."


def _slow_update(event: SlowUpdated, records: Sequence[StepRecord]) -> str:
    analysis = event.analysis
    if analysis is None:
        return f"failed ({event.code}), the document stays as the step left it."
    if not analysis.total:
        return "no train task was answered with both epochs' documents, so there was nothing to compare."
    counts = (
        f"{analysis.improved} improved, {analysis.regressed} regressed, {analysis.persistent_fail} failed twice,"
        f" {analysis.stable_success} succeeded twice;"
    )
    if not records:
        return f"{counts} no new guidance."
    return f"{counts} {_guided(records[0])}"


def _guided(record: StepRecord) -> str:
    if record.reason is StepReason.INCONCLUSIVE:
        return "the document with its guidance could not be scored, so it is left out."
    if record.reason is StepReason.GATE:
        return f"its guidance was rejected by the gate. {compared(record)}."
    how = "forced in" if record.reason is StepReason.FORCED else "accepted by the gate"
    best = ", new best" if record.action is GateAction.ACCEPT_NEW_BEST else ""
    return f"its guidance was {how}{best}. {compared(record)}."


def _calls(usage: Usage) -> list[str]:
    rows = [
        f"| {role} | {told['calls']} | {told['prompt_tokens']} | {told['completion_tokens']} |"
        for role, told in usage.items()
    ]
    return ["| role | calls | prompt tokens | completion tokens |", "|---|---|---|---|", *rows]


def _batch_lacks_answers(told: Told, after: Evolution) -> bool:
    """Whether the batch is why nothing was decided: what it lacks is in its files, and is not asked again."""
    most = after.state.config.max_error_rate
    return any(is_too_sparse(event.score, most) for event in told.passes(Stage.ROLLOUT))


def is_too_sparse(score: BatchScore, most: float) -> bool:
    """Whether more than this share of what was asked stayed without an answer."""
    return not score.scored or score.missing / (score.scored + score.missing) > most


def _next(after: Evolution, parameters: EvolverParameters, validation_tasks: int, *, lacks_answers: bool) -> str:
    """What the host has to expect of the next call."""
    steps, state = parameters.steps_per_epoch, after.state
    again = ""
    if after.has_failed and lacks_answers:
        again = "The batch itself lacks answers, so another call would end the same: go on with the next step. "
    elif after.has_failed:
        again = (
            "The same step may be called again: only what stayed without an answer is asked again. Or go on with the"
        )
        again += " next one. "
    if steps is None:
        return f"{again}No epoch ever ends, since steps_per_epoch is not set: no slow update, no memory."
    if not after.ends_epoch(steps):
        left = (after.ended_at // steps + 1) * steps - state.step
        return f"{again}Epoch {state.epoch} has {left} more step{'' if left == 1 else 's'}."
    work: list[str] = []
    if parameters.use_slow_update and after.prior_skill is not None:
        runs = 2 * parameters.slow_update_samples
        work.append(f"a slow update (up to {runs} runs on train tasks and {validation_tasks} on validation tasks)")
    if parameters.use_meta_skill:
        work.append("the memory (one call of the model)")
    after_it = f" and brings {' and '.join(work)}: allow for it in the time limit" if work else ""
    return f"{again}The next step ends epoch {state.epoch}{after_it}."
