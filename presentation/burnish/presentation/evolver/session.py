"""One call at work: the stores of its state, claimed for this process, and the ports of the host."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from burnish.application.candidate import judge_candidate
from burnish.application.evolution import Evolution, begin
from burnish.application.journaling import RunJournal, journaling
from burnish.application.ports import ClaimOutcome
from burnish.application.result import ErrorCode
from burnish.application.run_passes import RunPasses
from burnish.application.run_rules import drawn_seed
from burnish.application.train_skill import TrainingPorts
from burnish.application.ungated import accept_anyway
from burnish.infrastructure.models.metered import MeteredModel
from burnish.infrastructure.optimizer.asking import ROLE as OPTIMIZER
from burnish.infrastructure.optimizer.chat_optimizer import chat_optimizer
from burnish.infrastructure.persistence.stores import SqlStores, open_stores
from burnish.presentation.container import assemble, draw_seed, wire
from burnish.presentation.evolver.host import EvolverHost, HostCalls
from burnish.presentation.evolver.host_model import HostModel
from burnish.presentation.evolver.host_runner import ROLE as AGENT
from burnish.presentation.evolver.host_runner import HostRunner
from burnish.presentation.evolver.kept_steps import KeptSteps
from burnish.presentation.evolver.listening import Told
from burnish.presentation.evolver.parameters import EvolverParameters
from burnish.presentation.evolver.refusal import EvolverError
from burnish.presentation.evolver.tasks import HostTask, digest_of_tasks
from burnish.presentation.evolver.workspace import Workspace

RUN = "evolver"
"""The run's id in the stores: a state folder holds one."""

DATABASE = "evolver.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a call is about: what the host handed over, looked at."""

    host: EvolverHost
    workspace: Workspace
    validation: tuple[HostTask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The ports of a step that is under way."""

    ports: TrainingPorts
    passes: RunPasses
    journal: RunJournal
    told: Told

    def usage(self) -> dict[str, dict[str, int]]:
        """Calls and tokens of both roles, from all answers of the step, whichever process asked for them."""
        summed = {role: {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0} for role in (OPTIMIZER, AGENT)}
        for total in self.journal.usage:
            role = summed[total.role]
            role["calls"] += total.calls
            role["prompt_tokens"] += total.prompt_tokens
            role["completion_tokens"] += total.completion_tokens
        return summed


class Session:
    """The open state of an evolver; see `open_session`."""

    def __init__(self, work: Work, parameters: EvolverParameters, stores: SqlStores) -> None:
        self._work = work
        self._parameters = parameters
        self._stores = stores
        self.steps = KeptSteps(stores.journal, stores.memory)

    async def begin(self, document: str) -> Evolution:
        """The start of training with the document; a seed that nobody chose is drawn once."""
        parameters = self._parameters
        config = parameters.config(validation_tasks=len(self._work.validation))
        seed = config.seed or await drawn_seed(draw_seed, RunJournal(self._stores.journal, RUN))
        return begin(document, config, run_id=RUN, seed=seed, total_steps=parameters.schedule_steps)

    async def forget_errors(self, *, from_step: int) -> None:
        """Let what stayed without an answer in this and later steps be asked again."""
        await self._stores.journal.forget_errors(RUN, from_step=from_step)

    @asynccontextmanager
    async def running(
        self, calls: HostCalls, *, step: int, seed: int, train: Sequence[HostTask]
    ) -> AsyncGenerator[Running]:
        """Let everything asked in the block go through the journal, as part of the step."""
        parameters, told = self._parameters, Told()
        with assemble(None, **self._bindings(calls, train), sinks=(told,)) as container:
            wire(container)
            ports: TrainingPorts = container.training_ports()
        journal = RunJournal(self._stores.journal, RUN, counted_from=step)
        await journal.prepare()
        config = parameters.config(validation_tasks=len(self._work.validation))
        with journaling(journal):
            yield Running(ports=ports, passes=RunPasses(ports.passes, config, seed=seed), journal=journal, told=told)

    def _bindings(self, calls: HostCalls, train: Sequence[HostTask]) -> Mapping[str, object]:
        parameters, host, stores = self._parameters, self._work.host, self._stores
        model = MeteredModel(HostModel(host.llm, calls, temperature=parameters.temperature), OPTIMIZER)
        optimizer = chat_optimizer(model, limits=parameters.limits)
        runner = HostRunner(
            host.run_agent,
            calls,
            validation=self._work.validation,
            train=train,
            success_score=parameters.success_score,
            shows_traces=parameters.codex_trace_to_optimizer,
        )
        return {
            "rollouts": runner,
            "proposer": optimizer.proposer,
            "merger": optimizer.merger,
            "ranker": optimizer.ranker,
            "guidance_writer": optimizer.guidance_writer,
            "memory_writer": optimizer.memory_writer,
            "runs": stores.runs,
            "memory": stores.memory,
            "journal": stores.journal,
            "audit_log": stores.audit_log,
            "checkpoints": stores.checkpoints,
            "judge": judge_candidate if parameters.use_gate else accept_anyway,
            "workers": 1,
            "analyst_workers": parameters.analyst_workers,
            "actor": RUN,
        }


@asynccontextmanager
async def open_session(work: Work, parameters: EvolverParameters) -> AsyncGenerator[Session]:
    """Open the state for one call, the only one at a time.

    Raises EvolverError when another call is at work, or the state belongs to other parameters or validation data.
    """
    async with open_stores(work.workspace.state / DATABASE) as stores:
        told = {f"params.{name}": value for name, value in parameters.identity().items()}
        identity = {"skill_id": RUN, "validation_data": digest_of_tasks(work.validation), **told}
        claim = await stores.runs.claim(RUN, identity)
        if claim.outcome is ClaimOutcome.ACTIVE:
            line = "state: another call is at work on it: wait until it has returned"
            raise EvolverError(line, ErrorCode.RUN_ALREADY_ACTIVE)
        if claim.outcome is ClaimOutcome.OTHER_IDENTITY:
            line = (
                f"state: was begun with other values of {', '.join(claim.differing)}: give those, or empty the folder"
            )
            raise EvolverError(line, ErrorCode.RUN_IDENTITY_MISMATCH)
        try:
            yield Session(work, parameters, stores)
        finally:
            await stores.runs.release(RUN)
