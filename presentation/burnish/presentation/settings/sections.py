"""The sections of a task file, with every key, its default, its range and its kind.

Keys and defaults are system B's wherever B has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from annotated_types import Ge, Le
from pydantic import Field, ValidationInfo, field_validator, model_validator

from burnish.presentation.settings.errors import listed, shown
from burnish.presentation.settings.fields import (
    MAX_COUNT,
    Count,
    Dollars,
    Positive,
    Section,
    Seed,
    Share,
    Text,
    Workers,
    aliases,
    identity,
    operation,
    rule,
    rule_before,
)
from burnish.presentation.settings.model_section import ModelName, ModelSection
from burnish.presentation.settings.scorer_names import DESCRIPTION as SCORER_DESCRIPTION
from burnish.presentation.settings.scorer_names import bad_scorer

ITEM_FIELDS = ("id", "question", "answer", "answers", "task_type")
MAX_TOKENS = 10**15


def _bad_task_name(name: str) -> str | None:
    if not re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})?", name):
        return "must be at most 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit"
    return None


def _bad_ratio(ratio: str) -> str | None:
    if not re.fullmatch(r"[1-9][0-9]{0,5}(:[1-9][0-9]{0,5}){2}", ratio):
        return "must be three whole numbers above 0, for train, val and test, such as 2:1:7"
    return None


def _bad_fields(fields: Mapping[str, str]) -> str | None:
    for ours, theirs in fields.items():
        if ours not in ITEM_FIELDS:
            return f"{shown(ours, 40)} is no field of items: there are {listed(ITEM_FIELDS, 'and')}"
        if not theirs.strip():
            return f"{ours} has no name: write what the field is called in the data, or remove it"
    return None


def _bad_function(reference: str) -> str | None:
    module, colon, name = reference.partition(":")
    if not (colon and all(part.isidentifier() for part in (*module.split("."), *name.split(".")))):
        return "must name a Python function as module:callable"
    return None


def _gate_is_needed(value: bool) -> str | None:  # noqa: FBT001  a validator is given its value by position
    if not value:
        return "false is refused: without the gate every candidate is kept, also one that makes the skill worse"
    return None


def _is_no_schedule(value: object) -> str | None:
    if isinstance(value, str) and value.lower() == "autonomous":
        return "autonomous is no schedule: set optimizer.lr_control_mode to autonomous"
    return None


_SCHEDULES = "constant, linear or cosine"

LR_CONTROL_MODES = {
    "manual": "fixed",
    "scheduler": "fixed",
    "scheduled": "fixed",
    "auto": "autonomous",
    "optimizer": "autonomous",
    "off": "none",
    "no_lr": "none",
}
UPDATE_MODES = {
    "rewrite": "rewrite_from_suggestions",
    "suggestions": "rewrite_from_suggestions",
    "rewrite_suggestions": "rewrite_from_suggestions",
    "full_rewrite": "full_rewrite_minibatch",
    "minibatch_full_rewrite": "full_rewrite_minibatch",
    "skill_rewrite_minibatch": "full_rewrite_minibatch",
}
PAIR_POLICIES = {
    "default": "mixed",
    "random": "mixed",
    "all": "mixed",
    "change": "changed",
    "delta": "changed",
    "10_01": "changed",
    "01_10": "changed",
    "stable": "unchanged",
    "same": "unchanged",
    "00_11": "unchanged",
}
"""System B's other names of the same choices."""

Weight = Annotated[float, Ge(0), Le(MAX_COUNT)]


class TrainSection(Section):
    """`train`: how long, how much at a time, from which seed."""

    num_epochs: Positive = identity(4, "passes over the train items")
    steps_per_epoch: Positive | None = identity(None, "null: as many as it takes to see every train item once")
    batch_size: Positive = identity(40, "train items tried in a step")
    accumulation: Positive = identity(1, "batches tried in a step before the optimizer reads them")
    patience: Positive | None = identity(None, "rejected steps in a row that end the run; null: never")
    seed: Seed = identity(42, "decides every random choice; 0: drawn, then recorded")
    train_size: Count = identity(0, "train items there must be; 0: as many as there are")


class GradientSection(Section):
    """`gradient`: how rollouts become proposed edits."""

    minibatch_size: Positive = identity(8, "rollouts one analyst reads")
    merge_batch_size: Annotated[int, Ge(2), Le(MAX_COUNT)] = identity(8, "patches merged in one call")
    analyst_workers: Workers = operation(16, "calls of the optimizer at once")
    failure_only: bool = identity(default=False, description="show the optimizer failures only")
    trajectory_view: Literal["full", "paper"] = identity(
        "full", "what analysts see of a rollout: full, or paper (long middles cut short)"
    )
    obs_chars: Count = identity(0, "characters of each observation analysts see; 0: all")


