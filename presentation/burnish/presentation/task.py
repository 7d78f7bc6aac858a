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
    NoteConsolidator,
    PatchMerger,
    PatchProposer,
    RateChooser,
    SkillRewriter,
)
from burnish.application.ports import RolloutRunner
from burnish.application.prices import Price
from burnish.domain.config import TrainSkillConfig
from burnish.domain.rollouts import SPLITS
from burnish.domain.runs import is_run_id, skill_hash
from burnish.domain.token_forecast import ModelSizes
from burnish.infrastructure.models.chat import ChatModel
from burnish.infrastructure.models.offline import OfflineModel
from burnish.infrastructure.optimizer.chat_optimizer import ChatOptimizer, OptimizerLimits, chat_optimizer
from burnish.infrastructure.optimizer.prompt_texts import load_prompts
from burnish.infrastructure.tasks.chat_runner import ChatTaskRunner
from burnish.infrastructure.tasks.data_report import refuse_twins, warnings
from burnish.infrastructure.tasks.items import ItemRules, item_json
from burnish.infrastructure.tasks.judge_scorer import MAX_ANSWER_TOKENS, LlmJudge
from burnish.infrastructure.tasks.refusals import DataError
from burnish.infrastructure.tasks.refusals import shown as shown_value
from burnish.infrastructure.tasks.scorers import JsonMatch, Scorer, load_scorer
from burnish.infrastructure.tasks.scoring import JudgingScorer
from burnish.infrastructure.tasks.splits import Splits, read_split_file, read_split_folder
from burnish.infrastructure.tasks.task_package import read_package_items
from burnish.presentation.connecting import connect_model
from burnish.presentation.model_facts import LLM_JUDGE, role_prices, role_sizes
from burnish.presentation.settings.environment import Environment, Role
from burnish.presentation.settings.errors import SettingsError, shown
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.settings.mapping import identity_items, to_budget, to_config
from burnish.presentation.settings.model_section import AGENT_BACKENDS
from burnish.presentation.settings.sections import TaskSettings
from burnish.presentation.skill_folders import InitialSkill, read_initial_skill

SIMULATED = "simulated"

ANSWER_FREE = frozenset({"python", LLM_JUDGE})
"""Scorers that may know what is right without an answer of the item's."""


class TaskPorts(TypedDict):
    """The parameters of `open_app` that a task brings."""

    rollouts: RolloutRunner
    proposer: PatchProposer
    merger: PatchMerger
    ranker: EditRanker
    rate_chooser: RateChooser
    rewriter: SkillRewriter
    note_consolidator: NoteConsolidator
    guidance_writer: GuidanceWriter
    memory_writer: MemoryWriter
    workers: int
    analyst_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Everything a run of a task needs; `digest` names what it is: settings, skill and items.

    `skill_folder` is the initial skill's when it is an Agent Skill, `warnings` are lines about skill and items. `prices`
    are by role, without the roles whose model has no known price; `sizes` are what is assumed of a role's answers, `limits`
    how long the optimizer's are at most, and how much of rollouts it sees.
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
    judge: LlmJudge | None = None
    skill_folder: Path | None = None
    warnings: tuple[str, ...] = ()

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
            note_consolidator=optimizer.note_consolidator,
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
    initial = read_skill(base, settings)
    splits = read_splits(settings, base)
    used = splits.limited(val=settings.evaluation.sel_env_num, test=settings.evaluation.test_env_num)
    config = to_config(settings, len(splits.train), val_items=len(splits.val))
    async with AsyncExitStack() as stack:
        judge: ChatModel | None = None
        if settings.env.scorer == LLM_JUDGE:
            judge = await connect_model(Role.JUDGE, settings, base, environment, stack, offline=offline)
        scorer = checked_scorer(settings, base, splits, judge=judge)
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
            initial_skill=initial.text,
            judge=scorer if isinstance(scorer, LlmJudge) else None,
            skill_folder=initial.folder,
            config=config,
            runner=runner,
            optimizer=roles,
            workers=settings.env.workers,
            analyst_workers=settings.gradient.analyst_workers,
            budget=to_budget(settings, role_prices(settings)),
            items={split: len(used.named(split)) for split in SPLITS},
            models={
                role.value: model.fingerprint
                for role, model in ((Role.TARGET, target), (Role.OPTIMIZER, optimizer), (Role.JUDGE, judge))
                if model is not None
            },
            prices=role_prices(settings),
            sizes=role_sizes(settings, limits),
            limits=limits,
            digest=_digest(settings, initial.text, used, runner.fingerprint, roles.fingerprint),
            warnings=(*initial.warnings, *warnings(used)),
        )


