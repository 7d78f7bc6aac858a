"""Reading items from files: JSON Lines, JSON, CSV and Parquet."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from burnish.infrastructure.tasks.csv_items import add_csv_rows
from burnish.infrastructure.tasks.items import DEFAULT_RULES, Collected, Item, ItemRules
from burnish.infrastructure.tasks.parquet_items import add_parquet_rows
from burnish.infrastructure.tasks.refusals import DataError, RefusalError, at, shown_path, unreadable
from burnish.infrastructure.tasks.strict_json import MAX_ITEM_BYTES, check, decode, parse

MAX_FILE_BYTES = 256 * 1024 * 1024

_LINES_REMEDY: Final = "write one JSON object a line"
_DOCUMENT_REMEDY: Final = "write an array of objects, or name the file .jsonl when it holds one object a line"


def read_items(path: Path, rules: ItemRules = DEFAULT_RULES, *, one_a_file: bool = False) -> tuple[Item, ...]:
    """The items of a data file, in its order; there may be none.

    Raises DataError as `parse_items` does, and when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    return parse_items(data, path, rules, one_a_file=one_a_file)


def parse_items(
    data: bytes, path: Path, rules: ItemRules = DEFAULT_RULES, *, one_a_file: bool = False
) -> tuple[Item, ...]:
    """The items in the bytes of a file; `path` names it in messages, and its ending says how to read it.

    `.jsonl` holds one object a line (blank lines are skipped), `.json` an array of objects or `{"data": [...]}` or, with
    `one_a_file`, a single object whose id may be the file's name; `.csv` and `.tsv` a header and a row an item, `.parquet` a
    row an item. A record has `question` (a text, not blank), either `answer` (a text or a number) or `answers` (a list of
    them), and perhaps `id` (a text or an integer) and `task_type`; a field that is null counts as missing, and so does a
    known one that is empty in CSV. A number becomes the text Python writes for it: where its form matters ("5.00"), write
    the answer as a text. Raises DataError about the first thing that is wrong.
    """
    name = shown_path(path)
    add_records = _FORMATS.get(path.suffix.lower())
    if add_records is None:
        raise DataError(f"{name}: no data file ({', '.join(ENDINGS)}); convert it, or correct its ending")
    if len(data) > MAX_FILE_BYTES:
        raise DataError(f"{name}: larger than 256 MiB; split it into several files")
    collected = Collected(rules)
    try:
        if one_a_file and path.suffix.lower() == ".json":
            _add_document(data.removeprefix(codecs.BOM_UTF8), collected, only_id=path.stem)
        else:
            add_records(data.removeprefix(codecs.BOM_UTF8), collected)
    except RefusalError as refusal:
        raise DataError(f"{' '.join(filter(None, (name, refusal.place)))}: {refusal.what}") from None
    return tuple(collected.items)


def is_data_file(path: Path) -> bool:
    """Whether the path's ending says that it holds items; hidden files hold none."""
    return path.suffix.lower() in ENDINGS and not path.name.startswith(".")


def _add_lines(data: bytes, collected: Collected) -> None:
    for number, line in enumerate(data.split(b"\n"), start=1):
        place = f"line {number}"
        with at(place):
            if len(line) > MAX_ITEM_BYTES:
                raise RefusalError("longer than 1 MiB; shorten the item")
            text = decode(line)
            if text.strip():
                collected.add(parse(text, _LINES_REMEDY), place)


def _add_document(data: bytes, collected: Collected, *, only_id: str | None = None) -> None:
    document = parse(decode(data), _DOCUMENT_REMEDY)
    if isinstance(document, dict):
        record = cast("dict[str, object]", document)
        if only_id is not None and not isinstance(record.get("data"), list):
            _add_object(record, "item 1", len(data), collected, default_id=only_id)
            return
        document = record.get("data")
    if not isinstance(document, list):
        check(document)
        raise RefusalError(f'neither an array nor an object with an array "data"; {_DOCUMENT_REMEDY}')
    for number, value in enumerate(cast("list[object]", document), start=1):
        _add_object(value, f"item {number}", len(data), collected)


def _add_object(value: object, place: str, size: int, collected: Collected, *, default_id: str = "") -> None:
    """`size` is that of the whole file: only in a long one an item can be too long."""
    with at(place):
        collected.add(value, place, default_id=default_id)
        if size > MAX_ITEM_BYTES and len(json.dumps(value, ensure_ascii=False).encode()) > MAX_ITEM_BYTES:
            raise RefusalError("longer than 1 MiB; shorten the item")


def _add_tab_separated(data: bytes, collected: Collected) -> None:
    add_csv_rows(data, collected, delimiter="\t")


_FORMATS: Final[dict[str, Callable[[bytes, Collected], None]]] = {
    ".json": _add_document,
    ".jsonl": _add_lines,
    ".csv": add_csv_rows,
    ".tsv": _add_tab_separated,
    ".parquet": add_parquet_rows,
}

ENDINGS: Final = tuple(_FORMATS)
"""Of files that hold items."""
