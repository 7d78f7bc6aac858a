"""A first look at somebody's data: which fields it has, and which of them are likely the question and the answer."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from burnish.infrastructure.tasks.refusals import DataError, shown, shown_path, unreadable

_MOST_BYTES = 256 * 1024 * 1024
_QUESTIONS = ("question", "input", "prompt", "query", "text", "problem", "instruction")
_ANSWERS = ("answer", "answers", "output", "label", "target", "expected", "solution", "completion")
_SHORT_WORDS = 4
_PARTS = ("train", "val", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPreview:
    """The records of a file, or of a folder's train split, as they are, and the names of their fields."""

    fields: tuple[str, ...]
    records: tuple[Mapping[str, object], ...]

    @property
    def likely_question(self) -> str:
        """The field that is probably the question."""
        return next((name for name in _QUESTIONS if name in self.fields), self.fields[0])

    @property
    def likely_answer(self) -> str:
        """The field that is probably the answer."""
        return next((name for name in _ANSWERS if name in self.fields), self.fields[-1])

    def is_list(self, field: str) -> bool:
        """Whether the field holds lists: several answers that count as right."""
        return bool(self.records) and isinstance(self.records[0].get(field), list)

    def likely_scorer(self, answer: str) -> str:
        """The scorer that probably fits the answers: numbers, short texts, or longer ones."""
        texts = [str(each) for record in self.records for each in _listed(record.get(answer))]
        if all(_is_number(text) for text in texts):
            return "numeric"
        return "exact_match" if all(len(text.split()) <= _SHORT_WORDS for text in texts) else "f1"


def preview(path: Path) -> DataPreview:
    """Look at a .jsonl, .json, .csv or .tsv file, or at a folder with train/. Raises DataError for anything else."""
    file = _first_file(path)
    read = {".jsonl": _lines, ".json": _document, ".csv": _rows, ".tsv": _rows}.get(file.suffix.lower())
    if read is None:
        raise DataError(
            f"{shown_path(file)}: is no .jsonl, .json, .csv or .tsv file: convert it, or correct its ending"
        )
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{shown_path(file)}: is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise unreadable(file, error) from None
    if len(data) > _MOST_BYTES:
        raise DataError(f"{shown_path(file)}: is larger than 256 MiB: train on a part of it")
    try:
        records = tuple(read(text))
    except (ValueError, RecursionError, csv.Error):
        raise DataError(f"{shown_path(file)}: cannot be read as {file.suffix[1:]}: repair it") from None
    if not records:
        raise DataError(f"{shown_path(file)}: holds no records: write some into it")
    fields = tuple(dict.fromkeys(name for record in records for name in record if name))
    if not fields:
        raise DataError(f"{shown_path(file)}: its records have no fields: name them in the first row")
    return DataPreview(fields=fields, records=records)


def _first_file(path: Path) -> Path:
    """The file itself, or the first of a folder's train split."""
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"{shown_path(path)}: there is no such file: name one with the task's items")
        return path
    train = path / "train"
    files = sorted(train.iterdir() if train.is_dir() else path.glob("train.*"))
    found = [file for file in files if file.is_file() and not file.name.startswith(".")]
    if not found:
        raise DataError(
            f"{shown_path(path)}: is a folder without train/: name a file, or a folder with train/ and val/"
        )
    return found[0]


def _lines(text: str) -> Iterator[Mapping[str, object]]:
    for line in text.split("\n"):
        if line.strip():
            yield _record(json.loads(line))


def _document(text: str) -> Iterator[Mapping[str, object]]:
    document: object = json.loads(text)
    if isinstance(document, dict):
        document = cast("dict[str, object]", document).get("data")
    if not isinstance(document, list):
        raise ValueError("no list of records")  # noqa: TRY004 - told like every other fault of the file
    for value in cast("list[object]", document):
        yield _record(value)


def _rows(text: str) -> Iterator[Mapping[str, object]]:
    head = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    for row in csv.DictReader(io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=delimiter, strict=True):
        yield {(name or "").strip(): value for name, value in row.items() if name is not None}


def _record(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("no record")  # noqa: TRY004 - told like every other fault of the file
    return cast("dict[str, object]", value)


def _listed(value: object) -> Sequence[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "").strip().rstrip("%"))
    except ValueError:
        return False
    return True


def no_field(name: str, found: DataPreview) -> str | None:
    """What is wrong with a field's name, or None."""
    if name in found.fields:
        return None
    return f"there is no field {shown(name)}: there are {', '.join(shown(each) for each in found.fields[:12])}"
