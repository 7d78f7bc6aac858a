"""After the last step: fresh scores for the final skill, and the test split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from burnish.application.candidate import is_inconclusive
from burnish.application.events import PassScored, Stage
from burnish.application.mediator import Publisher
from burnish.application.passes import Pass, side_by_side
from burnish.application.run_passes import RunPasses
from burnish.application.telemetry import StageTelemetry
from burnish.application.training_state import ScoredSkill, TrainingState
from burnish.domain.gate import pair_scores, project_score
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


async def score_test_split(
    state: TrainingState, initial_skill: str, passes: RunPasses, publisher: Publisher, telemetry: StageTelemetry
) -> TrainingState:
    """Score initial, best and final skill on the test split once; equal texts are tried once."""
    if not state.config.eval_test:
        return state
    named = {"initial": initial_skill, "best": state.best.text, "final": state.current.text}
    done: dict[str, Pass] = {}
    with telemetry.stage(Stage.TEST):
        for text in named.values():
            if text not in done:
                done[text] = await passes.test(text)
        scored = {name: (text, done[text]) for name, text in named.items()}
        await _tell(state, Stage.TEST, scored, publisher, telemetry)
    initial, best, final = (tried.score for _, tried in scored.values())
    scores = ScoresOnTest(initial=initial, best=best, final=final)
    return replace(state, test=scores)


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
