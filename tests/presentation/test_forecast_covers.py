"""The forecast against fifty runs that then took place, on simulated models."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import cast

from ticket_server import EXAMPLE

from burnish.application.train_skill import TrainSkill
from burnish.presentation.app import open_app
from burnish.presentation.settings.environment import Environment
from burnish.presentation.settings.loading import load_task
from burnish.presentation.summary import summary_of
from burnish.presentation.task import open_task

SEEDS = range(1, 51)
COUNTED = ("rollouts", "optimizer_calls", "tokens")
NOWHERE = Environment(process={}, dotenv={})
SHARES = ((0.7, 0.2, 0.1), (1.0, 0.0, 0.0), (0.2, 0.2, 0.6), (0.0, 0.8, 0.2), (0.4, 0.6, 0.0))
"""Of useful, useless and harmful edits."""

MODES = ("patch", "patch", "rewrite_from_suggestions", "full_rewrite_minibatch")

Expected = Mapping[str, float]


def varied(seed: int) -> list[str]:
    """Other settings for each seed, in no common rhythm."""
    useful, useless, harmful = SHARES[seed % 5]
    return [
        f"train.seed={seed}",
        f"model.simulated.seed={seed}",
        f"model.simulated.noise={(0.0, 0.05, 0.2)[seed % 3]}",
        f"model.simulated.useful={useful}",
        f"model.simulated.useless={useless}",
        f"model.simulated.harmful={harmful}",
        f"train.num_epochs={1 + seed % 4}",
        f"train.steps_per_epoch={2 + seed % 3}",
        f"train.batch_size={4 + seed % 7}",
        f"train.accumulation={(1, 1, 2)[seed % 3]}",
        f"gradient.minibatch_size={(8, 4, 2, 3)[seed % 4]}",
        f"gradient.merge_batch_size={(8, 2)[seed // 4 % 2]}",
        f"optimizer.lr_control_mode={('fixed', 'autonomous', 'none')[seed // 2 % 3]}",
        f"optimizer.skill_update_mode={MODES[seed // 3 % 4]}",
        f"optimizer.longitudinal_pair_policy={('mixed', 'changed', 'unchanged')[seed // 5 % 3]}",
        f"train.patience={('null', 3, 5)[seed // 2 % 3]}",
        f"optimizer.slow_update_samples={4 + seed % 5}",
        f"optimizer.slow_update_gate_with_selection={('false', 'true')[seed // 7 % 2]}",
        f"optimizer.use_slow_update={('true', 'true', 'false')[seed // 3 % 3]}",
        f"evaluation.gate_mode={('strict', 'two_split')[seed // 5 % 2]}",
        f"evaluation.sel_env_num={8 + seed % 9}",
        f"evaluation.block_size={4 + seed % 5}",
        f"evaluation.test_env_num={6 + seed % 6}",
        f"gradient.failure_only={('false', 'false', 'false', 'true')[seed // 4 % 4]}",
    ]


async def trained(overrides: list[str]) -> Mapping[str, Expected]:
    """The forecast section of a run's summary."""
    loaded = load_task(EXAMPLE / "task.yaml", overrides)
    async with (
        open_task(loaded, NOWHERE) as task,
        open_app(**task.ports) as app,
    ):
        result = await app.send(TrainSkill("run", task.skill_id, task.initial_skill, task.config))
        return cast("Mapping[str, Expected]", summary_of(result.value, task)["forecast"])


async def test_the_forecast_covers_what_happens_and_is_of_use() -> None:
    seen = [await trained(varied(seed)) for seed in SEEDS]
    covered = {
        name: sum(each[name]["low"] <= each[name]["fact"] <= each[name]["high"] for each in seen) for name in COUNTED
    }
    above = {name: statistics.median(each[name]["high"] / each[name]["fact"] for each in seen) for name in COUNTED}
    assert covered["rollouts"] == covered["optimizer_calls"] == len(seen)
    assert covered["tokens"] >= 0.8 * len(seen)
    # a range that covers everything because it is wide would be of no use
    assert above["rollouts"] <= 3
    assert above["optimizer_calls"] <= 2.5
    assert above["tokens"] <= 3


async def test_the_forecast_covers_notes_their_consolidation_and_the_scoring_after_them() -> None:
    noting = ["optimizer.use_skill_aware_reflection=true", "model.simulated.noise=0.3"]
    seen = [
        await trained([*varied(seed), *noting, f"optimizer.skill_aware_consolidate_threshold={seed % 3}"])
        for seed in SEEDS
    ]
    for name in ("rollouts", "optimizer_calls", "tokens"):
        assert all(each[name]["low"] <= each[name]["fact"] <= each[name]["high"] for each in seen), name
