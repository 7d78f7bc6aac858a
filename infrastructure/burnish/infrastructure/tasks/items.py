"""Items: what a task asks and what counts as right, read from JSON and JSON Lines files."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from burnish.domain.rollouts import MAX_ITEM_ID_CHARACTERS, is_item_id
from burnish.infrastructure.tasks.refusals import DataError, RefusalError, at, shown, shown_path, unreadable
from burnish.infrastructure.tasks.strict_json import check, decode, parse

__all__ = ["MAX_FILE_BYTES", "MAX_LINE_BYTES", "DataError", "Item", "item_json", "parse_items", "read_items"]

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
"""The most bytes of a line of a .jsonl file, and of an item of a .json file."""

_KNOWN_FIELDS = ("id", "question", "answer", "answers", "task_type")
_LINES_REMEDY = "write one JSON object a line"
_DOCUMENT_REMEDY = "write an array of objects, or name the file .jsonl when it holds one object a line"


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


def read_items(path: Path, *, needs_answers: bool = True) -> tuple[Item, ...]:
    """The items of a .json or .jsonl file, in its order; none for an empty .jsonl file or array.

    Raises DataError as `parse_items` does, and when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    return parse_items(data, path, needs_answers=needs_answers)


def parse_items(data: bytes, path: Path, *, needs_answers: bool = True) -> tuple[Item, ...]:
    """The items in the bytes of a file; `path` names it in messages, and its ending says how to read it.

    `.jsonl` holds one object a line (blank lines are skipped), `.json` an array of objects or `{"data": [...]}`. An object
    has `id` (a text or an integer), `question` (a text, not blank), either `answer` (a text or a number) or `answers` (a
    list of them), and perhaps `task_type`; a field that is null counts as missing. A number becomes the text Python
    writes for it: where its form matters ("5.00"), write the answer as a text. Without `needs_answers`, for scorers that
    know what is right, an item may go without. Raises DataError about the first thing that is wrong.
    """
    name = shown_path(path)
    parse_file = {".jsonl": _parse_lines, ".json": _parse_document}.get(path.suffix.lower())
    if parse_file is None:
        raise DataError(f"{name}: not a .json or .jsonl file; convert it, or correct its ending")
    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"{name}: larger than 256 MiB; split it into several files")
    collected = _Collected(needs_answers=needs_answers)
    try:
        parse_file(data.removeprefix(codecs.BOM_UTF8), collected)
    except RefusalError as refusal:
        raise DataError(f"{' '.join(filter(None, (name, refusal.place)))}: {refusal.what}") from None
    return tuple(collected.items)


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
class _Collected:
    """The items read so far, and where each id stands."""

    needs_answers: bool
    items: list[Item] = field(default_factory=list[Item])
    places: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, value: object, place: str) -> None:
        item = _item(value, needs_answers=self.needs_answers)
        if item.item_id in self.places:
            earlier = self.places[item.item_id]
            raise RefusalError(f"the id {shown(item.item_id)} stands in {earlier} already; give every item its own id")
        self.places[item.item_id] = place
        self.items.append(item)


def _parse_lines(data: bytes, collected: _Collected) -> None:
    for number, line in enumerate(data.split(b"\n"), start=1):
        place = f"line {number}"
        with at(place):
            if len(line) > MAX_LINE_BYTES:
                raise RefusalError("longer than 1 MiB; shorten the item")
            text = decode(line)
            if text.strip():
                collected.add(parse(text, _LINES_REMEDY), place)


def _parse_document(data: bytes, collected: _Collected) -> None:
    document = parse(decode(data), _DOCUMENT_REMEDY)
    if isinstance(document, dict):
        document = cast("dict[str, object]", document).get("data")
    if not isinstance(document, list):
        check(document)
        raise RefusalError(f'neither an array nor an object with an array "data"; {_DOCUMENT_REMEDY}')
    for number, value in enumerate(cast("list[object]", document), start=1):
        place = f"item {number}"
        with at(place):
            collected.add(value, place)
            if len(data) > MAX_LINE_BYTES and len(json.dumps(value, ensure_ascii=False).encode()) > MAX_LINE_BYTES:
                raise RefusalError("longer than 1 MiB; shorten the item")


def _item(value: object, *, needs_answers: bool) -> Item:
    check(value)
    if not isinstance(value, dict):
        raise RefusalError('not a JSON object; write {"id": …, "question": …, "answer": …}')
    record = cast("dict[str, object]", value)
    return Item(
        item_id=_id(record.get("id")),
        question=_question(record.get("question")),
        answers=_answers(record.get("answer"), record.get("answers"), needs_answers=needs_answers),
        task_type=_task_type(record.get("task_type")),
        extra={name: value for name, value in record.items() if name not in _KNOWN_FIELDS},
    )


def _id(value: object) -> str:
    if value is None:
        raise RefusalError('"id" is missing; give every item its own')
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RefusalError('"id" is neither a text nor an integer; write it as a text')
    text = str(value)
    if not text.strip():
        raise RefusalError('"id" is blank; give every item its own')
    if len(text) > MAX_ITEM_ID_CHARACTERS:
        raise RefusalError(f'"id" is longer than {MAX_ITEM_ID_CHARACTERS} characters; shorten it')
    if not is_item_id(text):
        raise RefusalError(f'"id" {shown(text)} holds a control character; remove it')
    return text


def _question(value: object) -> str:
    if value is None:
        raise RefusalError('"question" is missing; write what the agent is asked')
    if not isinstance(value, str):
        raise RefusalError('"question" is not a text; put it in quotation marks')
    if not value.strip():
        raise RefusalError('"question" is blank; write what the agent is asked')
    return value


def _answers(single: object, several: object, *, needs_answers: bool) -> tuple[str, ...]:
    if single is not None and several is not None:
        raise RefusalError('both "answer" and "answers" are given; keep one of them')
    if single is not None:
        return (_answer(single, '"answer" is'),)
    if several is None:
        if needs_answers:
            raise RefusalError('"answer" is missing; write the right answer, or a list of them as "answers"')
        return ()
    if not isinstance(several, list):
        raise RefusalError('"answers" is not a list; write one, or a single answer as "answer"')
    if needs_answers and not several:
        raise RefusalError('"answers" is empty; write at least one right answer')
    return tuple(_answer(each, '"answers" holds') for each in cast("list[object]", several))


def _answer(value: object, subject: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RefusalError(f"{subject} something that is neither a text nor a number; write it as a text")
    return str(value)


def _task_type(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RefusalError('"task_type" is not a text; put it in quotation marks, or leave it out')
    return value