def optimizer_limits(settings: TaskSettings) -> OptimizerLimits:
    """How long the optimizer's answers are, and how much of rollouts it sees."""
    gradient = settings.gradient
    limits = OptimizerLimits(trajectory_view=gradient.trajectory_view, obs_chars=gradient.obs_chars)
    return limits.with_answers_of(settings.model.optimizer_max_tokens)


def read_skill(base: Path, settings: TaskSettings) -> InitialSkill:
    """The initial skill; empty when the task names none."""
    named = settings.env.skill_init
    return read_initial_skill(base / named, "env.skill_init") if named else InitialSkill()


def read_splits(settings: TaskSettings, base: Path) -> Splits:
    """All items of the task. Raises SettingsError or DataError."""
    env, needs_test = settings.env, settings.evaluation.eval_test
    rules = ItemRules(
        fields=env.fields, needs_answers=env.scorer not in ANSWER_FREE, takes_json=env.scorer == "json_match"
    )
    if env.task is not None:
        splits = read_package_items(env.task, rules, seed=env.split_seed, ratio=env.split_ratio, needs_test=needs_test)
    elif env.split_mode == "split_dir":
        splits = read_split_folder(base / env.split_dir, rules, needs_test=needs_test)
    elif env.data_path:
        path = base / env.data_path
        splits = read_split_file(path, rules, seed=env.split_seed, ratio=env.split_ratio, needs_test=needs_test)
    else:
        raise SettingsError(
            ("env: names no items: set env.split_dir (a folder), env.data_path (a file) or env.task (a package)",)
        )
    if env.check_near_duplicates:
        refuse_twins(splits, env.check_near_duplicates)
    return splits


def checked_scorer(
    settings: TaskSettings, base: Path, splits: Splits, *, judge: ChatModel | None = None
) -> Scorer | JudgingScorer:
    """The task's scorer; `judge` is the model of llm_judge, which without one can judge nothing.

    Raises SettingsError or DataError, also about the first item it cannot judge.
    """
    scorer: Scorer | JudgingScorer
    if settings.env.scorer == LLM_JUDGE:
        scorer = _judge_scorer(settings, OfflineModel("none") if judge is None else judge)
    else:
        scorer = load_scorer(_scorer_name(settings), base, field_weights=settings.env.field_weights)
    for split in SPLITS:
        for item in splits.named(split):
            if problem := scorer.problem(item):
                raise DataError(f"item {shown_value(item.item_id)} of {split}: {problem}")
    if isinstance(scorer, JsonMatch):
        unused = scorer.unused_weights(item for split in SPLITS for item in splits.named(split))
        if unused:
            raise SettingsError(
                (f"env.field_weights: no item's answer has the field {shown(unused[0])}: correct its name",)
            )
    return scorer


def _judge_scorer(settings: TaskSettings, model: ChatModel) -> LlmJudge:
    env, longest = settings.env, settings.model.target_max_tokens
    return LlmJudge(
        model,
        rubric=env.judge_rubric,
        repeats=env.judge_repeats,
        pass_mark=env.judge_pass_mark,
        max_tokens=settings.model.judge_max_tokens,
        answer_tokens=MAX_ANSWER_TOKENS if longest is None else 4 * longest,  # no token has more than 16 characters
    )


def _scorer_name(settings: TaskSettings) -> str:
    return settings.env.scorer_function or settings.env.scorer


def _digest(settings: TaskSettings, skill: str, splits: Splits, target: str, optimizer: str) -> str:
    """SHA-256 over everything that makes a run the run it is, in hexadecimal digits."""
    items = {split: [item_json(item) for item in splits.named(split)] for split in SPLITS}
    parts = [identity_items(settings), skill_hash(skill), items, target, optimizer]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
