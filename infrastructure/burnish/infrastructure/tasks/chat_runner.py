"""Tries a chat model with a skill on a task's items, and scores its answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence

from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote
from burnish.domain.rollouts import SPLITS, Rollout, RolloutBatch, sample_items
from burnish.infrastructure.models.chat import ChatError, ChatModel, ChatRequest
from burnish.infrastructure.models.metered import most_usage
from burnish.infrastructure.tasks.items import Item, item_json
from burnish.infrastructure.tasks.prompt_template import PromptTemplate
from burnish.infrastructure.tasks.refusals import DataError, shown
from burnish.infrastructure.tasks.scoring import JudgeFailedError, JudgingScorer, Score, Scorer
from burnish.infrastructure.tasks.splits import Splits

_RUNNER_VERSION = 1
"""Counts up when a prompt is put together, or a seed derived, in another way."""

_SEED_BITS = 31
_ROLE = "target"


class ChatTaskRunner:
    """A RolloutRunner and ItemCatalog: one question and one answer an item.

    The system prompt is the skill and then, after a blank line, the answer instruction, if there is one; it is the same
    for every item, so that servers can reuse its prefix. The user message is the template with the item's fields. A call
    that the model, or a judge, failed is a rollout with its code as `error`. An answer has at most `max_tokens`; None: as
    many as the model's own settings allow. Without `shows_reference` no reason of a failure tells the expected answer.
    Raises DataError when the template is none, or when an item lacks a field of it or cannot be judged by the scorer.
    """

    def __init__(
        self,
        *,
        splits: Splits,
        model: ChatModel,
        scorer: Scorer | JudgingScorer,
        template: str = "{question}",
        answer_instruction: str = "",
        max_tokens: int | None = None,
        shows_reference: bool = True,
    ) -> None:
        self._model = model
        self._scorer = scorer
        self._template = PromptTemplate(template)
        self._answer_instruction = answer_instruction
        self._max_tokens = max_tokens
        self._shows_reference = shows_reference
        self._items = {split: {item.item_id: item for item in splits.named(split)} for split in SPLITS}
        self._by_fingerprint: dict[str, Item] = {}
        self._refuse_unusable_items()

    @property
    def fingerprint(self) -> str:
        """A SHA-256 over model, template, answer instruction and scorer; the items have fingerprints of their own."""
        return hashlib.sha256(json.dumps(self._parts, sort_keys=True).encode()).hexdigest()

    @property
    def _parts(self) -> dict[str, object]:
        return {
            "answer_instruction": self._answer_instruction,
            "max_tokens": self._max_tokens,
            "model": self._model.fingerprint,
            "runner": _RUNNER_VERSION,
            "shows_reference": self._shows_reference,
            "scorer": self._scorer.fingerprint,
            "template": self._template.text,
        }

    async def item_ids(self, split: str) -> Sequence[str]:
        """The split's items, in the order of its files; none for a split that is not train, val or test."""
        return tuple(self._items.get(split, ()))

    def items(self, split: str) -> Sequence[Item]:
        """The split's items, in the order of its files."""
        return tuple(self._items.get(split, {}).values())

    def item_fingerprint(self, split: str, item_id: str) -> str:
        """A SHA-256 over all fields of the item. Raises LookupError when the split has no such item."""
        return _fingerprint(self._items[split][item_id])

    async def run(self, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        """One rollout an item, one after another: burnish asks for single items, and for many of them at once.

        Raises PortError: `ROLLOUT_WRONG_ITEMS` with the id of an item the split does not have, before the first call;
        `ROLLOUT_INVALID_SCORE` with the id of the item whose scorer raised.
        """
        return [await self._try(item, self._request(skill, item, batch)) for item in self._asked(batch)]

    def usage_at_most(self, skill: str, batch: RolloutBatch) -> Sequence[UsageNote] | None:
        """The most tokens `run` can use; None when nothing limits the answers. Raises PortError as `run` does."""
        if self._max_tokens is None:
            return None
        items = self._asked(batch)
        notes = [note for item in items for note in most_usage(self._request(skill, item, batch), _ROLE)]
        if isinstance(self._scorer, JudgingScorer):
            notes += [note for item in items for note in self._scorer.usage_at_most(item)]
        return notes

    def request(self, skill: str, batch: RolloutBatch, item_id: str) -> ChatRequest:
        """What the model is asked about an item of the batch's split. Raises LookupError when the split does not have it."""
        return self._request(skill, self._items[batch.split][item_id], batch)

    async def score(self, answer: str, item: Item) -> Score:
        """What the scorer says of an agent's whole answer. Raises PortError when it raises anything."""
        return await self._score(self._scorer.extract(answer), item)

    def text_behind(self, digest: str) -> str | None:
        """What the runner's or an item's fingerprint was made from, for people to compare."""
        if digest == self.fingerprint:
            return json.dumps(self._parts, sort_keys=True, indent=1)
        if not self._by_fingerprint:
            self._by_fingerprint = {
                _fingerprint(item): item for items in self._items.values() for item in items.values()
            }
        item = self._by_fingerprint.get(digest)
        return None if item is None else json.dumps(json.loads(item_json(item)), indent=1, ensure_ascii=False)

    def _asked(self, batch: RolloutBatch) -> list[Item]:
        items = self._items.get(batch.split, {})
        item_ids = batch.item_ids or sample_items(tuple(items), batch.size, seed=batch.seed)
        for item_id in item_ids:
            if item_id not in items:
                raise PortError(ErrorCode.ROLLOUT_WRONG_ITEMS, item_id)
        return [items[item_id] for item_id in item_ids]

    def _request(self, skill: str, item: Item, batch: RolloutBatch) -> ChatRequest:
        return ChatRequest(
            system="\n\n".join(filter(None, (skill, self._answer_instruction))),
            user=self._template.render(item),
            purpose="rollout",
            max_tokens=self._max_tokens,
            seed=_item_seed(batch, item.item_id),
            skill=skill,
        )

    async def _try(self, item: Item, request: ChatRequest) -> Rollout:
        try:
            answer = await self._model.complete(request)
        except ChatError as error:
            return Rollout(item.item_id, hard=0.0, soft=0.0, task_type=item.task_type, error=error.code.value)
        prediction = self._scorer.extract(answer.text)
        try:
            score = await self._score(prediction, item)
        except JudgeFailedError as error:
            return Rollout(item.item_id, hard=0.0, soft=0.0, task_type=item.task_type, error=error.code)
        return Rollout(
            item.item_id,
            hard=score.hard,
            soft=score.soft,
            trajectory=trajectory_of(request, answer.text, answer.trace),
            task_type=item.task_type,
            prediction=prediction,
            fail_reason=score.reason if self._shows_reference else score.reason_without_answer or score.reason,
        )

    async def _score(self, prediction: str, item: Item) -> Score:
        scorer = self._scorer
        if isinstance(scorer, JudgingScorer):
            return await scorer.judge(prediction, item)
        try:
            if scorer.is_blocking:
                return await asyncio.to_thread(scorer, prediction, item)
            return scorer(prediction, item)
        except (Exception, SystemExit) as error:  # a task's own code may raise anything
            raise PortError(ErrorCode.ROLLOUT_INVALID_SCORE, item.item_id) from error

    def _refuse_unusable_items(self) -> None:
        for split, items in self._items.items():
            for item in items.values():
                where = f"item {shown(item.item_id)} of {split}"
                field = self._template.missing_field(item)
                if field is not None:
                    remedy = "add it to the item, or take it out of the template"
                    raise DataError(f"{where}: has no field {shown(field)} for the prompt template; {remedy}")
                problem = self._scorer.problem(item)
                if problem:
                    raise DataError(f"{where}: {problem}")


def trajectory_of(request: ChatRequest, answer: str, trace: str = "") -> str:
    """A question, what an agent did about it, and its answer, as the optimizer gets to read them."""
    return "\n\n".join(filter(None, (f"[user]\n{request.user}", trace, f"[agent]\n{answer}")))


def _fingerprint(item: Item) -> str:
    return hashlib.sha256(item_json(item).encode()).hexdigest()


def _item_seed(batch: RolloutBatch, item_id: str) -> int:
    """A seed for the model, never 0: of the batch, its repeat and the item, so who else is in the batch has no say."""
    text = json.dumps([batch.seed, batch.repeat, item_id]).encode()
    return (int.from_bytes(hashlib.sha256(text).digest()[:4]) >> (32 - _SEED_BITS)) or 1