class OptimizerSection(Section):
    """`optimizer`: how many edits a step may make, and what is carried across epochs."""

    learning_rate: Positive = identity(4, "most edits in the first step")
    min_learning_rate: Positive = identity(2, "most edits in the last step")
    lr_scheduler: Annotated[Literal["constant", "linear", "cosine"], rule_before(_is_no_schedule), aliases()] = (
        identity("cosine", f"how the number of edits falls: {_SCHEDULES}")
    )
    lr_control_mode: Annotated[Literal["fixed", "autonomous", "none"], aliases(LR_CONTROL_MODES)] = identity(
        "fixed", "who sets it: fixed (the schedule), autonomous (the optimizer), none (no limit)"
    )
    skill_update_mode: Annotated[
        Literal["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"], aliases(UPDATE_MODES)
    ] = identity("patch", "edits (patch), rewrite_from_suggestions or full_rewrite_minibatch")
    use_slow_update: bool = identity(default=True, description="compare the epochs' skills and write guidance")
    slow_update_samples: Positive = identity(20, "train items the epochs' skills are compared on")
    slow_update_gate_with_selection: bool = identity(
        default=False, description="gate the guidance instead of forcing it in"
    )
    longitudinal_pair_policy: Annotated[Literal["mixed", "changed", "unchanged"], aliases(PAIR_POLICIES)] = identity(
        "mixed", "which of them the guidance is written from: mixed (all), changed or unchanged"
    )
    use_skill_aware_reflection: bool = identity(
        default=False, description="tell execution lapses from defects: lapses become notes in the skill"
    )
    skill_aware_appendix_source: Literal["both", "failure_only"] = identity(
        "both", "whose notes: both (of all analysts) or failure_only"
    )
    skill_aware_consolidate_threshold: Count = identity(
        0, "notes above which the optimizer is asked for fewer; 0: never"
    )
    use_meta_skill: bool = identity(default=True, description="keep a memory for the optimizer across epochs")
    recall_meta_skill: bool = identity(default=False, description="start with the memory of the skill's latest run")
    max_skill_tokens: Positive | None = identity(
        None, "longest candidate, in tokens of four characters; null: 262144 characters"
    )
    prompts: Text | None = identity(None, "folder with prompts that take the place of the optimizer's own; null: none")

    @field_validator("min_learning_rate")
    @classmethod
    def _not_above_the_start(cls, floor: int, info: ValidationInfo) -> int:
        start = info.data.get("learning_rate")
        if start is not None and floor > start:
            raise ValueError(f"must be at most optimizer.learning_rate, which is {start}, not {floor}")
        return floor


class EvaluationSection(Section):
    """`evaluation`: how skills are scored, and when a candidate is good enough."""

    use_gate: Annotated[bool, rule(_gate_is_needed)] = identity(
        default=True, description="true only: nothing is kept that the gate has not passed"
    )
    sel_env_num: Count = identity(0, "validation items in use: the first n; 0: all")
    test_env_num: Count = identity(0, "test items in use: the first n; 0: all")
    eval_test: bool = identity(default=True, description="score the test items at the end")
    one_shot_baseline: bool = identity(
        default=True, description="with eval_test, also score one rewrite of the initial skill in a single call"
    )
    gate_metric: Literal["hard", "soft", "mixed"] = identity("hard", "the score that decides: hard, soft or mixed")
    gate_mixed_weight: Share = identity(0.5, "share of the soft score in mixed")
    gate_mode: Literal["strict", "two_split"] = identity(
        "strict", "strict: validation gains; two_split: train loses nothing, one of both gains"
    )
    evaluate_baseline: bool = identity(default=True, description="score the initial skill first")
    promote_final: bool = identity(default=True, description="ship the final skill when it beats the best one afresh")
    max_error_rate: Share = identity(0.1, "share of unanswered items above which a step decides nothing")
    repeats: Positive = identity(1, "times each validation item is asked")
    block_size: Positive = identity(16, "validation items between two checks whether to go on")


