"""What a run of a task will take: calls, tokens, money and time, each from low to high."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.application.prices import cost_of
from burnish.application.usage import UsageNote
from burnish.domain.forecast import CallForecast, ItemCounts, forecast_calls
from burnish.domain.ranges import Range
from burnish.domain.rollouts import SPLITS, TEST, TRAIN, VALIDATION, Rollout, RolloutBatch
from burnish.domain.text_size import CHARACTERS_A_TOKEN, count_tokens
from burnish.domain.token_forecast import (
    PromptSizes,
    RoleTokens,
    TokenForecast,
    forecast_tokens,
)
from burnish.infrastructure.optimizer.chat_proposer import COMPLAINT_TOKENS, TRAJECTORY_TOKENS
from burnish.infrastructure.optimizer.trajectories import TrajectoryLimits, show_rollouts
from burnish.infrastructure.tasks.chat_runner import trajectory_of
from burnish.infrastructure.tasks.items import Item
from burnish.presentation.settings.environment import Role
from burnish.presentation.task import SIMULATED, Task

EDIT_TOKENS = 50
"""The most an edit usually adds to the skill: two or three sentences."""

SIMULATED_EDIT_TOKENS = 25
"""The same of the simulated coach, whose edits are a rule line each."""

REASON_CHARACTERS = 160
"""Of why an item failed, as the scorer says it to the optimizer."""

ASKS = 2
"""Calls for one answer of the optimizer: one more when the first cannot be read. A simulated one is always readable."""

SIMULATED_SECONDS = Range(0.0002, 0.02)
"""One call of a simulated model, with what is kept of it."""

START_SECONDS = Range(0.3, 3.0)
"""Until a real model begins to answer."""

TOKENS_A_SECOND = Range(40.0, 200.0)
"""How fast it writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run will take; `cost` is None when a model that is used has no known price."""

    calls: CallForecast
    tokens: TokenForecast
    cost: Range[Decimal] | None
    seconds: Range[float]


def forecast_of(task: Task) -> Forecast:
    """The forecast of a whole run: all but the time follows from what makes the task the task it is, and the prices."""
    counts = ItemCounts(train=task.items[TRAIN], val=task.items[VALIDATION], test=task.items[TEST])
    calls = forecast_calls(task.config, counts, asks=1 if _is_simulated(task, Role.OPTIMIZER) else ASKS)
    tokens = forecast_tokens(task.config, calls, prompt_sizes(task))
    return Forecast(calls=calls, tokens=tokens, cost=_cost(task, tokens), seconds=_seconds(task, calls))


def prompt_sizes(task: Task) -> PromptSizes:
    """The sizes of the task's own prompts, with its initial skill."""
    reflection = ReflectionInput(
        current_skill=task.initial_skill,
        rollouts=(),
        include_successes=not task.config.failure_only,
        edit_budget=task.config.lr_start,
        focus=Focus.FAILURES,
        update_mode=task.config.update_mode,
    )
    question = task.optimizer.proposer.request(reflection)
    return PromptSizes(
        rollouts={split: [_asked(task, split, item) for item in task.runner.items(split)] for split in SPLITS},
        reflect=count_tokens(len(question.system) + len(question.user)),
        shown=[_shown(task, item) for item in task.runner.items(TRAIN)],
        edit=SIMULATED_EDIT_TOKENS if _is_simulated(task, Role.OPTIMIZER) else EDIT_TOKENS,
        complaint=COMPLAINT_TOKENS,
        target=task.sizes[Role.TARGET],
        optimizer=task.sizes[Role.OPTIMIZER],
    )


def _asked(task: Task, split: str, item: Item) -> int:
    request = task.runner.request(task.initial_skill, RolloutBatch(split), item.item_id)
    return count_tokens(len(request.system) + len(request.user))


def _shown(task: Task, item: Item) -> Range[int]:
    """What a rollout adds to the optimizer's prompt: solved in few words, or failed in many."""
    answer = task.sizes[Role.TARGET].answer
    trajectory = trajectory_of(task.runner.request(task.initial_skill, RolloutBatch(TRAIN), item.item_id), "")
    rollout = Rollout(item.item_id, 1.0, 1.0, trajectory=trajectory, task_type=item.task_type)
    characters = len(show_rollouts((rollout,), TrajectoryLimits(tokens=TRAJECTORY_TOKENS)))
    room = max(TRAJECTORY_TOKENS * CHARACTERS_A_TOKEN - len(trajectory), 0)
    return Range(
        characters // CHARACTERS_A_TOKEN,
        count_tokens(characters + REASON_CHARACTERS + min(answer.high * CHARACTERS_A_TOKEN, room)),
    )


def _is_simulated(task: Task, role: Role) -> bool:
    return task.models[role].startswith(SIMULATED)


def _cost(task: Task, tokens: TokenForecast) -> Range[Decimal] | None:
    roles = {Role.TARGET: tokens.target, Role.OPTIMIZER: tokens.optimizer}
    low = cost_of((_note(role, used, is_high=False) for role, used in roles.items()), task.prices)
    high = cost_of((_note(role, used, is_high=True) for role, used in roles.items()), task.prices)
    return None if low is None or high is None else Range(low, high)


def _note(role: Role, used: RoleTokens, *, is_high: bool) -> UsageNote:
    if is_high:
        return UsageNote(role.value, used.prompt.high, used.completion.high)
    return UsageNote(role.value, used.prompt.low, used.completion.low)


def _seconds(task: Task, calls: CallForecast) -> Range[float]:
    """Rollouts run `workers` at a time, and a block of them waits for its last; the optimizer is asked in between."""
    target, optimizer = _call_seconds(task, Role.TARGET), _call_seconds(task, Role.OPTIMIZER)
    rounds = [
        Range(
            max(stage.rollouts.low / task.workers, stage.waits.low),
            (stage.rollouts.high - stage.waits.high) / task.workers + stage.waits.high,
        )
        for stage in calls.stages.values()
    ]
    asked = calls.optimizer_calls
    return Range(
        sum(each.low for each in rounds) * target.low + asked.low * optimizer.low,
        sum(each.high for each in rounds) * target.high + asked.high * optimizer.high,
    )


def _call_seconds(task: Task, role: Role) -> Range[float]:
    """How long one call takes: a start, and the writing of its answer."""
    if _is_simulated(task, role):
        return SIMULATED_SECONDS
    answer = task.sizes[role].answer
    return Range(
        START_SECONDS.low + answer.low / TOKENS_A_SECOND.high, START_SECONDS.high + answer.high / TOKENS_A_SECOND.low
    )
