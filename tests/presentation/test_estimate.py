"""`burnish estimate` and `burnish train --dry-run`: what they print, and that they ask nobody."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from ticket_server import EXAMPLE

from burnish.application.optimizer_ports import ReflectionInput
from burnish.application.train_skill import TrainSkill
from burnish.domain.edits import Patch
from burnish.domain.rollouts import TRAIN, Rollout, RolloutBatch
from burnish.presentation.app import open_app
from burnish.presentation.cli import run
from burnish.presentation.estimate import UNKNOWN_ANSWER, UNKNOWN_REASON, first_prompts
from burnish.presentation.forecasting import forecast_of
from burnish.presentation.settings.environment import Environment
from burnish.presentation.settings.loading import load_task
from burnish.presentation.task import Task, open_task

TASK = str(EXAMPLE / "task.yaml")
REAL = ("model.target_backend=openai_chat", "model.optimizer_backend=openai_chat")
NAMED = (*REAL, "model.target=gpt-4o-mini-2024-07-18", "model.optimizer=claude-sonnet-4-5")


@pytest.fixture(autouse=True)
def nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*arguments: object) -> NoReturn:
        pytest.fail("somebody was asked")

    monkeypatch.setattr(socket.socket, "connect", connect)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_COMPATIBLE_BASE_URL", "OPENAI_COMPATIBLE_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(name="printed")
def _printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(capsys)


class Printed:
    """Runs a command that ends well, and gives what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, command: str, *options: str, task: str = TASK, flags: tuple[str, ...] = ()) -> str:
        assert run([command, task, *flags, *(("--cfg-options", *options) if options else ())]) == 0
        told = self._capsys.readouterr()
        assert told.err == ""
        return told.out


def test_the_estimate_of_the_example(printed: Printed) -> None:
    lines = printed("estimate").splitlines()
    assert lines[:9] == [
        "task ticket-routing: 80 train, 48 val, 58 test items; steps: 10",
        "rollouts: 286 – 1104",
        "  baseline: 48",
        "  train: 160",
        "  candidates: 0 – 480",
        "  slow update: 20 – 40",
        "  rescore: 0 – 48",
        "  final: 0 – 96",
        "  test: 58 – 232",
    ]
    assert [line.partition(":")[0] for line in lines[9:]] == [
        "optimizer calls",
        "  reflect",
        "  merge",
        "  rank",
        "  guidance",
        "  memory",
        "  one shot",
        "tokens",
        "  target",
        "  optimizer",
        "cost",
        "time",
    ]
    assert lines[-2:] == ["cost: $0", "time: 0 s – 5 s"]


def test_real_models_have_a_price_and_need_no_key(printed: Printed) -> None:
    lines = printed("estimate", *NAMED).splitlines()
    assert lines[-2].startswith("cost: $0.1")
    assert " – $" in lines[-2]
    assert lines[-1].endswith("min")
    assert "optimizer calls: 24 – 128" in lines


def test_models_without_a_price_are_told_with_the_remedy(printed: Printed) -> None:
    out = printed("estimate", *REAL, "model.target=mine", "model.optimizer_backend=openai_compatible")
    assert "cost: unknown: mine has no known price: add it to budget.prices; model.optimizer names no model\n" in out