class EnvSection(Section):
    """`env`: the task, its items, and how they are asked and scored. Paths are relative to the task file."""

    name: Annotated[str, rule(_bad_task_name)] = identity("", "the task's name; it begins the run folder's")
    skill_init: Text = identity("", "the initial skill: a file, or a folder with SKILL.md; empty: start without one")
    split_dir: Text = identity("", "folder with train/, val/ and test/")
    data_path: Text = identity("", "file, or folder of files, with all items, split by ratio")
    task: Text | None = identity(None, "an installed package's items (entry point of burnish.tasks); null: none")
    fields: Annotated[Mapping[Text, Text], rule(_bad_fields)] = identity(
        {}, "what fields are called in the data, as question: …, answer: …, id: …"
    )
    check_near_duplicates: Share = operation(
        0.0, "refuse items of two splits that share this much of their words; 0: off"
    )
    split_mode: Literal["ratio", "split_dir"] = identity(
        "ratio", "ratio or split_dir; null: split_dir when that is set, else ratio"
    )
    split_ratio: Annotated[str, rule(_bad_ratio)] = identity("2:1:7", "train:val:test")
    split_seed: Seed = identity(42, "decides which item goes where")
    scorer: Annotated[str, rule(bad_scorer)] = identity("exact_match", SCORER_DESCRIPTION)
    scorer_function: Annotated[str, rule(_bad_function)] | None = identity(None, "module:callable, for scorer python")
    field_weights: Mapping[Text, Weight] = identity(
        {}, "for json_match: weights by field; a field without one weighs 1"
    )
    judge_rubric: Text = identity("", "for llm_judge: what a good answer is; empty: what the reference answer says")
    judge_repeats: Annotated[int, Ge(1), Le(100)] = identity(1, "for llm_judge: grades of an answer in each order")
    judge_pass_mark: Share = identity(0.7, "for llm_judge: from this mean grade on, 0 to 1, an item is solved")
    prompt: Text = identity("{question}", "the user message, with the item's fields in braces")
    answer_instruction: Text | None = identity(None, "how to write the answer, added to the system prompt")
    show_reference: bool = identity(default=True, description="tell the optimizer a failed train item's right answer")
    workers: Workers = operation(8, "rollouts at once")

    @model_validator(mode="before")
    @classmethod
    def _fill_split_mode(cls, section: dict[str, object]) -> dict[str, object]:
        if not isinstance(section, dict) or section.get("split_mode") is not None:  # pyright: ignore[reportUnnecessaryIsInstance]  pydantic passes whatever it is given
            return section
        return {**section, "split_mode": "split_dir" if section.get("split_dir") else "ratio"}

    @field_validator("split_mode")
    @classmethod
    def _folder_is_named(cls, mode: str, info: ValidationInfo) -> str:
        if mode == "split_dir" and info.data.get("split_dir") == "":
            raise ValueError("split_dir needs env.split_dir, the folder with train/, val/ and test/")
        return mode

    @field_validator("field_weights")
    @classmethod
    def _goes_with_json(cls, weights: Mapping[str, float], info: ValidationInfo) -> Mapping[str, float]:
        scorer = info.data.get("scorer")
        if weights and scorer not in {"json_match", None}:
            raise ValueError(f"has no effect with env.scorer {scorer}: set env.scorer to json_match, or remove it")
        return weights

    @field_validator("judge_rubric")
    @classmethod
    def _goes_with_judge(cls, rubric: str, info: ValidationInfo) -> str:
        scorer = info.data.get("scorer")
        if rubric and scorer not in {"llm_judge", None}:
            raise ValueError(f"has no effect with env.scorer {scorer}: set env.scorer to llm_judge, or remove it")
        return rubric

    @field_validator("scorer_function")
    @classmethod
    def _goes_with_python(cls, function: str | None, info: ValidationInfo) -> str | None:
        scorer = info.data.get("scorer")
        if scorer == "python" and function is None:
            raise ValueError("scorer python needs a function: name it as module:callable")
        if scorer not in {"python", None} and function is not None:
            raise ValueError(f"has no effect with env.scorer {scorer}: set env.scorer to python, or remove it")
        return function


class ModelPrice(Section):
    """What a model costs, in US dollars a million tokens: of what it reads and of what it writes."""

    prompt: Dollars
    completion: Dollars


Prices = Mapping[ModelName, ModelPrice]


class BudgetSection(Section):
    """`budget`: what a run may use over all its attempts; a run that stops at a cap goes on when it is raised."""

    max_rollouts: Count | None = operation(None, "most rollouts; null: no limit")
    max_tokens: Annotated[int, Ge(0), Le(MAX_TOKENS)] | None = operation(
        None, "most tokens of both roles; needs model.target_max_tokens; null: no limit"
    )
    max_usd: Annotated[float, Ge(0), Le(MAX_COUNT)] | None = operation(
        None, "most US dollars; needs prices and model.target_max_tokens; null: no limit"
    )
    max_minutes: Annotated[float, Ge(0), Le(MAX_COUNT)] | None = operation(
        None, "active minutes after which no further step is begun; null: no limit"
    )
    prices: Prices = operation({}, "US dollars a million tokens, as model: {prompt: …, completion: …}")


class TaskSettings(Section):
    """Everything a task file can say; `TaskSettings()` holds every default."""

    model: ModelSection = Field(default_factory=ModelSection)
    train: TrainSection = Field(default_factory=TrainSection)
    gradient: GradientSection = Field(default_factory=GradientSection)
    optimizer: OptimizerSection = Field(default_factory=OptimizerSection)
    evaluation: EvaluationSection = Field(default_factory=EvaluationSection)
    env: EnvSection = Field(default_factory=EnvSection)
    budget: BudgetSection = Field(default_factory=BudgetSection)
