"""Two families of simulated tasks, and the methods that are compared on them: the full one, and each without one part."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burnish.api import Patch, ReflectionInput, TrainSkill, TrainSkillConfig, open_app
from burnish.application.candidate import CandidatePasses, Verdict, judge_candidate
from burnish.application.optimizer_ports import PatchProposer
from burnish.application.passes import Pass
from burnish.application.training_state import ScoredSkill, TrainingState
from burnish.application.training_step import Judge
from burnish.domain.config import RateControl
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason
from burnish.presentation.container import assemble
from simulated_optimizer import Analyst, Habits, Merger, RemovalMemory, RestatingGuidance
from simulated_world import NoisyAgent, World, WorldSettings


class Forgetful:
    """A proposer that is not shown what was tried in vain."""

    is_pure = True

    def __init__(self, proposer: PatchProposer) -> None:
        self._proposer = proposer

    async def propose(self, reflection: ReflectionInput) -> Patch | None:
        return await self._proposer.propose(replace(reflection, tried=()))


async def accept_always(state: TrainingState, candidate: str, trained: Pass, passes: CandidatePasses) -> Verdict:
    """Take every candidate as the new best, unmeasured: what training without a gate would ship."""
    return Verdict(action=GateAction.ACCEPT_NEW_BEST, reason=StepReason.ACCEPTED, skill=ScoredSkill(candidate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """The full method, or it without one part."""

    name: str
    shows_tried: bool = True
    merges: bool = True
    judge: Judge = judge_candidate
    rate_control: RateControl = RateControl.FIXED
    slow_update: bool = True
    memory: bool = True


FULL = Method(name="full method")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A kind of task, an optimizer's habits on it, how it is trained, and the methods to compare with the full one."""

    name: str
    world: WorldSettings
    habits: Habits
    config: TrainSkillConfig
    ablations: tuple[Method, ...]


HARM_AND_NOISE = Family(
    name="harm and noise",
    world=WorldSettings(
        cases=14,
        train_items=120,
        validation_items=240,
        skew=3.0,
        known_at_first=3,
        comfortable_lines=14,
        slip_a_line=0.03,
        tempting=0.5,
    ),
    habits=Habits(whim=0.2, doubt=0.5, blanket=0.3, tidying=0.2, remarks=3),
    config=TrainSkillConfig(
        epochs=1,
        steps_per_epoch=16,
        lr_start=4,
        lr_min=2,
        train_batch_size=32,
        val_batch_size=240,
        minibatch_size=4,
        block_size=40,
        patience=None,
        use_slow_update=False,
        use_meta_skill=False,
    ),
    ablations=(
        Method(name="without step memory", shows_tried=False),
        Method(name="without learning-rate limit", rate_control=RateControl.NONE),
        Method(name="without merging", merges=False),
        Method(name="without the gate", judge=accept_always),
    ),
)

FORGETTING = Family(
    name="forgetting",
    world=WorldSettings(
        cases=20,
        train_items=80,
        validation_items=60,
        skew=4.0,
        known_at_first=6,
        comfortable_lines=24,
        slip_a_line=0.02,
        tempting=0.25,
    ),
    habits=Habits(whim=0.2, doubt=0.5, tidying=0.5, overwriting=0.6, full_page=8),
    config=TrainSkillConfig(
        epochs=6,
        steps_per_epoch=4,
        lr_start=4,
        lr_min=2,
        train_batch_size=12,
        val_batch_size=60,
        minibatch_size=4,
        block_size=20,
        patience=None,
    ),
    ablations=(
        Method(name="without slow update", slow_update=False),
        Method(name="without meta memory", memory=False),
    ),
)

FAMILIES = (HARM_AND_NOISE, FORGETTING)

VARIANTS = (
    replace(
        HARM_AND_NOISE,
        name="harm and noise, long skills do no harm",
        world=replace(HARM_AND_NOISE.world, slip_a_line=0.0),
    ),
    replace(
        HARM_AND_NOISE,
        name="harm and noise, no blanket rules and no deletions",
        habits=replace(HARM_AND_NOISE.habits, blanket=0.0, tidying=0.0),
    ),
    replace(
        HARM_AND_NOISE,
        name="harm and noise, 60 validation items",
        world=replace(HARM_AND_NOISE.world, validation_items=60),
        config=replace(HARM_AND_NOISE.config, val_batch_size=60),
    ),
    replace(
        FORGETTING,
        name="forgetting, epochs compared on 60 items",
        config=replace(FORGETTING.config, slow_update_samples=60),
    ),
    replace(
        FORGETTING,
        name="forgetting, nothing deleted or overwritten",
        habits=replace(FORGETTING.habits, tidying=0.0, overwriting=0.0),
    ),
)
"""The families with one assumption changed each: what the tables depend on."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What a run came to: the skill it would ship, and the true qualities of that and of the first one."""

    skill: str
    quality: float
    initial_quality: float


async def train(family: Family, method: Method, seed: int) -> Trained:
    """One run, in memory. Raises RuntimeError when it fails."""
    world = World(family.world, seed)
    analyst = Analyst(world, family.habits)
    config = replace(
        family.config,
        seed=seed + 1,
        lr_control_mode=method.rate_control,
        use_slow_update=family.config.use_slow_update and method.slow_update,
        use_meta_skill=family.config.use_meta_skill and method.memory,
    )
    with assemble(
        judge=method.judge, guidance_writer=RestatingGuidance(world), memory_writer=RemovalMemory()
    ) as container:
        async with open_app(
            container=container,
            rollouts=NoisyAgent(world),
            proposer=analyst if method.shows_tried else Forgetful(analyst),
            merger=Merger() if method.merges else None,
        ) as app:
            result = await app.send(TrainSkill(f"seed-{seed}", "simulated", world.initial_skill, config))
    if not result.is_ok:
        raise RuntimeError(f"{family.name}, {method.name}, seed {seed}: {result.failure}")
    skill = result.value.best_skill
    return Trained(skill, world.quality(skill), world.quality(world.initial_skill))
