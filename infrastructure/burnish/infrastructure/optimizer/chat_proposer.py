"""The patch proposer: a chat model reads rollouts and answers with edits."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from importlib.resources import files
from typing import Final

from burnish.application.log import get_logger
from burnish.application.optimizer_ports import ReflectionInput
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.domain.edits import EditSource, Patch
from burnish.domain.regions import RegionKind, front_matter_span, protection
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import skill_hash
from burnish.infrastructure.models.chat import ChatError, ChatModel, ChatRequest
from burnish.infrastructure.optimizer.patch_reading import UnreadablePatchError, read_patch
from burnish.infrastructure.optimizer.patch_schema import PATCH_SCHEMA, SCHEMA_NAME
from burnish.infrastructure.optimizer.trajectories import cut_middle, show_rollouts

PURPOSE: Final = "reflect"
TRAJECTORY_TOKENS: Final = 12_000
"""To which each trajectory that is shown is cut."""
COMPLAINT_TOKENS: Final = 1_200
"""About what the repair round adds to the first question at most."""

_PACKAGE: Final = "burnish.infrastructure.optimizer"
_INSTRUCTIONS: Final = "prompts/reflect/SKILL.md"
_SHOWN_ANSWER_TOKENS: Final = 1_000  # of an unreadable answer, in the repair round
_FORM: Final = '{"reasoning": "…", "edits": [{"op": "…", "target": "…", "content": "…"}]}'

_log = get_logger(__name__)


class ChatPatchProposer:
    """Asks a model once for edits, and once more when its answer is no patch.

    Each trajectory is cut to `trajectory_tokens`, an answer has at most `max_tokens`; ValueError when either is below 1.
    """

    def __init__(
        self, model: ChatModel, *, trajectory_tokens: int = TRAJECTORY_TOKENS, max_tokens: int = 4_096
    ) -> None:
        if trajectory_tokens < 1 or max_tokens < 1:
            raise ValueError(f"trajectory_tokens={trajectory_tokens} and max_tokens={max_tokens} must be at least 1")
        self._model = model
        self._trajectory_tokens = trajectory_tokens
        self._max_tokens = max_tokens
        self._instructions = reflect_instructions()

    @property
    def fingerprint(self) -> str:
        """A SHA-256 over the model, the instructions and the limits: what else decides about an answer is the request."""
        parts = [self._model.fingerprint, self._instructions, self._trajectory_tokens, self._max_tokens]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    async def propose(self, reflection: ReflectionInput) -> Patch:
        """The model's edits, none cut away; an empty patch, without a call, when there is no rollout to show.

        Each edit has its source (failure as soon as one failure was shown) and the hash of the skill it was written for;
        its support is unknown. Raises PortError: UNREADABLE_PATCH when both answers are no patch, PROPOSER_CALL_FAILED
        when the model gives none.
        """
        shown = _shown(reflection)
        if not shown:
            return Patch()
        request = self.request(reflection)
        patch = await self._ask(request, reflection.current_skill)
        source = EditSource.SUCCESS if all(rollout.is_success for rollout in shown) else EditSource.FAILURE
        version = skill_hash(reflection.current_skill)
        return replace(patch, edits=tuple(replace(edit, source=source, skill_version=version) for edit in patch.edits))

    def request(self, reflection: ReflectionInput) -> ChatRequest:
        """What the model is asked first."""
        return ChatRequest(
            system=self._instructions,
            user=_question(reflection, _shown(reflection), self._trajectory_tokens),
            purpose=PURPOSE,
            json_schema=PATCH_SCHEMA,
            schema_name=SCHEMA_NAME,
            max_tokens=self._max_tokens,
            seed=reflection.seed or None,
        )

    async def _ask(self, request: ChatRequest, skill: str) -> Patch:
        """The patch in the first answer, or in the second.

        Read in a thread: the repair of a badly broken answer can take seconds, while other calls must go on.
        """
        answer = await self._complete(request)
        try:
            return await asyncio.to_thread(read_patch, answer, skill)
        except UnreadablePatchError as error:
            problem = str(error)
        _log.warning("reflect.unreadable_answer", round=1, problem=problem, characters=len(answer))
        answer = await self._complete(replace(request, user=request.user + _complaint(answer, problem)))
        try:
            return await asyncio.to_thread(read_patch, answer, skill)
        except UnreadablePatchError as error:
            _log.warning("reflect.unreadable_answer", round=2, problem=str(error), characters=len(answer))
            raise PortError(ErrorCode.UNREADABLE_PATCH) from error

    async def _complete(self, request: ChatRequest) -> str:
        try:
            return (await self._model.complete(request)).text
        except ChatError as error:
            _log.warning("reflect.call_failed", code=error.code.value, attempts=error.attempts)
            raise PortError(ErrorCode.PROPOSER_CALL_FAILED) from error


def reflect_instructions() -> str:
    """What the optimizer is told, as shipped, without its front matter."""
    text = files(_PACKAGE).joinpath(_INSTRUCTIONS).read_text(encoding="utf-8")
    return text[front_matter_span(text).end :].strip()


def _shown(reflection: ReflectionInput) -> tuple[Rollout, ...]:
    """The rollouts the model gets to see: with an answer, and failed ones only where successes are not wanted."""
    return tuple(
        rollout
        for rollout in reflection.rollouts
        if rollout.error is None and (reflection.include_successes or not rollout.is_success)
    )


def _question(reflection: ReflectionInput, shown: tuple[Rollout, ...], trajectory_tokens: int) -> str:
    """The user message: what a batch's calls share comes first (prefix caches), the rollouts come last."""
    failures = sum(not rollout.is_success for rollout in shown)
    sections = [_skill_section(reflection.current_skill)]
    protected = _protected_parts(reflection.current_skill)
    if protected:
        named = "\n".join(f"- {part}" for part in protected)
        sections.append(
            f"# Protected parts\n\nDo not edit these parts of the skill, and take no target from them:\n\n{named}"
        )
    if reflection.meta_skill_memory.strip():
        memory = reflection.meta_skill_memory.strip()
        sections.append(f"# What earlier epochs taught about editing this skill\n\n<memory>\n{memory}\n</memory>")
    sections.append(f"# Edit budget\n\n{_budget(reflection.edit_budget)}")
    sections.append(
        f"# Rollouts with this skill: {failures} failed, {len(shown) - failures} succeeded\n\n"
        + show_rollouts(shown, trajectory_tokens=trajectory_tokens)
    )
    sections.append(f"# Your answer\n\nOne JSON object and nothing else: {_FORM}")
    return "\n\n".join(sections)


