"""The optimizer of the simulated worlds: an analyst with bad habits, a merger, and the writers of guidance and memory."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from burnish.api import Edit, EditOp, Patch, ReflectionInput
from burnish.application.optimizer_ports import EpochComparison, EpochSummary, Focus, MergeInput
from burnish.domain.regions import RegionKind, read_region
from burnish.domain.rollouts import Rollout
from burnish.domain.step_memory import TriedStep
from simulated_world import World, blanket_line, parse_line, remark_line, rule_line, rule_lines

KEEP_RULES = "Rules that were removed or overwritten were missed later: add rules, and leave the others alone."
"""What the memory says once removals were followed by regressions."""

_STOOD = re.compile(r"^Stood at the end of epoch \d+: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How an analyst goes wrong, each number a share of the occasions."""

    whim: float = 0.0
    """Following another idea than the one the rollouts suggest first."""
    blanket: float = 0.0
    """Making one rule for all cases of several failures."""
    tidying: float = 0.0
    """Wanting to delete a rule that the rollouts at hand did not need."""
    overwriting: float = 0.0
    """Putting a new rule in the place of one that the rollouts at hand did not need, once the page is full."""
    full_page: int = 99
    """Lines from which on a page looks full."""
    doubt: float = 0.0
    """Blaming the rule, and not chance, for a single failure."""
    remarks: int = 0
    """Remarks an analyst has left to make when its budget allows them."""


@dataclass(frozen=True, slots=True)
class _Topic:
    """What an edit is about, whatever its wording."""

    case: str | None
    action: str


class Analyst:
    """Proposes rules for the cases that failed, the best supported first.

    Equal requests have equal answers. What it is shown as tried in vain it puts behind its other ideas.
    """

    is_pure = True

    def __init__(self, world: World, habits: Habits) -> None:
        self._world = world
        self._habits = habits

    async def propose(self, reflection: ReflectionInput) -> Patch:
        """At most as many edits as the budget allows."""
        draw = random.Random(f"analyst {self._world.seed} {reflection.seed}")
        rejected = _rejected(reflection.tried)
        edits: list[Edit] = []
        if reflection.focus is Focus.FAILURES:
            edits += self._blanket(reflection, rejected, draw)
            edits += self._rules(reflection, rejected, draw)
        else:
            edits += self._tidied(reflection, rejected, draw)
        edits.sort(key=lambda edit: -(edit.support_count or 0))
        edits += (
            Edit(EditOp.APPEND, remark_line(draw.randrange(1000)), support_count=0) for _ in range(self._habits.remarks)
        )
        return Patch(tuple(edits[: reflection.edit_budget]))

    def _blanket(self, reflection: ReflectionInput, rejected: Counter[_Topic], draw: random.Random) -> list[Edit]:
        topic = _Topic(None, self._world.blanket)
        said = any(line.case is None for line in rule_lines(reflection.current_skill))
        if said or rejected[topic] or len(reflection.rollouts) < 3 or draw.random() >= self._habits.blanket:
            return []
        return [_append(blanket_line(topic.action), support=len(reflection.rollouts))]

    def _rules(self, reflection: ReflectionInput, rejected: Counter[_Topic], draw: random.Random) -> list[Edit]:
        failed = Counter(rollout.task_type for rollout in reflection.rollouts)
        editable = rule_lines(_free_text(reflection.current_skill))
        spare = [line.text for line in editable if line.case is not None and line.case not in failed]
        draw.shuffle(spare)
        page = reflection.current_skill.count("\n- ")
        may_overwrite = KEEP_RULES not in reflection.meta_skill_memory
        edits: list[Edit] = []
        for case, failures in sorted(failed.items(), key=lambda pair: (-pair[1], pair[0])):
            known = [line for line in rule_lines(reflection.current_skill) if line.case == case]
            if known and failures == 1 and draw.random() >= self._habits.doubt:
                continue
            action = self._idea(case, {line.action for line in known}, rejected, draw)
            line = rule_line(case, action, draw.randrange(3))
            old = next((line.text for line in editable if line.case == case), None)
            overwrites = may_overwrite and page >= self._habits.full_page and draw.random() < self._habits.overwriting
            if old is not None:
                edits.append(Edit(EditOp.REPLACE, line, old, support_count=failures))
            elif spare and overwrites:
                edits.append(Edit(EditOp.REPLACE, line, spare.pop(), support_count=failures))
            else:
                edits.append(_append(line, support=failures))
        return edits

    def _idea(self, case: str, known: set[str], rejected: Counter[_Topic], draw: random.Random) -> str:
        """The idea least often rejected; among equals the one suggested first, or another one on a whim."""
        ideas = [action for action in self._world.ideas[case] if action not in known] or list(self._world.ideas[case])
        if draw.random() < self._habits.whim:
            draw.shuffle(ideas)
        return min(ideas, key=lambda action: rejected[_Topic(case, action)])

    def _tidied(self, reflection: ReflectionInput, rejected: Counter[_Topic], draw: random.Random) -> list[Edit]:
        """A rule that none of the successes needed, deleted."""
        if KEEP_RULES in reflection.meta_skill_memory or draw.random() >= self._habits.tidying:
            return []
        needed = {rollout.task_type for rollout in reflection.rollouts}
        spare = [line.text for line in rule_lines(_free_text(reflection.current_skill)) if line.case not in needed]
        deleted = {edit.target for step in reflection.tried for edit in step.rejected if edit.op is EditOp.DELETE}
        spare = [text for text in spare if text not in deleted]
        return [Edit(EditOp.DELETE, target=draw.choice(spare), support_count=1)] if spare else []


