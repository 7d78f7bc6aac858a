"""After the last step: fresh scores for the final skill, and the test split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from burnish.application.candidate import is_inconclusive
from burnish.application.events import PassScored, Stage
from burnish.application.mediator import Publisher
from burnish.application.optimizer import Optimizer, or_code
from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.application.passes import Pass, side_by_side
from burnish.application.reflect_on_failures import ask_proposer
from burnish.application.result import ErrorCode
from burnish.application.run_passes import RunPasses
from burnish.application.telemetry import StageTelemetry
from burnish.application.training_state import ScoredSkill, TrainingState
from burnish.domain.config import UpdateMode
from burnish.domain.edits import EditOp, EditSource, Patch, apply_patch
from burnish.domain.gate import pair_scores, project_score
from burnish.domain.minibatches import split_minibatches
from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.domain.rollouts import batch_seed
from burnish.domain.runs import ScoresOnTest


async def promote_final(
    state: TrainingState, passes: RunPasses, publisher: Publisher, telemetry: StageTelemetry
) -> TrainingState:
    """Make the final skill the best one if it beats it where both are scored afresh on the same items."""
    config = state.config
    if not config.promote_final or state.current.text == state.best.text:
        return state
    with telemetry.stage(Stage.PROMOTE_FINAL):
        final, best = await side_by_side(passes.final(state.current.text), passes.final(state.best.text))
        scored = {"final": (state.current.text, final), "best": (state.best.text, best)}
        await _tell(state, Stage.PROMOTE_FINAL, scored, publisher, telemetry)
    pairs = pair_scores(final.outcomes, best.outcomes, None)
    if is_inconclusive(final, config) or is_inconclusive(best, config) or pairs.current is None or not pairs.items:
        return state
    final_score = project_score(*pairs.candidate, config.gate_metric, config.mixed_weight)
    if final_score <= project_score(*pairs.current, config.gate_metric, config.mixed_weight):
        return state
    promoted = state.adopt(ScoredSkill(state.current.text, final.outcomes), new_best=True, accepted=True)
    return replace(promoted, promoted_final=True)


async def rewrite_once(state: TrainingState, initial_skill: str, first: Pass, optimizer: Optimizer) -> str | None:
    """The initial skill, rewritten by the optimizer as a whole after the run's first rollouts: a cheap rival to training.

    None when it failed, or when its answer is no rewrite that leaves protected parts alone.
    """
    seed = batch_seed(state.seed, "one_shot")
    minibatches = split_minibatches(first.answered, size=state.config.minibatch_size, seed=seed)
    if not minibatches:
        return None
    request = ReflectionInput(
        current_skill=initial_skill,
        rollouts=minibatches[0].rollouts,
        edit_budget=1,
        seed=seed,
        focus=Focus.FAILURES if minibatches[0].source is EditSource.FAILURE else Focus.SUCCESSES,
        update_mode=UpdateMode.FULL_REWRITE_MINIBATCH,
    )
    patch = await or_code(ask_proposer(optimizer.proposer, request))
    if isinstance(patch, ErrorCode):
        return None
    rewrites = tuple(edit for edit in patch.edits if edit.op is EditOp.REWRITE)
    report = apply_patch(initial_skill, Patch(rewrites[:1]))
    return report.content if report.applied and len(report.content) <= MAX_SKILL_CHARACTERS else None


async def score_test_split(
    state: TrainingState, named: Mapping[str, str], passes: RunPasses, publisher: Publisher, telemetry: StageTelemetry
) -> TrainingState:
    """Score skills by name (initial, best, final, perhaps one_shot) on the test split; equal texts are tried once."""
    done: dict[str, Pass] = {}
    with telemetry.stage(Stage.TEST):
        for text in named.values():
            if text not in done:
                done[text] = await passes.test(text)
        scored = {name: (text, done[text]) for name, text in named.items()}
        await _tell(state, Stage.TEST, scored, publisher, telemetry)
    return replace(state, test=ScoresOnTest(**{name: passed.score for name, (_, passed) in scored.items()}))


async def _tell(
    state: TrainingState,
    stage: Stage,
    scored: Mapping[str, tuple[str, Pass]],
    publisher: Publisher,
    telemetry: StageTelemetry,
) -> None:
    """Tell the passes by the names of their skills, each with the skill's text."""
    for name, (text, done) in scored.items():
        telemetry.count_pass(stage, done)
        await publisher.publish(
            PassScored(
                run_id=state.run_id, stage=stage, score=done.score, skill=name, text=text, rollouts=done.rollouts
            )
        )
