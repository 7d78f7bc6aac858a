"""What matters of a run, as JSON: how it ended, what it scored, what it cost, and what was expected of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from decimal import Decimal

from burnish.application.prices import TokenCount, cost_of
from burnish.domain.ranges import Number, Range
from burnish.domain.runs import TrainingRun, skill_hash
from burnish.presentation.forecasting import forecast_of
from burnish.presentation.settings.environment import Role
from burnish.presentation.task import Task

DIGITS = 6
"""Of money in US dollars, after the point."""


def summary_of(run: TrainingRun, task: Task) -> dict[str, object]:
    """The summary; it tells nothing of time, so that it is the same whenever it is written."""
    return {
        "run_id": run.run_id,
        "skill_id": run.skill_id,
        "task": task.name,
        "simulated": task.is_simulated,
        "models": dict(task.models),
        "items": dict(task.items),
        "seed": run.seed,
        "stop_reason": run.stop_reason,
        "cap": run.cap,
        "code": run.code,
        "has_accepted_any": run.has_accepted_any,
        "baseline_score": run.baseline_score,
        "best_score": run.best_score,
        "selected_score": run.selected_score,
        "final_score": run.final_score,
        "best_step": run.best_step,
        "promoted_final": run.promoted_final,
        "steps_executed": run.steps_executed,
        "consecutive_rejects": run.consecutive_rejects,
        "rollouts_saved": run.rollouts_saved,
        "usage": [{**asdict(total), "cost_usd": _cost((total,), task)} for total in run.usage],
        "cost_usd": _cost(run.usage, task),
        "forecast": _forecast(run, task),
        "warnings": list(run.warnings),
        "reasons": dict(sorted(Counter(record.reason.value for record in run.steps).items())),
        "test": None if run.test is None else asdict(run.test),
        "best_skill_hash": skill_hash(run.best_skill),
        "best_skill_characters": len(run.best_skill),
        "final_skill_hash": skill_hash(run.final_skill),
    }


def range_json(range_: Range[Number] | None, *, digits: int | None = None) -> dict[str, float | None]:
    """The range as JSON, rounded to so many digits; None: it is not known."""
    if range_ is None:
        return {"low": None, "high": None}
    return {"low": _number(range_.low, digits), "high": _number(range_.high, digits)}


def _number(number: float | Decimal, digits: int | None) -> float:
    if isinstance(number, Decimal):
        return float(number if digits is None else round(number, digits))
    return number if digits is None else round(number, digits)


def _cost(counts: Iterable[TokenCount], task: Task) -> float | None:
    """US dollars; None when a role that used tokens has no known price."""
    cost = cost_of(counts, task.prices)
    return None if cost is None else float(round(cost, DIGITS))


def _forecast(run: TrainingRun, task: Task) -> dict[str, dict[str, float | None]]:
    """What was expected, and what came of it as far as models told what they used."""
    forecast = forecast_of(task)
    calls = {role: sum(total.calls for total in run.usage if total.role == role.value) for role in Role}
    tokens = sum(total.prompt_tokens + total.completion_tokens for total in run.usage)
    return {
        "rollouts": {**range_json(forecast.calls.rollouts), "fact": calls[Role.TARGET]},
        "optimizer_calls": {**range_json(forecast.calls.optimizer_calls), "fact": calls[Role.OPTIMIZER]},
        "tokens": {**range_json(forecast.tokens.all), "fact": tokens},
        "cost_usd": {**range_json(forecast.cost, digits=DIGITS), "fact": _cost(run.usage, task)},
    }
