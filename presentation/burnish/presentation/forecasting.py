"""What a run of a task will take: calls, tokens, money and time, each from low to high."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.application.prices import cost_of
from burnish.application.usage import UsageNote
from burnish.domain.forecast import CallForecast, ItemCounts, forecast_calls
from burnish.domain.optimizer_forecast import OptimizerStage
from burnish.domain.ranges import Range
from burnish.domain.rollouts import SPLITS, TEST, TRAIN, VALIDATION, Rollout, RolloutBatch
from burnish.domain.text_size import CHARACTERS_A_TOKEN, count_tokens
from burnish.domain.token_forecast import (
    PromptSizes,
    RoleTokens,
    TokenForecast,
    forecast_tokens,
)
from burnish.infrastructure.optimizer.chat_proposer import COMPLAINT_TOKENS
from burnish.infrastructure.optimizer.trajectories import TrajectoryLimits, show_rollouts
from burnish.infrastructure.tasks.chat_runner import trajectory_of
from burnish.infrastructure.tasks.items import Item
from burnish.presentation.judge_forecast import judge_tokens
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
    tokens = replace(forecast_tokens(task.config, calls, prompt_sizes(task)), judge=judge_tokens(task, calls))
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
        wants_notes=task.config.use_skill_aware_reflection,
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
    """What a rollout adds to the optimizer's prompt, as far as it is shown: solved in few words, or failed in many."""
    limits = TrajectoryLimits(
        tokens=task.limits.trajectory, view=task.limits.trajectory_view, obs_chars=task.limits.obs_chars
    )
    request = task.runner.request(task.initial_skill, RolloutBatch(TRAIN), item.item_id)
    longest = "x" * (min(task.sizes[Role.TARGET].answer.high, limits.tokens) * CHARACTERS_A_TOKEN)
    solved = Rollout(item.item_id, 1.0, 1.0, trajectory=trajectory_of(request, ""), task_type=item.task_type)
    failed = replace(solved, hard=0.0, soft=0.0, trajectory=trajectory_of(request, longest))
    short, long = (len(show_rollouts((rollout,), limits)) for rollout in (solved, failed))
    return Range(short // CHARACTERS_A_TOKEN, count_tokens(max(short, long) + REASON_CHARACTERS))


def _is_simulated(task: Task, role: Role) -> bool:
    return task.models[role].startswith(SIMULATED)


def _cost(task: Task, tokens: TokenForecast) -> Range[Decimal] | None:
    roles = {Role.TARGET: tokens.target, Role.OPTIMIZER: tokens.optimizer}
    if Role.JUDGE in task.models:
        roles[Role.JUDGE] = tokens.judge
    low = cost_of((_note(role, used, is_high=False) for role, used in roles.items()), task.prices)
    high = cost_of((_note(role, used, is_high=True) for role, used in roles.items()), task.prices)
    return None if low is None or high is None else Range(low, high)


def _note(role: Role, used: RoleTokens, *, is_high: bool) -> UsageNote:
    if is_high:
        return UsageNote(role.value, used.prompt.high, used.completion.high)
    return UsageNote(role.value, used.prompt.low, used.completion.low)


def _seconds(task: Task, calls: CallForecast) -> Range[float]:
    """Rollouts run `workers` at a time, and a block of them waits for its last; the optimizer is asked in between."""
    one = _call_seconds(task, Role.TARGET, task.sizes[Role.TARGET].answer)
    if Role.JUDGE in task.models:  # its calls about one answer run side by side
        judged = _call_seconds(task, Role.JUDGE, task.sizes[Role.JUDGE].answer)
        one = Range(one.low, one.high + judged.high)
    rounds = [_rounds(stage.rollouts, stage.waits, task.workers) for stage in calls.stages.values()]
    optimizer = [_optimizer_seconds(task, calls, stage) for stage in calls.optimizer]
    return Range(
        sum(each.low for each in rounds) * one.low + sum(each.low for each in optimizer),
        sum(each.high for each in rounds) * one.high + sum(each.high for each in optimizer),
    )


def _optimizer_seconds(task: Task, calls: CallForecast, stage: OptimizerStage) -> Range[float]:
    """The analysts of a step work `analyst_workers` at a time; everybody else is taken to work alone."""
    asked = calls.optimizer[stage]
    one = _call_seconds(task, Role.OPTIMIZER, task.sizes[Role.OPTIMIZER].answer_of(stage))
    waits = asked
    if stage is OptimizerStage.REFLECT:
        waits = Range(min(asked.low, calls.steps.low), min(asked.high, calls.steps.high * calls.asks))
    rounds = _rounds(asked, waits, task.analyst_workers)
    return Range(rounds.low * one.low, rounds.high * one.high)


def _rounds(asked: Range[int], waits: Range[int], workers: int) -> Range[float]:
    """How many calls follow one another, when so many run side by side, and so often the last of them is waited for."""
    return Range(max(asked.low / workers, waits.low), (asked.high - waits.high) / workers + waits.high)


def _call_seconds(task: Task, role: Role, answer: Range[int]) -> Range[float]:
    """How long one call takes: a start, and the writing of its answer."""
    if _is_simulated(task, role):
        return SIMULATED_SECONDS
    return Range(
        START_SECONDS.low + answer.low / TOKENS_A_SECOND.high, START_SECONDS.high + answer.high / TOKENS_A_SECOND.low
    )
