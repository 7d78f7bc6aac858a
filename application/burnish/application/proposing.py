"""Stage 2 of a step, reflect: analysts read minibatches of rollouts side by side, and propose edits."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.application.optimizer import Optimizer, or_code, together
from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.application.passes import Pass
from burnish.application.reflect_on_failures import ask_proposer
from burnish.application.result import ErrorCode
from burnish.application.training_state import TrainingState
from burnish.domain.appendix import fit_notes
from burnish.domain.config import AppendixSource, RateControl, TrainSkillConfig, UpdateMode
from burnish.domain.edits import EditSource, Patch
from burnish.domain.minibatches import Minibatch, split_minibatches
from burnish.domain.rollouts import batch_seed
from burnish.domain.schedule import learning_rate

_FOCUS = {EditSource.FAILURE: Focus.FAILURES, EditSource.SUCCESS: Focus.SUCCESSES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """What the analysts answered, in the order of their minibatches; `code` when there were some and all failed.

    `notes` are those that were wanted, each once, fit to stand in an appendix.
    """

    from_failures: tuple[Patch, ...] = ()
    from_successes: tuple[Patch, ...] = ()
    notes: tuple[str, ...] = ()
    asked: int = 0
    failed: int = 0
    code: str | None = None

    @property
    def patches(self) -> tuple[Patch, ...]:
        """All of them, failures' first."""
        return (*self.from_failures, *self.from_successes)

    @property
    def edits(self) -> int:
        """How many edits were proposed."""
        return sum(len(patch.edits) for patch in self.patches)


async def propose_edits(state: TrainingState, rollouts: Pass, optimizer: Optimizer) -> Proposals:
    """Ask an analyst for each minibatch; nobody is asked when only failures may be shown and there are none."""
    config = state.config
    seed = batch_seed(state.seed, "reflect", state.epoch, state.step)
    minibatches = split_minibatches(
        rollouts.answered, size=config.minibatch_size, seed=seed, failure_only=config.failure_only
    )
    requests = [_request(state, minibatch, index) for index, minibatch in enumerate(minibatches)]
    answers = await together([or_code(ask_proposer(optimizer.proposer, request)) for request in requests])
    patches: dict[EditSource, list[Patch]] = {source: [] for source in EditSource}
    codes: list[ErrorCode] = []
    notes: list[str] = []
    for minibatch, answer in zip(minibatches, answers, strict=True):
        if isinstance(answer, ErrorCode):
            codes.append(answer)
        else:
            patch = _sourced(answer, minibatch, config)
            notes.extend(patch.notes)
            patches[minibatch.source].append(patch)
    return Proposals(
        from_failures=tuple(patches[EditSource.FAILURE]),
        from_successes=tuple(patches[EditSource.SUCCESS]),
        notes=fit_notes(notes),
        asked=len(answers),
        failed=len(codes),
        code=codes[0].value if codes and len(codes) == len(answers) else None,
    )


def scheduled_rate(state: TrainingState) -> int:
    """The learning rate of this step by the schedule."""
    return _scheduled(state.config, state.schedule_step, state.total_steps)


def analyst_budget(config: TrainSkillConfig, *, schedule_step: int, total_steps: int) -> int | None:
    """The most edits one analyst should propose: this step's rate; where it is not known yet, the highest one."""
    if config.update_mode is UpdateMode.FULL_REWRITE_MINIBATCH:
        return 1
    if config.lr_control_mode is RateControl.NONE:
        return None
    is_open = config.lr_control_mode is RateControl.AUTONOMOUS
    return config.lr_start if is_open else _scheduled(config, schedule_step, total_steps)


def _scheduled(config: TrainSkillConfig, step: int, total_steps: int) -> int:
    return learning_rate(config.lr_scheduler, step, total_steps, config.lr_start, config.lr_min)


def _request(state: TrainingState, minibatch: Minibatch, index: int) -> ReflectionInput:
    config = state.config
    return ReflectionInput(
        current_skill=state.current.text,
        rollouts=minibatch.rollouts,
        meta_skill_memory=state.memory,
        include_successes=not config.failure_only,
        edit_budget=analyst_budget(config, schedule_step=state.schedule_step, total_steps=state.total_steps),
        seed=batch_seed(state.seed, "reflect", state.epoch, state.step, index),
        focus=_FOCUS[minibatch.source],
        update_mode=config.update_mode,
        tried=state.tried,
        wants_notes=_wants_notes(minibatch.source, config),
    )


def _wants_notes(source: EditSource, config: TrainSkillConfig) -> bool:
    is_of_use = source is EditSource.FAILURE or config.skill_aware_appendix_source is AppendixSource.BOTH
    return config.use_skill_aware_reflection and is_of_use


def _sourced(patch: Patch, minibatch: Minibatch, config: TrainSkillConfig) -> Patch:
    """The patch, whose edits know where they come from when the proposer did not say; without notes nobody wants."""
    notes = patch.notes if _wants_notes(minibatch.source, config) else ()
    edits = tuple(replace(edit, source=edit.source or minibatch.source) for edit in patch.edits)
    return replace(patch, edits=edits, notes=notes)
