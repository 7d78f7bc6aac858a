"""What a host has of its own: an agent that sends complaints to desks by the rules on its page, and who improves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from burnish.api import Edit, EditOp, Patch, ReflectionInput, Rollout, RolloutBatch

PAGE = """\
# Which desk

- broken → repairs
- late → carriers"""

_RULE = re.compile(r"^- (?P<word>\w+) → (?P<desk>\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Complaint:
    """What somebody wrote, and the desk it belongs to."""

    text: str
    desk: str


COMPLAINTS = {
    "train": (
        Complaint("my parcel is late again", "carriers"),
        Complaint("the lid arrived broken", "repairs"),
        Complaint("you charged me twice", "billing"),
        Complaint("this invoice is wrong", "billing"),
        Complaint("a refund was promised", "billing"),
        Complaint("the colour is not what was shown", "returns"),
    ),
    "val": (
        Complaint("still late", "carriers"),
        Complaint("the wheel is broken", "repairs"),
        Complaint("charged for nothing", "billing"),
        Complaint("an invoice for whom", "billing"),
        Complaint("where is the refund", "billing"),
        Complaint("another colour please", "returns"),
        Complaint("what was promised is not here", "carriers"),
        Complaint("wrong again", "returns"),
    ),
}


def desk_for(page: str, text: str) -> str:
    """The agent: the desk of the first rule whose word is in the text, else the front desk."""
    words = set(text.split())
    return next((rule["desk"] for rule in _RULE.finditer(page) if rule["word"] in words), "front")


class DeskRunner:
    """Lets burnish try the agent: one complaint a call, because this runner lists its items (`ItemCatalog`)."""

    fingerprint = "desk-agent/1"

    async def item_ids(self, split: str) -> Sequence[str]:
        """The complaints of a split."""
        return [f"{split}/{number}" for number in range(len(COMPLAINTS.get(split, ())))]

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        """The agent's answers, scored."""
        return [self._attempt(skill, item) for item in batch.item_ids]

    def _attempt(self, page: str, item: str) -> Rollout:
        split, number = item.split("/")
        complaint = COMPLAINTS[split][int(number)]
        desk = desk_for(page, complaint.text)
        is_right = float(desk == complaint.desk)
        reason = "" if is_right else f"belongs to {complaint.desk}"
        return Rollout(item, is_right, is_right, trajectory=complaint.text, prediction=desk, fail_reason=reason)


class DeskAnalyst:
    """The host's own optimizer: for each failure a rule about its longest word. Some do harm, which the gate notices."""

    fingerprint = "desk-analyst/1"

    async def propose(self, reflection: ReflectionInput) -> Patch:
        """New rules, appended."""
        failed = [rollout for rollout in reflection.rollouts if not rollout.is_success]
        rules = (f"- {self._word(rollout)} → {rollout.fail_reason.rpartition(' ')[2]}" for rollout in failed)
        tried = {edit.content for step in reflection.tried for edit in step.rejected}
        return Patch(tuple(Edit(EditOp.APPEND, rule) for rule in dict.fromkeys(rules) if rule not in tried))

    def _word(self, rollout: Rollout) -> str:
        return max(rollout.trajectory.split(), key=lambda word: (len(word), word))
