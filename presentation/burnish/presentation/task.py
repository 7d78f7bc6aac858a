"""A task made runnable: from checked settings to items, models, runner and proposer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from burnish.application.budget import Budget
from burnish.application.optimizer_ports import (
    EditRanker,
    GuidanceWriter,
    MemoryWriter,
    PatchMerger,
    PatchProposer,
    RateChooser,
    SkillRewriter,
)
from burnish.application.prices import Price
from burnish.domain.config import TrainSkillConfig
from burnish.domain.regions import markers_are_balanced
from burnish.domain.rollouts import SPLITS
from burnish.domain.runs import is_run_id, skill_hash
from burnish.domain.token_forecast import ModelSizes
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.models.offline import OfflineModel
from burnish.infrastructure.optimizer.chat_optimizer import ChatOptimizer, OptimizerLimits, chat_optimizer
from burnish.infrastructure.optimizer.prompt_texts import load_prompts
from burnish.infrastructure.tasks.chat_runner import ChatTaskRunner
from burnish.infrastructure.tasks.items import item_json
from burnish.infrastructure.tasks.scorers import load_scorer
from burnish.infrastructure.tasks.splits import Splits, read_split_file, read_split_folder
from burnish.presentation.connecting import connect_model
from burnish.presentation.model_facts import role_prices, role_sizes
from burnish.presentation.settings.environment import Environment, Role
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.settings.mapping import identity_items, to_budget, to_config
from burnish.presentation.settings.sections import AGENT_BACKENDS, TaskSettings
from burnish.presentation.text_files import read_text_file

SIMULATED = "simulated"


class TaskPorts(TypedDict):
    """The parameters of `open_app` that a task brings."""

    rollouts: ChatTaskRunner
    proposer: PatchProposer
    merger: PatchMerger
    ranker: EditRanker
    rate_chooser: RateChooser
    rewriter: SkillRewriter
    guidance_writer: GuidanceWriter
    memory_writer: MemoryWriter
    workers: int
    analyst_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Everything a run of a task needs; `digest` names what it is: settings, skill and items.

    `prices` are by role, without the roles whose model has no known price; `sizes` are what is assumed of a role's answers,
    `limits` how long the optimizer's are at most, and how much of rollouts it sees.
    """

    name: str
    skill_id: str
    initial_skill: str
    config: TrainSkillConfig
    runner: ChatTaskRunner
    optimizer: ChatOptimizer
    workers: int
    analyst_workers: int
    budget: Budget
    items: Mapping[str, int]
    models: Mapping[str, str]
    prices: Mapping[str, Price]
    sizes: Mapping[str, ModelSizes]
    limits: OptimizerLimits
    digest: str

    @property
    def ports(self) -> TaskPorts:
        """What a run of the task asks, whether it is trained or run again from its answers."""
        optimizer = self.optimizer
        return TaskPorts(
            rollouts=self.runner,
            proposer=optimizer.proposer,
            merger=optimizer.merger,
            ranker=optimizer.ranker,
            rate_chooser=optimizer.rate_chooser,
            rewriter=optimizer.rewriter,
            guidance_writer=optimizer.guidance_writer,
            memory_writer=optimizer.memory_writer,
            workers=self.workers,
            analyst_workers=self.analyst_workers,
        )

    @property
    def is_simulated(self) -> bool:
        """Whether a role is played by a simulation, so that scores say nothing about any real model."""
        return any(model.startswith(SIMULATED) for model in self.models.values())


