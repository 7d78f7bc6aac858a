"""The console example: a whole training run on deterministic stubs, no model and no key needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.application.train_skill import TrainSkill
from burnish.domain.config import TrainSkillConfig
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.rollouts import TRAIN, VALIDATION, Rollout, RolloutBatch
from burnish.domain.runs import TrainingRun
from burnish.presentation.app import open_app
from burnish.presentation.trail import Trail

START = """\
# Answering refund mails

- Be friendly.
- Thank the customer for writing."""

ASK_ORDER = "- Ask for the order number when it is missing."
NAME_PERIOD = "- Say that the money arrives within 14 days."
NAME_PERIOD_WRONG = "- Say that the money arrives soon."
OFFER_EXCHANGE = "- Offer an exchange before a refund."
THANK = "- Thank the customer for writing."

_NEEDS = {
    "no-order-number": ASK_ORDER,
    "order-number-in-picture": ASK_ORDER,
    "asks-when": NAME_PERIOD,
    "second-reminder": NAME_PERIOD,
    "wrong-size": OFFER_EXCHANGE,
    "just-thanks": THANK,
}
"""The cases, and the rule without which the agent gets each of them wrong."""

_PROPOSALS = (
    (Edit(EditOp.APPEND, ASK_ORDER, support_count=2),),
    (
        Edit(EditOp.INSERT_AFTER, f"\n{NAME_PERIOD}", target=ASK_ORDER, support_count=2),
        Edit(EditOp.REPLACE, "- Apologise once.", target="- Apologise often."),
    ),
    (Edit(EditOp.REPLACE, NAME_PERIOD_WRONG, target=NAME_PERIOD),),
    (Edit(EditOp.APPEND, OFFER_EXCHANGE), Edit(EditOp.APPEND, f"{OFFER_EXCHANGE}\n")),
    (Edit(EditOp.APPEND, "- Use short sentences."),),
    (Edit(EditOp.DELETE, target=THANK),),
)


class StubAgent:
    """Solves a case exactly when the skill holds its rule; a soft score of 0.5 is for effort."""

    fingerprint = "stub-agent"

    async def item_ids(self, split: str) -> Sequence[str]:
        """The same cases twice: train and validation."""
        return [f"{split}/{case}" for case in _NEEDS] if split in {TRAIN, VALIDATION} else []

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        """Look for the rule of each case."""
        return [self._attempt(skill, item_id) for item_id in batch.item_ids]

    def _attempt(self, skill: str, item_id: str) -> Rollout:
        solved = _NEEDS[item_id.partition("/")[2]] in skill
        return Rollout(item_id, hard=float(solved), soft=1.0 if solved else 0.5)


class StubOptimizer:
    """Proposes the next of a fixed list of patches, good and bad ones."""

    def __init__(self) -> None:
        self._asked = 0

    async def propose(self, reflection: ReflectionInput) -> Patch:
        """The edits of the next step, from its failures; successes teach it nothing."""
        if reflection.focus is Focus.SUCCESSES:
            return Patch()
        patch = Patch(_PROPOSALS[self._asked % len(_PROPOSALS)], reasoning="scripted")
        self._asked += 1
        return patch


async def run_example(write: Callable[[str], None]) -> TrainingRun:
    """Train the example's skill over 2 epochs of 3 steps, and write the trail and the outcome."""
    config = TrainSkillConfig(
        epochs=2, steps_per_epoch=3, lr_start=3, train_batch_size=6, val_batch_size=6, patience=3, seed=42
    )
    async with open_app(rollouts=StubAgent(), proposer=StubOptimizer(), sinks=(Trail(write),)) as app:
        result = await app.send(
            TrainSkill(run_id="example", skill_id="refund-mails", initial_skill=START, config=config)
        )
    run = result.value
    for line in (
        "",
        f"stopped: {run.stop_reason}, {run.steps_executed} steps",
        f"has_accepted_any: {str(run.has_accepted_any).lower()}",
        f"best score: {run.best_score:.2f} (step {run.best_step}), baseline {run.baseline_score or 0.0:.2f}",
        "best skill:",
        "",
        *(f"    {line}".rstrip() for line in run.best_skill.splitlines()),
    ):
        write(line)
    return run
