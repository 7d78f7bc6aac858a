"""The learning rate: how many edits a step may apply."""

from __future__ import annotations

import math

SCHEDULERS = ("constant", "linear", "cosine")


def learning_rate(scheduler: str, step: int, total_steps: int, start: int, floor: int) -> int:
    """Edits allowed at `step` (0-based; steps past the last count as the last), in [floor, start].

    `t = step / (total_steps - 1)`, rounded half to even (system A); `start` when there is one step only. The scheduler's
    name ignores case. Raises ValueError for an unknown scheduler or when not 1 <= floor <= start, step >= 0, total >= 1.
    """
    name = scheduler.lower()
    if name not in SCHEDULERS:
        raise ValueError(f"unknown scheduler {scheduler!r}: use one of {', '.join(SCHEDULERS)}")
    if step < 0 or total_steps < 1:
        raise ValueError(f"step must be at least 0 and total_steps at least 1, not {step} and {total_steps}")
    if not 1 <= floor <= start:
        raise ValueError(f"1 <= floor <= start must hold, not floor {floor}, start {start}")
    if name == "constant" or total_steps == 1:
        return start
    t = min(step, total_steps - 1) / (total_steps - 1)
    value = (
        start - t * (start - floor)
        if name == "linear"
        else floor + (start - floor) * 0.5 * (1.0 + math.cos(math.pi * t))
    )
    return round(min(max(value, floor), start))