def _skill_section(skill: str) -> str:
    if not skill.strip():
        return "# Current skill\n\nThe skill is still empty: every edit must be an append."
    return f"# Current skill\n\nEverything between the two tags:\n\n<skill>\n{skill}\n</skill>"


def _protected_parts(skill: str) -> list[str]:
    """The parts of this skill that edits must leave alone, by name, each kind once."""
    guard = protection(skill)
    kinds = {region.kind for region in guard.regions}
    parts = ["the front matter, from the first line to the second `---`"] if guard.front_matter else []
    return parts + [
        f"everything from `{kind.start_marker}` to `{kind.end_marker}`" for kind in RegionKind if kind in kinds
    ]


def _budget(edit_budget: int | None) -> str:
    if edit_budget is None:
        return "Propose no more edits than the evidence asks for, the most useful first."
    return f"Propose at most {edit_budget} edit{'' if edit_budget == 1 else 's'}, the most useful first."


def _complaint(answer: str, problem: str) -> str:
    """What the repair round adds to the first question."""
    shown = cut_middle(answer, _SHOWN_ANSWER_TOKENS)
    return (
        "\n\n# Your answer could not be read\n\nYou have answered this already, with:\n\n"
        f"<answer>\n{shown}\n</answer>\n\nThis is no patch: {problem}. Give the same edits again as one JSON object,"
        " with quotation marks and line breaks inside texts escaped, and write nothing before or after it."
    )
