"""The evolver: one training step a call, inside somebody else's loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypedDict, cast

from burnish.application.events import Stage
from burnish.application.evolution import Evolution, conclude, evolve
from burnish.application.kept_evolution import KeptEvolution
from burnish.application.log import get_logger
from burnish.application.ports import PortError
from burnish.domain.runs import skill_hash
from burnish.infrastructure.tasks.refusals import RefusalError
from burnish.presentation.evolver.host import EvolverHost, HostCalls, calling
from burnish.presentation.evolver.host_runner import HostAnswerError
from burnish.presentation.evolver.kept_steps import Outcome, Place
from burnish.presentation.evolver.parameters import EvolverParameters, read_parameters, refuse_unknown_prompts
from burnish.presentation.evolver.refusal import EvolverError, conflict
from burnish.presentation.evolver.report import is_too_sparse, report_end, report_step
from burnish.presentation.evolver.session import DATABASE, Session, Work, open_session
from burnish.presentation.evolver.starting_point import DONE, FAILED, Start, starting_point
from burnish.presentation.evolver.tasks import HostTask, read_tasks
from burnish.presentation.evolver.workspace import Material, Workspace

_log = get_logger(__name__)


class StepResult(TypedDict):
    """What a call returns: `failed` when the world outside did not answer, and the same call may be made again.

    `usage` holds calls, prompt_tokens and completion_tokens of this step by role, `optimizer` (the host's `llm`) and
    `target` (its agent: runs, and tokens where its attempts tell them).
    """

    status: Literal["done", "failed"]
    summary: str
    usage: dict[str, dict[str, int]]


class Evolver:
    """SkillOpt as one learning method of a host that has tasks, an agent, a judge and a loop of its own.

    Everything it remembers is in the workspace's `state/`: a new object, in a new process, goes on where the last one was
    killed, and asks nothing twice that was answered. Every method raises EvolverError, and changes nothing, for a call
    that does not fit the contract or the state.
    """

    def __init__(self, parameters: EvolverParameters | Mapping[str, object] | None = None) -> None:
        self._parameters = parameters if isinstance(parameters, EvolverParameters) else read_parameters(parameters)

    async def setup(self, ctx: EvolverHost) -> None:
        """Look at all that is there before the first step, and claim the state; nobody is asked anything."""
        work = self._work(ctx)
        work.workspace.read_document()
        async with self._session(work):
            pass

    async def step(self, ctx: EvolverHost) -> StepResult:
        """Learn from the material at hand: propose, gate, write the selected document and the report.

        A step that is done and called again writes both again and asks nothing. One that failed left the document as it was.
        """
        work = self._work(ctx)
        material = work.workspace.material(reads_traces=self._parameters.codex_trace_to_optimizer)
        async with self._session(work) as session:
            start = await starting_point(session, material.number, material.digest, work.workspace.read_document())
            outcome = start.known
            if outcome is None:
                with calling(at_once=self._parameters.analyst_workers + 1) as calls:
                    outcome = await self._stepped(session, start, material, calls, len(work.validation))
            return _left(work.workspace, outcome, outcome.evolution.state.current.text)

    async def finalize(self, ctx: EvolverHost) -> StepResult:
        """Put the selected document in place: the best one, or the final one if fresh scores of both say so.

        Called again it writes the same; only a comparison that stayed without answers is made again.
        """
        work = self._work(ctx)
        async with self._session(work) as session:
            latest = await session.steps.latest()
            ended = await session.steps.conclusion(latest) if latest.final else None
            document = work.workspace.read_document()
            known = await session.steps.outcome(latest)
            _refuse_unknown(document, ended or known)
            if ended is None or ended.status == FAILED:
                before = await session.begin(document) if known is None else known.evolution
                if ended is not None and not latest.asks_again:
                    await session.forget_errors(from_step=latest.step + 1)
                    await session.steps.point_to(replace(latest, asks_again=True))
                with calling(at_once=self._parameters.analyst_workers + 1) as calls:
                    ended = await self._concluded(session, before, latest, document, calls)
            return _left(work.workspace, ended, ended.evolution.state.best.text)

    async def next_step_ends_epoch(self, ctx: EvolverHost) -> bool:
        """Whether the next step brings the work of an epoch's end as well, so that it takes far longer than others."""
        work = self._work(ctx)
        evolution: Evolution | None = None
        if (work.workspace.state / DATABASE).exists():
            async with self._session(work) as session:
                known = await session.steps.outcome(await session.steps.latest())
                evolution = None if known is None else known.evolution
        steps = self._parameters.steps_per_epoch
        return steps == 1 if evolution is None else evolution.ends_epoch(steps)

    async def _stepped(
        self, session: Session, start: Start, material: Material, calls: HostCalls, validation_tasks: int
    ) -> Outcome:
        parameters, before = self._parameters, start.evolution
        if not await session.steps.begin(start.place.step, material):
            line = f"step {material.number}: was begun with other material: hand over the same, or the next step"
            raise conflict(line)
        ends_epoch = before.ends_epoch(parameters.steps_per_epoch)
        compares = ends_epoch and parameters.use_slow_update and before.prior_skill is not None
        first = 1 if compares else start.place.step
        train = await session.steps.tasks(first=first, last=start.place.step)
        rollouts = [
            attempt.rollout(success_score=parameters.success_score, shows_trace=parameters.codex_trace_to_optimizer)
            for attempt in material.attempts
        ]
        async with session.running(calls, step=start.place.step, seed=before.state.seed, train=train) as running:
            after = await evolve(
                before,
                rollouts,
                running.ports,
                running.passes,
                running.journal,
                steps_per_epoch=parameters.steps_per_epoch,
            )
        usage = running.usage()
        texts = report_step(
            material.number,
            before,
            after,
            told=running.told,
            usage=usage,
            parameters=parameters,
            validation_tasks=validation_tasks,
        )
        outcome = Outcome(
            number=material.number,
            material=material.digest,
            found=skill_hash(before.state.current.text),
            before=start.before,
            status=FAILED if after.has_failed else DONE,
            summary=texts.summary,
            report=texts.report,
            usage=usage,
            kept=KeptEvolution.of(after),
        )
        await session.steps.keep(start.place, outcome)
        return outcome

    async def _concluded(
        self, session: Session, before: Evolution, latest: Place, document: str, calls: HostCalls
    ) -> Outcome:
        state = before.state
        train: tuple[HostTask, ...] = await session.steps.tasks(first=state.step, last=state.step)
        async with session.running(calls, step=state.step + 1, seed=state.seed, train=train) as running:
            after = await conclude(before, running.ports, running.passes, running.journal)
        passes, usage = running.told.passes(Stage.PROMOTE_FINAL), running.usage()
        is_inconclusive = any(is_too_sparse(scored.score, state.config.max_error_rate) for scored in passes)
        texts = report_end(after, running.told, usage, is_inconclusive=is_inconclusive)
        outcome = Outcome(
            number=0,
            material="",
            found=skill_hash(document),
            before=replace(latest, final=0, asks_again=False),
            status=FAILED if is_inconclusive else DONE,
            summary=texts.summary,
            report=texts.report,
            usage=usage,
            kept=KeptEvolution.of(after),
        )
        await session.steps.keep(replace(latest, final=latest.final + 1), outcome)
        return outcome

    def _work(self, ctx: EvolverHost) -> Work:
        """What the host handed over. Raises EvolverError when something is missing that every call needs."""
        parameters = self._parameters
        refuse_unknown_prompts(parameters)
        for name in ("llm", "run_agent"):
            if not callable(getattr(ctx, name, None)):
                raise EvolverError(f"ctx.{name}: must be a function: hand one over")
        try:
            given = getattr(ctx, "validation_data", None)
            validation = read_tasks(() if given is None else given)
        except RefusalError as refusal:
            raise EvolverError(
                f"{' '.join(filter(None, ('validation_data', refusal.place)))}: {refusal.what}"
            ) from None
        if not validation:
            raise EvolverError("validation_data: there is none, and it decides what is kept: hand over tasks")
        workspace = Workspace(_folder(ctx), parameters.file)
        workspace.prepare()
        return Work(host=ctx, workspace=workspace, validation=validation)

    @asynccontextmanager
    async def _session(self, work: Work) -> AsyncGenerator[Session]:
        """The open state; coded failures inside become EvolverErrors."""
        try:
            async with open_session(work, self._parameters) as session:
                yield session
        except HostAnswerError as error:
            _log.warning("evolver.refused", code=error.code.value)
            raise EvolverError(error.line, error.code) from error
        except PortError as error:
            _log.exception("evolver.failed", code=error.code.value)
            about = f" ({', '.join(error.fields)})" if error.fields else ""
            raise EvolverError(f"state: {error.code.meaning}{about}: {error.code.remedy}", error.code) from error


def _folder(ctx: EvolverHost) -> Path:
    try:
        folder = Path(ctx.workspace)
    except (AttributeError, TypeError):
        folder = None
    if folder is None or not folder.is_dir():
        raise EvolverError("ctx.workspace: must be the path of a folder that is there: make it first")
    return folder


def _left(workspace: Workspace, outcome: Outcome, document: str) -> StepResult:
    """Write what the call leaves, and say how it ended."""
    workspace.write_document(document)
    workspace.write_report(outcome.report)
    return StepResult(
        status=cast("Literal['done', 'failed']", outcome.status),
        summary=outcome.summary,
        usage={role: dict(told) for role, told in outcome.usage.items()},
    )


def _refuse_unknown(document: str, known: Outcome | None) -> None:
    """Raises EvolverError for a document that neither the last step nor finalize left."""
    if known is None:
        return
    state = known.evolution.state
    if document not in {state.current.text, state.best.text} and skill_hash(document) != known.found:
        raise conflict("adapter: the document is not the one the evolver left: put that back")
