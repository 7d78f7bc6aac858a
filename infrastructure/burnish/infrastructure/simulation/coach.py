"""A simulated optimizer: knows the right rules, and mixes useful, useless and harmful edits in set shares."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from functools import partial

from burnish.domain.edits import Edit, EditOp, Patch, apply_patch
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatRequest
from burnish.infrastructure.simulation.change_prompt import (
    read_change_prompt,
    read_comparison_prompt,
    read_epoch_prompt,
    read_merge_prompt,
    read_notes_prompt,
)
from burnish.infrastructure.simulation.coach_edits import Draft, distract, harm, teach
from burnish.infrastructure.simulation.coach_notes import fewer_notes, reminders
from burnish.infrastructure.simulation.coach_roles import (
    EditKind,
    as_json,
    counted,
    edit_fields,
    merged,
    ranked,
    remembered,
    rewritten,
    seen_kinds,
    whole_skill,
)
from burnish.infrastructure.simulation.coach_suggestions import suggestion_of
from burnish.infrastructure.simulation.draws import draw
from burnish.infrastructure.simulation.reflect_prompt import ReflectPrompt, ShownFailure, read_reflect_prompt
from burnish.infrastructure.simulation.rules import (
    VALUED,
    Rule,
    RuleKind,
    RuleLine,
    Rules,
    parse_rules,
    rule_lines,
    rules_behind,
)
from burnish.infrastructure.simulation.usage import answered

USUAL_BUDGET = 4
"""The most edits in an answer to a prompt that names no budget."""

NOTED = "noted_"
"""Before the name of a form of an analyst's answer that has notes."""

GUIDANCE_LINES = 2
"""The most lines that new guidance adds to what it keeps of the previous one."""


