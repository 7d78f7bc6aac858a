"""The evolver's parameters, and what they mean for a run."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from burnish.domain.config import TrainSkillConfig
from burnish.domain.gate import GateMetric
from burnish.infrastructure.optimizer.chat_optimizer import OptimizerLimits
from burnish.infrastructure.optimizer.trajectories import TrajectoryView
from burnish.presentation.evolver.refusal import EvolverError
from burnish.presentation.settings.errors import listed, shown
from burnish.presentation.settings.fields import MAX_COUNT, Count, Positive, Seed, Share, Workers

PROMPT_ENVS = ("",)
"""Names `prompt_env` may have: the general prompts."""

_BLOCK = 16
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
}


def _inside(file: str) -> str:
    """The name of a file in `adapter/`. Raises ValueError for one that leads elsewhere, or nowhere."""
    path = PurePosixPath(file)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in file or not file.isprintable():
        raise ValueError("must name a file inside adapter/, such as ADAPTER.md")
    return file


class EvolverParameters(BaseModel):
    """How the evolver learns. Constructed directly it raises pydantic's error; `read_parameters` says it in one line."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    file: Annotated[str, AfterValidator(_inside)] = "ADAPTER.md"
    """The learnable document, inside `adapter/`."""
    minibatch_size: Positive = 8
    """Attempts in one call of an analyst."""
    merge_batch_size: Annotated[int, Ge(2), Le(MAX_COUNT)] = 8
    """Patches in one call of the merger."""
    analyst_workers: Workers = 16
    """Calls of the model that run at once."""
    failure_only: bool = False
    """Show analysts failures only."""
    learning_rate: Positive = 4
    """Most edits in a step."""
    min_learning_rate: Positive = 2
    """Most edits in the last step of the schedule."""
    lr_scheduler: Literal["constant", "linear", "cosine"] = "cosine"
    total_steps: Count | None = None
    """Length of the schedule; null or 0: the learning rate is constant."""
    steps_per_epoch: Positive | None = None
    """Steps in an epoch, whose last one brings the slow update and the memory; null: no epoch ever ends."""
    use_gate: bool = True
    """False: candidates are measured, and taken anyway."""
    gate_metric: Literal["hard", "soft", "mixed"] = "hard"
    gate_mixed_weight: Share = 0.5
    """The soft score's share in the mixed metric."""
    success_score: Share = 1.0
    """An attempt that scores at least this is a hard success."""
    use_slow_update: bool = True
    slow_update_samples: Positive = 20
    """Train tasks that are run with both epochs' documents."""
    slow_update_gate: bool = False
    """True: the slow update's guidance has to pass the gate."""
    use_meta_skill: bool = True
    prompt_env: str = ""
    """A benchmark's analyst prompts; empty: the general ones."""
    obs_chars: Count = 0
    """Characters of each tool result shown to analysts; 0: all."""
    trajectory_view: TrajectoryView = "full"
    """paper: only what was asked first and answered last."""
    codex_trace_to_optimizer: bool = True
    """Show analysts the trace summary that comes with an attempt."""
    promote_final: bool = True
    """At the end score the final and the best document afresh, and take the final one if it wins."""
    max_tokens: Positive | None = None
    """The longest answer of each call; null: each call's own limit."""
    temperature: Annotated[float, Ge(0), Le(2)] | None = None
    """Null: the endpoint's own."""
    seed: Seed = 42
    """0: one is drawn in the first step, and used from then on."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_learning_rate > self.learning_rate:
            raise ValueError(
                f"min_learning_rate: must be at most learning_rate ({self.learning_rate}), not {self.min_learning_rate}"
            )
        return self

    @property
    def schedule_steps(self) -> int:
        """The length of the schedule; 1 for a constant learning rate."""
        return self.total_steps or 1

    @property
    def limits(self) -> OptimizerLimits:
        """How long the optimizer's answers and what it reads may be."""
        limits = OptimizerLimits(trajectory_view=self.trajectory_view, obs_chars=self.obs_chars)
        return limits.with_answers_of(self.max_tokens)

    def identity(self) -> dict[str, str]:
        """What must stay the same from call to call: all but `analyst_workers`, which changes no result."""
        told = self.model_dump(exclude={"analyst_workers"})
        return {name: json.dumps(value, ensure_ascii=False) for name, value in told.items()}

    def config(self, *, validation_tasks: int) -> TrainSkillConfig:
        """The settings of the run; how many steps there will be is the host's affair."""
        return TrainSkillConfig(
            epochs=1,
            steps_per_epoch=self.steps_per_epoch or 1,
            lr_start=self.learning_rate,
            lr_min=self.min_learning_rate,
            lr_scheduler=self.lr_scheduler,
            val_batch_size=validation_tasks,
            gate_metric=GateMetric(self.gate_metric),
            mixed_weight=self.gate_mixed_weight,
            patience=None,
            use_slow_update=self.use_slow_update,
            use_meta_skill=self.use_meta_skill,
            seed=self.seed,
            failure_only=self.failure_only,
            minibatch_size=self.minibatch_size,
            merge_batch_size=self.merge_batch_size,
            slow_update_samples=self.slow_update_samples,
            slow_update_gate=self.slow_update_gate,
            promote_final=self.promote_final,
            block_size=_BLOCK,
        )


def read_parameters(values: Mapping[str, object] | None = None) -> EvolverParameters:
    """The parameters by name, defaults for those not given. Raises EvolverError about what is wrong, in one line."""
    try:
        return EvolverParameters.model_validate(dict(values or {}))
    except ValidationError as error:
        problems = [_explained(problem) for problem in error.errors()]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise EvolverError(f"params.{problems[0]}{more}") from None


def refuse_unknown_prompts(parameters: EvolverParameters) -> None:
    """Raises EvolverError when `prompt_env` names prompts there are none of."""
    if parameters.prompt_env not in PROMPT_ENVS:
        known = [name or '"" (the general ones)' for name in PROMPT_ENVS]
        asked = shown(json.dumps(parameters.prompt_env, ensure_ascii=False))
        raise EvolverError(f"params.prompt_env: there are no prompts of the name {asked}: there are {_named(known)}")


def _named(names: Sequence[str]) -> str:
    return listed(tuple(names), "and")


def _explained(problem: ErrorDetails) -> str:
    """`name: what is wrong: remedy`, without a text that may be long or secret."""
    name = shown(".".join(map(str, problem["loc"])))
    kind, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        meant = difflib.get_close_matches(name.lower(), tuple(EvolverParameters.model_fields), n=1)
        known = _named(tuple(EvolverParameters.model_fields))
        return f"{name}: unknown parameter: " + (f"did you mean {meant[0]}?" if meant else f"there are {known}")
    if kind in _EXPECTED:
        return f"{name}: must be {_EXPECTED[kind]}, not {_described(value)}"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"{name}: must be {words} {context[bound]}, not {_described(value)}"
    if kind == "literal_error":
        expected = str(context["expected"]).replace("'", "")
        return f"{name}: must be {expected}, not {_described(value)}"
    if kind == "value_error":
        told = str(context["error"])
        return f"{name}: {told}" if name else told
    return f"{name}: is not valid ({kind})"


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return shown(json.dumps(value), 24)
        case str():
            return shown(json.dumps(value, ensure_ascii=False), 24)
        case _:
            return "a list or an object"