class Merger:
    """Makes one edit of all that are about the same case: the action with most support wins; and one of all remarks."""

    is_pure = True

    async def merge(self, request: MergeInput, /) -> Patch:
        """The merged edits, those with most support first."""
        groups: dict[str, list[Edit]] = {}
        for patch in request.patches:
            for edit in patch.edits:
                groups.setdefault(_subject(edit), []).append(edit)
        merged = [_resolved(edits, request.level) for edits in groups.values()]
        return Patch(tuple(sorted(merged, key=lambda edit: -(edit.support_count or 0))))


class RestatingGuidance:
    """Restates rules that got lost: what the prior skill said about regressed items, and ideas for persistent failures."""

    is_pure = True

    def __init__(self, world: World) -> None:
        self._world = world

    async def write(self, comparison: EpochComparison, /) -> str:
        """The earlier guidance, without what kept failing, and what is needed besides."""
        free = {line.case for line in rule_lines(_free_text(comparison.current_skill))}
        persistent = _cases(comparison, before=False)
        regressed = _cases(comparison, before=True)
        kept = {
            line.case: line.action
            for line in rule_lines(comparison.previous_guidance)
            if line.case is not None and persistent[line.case] < 2
        }
        prior = {line.case: line.action for line in rule_lines(comparison.prior_skill)}
        for case in sorted(regressed):
            if case not in free and case not in kept and case in prior:
                kept[case] = prior[case]
        for case in sorted(persistent):
            if case not in free and case not in kept and persistent[case] >= 2:
                kept[case] = next(idea for idea in self._world.ideas[case] if idea != prior.get(case))
        return "\n".join(rule_line(case, action) for case, action in sorted(kept.items()))


class RemovalMemory:
    """Remembers which cases had rules, and says so when rules went and items regressed."""

    is_pure = True

    async def write(self, summary: EpochSummary, /) -> str:
        """The new memory."""
        cases = {line.case for line in rule_lines(_free_text(summary.current_skill)) if line.case is not None}
        earlier = _STOOD.search(summary.prior_memory)
        removed = set(earlier.group(1).split()) - cases if earlier else set[str]()
        regressed = summary.analysis is not None and summary.analysis.regressed > 0
        stood = f"Stood at the end of epoch {summary.epoch}: {' '.join(sorted(cases))}"
        if KEEP_RULES in summary.prior_memory or (removed and regressed):
            return f"{stood}\n{KEEP_RULES}"
        return stood


def _append(line: str, *, support: int) -> Edit:
    return Edit(EditOp.APPEND, line, support_count=support)


def _rejected(tried: Iterable[TriedStep]) -> Counter[_Topic]:
    """How often each idea was part of a rejected candidate."""
    lines = (parse_line(edit.content.strip()) for step in tried for edit in step.rejected)
    return Counter(_Topic(line.case, line.action) for line in lines if line is not None)


def _free_text(skill: str) -> str:
    """The skill without the slow update's region, which no edit may touch."""
    guidance = read_region(skill, RegionKind.SLOW_UPDATE)
    return skill if guidance is None else skill.replace(guidance, "")


def _subject(edit: Edit) -> str:
    """What an edit is about: a case, all cases, or nothing in particular."""
    line = parse_line(edit.content.strip() or edit.target)
    if line is None:
        return "remark"
    return "blanket" if line.case is None else line.case


def _resolved(edits: Sequence[Edit], level: int) -> Edit:
    """The edit that most support speaks for, with that support."""
    support: Counter[tuple[bool, str]] = Counter()
    for edit in edits:
        support[_stance(edit)] += edit.support_count or 0
    stance, count = support.most_common(1)[0]
    return replace(next(edit for edit in edits if _stance(edit) == stance), support_count=count, merge_level=level)


def _stance(edit: Edit) -> tuple[bool, str]:
    """Whether an edit deletes, and the action it wants."""
    line = parse_line(edit.content.strip())
    return edit.op is EditOp.DELETE, "" if line is None else line.action


def _cases(comparison: EpochComparison, *, before: bool) -> Counter[str]:
    """The cases of items that fail now, and were right before or not."""
    prior: dict[str, Rollout] = {rollout.item_id: rollout for rollout in comparison.prior_rollouts}
    return Counter(
        rollout.task_type
        for rollout in comparison.current_rollouts
        if not rollout.is_success and rollout.item_id in prior and prior[rollout.item_id].is_success is before
    )
