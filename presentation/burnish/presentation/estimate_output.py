"""How an estimate is printed: lines for people, one JSON object for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator

import typer

from burnish.domain.ranges import Range
from burnish.domain.token_forecast import RoleTokens
from burnish.infrastructure.models.chat import ChatRequest
from burnish.presentation.estimate import Estimate, FirstPrompts
from burnish.presentation.settings.environment import Role
from burnish.presentation.settings.errors import shown
from burnish.presentation.summary import DIGITS, range_json

_MINUTE, _HOUR = 60, 3600


def print_estimate(estimate: Estimate, *, as_json: bool, with_prompts: bool) -> None:
    """Print the forecast, perhaps with the first prompts."""
    if as_json:
        prompts = {"prompts": _prompts_json(estimate.prompts)} if with_prompts else {}
        typer.echo(json.dumps({**_json(estimate), **prompts}, ensure_ascii=False))
        return
    for line in _lines(estimate):
        typer.echo(line)
    for line in _prompt_lines(estimate.prompts) if with_prompts else ():
        typer.echo(line)


def _lines(estimate: Estimate) -> Iterator[str]:
    task, calls, tokens = estimate.task, estimate.forecast.calls, estimate.forecast.tokens
    items = ", ".join(f"{count} {split}" for split, count in task.items.items())
    yield f"task {task.name}: {items} items; steps: {_whole(calls.steps)}"
    yield f"rollouts: {_whole(calls.rollouts)}"
    for stage, expected in calls.stages.items():
        if expected.rollouts.high:
            yield f"  {stage.value.replace('_', ' ')}: {_whole(expected.rollouts)}"
    yield f"optimizer calls: {_whole(calls.optimizer_calls)}"
    for asked, number in calls.optimizer.items():
        if number.high:
            yield f"  {asked.value.replace('_', ' ')}: {_whole(number)}"
    yield f"tokens: {_whole(tokens.all)}"
    for role, used in _by_role(estimate).items():
        yield f"  {role.value}: {_whole(used.prompt)} prompt, {_whole(used.completion)} completion"
    yield f"cost: {_cost(estimate)}"
    seconds = estimate.forecast.seconds
    yield f"time: {_time(seconds.low)} – {_time(seconds.high)}"


def _by_role(estimate: Estimate) -> dict[Role, RoleTokens]:
    tokens = estimate.forecast.tokens
    used = {Role.TARGET: tokens.target, Role.OPTIMIZER: tokens.optimizer}
    return {**used, Role.JUDGE: tokens.judge} if Role.JUDGE in estimate.task.models else used


def _whole(numbers: Range[int]) -> str:
    return str(numbers.low) if numbers.low == numbers.high else f"{numbers.low} – {numbers.high}"


def _cost(estimate: Estimate) -> str:
    cost = estimate.forecast.cost
    if cost is None:
        return f"unknown: {'; '.join(_unpriced(role, name) for role, name in estimate.unpriced.items())}"
    if cost.high == 0:
        return "$0"
    digits = 2 if cost.low >= 1 else 4
    return f"${cost.low:.{digits}f} – ${cost.high:.{digits}f}"


def _unpriced(role: str, name: str) -> str:
    return f"{shown(name)} has no known price: add it to budget.prices" if name else f"model.{role} names no model"


def _time(seconds: float) -> str:
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def _prompt_lines(prompts: FirstPrompts) -> Iterator[str]:
    drawn = "; the seed is drawn later, so it may be another" if prompts.is_example else ""
    yield f"\nfirst target prompt (train item {shown(prompts.item_id)}{drawn})"
    yield from _request_lines(prompts.target)
    yield "\nfirst optimizer prompt (as if the agent failed every item)"
    yield from _request_lines(prompts.optimizer)


def _request_lines(request: ChatRequest) -> Iterator[str]:
    yield "--- system"
    yield request.system
    yield "--- user"
    yield request.user


def _json(estimate: Estimate) -> dict[str, object]:
    task, forecast = estimate.task, estimate.forecast
    calls, tokens = forecast.calls, forecast.tokens
    return {
        "task": task.name,
        "simulated": task.is_simulated,
        "items": dict(task.items),
        "steps": range_json(calls.steps),
        "rollouts": {
            **range_json(calls.rollouts),
            "stages": {stage.value: range_json(each.rollouts) for stage, each in calls.stages.items()},
        },
        "optimizer_calls": {
            **range_json(calls.optimizer_calls),
            "stages": {stage.value: range_json(each) for stage, each in calls.optimizer.items()},
        },
        "tokens": {
            **range_json(tokens.all),
            **{role.value: _role_json(used) for role, used in _by_role(estimate).items()},
        },
        "cost_usd": range_json(forecast.cost, digits=DIGITS),
        "unpriced": dict(estimate.unpriced),
        "seconds": range_json(forecast.seconds, digits=3),
    }


def _role_json(used: RoleTokens) -> dict[str, object]:
    return {"prompt": range_json(used.prompt), "completion": range_json(used.completion)}


def _prompts_json(prompts: FirstPrompts) -> dict[str, object]:
    return {
        "item": prompts.item_id,
        "is_example": prompts.is_example,
        "target": {"system": prompts.target.system, "user": prompts.target.user},
        "optimizer": {"system": prompts.optimizer.system, "user": prompts.optimizer.user},
    }
