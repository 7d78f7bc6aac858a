"""From settings to what a run takes: its configuration, its identity, and the file that tells all of it again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import cast

from burnish.application.budget import Budget
from burnish.application.prices import Price
from burnish.domain.config import AppendixSource, PairPolicy, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.gate import GateMetric, GateMode
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.fields import Kind, Section
from burnish.presentation.settings.keys import KEYS, SECTIONS, value_at
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.settings.sections import TaskSettings
from burnish.presentation.settings.yaml_text import Value, write_value


def to_config(settings: TaskSettings, train_items: int, *, val_items: int) -> TrainSkillConfig:
    """The configuration of a run on that many train and validation items (all there are, each at least 1).

    Without train.steps_per_epoch an epoch sees every train item once (system B); `val_batch_size` is the number of
    validation items in use. Raises SettingsError when train.train_size asks for another number of train items.
    """
    if train_items < 1 or val_items < 1:
        raise ValueError(f"a run needs items: train_items is {train_items}, val_items is {val_items}")
    train, gradient, optimizer, evaluation = settings.train, settings.gradient, settings.optimizer, settings.evaluation
    if train.train_size not in {0, train_items}:
        raise SettingsError(
            (f"train.train_size: is {train.train_size}, but there are {train_items} train items: write that, or 0",)
        )
    return TrainSkillConfig(
        epochs=train.num_epochs,
        steps_per_epoch=train.steps_per_epoch or math.ceil(train_items / (train.batch_size * train.accumulation)),
        lr_start=optimizer.learning_rate,
        lr_min=optimizer.min_learning_rate,
        lr_scheduler=optimizer.lr_scheduler,
        train_batch_size=train.batch_size,
        val_batch_size=min(evaluation.sel_env_num or val_items, val_items),
        gate_metric=GateMetric(evaluation.gate_metric),
        gate_mode=GateMode(evaluation.gate_mode),
        mixed_weight=evaluation.gate_mixed_weight,
        patience=train.patience,
        use_slow_update=optimizer.use_slow_update,
        use_meta_skill=optimizer.use_meta_skill,
        seed=train.seed,
        evaluate_baseline=evaluation.evaluate_baseline,
        accumulation=train.accumulation,
        lr_control_mode=RateControl(optimizer.lr_control_mode),
        failure_only=gradient.failure_only,
        minibatch_size=gradient.minibatch_size,
        merge_batch_size=gradient.merge_batch_size,
        update_mode=UpdateMode(optimizer.skill_update_mode),
        max_skill_tokens=optimizer.max_skill_tokens,
        one_shot_baseline=evaluation.one_shot_baseline,
        slow_update_samples=optimizer.slow_update_samples,
        slow_update_gate=optimizer.slow_update_gate_with_selection,
        longitudinal_pair_policy=PairPolicy(optimizer.longitudinal_pair_policy),
        use_skill_aware_reflection=optimizer.use_skill_aware_reflection,
        skill_aware_appendix_source=AppendixSource(optimizer.skill_aware_appendix_source),
        skill_aware_consolidate_threshold=optimizer.skill_aware_consolidate_threshold,
        recall_meta_skill=optimizer.recall_meta_skill,
        promote_final=evaluation.promote_final,
        eval_test=evaluation.eval_test,
        max_error_rate=evaluation.max_error_rate,
        repeats=evaluation.repeats,
        block_size=evaluation.block_size,
    )


def to_budget(settings: TaskSettings, prices: Mapping[str, Price]) -> Budget:
    """The caps of a run, with the prices of its roles as far as they are known."""
    budget = settings.budget
    return Budget(
        max_rollouts=budget.max_rollouts,
        max_tokens=budget.max_tokens,
        max_usd=None if budget.max_usd is None else Decimal(str(budget.max_usd)),
        max_minutes=budget.max_minutes,
        prices=prices,
    )


SETTING_OF = {
    "epochs": "train.num_epochs",
    "steps_per_epoch": "train.steps_per_epoch",
    "lr_start": "optimizer.learning_rate",
    "lr_min": "optimizer.min_learning_rate",
    "lr_scheduler": "optimizer.lr_scheduler",
    "train_batch_size": "train.batch_size",
    "val_batch_size": "evaluation.sel_env_num",
    "gate_metric": "evaluation.gate_metric",
    "gate_mode": "evaluation.gate_mode",
    "mixed_weight": "evaluation.gate_mixed_weight",
    "patience": "train.patience",
    "use_slow_update": "optimizer.use_slow_update",
    "use_meta_skill": "optimizer.use_meta_skill",
    "seed": "train.seed",
    "evaluate_baseline": "evaluation.evaluate_baseline",
    "accumulation": "train.accumulation",
    "lr_control_mode": "optimizer.lr_control_mode",
    "failure_only": "gradient.failure_only",
    "minibatch_size": "gradient.minibatch_size",
    "merge_batch_size": "gradient.merge_batch_size",
    "update_mode": "optimizer.skill_update_mode",
    "max_skill_tokens": "optimizer.max_skill_tokens",
    "one_shot_baseline": "evaluation.one_shot_baseline",
    "slow_update_samples": "optimizer.slow_update_samples",
    "slow_update_gate": "optimizer.slow_update_gate_with_selection",
    "longitudinal_pair_policy": "optimizer.longitudinal_pair_policy",
    "use_skill_aware_reflection": "optimizer.use_skill_aware_reflection",
    "skill_aware_appendix_source": "optimizer.skill_aware_appendix_source",
    "skill_aware_consolidate_threshold": "optimizer.skill_aware_consolidate_threshold",
    "recall_meta_skill": "optimizer.recall_meta_skill",
    "promote_final": "evaluation.promote_final",
    "eval_test": "evaluation.eval_test",
    "max_error_rate": "evaluation.max_error_rate",
    "repeats": "evaluation.repeats",
    "block_size": "evaluation.block_size",
}
"""The task file's key for each field of the configuration (design, section 7)."""