class SimulatedCoach:
    """A ChatModel without a model: it plays every role of the optimizer out of `knowledge`, a text with the right rules.

    It sees no items but those in the prompt. An edit is useful when it brings a rule that the skill lacks and that decides
    a failure shown, useless when it changes no rule, harmful when it contradicts or deletes a right one; `useful`,
    `useless` and `harmful` weigh the three. Suggestions, whole skills and guidance are made of such edits. Of changes it is
    to judge, it sees the kind of a share of `accuracy`, in [0, 1]. What comes up depends on `seed` and the request's seed
    and texts only, never on the order of calls. ValueError when `knowledge` states no rule, when a weight is negative or
    not finite, when all three are 0, or for an `accuracy` out of range.
    """

    def __init__(
        self,
        knowledge: str,
        useful: float = 0.7,
        useless: float = 0.2,
        harmful: float = 0.1,
        seed: int = 0,
        *,
        accuracy: float = 0.9,
    ) -> None:
        weights = {EditKind.USEFUL: useful, EditKind.USELESS: useless, EditKind.HARMFUL: harmful}
        total = sum(weights.values())
        if not math.isfinite(total) or total <= 0 or min(weights.values()) < 0:
            raise ValueError(f"no weights of kinds of edits: useful={useful}, useless={useless}, harmful={harmful}")
        if not 0.0 <= accuracy <= 1.0:
            raise ValueError(f"accuracy must lie in [0, 1], not {accuracy}")
        self._rules = parse_rules(knowledge)
        self._lines = tuple(line for line in rule_lines(knowledge) if all(map(self._rules.states, line.rules)))
        if not self._lines:
            raise ValueError("the knowledge states no rule")
        self._right = {rule for line in self._lines for rule in line.rules}
        self._weights = weights
        self._seed = seed
        self._accuracy = accuracy
        self._knowledge_digest = hashlib.sha256(knowledge.encode()).hexdigest()[:12]

    @property
    def fingerprint(self) -> str:
        """The name under which it is known as simulated, its parameters, and a digest of its knowledge."""
        weights = ", ".join(f"{kind.value}={weight!r}" for kind, weight in self._weights.items())
        knowledge = f"knowledge={self._knowledge_digest}"
        return f"simulated-coach({weights}, seed={self._seed}, {knowledge}, accuracy={self._accuracy!r})"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer its purpose asks for, as JSON.

        Raises ChatError: BAD_REQUEST for a purpose that no role has, or a user message without the anchors of its purpose;
        TRUNCATED for an answer that may not be so long.
        """
        identity = json.dumps([self._seed, request.seed, request.system, request.user])
        text = self._answer(request, hashlib.sha256(identity.encode()).hexdigest())
        if text is None:
            raise ChatError(ChatErrorCode.BAD_REQUEST)
        return answered(request, text)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _answer(self, request: ChatRequest, digest: str) -> str | None:
        """What it says; None to a prompt that is none of its business."""
        match request.purpose:
            case "reflect":
                prompt = read_reflect_prompt(request.user)
                return None if prompt is None else self._proposal(prompt, request.schema_name, digest)
            case "merge":
                merge = read_merge_prompt(request.user)
                return None if merge is None else merged(merge)
            case "rank" | "learning_rate" | "rewrite":
                changes = read_change_prompt(request.user)
                if changes is None:
                    return None
                if request.purpose == "rewrite":
                    return rewritten(changes)
                kinds = seen_kinds(changes, self._right, self._accuracy, digest)
                return ranked(changes, kinds) if request.purpose == "rank" else counted(kinds, self._accuracy)
            case "consolidate":
                listed = read_notes_prompt(request.user)
                if listed is None:
                    return None
                return as_json(reasoning="The newest stay.", notes=fewer_notes(listed.notes, listed.most))
            case "guidance":
                return self._guidance(request.user, digest)
            case "memory":
                epoch = read_epoch_prompt(request.user)
                return None if epoch is None else remembered(epoch)
            case _:
                return None

    def _proposal(self, prompt: ReflectPrompt, form: str, digest: str) -> str:
        """Edits, with at most as many as the prompt's budget, none when there is nothing to say; or what else is wanted."""
        lessons = self._lessons(prompt, digest)
        edits = self._edits(prompt, lessons, digest)
        noted: dict[str, object] = {}
        if form.startswith(NOTED):
            behind = [self._rules_behind(failure) for failure in prompt.failures]
            noted["notes"] = reminders(parse_rules(prompt.skill), self._lines, behind)
        reasoning = f"{len(prompt.failures)} failed; rules behind that and not in the skill: {len(lessons)}."
        match form.removeprefix(NOTED):
            case "suggestions":
                return as_json(reasoning=reasoning, suggestions=list(map(suggestion_of, edits)), **noted)
            case "whole_skill":
                return whole_skill(apply_patch(prompt.skill, Patch(edits)).content, reasoning, edits, noted)
            case _:
                return as_json(reasoning=reasoning, edits=list(map(edit_fields, edits)), **noted)

    def _guidance(self, text: str, digest: str) -> str | None:
        """The right rules of the previous guidance, and lines that edits for the failing items would add."""
        comparison = read_comparison_prompt(text)
        if comparison is None:
            return None
        stated = rule_lines(comparison.previous_guidance)
        kept = [line.text for line in stated if self._right.issuperset(line.rules)]
        prompt = ReflectPrompt(comparison.skill, comparison.failures, GUIDANCE_LINES)
        lessons = self._lessons(prompt, digest) if comparison.failures else []
        edits = self._edits(prompt, lessons, digest) if comparison.failures else ()
        added = [edit.content.strip() for edit in edits if edit.op is not EditOp.DELETE]
        return as_json(
            verdict=f"{len(kept)} of {len(stated)} rules of it are right.",
            reasoning=f"{len(comparison.failures)} items fail; rules behind that and not in the skill: {len(lessons)}.",
            guidance="\n".join(dict.fromkeys([*kept, *added])),
        )

    def _lessons(self, prompt: ReflectPrompt, digest: str) -> list[RuleLine]:
        """Lines with a rule that the skill lacks and that decides a failure shown, those of most failures first."""
        known = parse_rules(prompt.skill)
        behind = [self._rules_behind(failure) for failure in prompt.failures]
        cases = {line: _cases([rule for rule in line.rules if not known.states(rule)], behind) for line in self._lines}
        return sorted((line for line in cases if cases[line]), key=lambda line: (-cases[line], draw(digest, line.text)))

    def _rules_behind(self, failure: ShownFailure) -> frozenset[Rule]:
        if failure.question is not None:
            return rules_behind(self._rules, failure.question)
        return _rules_hinted_at(self._rules, failure.text)

    def _edits(self, prompt: ReflectPrompt, lessons: list[RuleLine], digest: str) -> tuple[Edit, ...]:
        """A draw of a kind for each edit; a kind without an edit to make leaves its place empty.

        A coach that means well (`useful` above 0) makes no more edits than it has lessons, one if it has none, and then
        does no harm.
        """
        budget = USUAL_BUDGET if prompt.edit_budget is None else prompt.edit_budget
        means_well = self._weights[EditKind.USEFUL] > 0
        places = min(budget, max(1, len(lessons))) if means_well else budget
        to_teach = iter(lessons)
        draft = Draft(prompt.skill, prompt.skill)
        edits: list[Edit] = []
        for place in range(places):
            chance = partial(draw, digest, place)
            edit: Edit | None = None
            match self._kind(chance("kind")):
                case EditKind.USEFUL:
                    edit = next(filter(None, (teach(draft, line) for line in to_teach)), None)
                case EditKind.USELESS:
                    edit = distract(draft, chance("advice"))
                case EditKind.HARMFUL:
                    edit = None if means_well and not lessons else harm(draft, self._lines, chance)
            if edit is not None:
                draft = draft.with_edit(edit) or draft
                edits.append(edit)
        return tuple(edits)

    def _kind(self, chance: float) -> EditKind:
        """The kind under a point of the line on which the kinds lie one after another, as long as their weights."""
        point = chance * sum(self._weights.values())
        for kind, weight in self._weights.items():
            if point < weight:
                return kind
            point -= weight
        return max(self._weights, key=self._weights.__getitem__)  # rounding carried the point to the line's very end


def _cases(missing: Sequence[Rule], behind: Sequence[frozenset[Rule]]) -> int:
    """The number of failures in which one of the missing rules has a say."""
    return sum(not rules.isdisjoint(missing) for rules in behind)


def _rules_hinted_at(rules: Rules, text: str) -> frozenset[Rule]:
    """The rules a failure points to whose question is not marked: by their phrases or their values somewhere in it."""
    hinted = {rule for rule in rules_behind(rules, text) if rule.kind is not RuleKind.OTHERWISE}
    hinted.update(rule for rule in rules.stated if rule.kind in VALUED and rule.value in text)
    return frozenset(hinted)
