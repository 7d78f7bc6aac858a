"""Reading items from CSV: a header, and a row an item."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

from burnish.infrastructure.tasks.items import KNOWN_FIELDS, Collected
from burnish.infrastructure.tasks.refusals import RefusalError, at, shown
from burnish.infrastructure.tasks.strict_json import MAX_ITEM_BYTES, check, parse

_DELIMITERS: Final = (",", ";", "\t")
_ENCODING_REMEDY: Final = "save the file as UTF-8 (in a spreadsheet: CSV UTF-8)"


def add_csv_rows(data: bytes, collected: Collected, *, delimiter: str = "") -> None:
    """Add an item for each row behind the header.

    The delimiter is the one of comma, semicolon and tab that gives the header the most columns, unless it is given. Cells
    with delimiters, quotation marks or line breaks stand in double quotation marks. All values are texts; a known field's
    empty cell counts as missing, and `answers` is a JSON list. Columns without a name are left out, blank lines skipped.
    Raises RefusalError.
    """
    text = _decoded(data)
    if not text.strip():
        return
    header_line = text.lstrip("\r\n").splitlines()[0]
    delimiter = delimiter or max(_DELIMITERS, key=lambda each: len(_cells(header_line, each)))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: Sequence[str] | None = None
    line = 1
    while True:
        place = f"line {line}"
        with at(place):
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise RefusalError(_problem(str(error))) from None
            line = reader.line_num + 1
            if not row:
                continue
            if header is None:
                header = _header(row, collected)
            else:
                collected.add(_record(row, header, collected), place)


def _decoded(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RefusalError(f"not valid UTF-8; {_ENCODING_REMEDY}", f"line {line}") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise RefusalError(f"holds a NUL character; {_ENCODING_REMEDY}", f"line {line}")
    return text


def _cells(line: str, delimiter: str) -> Sequence[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except csv.Error:
        return []


def _header(row: Sequence[str], collected: Collected) -> Sequence[str]:
    header = [name.strip() for name in row]
    named = [name for name in header if name]
    for name in named:
        if named.count(name) > 1:
            raise RefusalError(f"the column {shown(name)} stands twice in the header; rename one")
    rules = collected.rules
    for known in ("question", *rules.fields):
        if rules.name_of(known) not in named:
            wanted = shown(rules.name_of(known))
            columns = ", ".join(shown(name) for name in named[:8]) or "none"
            raise RefusalError(f"the header has no column {wanted}, it has {columns}; name the right one in env.fields")
    return header


def _record(row: Sequence[str], header: Sequence[str], collected: Collected) -> dict[str, object]:
    if len(row) != len(header):
        raise RefusalError(
            f"has {len(row)} cells, and the header {len(header)}; put cells that hold the delimiter in quotation marks"
        )
    if sum(len(cell.encode()) for cell in row) > MAX_ITEM_BYTES:
        raise RefusalError("longer than 1 MiB; shorten the item")
    record: dict[str, object] = {name: cell for name, cell in zip(header, row, strict=True) if name}
    rules = collected.rules
    for known in KNOWN_FIELDS:
        if record.get(rules.name_of(known)) == "":
            record[rules.name_of(known)] = None
    several = record.get(name := rules.name_of("answers"))
    if isinstance(several, str):
        record[name] = parse(several, f'write {shown(name)} as a list: ["first", "second"]')
        check(record[name])
    return record


def _problem(error: str) -> str:
    """What is wrong, in our words where the library's are known."""
    if "field limit" in error:
        return f"a cell is longer than {csv.field_size_limit()} characters; shorten it, or write the items as .jsonl"
    if "end of data" in error:
        return "a quotation mark opens a cell that never ends; close it, or double quotation marks inside a quoted cell"
    if "expected after" in error:
        return "a quotation mark stands inside a quoted cell; double it"
    return "not valid CSV; put cells with line breaks or quotation marks in quotation marks"
