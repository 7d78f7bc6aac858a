"""Items: what a task asks and what counts as right, made from records of any source, one by one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from burnish.domain.rollouts import MAX_ITEM_ID_CHARACTERS, is_item_id
from burnish.infrastructure.tasks.refusals import DataError, RefusalError, shown
from burnish.infrastructure.tasks.strict_json import check

__all__ = ["KNOWN_FIELDS", "Collected", "DataError", "Item", "ItemRules", "item_json"]

KNOWN_FIELDS = ("id", "question", "answer", "answers", "task_type")
"""What a record's fields are called, unless `ItemRules.fields` says otherwise."""

_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a task, with the answers that count as right.

    `extra` holds the item's other fields, as JSON values: for prompt templates and scorers.
    """

    item_id: str
    question: str
    answers: tuple[str, ...]
    task_type: str = ""
    extra: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRules:
    """How records become items.

    `fields` tells by our name (one of `KNOWN_FIELDS`) what a field is called in the data. Without `needs_answers`, for
    scorers that know what is right, an item may go without. With `takes_json` an answer may be a JSON object or array too,
    and is kept as JSON text.
    """

    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    needs_answers: bool = True
    takes_json: bool = False

    def name_of(self, known: str) -> str:
        """What the field is called in the data."""
        return self.fields.get(known, known)


DEFAULT_RULES = ItemRules()


def item_json(item: Item) -> str:
    """The item as canonical JSON: sorted keys, no white space, `answers` always a list. Equal items, equal text."""
    record = dict(item.extra) | {
        "id": item.item_id,
        "question": item.question,
        "answers": list(item.answers),
        "task_type": item.task_type,
    }
    return json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


@dataclass(slots=True)
class Collected:
    """The items read so far, and where each id stands.

    An item without an id gets one from its contents, so that it stays the same wherever the item stands.
    """

    rules: ItemRules = DEFAULT_RULES
    items: list[Item] = field(default_factory=list[Item])
    places: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, value: object, place: str, *, default_id: str = "") -> None:
        """Make an item of a record that is JSON; `place` says where it stands. Raises RefusalError for one that is none."""
        item = _item(value, self.rules, default_id)
        has_id = bool(item.item_id)
        if not has_id:
            digest = hashlib.sha256(item_json(item).encode()).hexdigest()
            item = replace(item, item_id=f"item-{digest[:_ID_DIGITS]}")
        if item.item_id in self.places:
            earlier = self.places[item.item_id]
            if has_id:
                raise RefusalError(
                    f"the id {shown(item.item_id)} stands in {earlier} already; give every item its own id"
                )
            raise RefusalError(
                f"the same item without an id stands in {earlier} already; remove it, or give both an id"
            )
        self.places[item.item_id] = place
        self.items.append(item)


def _item(value: object, rules: ItemRules, default_id: str) -> Item:
    check(value)
    if not isinstance(value, dict):
        raise RefusalError('not a JSON object; write {"id": …, "question": …, "answer": …}')
    record = cast("dict[str, object]", value)
    taken = {*KNOWN_FIELDS, *rules.fields.values()}
    read = _Record({known: record.get(rules.name_of(known)) for known in KNOWN_FIELDS}, rules)
    return Item(
        item_id=read.id(default_id),
        question=read.question(),
        answers=read.answers(),
        task_type=read.task_type(),
        extra={name: value for name, value in record.items() if name not in taken},
    )


@dataclass(frozen=True, slots=True)
class _Record:
    """The known fields of a record; a field that is null counts as missing."""

    values: Mapping[str, object]
    rules: ItemRules

    def id(self, default: str) -> str:
        """The id; `default`, which may be empty, when the record has none."""
        name, value = self._named("id"), self.values["id"]
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise RefusalError(f"{name} is neither a text nor an integer; write it as a text")
        text = str(value)
        if not text.strip():
            raise RefusalError(f"{name} is blank; give every item its own, or none at all")
        if len(text) > MAX_ITEM_ID_CHARACTERS:
            raise RefusalError(f"{name} is longer than {MAX_ITEM_ID_CHARACTERS} characters; shorten it")
        if not is_item_id(text):
            raise RefusalError(f"{name} {shown(text)} holds a control character; remove it")
        if text[0] in "/\\~" or {".", ".."}.intersection(text.replace("\\", "/").split("/")):
            raise RefusalError(
                f"{name} {shown(text)} reads like a path out of a folder; write it without / and . there"
            )
        return text

    def question(self) -> str:
        """The question."""
        name, value = self._named("question"), self.values["question"]
        if value is None:
            raise RefusalError(f"{name} is missing; write what the agent is asked{self._or_map('question')}")
        if not isinstance(value, str):
            raise RefusalError(f"{name} is not a text; put it in quotation marks")
        if not value.strip():
            raise RefusalError(f"{name} is blank; write what the agent is asked")
        return value

    def answers(self) -> tuple[str, ...]:
        """The right answers."""
        one, many = self._named("answer"), self._named("answers")
        single, several = self.values["answer"], self.values["answers"]
        if single is not None and several is not None:
            raise RefusalError(f"both {one} and {many} are given; keep one of them")
        if single is not None:
            return (self._answer(single, f"{one} is"),)
        if several is None:
            if self.rules.needs_answers:
                remedy = f"write the right answer, or a list of them as {many}{self._or_map('answer')}"
                raise RefusalError(f"{one} is missing; {remedy}")
            return ()
        if not isinstance(several, list):
            raise RefusalError(f"{many} is not a list; write one, or a single answer as {one}")
        if self.rules.needs_answers and not several:
            raise RefusalError(f"{many} is empty; write at least one right answer")
        return tuple(self._answer(each, f"{many} holds") for each in cast("list[object]", several))

    def task_type(self) -> str:
        """What kind of item it is; empty when nothing says."""
        value = self.values["task_type"]
        if value is None:
            return ""
        if not isinstance(value, str):
            raise RefusalError(f"{self._named('task_type')} is not a text; put it in quotation marks, or leave it out")
        return value

    def _answer(self, value: object, subject: str) -> str:
        if self.rules.takes_json and isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise RefusalError(f"{subject} something that is neither a text nor a number; write it as a text")
        return str(value)

    def _named(self, known: str) -> str:
        name = self.rules.name_of(known)
        return f'"{known}"' if name == known else f"{shown(name)} (env.fields: {known})"

    def _or_map(self, known: str) -> str:
        if known in self.rules.fields:
            return ", or correct env.fields"
        return ", or name its field in env.fields" if known == "question" else ""