def named_as_settings(fields: Iterable[str]) -> tuple[str, ...]:
    """Fields of a failure as people know them: `config.lr_start` is `optimizer.learning_rate`; others stay."""
    return tuple(SETTING_OF.get(field.removeprefix("config."), field) for field in fields)


def identity_items(settings: TaskSettings) -> dict[str, str]:
    """Every identity key with its value as JSON; two runs with equal items (and files) are the same run."""
    keys = (path for path, key in KEYS.items() if key.kind is Kind.IDENTITY)
    return {path: json.dumps(canonical(value_at(settings, path))) for path in keys}


def effective_yaml(loaded: LoadedTask) -> str:
    """Every key with the value in force, as a task file that loads to the same settings; always in the same order.

    Relative paths in it mean what they meant in the task's folder. No key is made for a secret, so there is none in it.
    """
    lines: list[str] = []
    for section in SECTIONS:
        depth = section.count(".")
        lines.append(f"{'  ' * depth}{section.rpartition('.')[2]}:")
        for path, key in KEYS.items():
            if path.rpartition(".")[0] == section:
                value = write_value(canonical(value_at(loaded.settings, path)))
                lines.append(f"{'  ' * (depth + 1)}{key.path.rpartition('.')[2]}: {value}")
    return "\n".join(lines) + "\n"


def canonical(value: object) -> Value:
    """A setting's value in the one form that equal values share."""
    match value:
        case float():
            return value + 0.0  # one zero only, without a sign
        case Section():
            return {name: canonical(inner) for name, inner in value}
        case Mapping():
            entries = cast("Mapping[str, object]", value)
            return {name: canonical(entries[name]) for name in sorted(entries)}
        case _:
            assert value is None or isinstance(value, (str, int)), "a setting is a scalar or a mapping"
            return value