def test_own_prices_are_used(printed: Printed, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    file = tmp_path / "task" / "task.yaml"
    prices = "budget: {prices: {mine: {prompt: 0.5, completion: 2}, gpt-5.5: {prompt: 0, completion: 0}}}\n"
    file.write_text(file.read_text(encoding="utf-8") + prices, encoding="utf-8")
    options = (*REAL, "model.target=mine", "model.target_max_tokens=10", "model.optimizer=gpt-5.5")
    told = json.loads(printed("estimate", *options, task=str(file), flags=("--json",)))
    target = told["tokens"]["target"]
    for end in ("low", "high"):
        expected = (target["prompt"][end] * 0.5 + target["completion"][end] * 2) / 1_000_000
        assert told["cost_usd"][end] == pytest.approx(expected, abs=1e-6)
    assert target["completion"]["high"] == 10 * told["rollouts"]["high"]
    assert told["unpriced"] == {}


def test_the_estimate_for_machines(printed: Printed) -> None:
    told = json.loads(printed("estimate", *REAL, "model.target=mine", flags=("--json",)))
    assert told["task"] == "ticket-routing"
    assert told["simulated"] is False
    assert told["steps"] == {"low": 10, "high": 10}
    assert told["rollouts"]["low"] == sum(stage["low"] for stage in told["rollouts"]["stages"].values()) == 286
    counted = told["optimizer_calls"]
    assert (counted["low"], counted["high"]) == (24, 128)
    assert counted["stages"]["reflect"] == {"low": 20, "high": 60}
    assert sum(stage["high"] for stage in counted["stages"].values()) == 128
    assert told["cost_usd"] == {"low": None, "high": None}
    assert told["unpriced"] == {"target": "mine"}
    assert 0 < told["seconds"]["low"] < told["seconds"]["high"]
    assert "prompts" not in told


def test_more_workers_take_less_time_only(printed: Printed) -> None:
    alone, many = (json.loads(printed("estimate", f"env.workers={n}", flags=("--json",))) for n in (1, 64))
    assert many.pop("seconds")["high"] < alone.pop("seconds")["high"]
    assert alone == many


def test_analysts_side_by_side_take_less_time_only(printed: Printed) -> None:
    alone, many = (
        json.loads(
            printed("estimate", *NAMED, "gradient.minibatch_size=1", f"gradient.analyst_workers={n}", flags=("--json",))
        )
        for n in (1, 16)
    )
    less, more = many.pop("seconds"), alone.pop("seconds")
    assert less["low"] < more["low"]
    assert less["high"] < more["high"]
    assert alone == many


@pytest.mark.parametrize(
    ("options", "longest"),
    [
        ((), {"reflect": 4_096, "merge": 8_192, "rank": 4_096, "guidance": 8_192, "memory": 4_096}),
        (
            ("optimizer.skill_update_mode=full_rewrite_minibatch",),
            {"reflect": 16_384, "merge": 16_384, "guidance": 8_192, "memory": 4_096},
        ),
        (
            ("model.optimizer_max_tokens=500",),
            {"reflect": 500, "merge": 500, "rank": 500, "guidance": 500, "memory": 500},
        ),
    ],
)
def test_no_role_writes_more_than_it_may(printed: Printed, options: tuple[str, ...], longest: dict[str, int]) -> None:
    told = json.loads(printed("estimate", *NAMED, *options, "evaluation.one_shot_baseline=false", flags=("--json",)))
    calls = {stage: each["high"] for stage, each in told["optimizer_calls"]["stages"].items() if each["high"]}
    assert set(calls) == set(longest)
    assert told["tokens"]["optimizer"]["completion"]["high"] == sum(calls[stage] * longest[stage] for stage in calls)


@pytest.mark.parametrize(
    "option", ["gradient.trajectory_view=full", "gradient.trajectory_view=paper", "gradient.obs_chars=200"]
)
async def test_what_is_shown_of_long_rollouts_is_forecast_as_it_is_cut(tmp_path: Path, option: str) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    for file in tmp_path.glob("task/items/*/items.jsonl"):
        items = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        longer = [item | {"question": item["question"] + "\n" + "And so on. " * 1_500} for item in items]
        file.write_text("\n".join(map(json.dumps, longer)) + "\n", encoding="utf-8")
    small = ("train.num_epochs=1", "train.steps_per_epoch=2", "evaluation.eval_test=false", "evaluation.sel_env_num=4")
    loaded = load_task(tmp_path / "task" / "task.yaml", [*small, option])
    async with open_task(loaded, Environment(process={}, dotenv={})) as task, open_app(**task.ports) as app:
        result = await app.send(TrainSkill("run", task.skill_id, task.initial_skill, task.config))
        asked = sum(used.prompt_tokens for used in result.value.usage if used.role == "optimizer")
        assert asked in forecast_of(task).tokens.optimizer.prompt


def test_a_dry_run_prints_the_estimate_and_how_the_run_would_begin(
    printed: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    estimate, out = printed("estimate", *NAMED), printed("train", *NAMED, flags=("--dry-run",))
    assert out.startswith(estimate)
    target, optimizer = out.removeprefix(estimate).split(
        "\nfirst optimizer prompt (as if the agent failed every item)\n"
    )
    assert target.startswith("\nfirst target prompt (train item tr-0")
    skill = (EXAMPLE / "skill.md").read_text(encoding="utf-8")
    assert f"--- system\n{skill}\n--- user\n" in target
    assert optimizer.count("\n<failure>\nitem: tr-") == 8
    assert "[what the agent answers]" in optimizer
    assert "at most 6 edits" in optimizer
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_for_machines(printed: Printed) -> None:
    told = json.loads(printed("train", *NAMED, flags=("--dry-run", "--json")))
    prompts = told["prompts"]
    first = next(
        json.loads(line)
        for line in (EXAMPLE / "items" / "train" / "items.jsonl").read_text(encoding="utf-8").splitlines()
        if json.loads(line)["id"] == prompts["item"]
    )
    assert prompts["target"]["user"] == first["question"]
    assert f"<failure>\nitem: {prompts['item']}\n" in prompts["optimizer"]["user"]
    assert prompts["is_example"] is False


class FirstAsked:
    """A runner and proposer that pass everything on, but for scores, and keep what they were asked first."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.batch: RolloutBatch | None = None
        self.reflection: ReflectionInput | None = None

    @property
    def fingerprint(self) -> str:
        return self._task.runner.fingerprint

    async def item_ids(self, split: str) -> Sequence[str]:
        return await self._task.runner.item_ids(split)

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        if batch.split == TRAIN and self.batch is None:
            self.batch = batch
        return [replace(rollout, hard=0.0, soft=0.0) for rollout in await self._task.runner.run(skill, batch)]

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        self.reflection = self.reflection or reflection
        return await self._task.optimizer.proposer.propose(reflection)


async def test_a_run_begins_with_the_prompts_a_dry_run_shows() -> None:
    loaded = load_task(TASK, ["train.num_epochs=1", "evaluation.eval_test=false", "optimizer.lr_scheduler=linear"])
    async with open_task(loaded, Environment(process={}, dotenv={})) as task:
        shown, asked = first_prompts(task), FirstAsked(task)
        async with open_app(rollouts=asked, proposer=asked, workers=1) as app:
            assert (await app.send(TrainSkill("run", "skill", task.initial_skill, task.config))).is_ok
        assert asked.batch is not None
        assert asked.reflection is not None
        assert asked.batch.item_ids == (shown.item_id,)
        assert shown.target == task.runner.request(task.initial_skill, asked.batch, shown.item_id)
        unanswered = tuple(
            replace(rollout, hard=0.0, trajectory=cut(rollout), fail_reason=UNKNOWN_REASON)
            for rollout in asked.reflection.rollouts
        )
        assert shown.optimizer == task.optimizer.proposer.request(replace(asked.reflection, rollouts=unanswered))


def cut(rollout: Rollout) -> str:
    """The trajectory with its answer left open."""
    question, agent, _ = rollout.trajectory.rpartition("[agent]\n")
    return f"{question}{agent}{UNKNOWN_ANSWER}"


def test_where_the_seed_is_drawn_a_dry_run_says_that_it_shows_an_example(printed: Printed) -> None:
    assert "the seed is drawn later, so it may be another)" in printed("train", "train.seed=0", flags=("--dry-run",))


def test_a_dry_run_answers_from_no_recording(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", TASK, "--dry-run", "--replay", "some.recording"]) == 2
    assert capsys.readouterr().err == (
        "burnish: --dry-run: asks nobody, so there is nothing to --replay: leave one of them out\n"
    )


def test_bad_settings_are_refused_as_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", TASK, "--cfg-options", "train.num_epochs=0"]) == 2
    assert capsys.readouterr().err == "burnish: --cfg-options: train.num_epochs: must be at least 1, not 0\n"
