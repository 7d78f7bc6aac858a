"""`burnish estimate`, and `burnish train --dry-run`: what a run will take, and how it would begin, asking nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.application.proposing import analyst_budget
from burnish.domain.minibatches import split_minibatches
from burnish.domain.rollouts import TRAIN, Rollout, RolloutBatch, batch_seed, plan_epoch
from burnish.infrastructure.models.chat import ChatRequest
from burnish.infrastructure.tasks.chat_runner import trajectory_of
from burnish.infrastructure.tasks.items import Item
from burnish.presentation.forecasting import Forecast, forecast_of
from burnish.presentation.model_facts import unpriced_models
from burnish.presentation.settings.environment import read_environment
from burnish.presentation.settings.loading import load_task
from burnish.presentation.settings.models import fill_models
from burnish.presentation.task import Task, open_task

UNKNOWN_ANSWER = "[what the agent answers]"
UNKNOWN_REASON = "[what the scorer says of it]"

_SOME_SEED = 1
"""Where the task leaves the seed to be drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPrompts:
    """How a run begins: the first question to the agent, about the item, and the first to the optimizer.

    `is_example` tells that the seed will be drawn, so that the run may begin with other items.
    """

    item_id: str
    target: ChatRequest
    optimizer: ChatRequest
    is_example: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A task's forecast; `unpriced` are the models, by role, that no price is known of."""

    task: Task
    forecast: Forecast
    unpriced: Mapping[str, str]
    prompts: FirstPrompts


async def estimate_task(task_file: Path, overrides: Sequence[str], environ: Mapping[str, str]) -> Estimate:
    """Forecast a run of the task. Raises SettingsError or DataError for bad input; needs no key and no network."""
    loaded = load_task(task_file, overrides)
    environment = read_environment(loaded.base_dir, environ)
    loaded = fill_models(loaded, environment)
    async with open_task(loaded, environment, offline=True) as task:
        return Estimate(
            task=task,
            forecast=forecast_of(task),
            unpriced=unpriced_models(loaded.settings),
            prompts=first_prompts(task),
        )


def first_prompts(task: Task) -> FirstPrompts:
    """The prompts of the first step; in the optimizer's, the agent is taken to fail everywhere."""
    config = task.config
    seed = config.seed or _SOME_SEED
    items = {item.item_id: item for item in task.runner.items(TRAIN)}
    size = config.train_batch_size * config.accumulation
    (planned,) = plan_epoch(tuple(items), seed=seed, epoch=1, batch_size=size, batches=1)
    batch = RolloutBatch(TRAIN, size=1, seed=batch_seed(seed, TRAIN, 1, 1), repeat="1")
    failed = (_unanswered(task, batch, items[each.item_id]) for each in planned)
    reflect_seed = batch_seed(seed, "reflect", 1, 1)
    first_minibatch, *_ = split_minibatches(failed, size=config.minibatch_size, seed=reflect_seed)
    reflection = ReflectionInput(
        current_skill=task.initial_skill,
        rollouts=first_minibatch.rollouts,
        include_successes=not config.failure_only,
        edit_budget=analyst_budget(config, schedule_step=0, total_steps=config.total_steps),
        seed=batch_seed(seed, "reflect", 1, 1, 0),
        focus=Focus.FAILURES,
        update_mode=config.update_mode,
    )
    first = planned[0].item_id
    return FirstPrompts(
        item_id=first,
        target=task.runner.request(task.initial_skill, batch, first),
        optimizer=task.optimizer.proposer.request(reflection),
        is_example=config.seed == 0,
    )


def _unanswered(task: Task, batch: RolloutBatch, item: Item) -> Rollout:
    request = task.runner.request(task.initial_skill, batch, item.item_id)
    return Rollout(
        item.item_id,
        hard=0.0,
        soft=0.0,
        trajectory=trajectory_of(request, UNKNOWN_ANSWER),
        task_type=item.task_type,
        fail_reason=UNKNOWN_REASON,
    )
