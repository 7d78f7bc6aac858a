"""Negative controls: what must not work does not, and the gate is what makes the difference."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.application.optimizer_ports import ReflectionInput
from burnish.domain.edits import apply_patch
from burnish.domain.patches import aggregate, select_top_k
from burnish.domain.rollouts import TRAIN, VALIDATION, RolloutBatch, batch_seed, plan_epoch, score_batch
from burnish.domain.schedule import learning_rate
from burnish.presentation.cli import run
from burnish.presentation.settings.environment import read_environment
from burnish.presentation.settings.loading import load_task
from burnish.presentation.task import Task, open_task

TASK = str(EXAMPLE / "task.yaml")


def trained(folder: Path, *options: str, task: str = TASK) -> dict[str, object]:
    given = ["--cfg-options", *options] if options else []
    assert run(["train", task, "--out-root", str(folder), *given]) == 0
    summary: dict[str, object] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return summary


def coach(useful: float, useless: float, harmful: float) -> tuple[str, ...]:
    shares = {"useful": useful, "useless": useless, "harmful": harmful}
    return tuple(f"model.simulated.{name}={share}" for name, share in shares.items())


def permute_answers(folder: Path) -> None:
    """Give every item of a split another item's answer."""
    for split in ("train", "val", "test"):
        path = folder / "items" / split / "items.jsonl"
        items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        answers = [item["answer"] for item in items]
        random.Random(split).shuffle(answers)
        for item, answer in zip(items, answers, strict=True):
            item["answer"] = answer
        path.write_text("".join(f"{json.dumps(item)}\n" for item in items), encoding="utf-8")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_coach_with_only_useless_edits_gets_nothing_accepted(seed: int, tmp_path: Path) -> None:
    summary = trained(tmp_path, *coach(0.0, 1.0, 0.0), f"train.seed={seed}", "optimizer.use_slow_update=false")
    assert summary["has_accepted_any"] is False
    assert summary["best_score"] == 0.0
    assert summary["selected_score"] == summary["baseline_score"]
    assert (tmp_path / "best_skill.md").read_bytes() == (EXAMPLE / "skill.md").read_bytes()


def test_the_slow_update_alone_is_no_progress_either(tmp_path: Path) -> None:
    assert trained(tmp_path, *coach(0.0, 1.0, 0.0))["has_accepted_any"] is False


def test_permuted_answers_teach_nothing(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    permute_answers(tmp_path / "task")
    summary = trained(tmp_path / "run", task=str(tmp_path / "task" / "task.yaml"))
    test = summary["test"]
    assert isinstance(test, dict)
    assert test["best"]["hard"] - test["initial"]["hard"] < 0.1


async def ungated(task: Task) -> float:
    """The same proposals without a gate, for comparison only: the validation score where that leads."""
    config, skill = task.config, task.initial_skill
    items = tuple(await task.runner.item_ids(TRAIN))
    for step in range(config.total_steps):
        epoch, place = step // config.steps_per_epoch + 1, step % config.steps_per_epoch
        plan = plan_epoch(
            items,
            seed=config.seed,
            epoch=epoch,
            batch_size=config.train_batch_size,
            batches=config.steps_per_epoch,
        )
        seed = batch_seed(config.seed, TRAIN, epoch, place + 1)
        ids = tuple(planned.item_id for planned in plan[place])
        rollouts = await task.runner.run(skill, RolloutBatch(TRAIN, seed=seed, item_ids=ids, repeat=str(epoch)))
        budget = learning_rate(config.lr_scheduler, step, config.total_steps, config.lr_start, config.lr_min)
        reflection = ReflectionInput(
            current_skill=skill,
            rollouts=tuple(rollouts),
            edit_budget=budget,
            seed=batch_seed(config.seed, "reflect", epoch, step + 1),
        )
        patch = await task.optimizer.proposer.propose(reflection)
        skill = apply_patch(skill, select_top_k(aggregate((patch,)), budget)).content
    held_out = tuple(await task.runner.item_ids(VALIDATION))
    return score_batch(await task.runner.run(skill, RolloutBatch(VALIDATION, item_ids=held_out))).hard


@pytest.mark.parametrize("shares", [(0.0, 0.0, 1.0), (0.5, 0.0, 0.5)], ids=["only harmful", "half harmful"])
async def test_with_a_harmful_coach_the_gate_keeps_what_an_ungated_loop_loses(
    shares: tuple[float, float, float], tmp_path: Path
) -> None:
    options = coach(*shares)
    loaded = load_task(EXAMPLE / "task.yaml", options)
    async with open_task(loaded, read_environment(loaded.base_dir, {})) as task:
        without_gate = await ungated(task)
    summary = await asyncio.to_thread(trained, tmp_path, *options)
    selected, baseline = summary["selected_score"], summary["baseline_score"]
    assert isinstance(selected, float)
    assert isinstance(baseline, float)
    assert selected > without_gate
    assert selected >= baseline
