"""What a judge will read and write in a run, from low to high."""

from __future__ import annotations

from burnish.domain.forecast import CallForecast, RolloutStage
from burnish.domain.ranges import NOTHING, Range
from burnish.domain.text_size import CHARACTERS_A_TOKEN, count_tokens
from burnish.domain.token_forecast import RoleTokens
from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.judge_scorer import LlmJudge
from burnish.presentation.settings.environment import Role
from burnish.presentation.task import SIMULATED, Task

ASKS = 2
"""Calls for one grade: one more when the first cannot be read. A simulated one is always readable."""

_COMPLAINT_TOKENS = 1_100
"""What the second question adds to the first."""


def judge_tokens(task: Task, calls: CallForecast) -> RoleTokens:
    """The tokens of the calls that grade all rollouts; none for a scorer that is no model.

    Equal answers to an item are graded once, so `low` counts the items of the baseline only.
    """
    judge = task.judge
    if judge is None:
        return RoleTokens(prompt=NOTHING, completion=NOTHING)
    sizes, answer = task.sizes[Role.JUDGE], task.sizes[Role.TARGET].answer
    asks = 1 if task.models[Role.JUDGE].startswith(SIMULATED) else ASKS
    low_prompt = high_prompt = low_calls = high_calls = 0
    for stage, expected in calls.stages.items():
        items = task.runner.items(expected.split)
        if not items:
            continue
        if stage is RolloutStage.BASELINE and expected.passes.low:
            shortest = sorted(_read(judge, item, 0) for item in items)[: expected.items]
            low_prompt += sum(shortest)
            low_calls += expected.items * min(judge.calls(item) for item in items)
        longest = max(_read(judge, item, answer.high) for item in items)
        again = (asks - 1) * max(judge.calls(item) for item in items) * _COMPLAINT_TOKENS
        high_prompt += expected.rollouts.high * (asks * longest + again)
        high_calls += expected.rollouts.high * asks * max(judge.calls(item) for item in items)
    return RoleTokens(
        prompt=sizes.prompts(Range(low_prompt, high_prompt)), completion=sizes.answers(Range(low_calls, high_calls))
    )


def _read(judge: LlmJudge, item: Item, answer: int) -> int:
    """Tokens of all prompts about one answer of so many tokens."""
    requests = judge.requests("x" * (CHARACTERS_A_TOKEN * answer), item)
    return sum(count_tokens(len(request.system) + len(request.user)) for request in requests)