@asynccontextmanager
async def open_task(
    loaded: LoadedTask, environment: Environment, *, offline: bool = False, trains: bool = True
) -> AsyncGenerator[Task]:
    """Read skill and items and connect the models; raises SettingsError or DataError before anything is asked.

    With `offline` no model of an API is connected, and neither address nor key is needed. A task that is not to be
    trained (`trains` false) needs no optimizer.
    """
    settings, base = loaded.settings, loaded.base_dir
    skill = read_skill(base, settings)
    splits = _read_splits(settings, base)
    used = splits.limited(val=settings.evaluation.sel_env_num, test=settings.evaluation.test_env_num)
    config = to_config(settings, len(splits.train), val_items=len(splits.val))
    scorer = load_scorer(_scorer_name(settings), base)
    async with AsyncExitStack() as stack:
        target = await connect_model(Role.TARGET, settings, base, environment, stack, offline=offline)
        prompts = load_prompts(None if settings.optimizer.prompts is None else base / settings.optimizer.prompts)
        optimizer: ChatModel = OfflineModel("none")
        if trains:
            optimizer = await connect_model(Role.OPTIMIZER, settings, base, environment, stack, offline=offline)
        runner = ChatTaskRunner(
            splits=used,
            model=target,
            scorer=scorer,
            template=settings.env.prompt,
            answer_instruction=settings.env.answer_instruction or "",
            max_tokens=None if settings.model.target_backend in AGENT_BACKENDS else settings.model.target_max_tokens,
            shows_reference=settings.env.show_reference,
        )
        limits = optimizer_limits(settings)
        roles = chat_optimizer(optimizer, prompts=prompts, limits=limits)
        name = settings.env.name or base.name or "task"
        yield Task(
            name=name,
            skill_id=name if is_run_id(name) else "skill",
            initial_skill=skill,
            config=config,
            runner=runner,
            optimizer=roles,
            workers=settings.env.workers,
            analyst_workers=settings.gradient.analyst_workers,
            budget=to_budget(settings, role_prices(settings)),
            items={split: len(used.named(split)) for split in SPLITS},
            models={Role.TARGET.value: target.fingerprint, Role.OPTIMIZER.value: optimizer.fingerprint},
            prices=role_prices(settings),
            sizes=role_sizes(settings, limits),
            limits=limits,
            digest=_digest(settings, skill, used, runner.fingerprint, roles.fingerprint),
        )


def optimizer_limits(settings: TaskSettings) -> OptimizerLimits:
    """How long the optimizer's answers are, and how much of rollouts it sees."""
    gradient = settings.gradient
    limits = OptimizerLimits(trajectory_view=gradient.trajectory_view, obs_chars=gradient.obs_chars)
    return limits.with_answers_of(settings.model.optimizer_max_tokens)


def read_skill(base: Path, settings: TaskSettings) -> str:
    """The initial skill with its newlines and byte-order mark as they are; empty when the task names none."""
    if not settings.env.skill_init:
        return ""
    path = base / settings.env.skill_init
    text = read_text_file(path, "env.skill_init")
    if not markers_are_balanced(text):
        unpaired = "has region markers that do not pair up or lie inside each other: repair or remove them"
        raise SettingsError((f"env.skill_init: {path}: {unpaired}",))
    return text


def _read_splits(settings: TaskSettings, base: Path) -> Splits:
    env, needs_test = settings.env, settings.evaluation.eval_test
    needs_answers = env.scorer != "python"
    if env.split_mode == "split_dir":
        return read_split_folder(base / env.split_dir, needs_test=needs_test, needs_answers=needs_answers)
    if not env.data_path:
        raise SettingsError(("env: names no items: set env.split_dir (a folder) or env.data_path (one file)",))
    return read_split_file(
        base / env.data_path,
        ratio=env.split_ratio,
        seed=env.split_seed,
        needs_test=needs_test,
        needs_answers=needs_answers,
    )


def _scorer_name(settings: TaskSettings) -> str:
    return settings.env.scorer_function or settings.env.scorer


def _digest(settings: TaskSettings, skill: str, splits: Splits, target: str, optimizer: str) -> str:
    """SHA-256 over everything that makes a run the run it is, in hexadecimal digits."""
    items = {split: [item_json(item) for item in splits.named(split)] for split in SPLITS}
    parts = [identity_items(settings), skill_hash(skill), items, target, optimizer]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
