"""What is known or assumed of the models a task names: their prices, and how long their answers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from burnish.application.prices import Price
from burnish.domain.config import UpdateMode
from burnish.domain.optimizer_forecast import OptimizerStage
from burnish.domain.ranges import Range
from burnish.domain.token_forecast import EXACT, NOTE_TOKENS, NOTES_AN_ANALYST, ModelSizes
from burnish.infrastructure.models.prices import FREE, price_of
from burnish.infrastructure.optimizer.chat_optimizer import OptimizerLimits
from burnish.presentation.settings.environment import Role
from burnish.presentation.settings.model_section import Backend, Effort
from burnish.presentation.settings.sections import ModelPrice, TaskSettings

COUNT_IS_OFF = Range(0.8, 1.35)
"""By how much a real model's tokens differ from a quarter of the characters: English prose to code and numbers."""

LONGEST_ANSWER: Mapping[Effort | None, int] = {
    None: 1_000,
    "none": 500,
    "minimal": 500,
    "low": 1_000,
    "medium": 2_000,
    "high": 4_000,
    "xhigh": 8_000,
    "max": 16_000,
}
"""The agent's, in tokens with its reasoning, when the task sets no limit: a guess by reasoning effort."""

SHORTEST_ANSWER = 1
SHORTEST_PATCH = 30
"""The optimizer's shortest answer: no edits, and why."""

SHORTEST_GRADE = 5
"""The judge's shortest answer, with hardly a reason."""

LLM_JUDGE = "llm_judge"

SIMULATED_ANSWER = Range(1, 4)
SIMULATED_EDIT_TOKENS = 90
"""The most an edit of the simulated coach takes in its answer, as JSON."""


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A role's backend, and its model's name if it has one."""

    backend: Backend
    name: str | None

    @property
    def is_simulated(self) -> bool:
        """Whether there is no model at all."""
        return self.backend == "simulated"


def chosen_models(settings: TaskSettings) -> Mapping[Role, ChosenModel]:
    """The model of each role there is."""
    model = settings.model
    chosen = {
        Role.TARGET: ChosenModel(model.target_backend, model.target),
        Role.OPTIMIZER: ChosenModel(model.optimizer_backend, model.optimizer),
    }
    return {**chosen, Role.JUDGE: chosen_judge(settings)} if settings.env.scorer == LLM_JUDGE else chosen


def chosen_judge(settings: TaskSettings) -> ChosenModel:
    """The judge's model; without a backend of its own it is on the optimizer's."""
    model = settings.model
    if model.judge_backend is None:
        return ChosenModel(model.optimizer_backend, model.judge or model.optimizer)
    return ChosenModel(model.judge_backend, model.judge)


def role_prices(settings: TaskSettings) -> Mapping[str, Price]:
    """The prices by role; a role whose model has no known price is absent."""
    own = {name: _price(price) for name, price in settings.budget.prices.items()}
    prices = {
        role.value: FREE if model.is_simulated else price_of(model.name or "", own)
        for role, model in chosen_models(settings).items()
    }
    return {role: price for role, price in prices.items() if price is not None}


def unpriced_models(settings: TaskSettings) -> Mapping[str, str]:
    """The models by role whose price is not known; an empty name is one nobody has named."""
    priced = role_prices(settings)
    return {role.value: model.name or "" for role, model in chosen_models(settings).items() if role.value not in priced}


def role_sizes(settings: TaskSettings, limits: OptimizerLimits) -> Mapping[str, ModelSizes]:
    """How long answers are, and how far a count by characters is off, by role; `limits` are those of the optimizer."""
    return {
        Role.TARGET.value: _target_sizes(settings),
        Role.OPTIMIZER.value: _optimizer_sizes(settings, limits),
        Role.JUDGE.value: _judge_sizes(settings),
    }


def _price(price: ModelPrice) -> Price:
    return Price(prompt=_decimal(price.prompt), completion=_decimal(price.completion))


def _decimal(number: float) -> Decimal:
    """The number as it was written."""
    return Decimal(repr(number))


def _target_sizes(settings: TaskSettings) -> ModelSizes:
    model = settings.model
    if model.target_backend == "simulated":
        return ModelSizes(answer=SIMULATED_ANSWER)
    longest = model.target_max_tokens or LONGEST_ANSWER[model.target_reasoning_effort]
    return ModelSizes(answer=Range(SHORTEST_ANSWER, longest), off=COUNT_IS_OFF)


def _judge_sizes(settings: TaskSettings) -> ModelSizes:
    off = EXACT if chosen_judge(settings).is_simulated else COUNT_IS_OFF
    return ModelSizes(answer=Range(SHORTEST_GRADE, max(SHORTEST_GRADE, settings.model.judge_max_tokens)), off=off)


def _optimizer_sizes(settings: TaskSettings, limits: OptimizerLimits) -> ModelSizes:
    model = settings.model
    if model.optimizer_backend == "simulated":
        optimizer = settings.optimizer
        longest = SHORTEST_PATCH + optimizer.learning_rate * SIMULATED_EDIT_TOKENS
        longest += NOTES_AN_ANALYST * NOTE_TOKENS if optimizer.use_skill_aware_reflection else 0
        fewer = SHORTEST_PATCH + optimizer.skill_aware_consolidate_threshold * NOTE_TOKENS
        return ModelSizes(answer=Range(SHORTEST_PATCH // 2, longest), limits={OptimizerStage.CONSOLIDATE: fewer})
    is_whole = UpdateMode(settings.optimizer.skill_update_mode) is UpdateMode.FULL_REWRITE_MINIBATCH
    stages = {
        OptimizerStage.REFLECT: limits.rewrite if is_whole else limits.analyst,
        OptimizerStage.MERGE: limits.rewrite if is_whole else limits.merge,
        OptimizerStage.RATE: limits.learning_rate,
        OptimizerStage.RANK: limits.rank,
        OptimizerStage.REWRITE: limits.rewrite,
        OptimizerStage.CONSOLIDATE: limits.consolidate,
        OptimizerStage.GUIDANCE: limits.guidance,
        OptimizerStage.MEMORY: limits.memory,
        OptimizerStage.ONE_SHOT: limits.rewrite,
    }
    answer = Range(min(SHORTEST_PATCH, limits.analyst), limits.analyst)
    return ModelSizes(answer=answer, off=COUNT_IS_OFF, limits=stages)
