"""Two hundred generated broken data files and skills: each is told in one line, with exit code 2, and nothing is written."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.presentation.cli import run

GOOD: list[dict[str, object]] = [
    {"id": f"i{number}", "question": f"Question {number}?", "answer": f"A{number}"} for number in range(12)
]
ODD_VALUES: list[object] = [True, [], {}, [[]], {"a": 1}, "", " \n", 3.5]
ODD_IDS: list[object] = [
    *("../../etc/passwd", "/etc/passwd", "..", "a/../../b", "..\\..\\b", "~/x", "./x", "a\0b", "a\nb", " ", "x" * 300),
    *(True, 1.5, [], {"a": 1}, "\x1b[31m", "\u0085"),
]

Breaker = Callable[[random.Random], bytes]


def _lines(records: list[dict[str, object]]) -> bytes:
    return "\n".join(json.dumps(record) for record in records).encode()


def _with(index: int, **fields: object) -> bytes:
    return _lines([{**record, **fields} if number == index else record for number, record in enumerate(GOOD)])


def _without(index: int, field: str) -> bytes:
    records = [
        {name: value for name, value in record.items() if number != index or name != field}
        for number, record in enumerate(GOOD)
    ]
    return _lines(records)


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _table(rows: list[list[str]]) -> bytes:
    return "\n".join(",".join(row) for row in rows).encode()


ROWS = [["id", "question", "answer"], *([str(value) for value in record.values()] for record in GOOD)]


def _broken_row(chance: random.Random, row: list[str]) -> bytes:
    place = chance.randrange(1, len(ROWS))
    return _table([*ROWS[:place], row, *ROWS[place:]])


JSON_LINES: dict[str, Breaker] = {
    "bytes": lambda chance: chance.randbytes(200) + b"\xff",
    "cut": lambda chance: _lines(GOOD)[: -chance.randrange(2, 30)],
    "encoding": lambda chance: "".join(_lines(GOOD).decode()).encode(chance.choice(["utf-16", "utf-32"])),
    "latin": lambda chance: _with(3, question="Où?").replace(b"\\u00f9", bytes([chance.randrange(0xC0, 0xFF)])),
    "id": lambda chance: _with(chance.randrange(12), id=chance.choice(ODD_IDS)),
    "twin": lambda chance: _with(5, id=f"i{chance.choice([0, 1, 2, 3, 4, 6, 7])}"),
    "question": lambda chance: _with(chance.randrange(12), question=chance.choice(ODD_VALUES)),
    "answer": lambda chance: _with(chance.randrange(12), answer=chance.choice([True, [], {}, [1], {"a": 1}])),
    "answers": lambda chance: _with(chance.randrange(12), answers=chance.choice([["A"], "A", 3])),
    "kind": lambda chance: _with(chance.randrange(12), task_type=chance.choice([3, True, [], {}])),
    "missing": lambda chance: _without(chance.randrange(12), chance.choice(["question", "answer"])),
    "number": lambda chance: _with(0, answer=5).replace(b" 5,", b" 5, ").replace(
        b'"answer": 5', b'"answer": ' + chance.choice([b"NaN", b"-Infinity", b"1e999", b"9" * 5_000, b"05"])
    ),
    "deep": lambda chance: _with(2, more=1).replace(b": 1}", b": " + _nested(chance.randrange(70, 9_000)) + b"}"),
    "long": lambda chance: _with(2, more="x" * (1_048_576 + chance.randrange(100))),
    "key": lambda chance: _lines(GOOD).replace(b'{"id": "i4"', b'{"id": "i4", "id": "i4"'),
    "surrogate": lambda chance: _with(4, question=chance.choice(["\ud800", "a\udfffb"])),
    "value": lambda chance: _lines(GOOD) + b"\n" + chance.choice([b"3", b"null", b'"text"', b"[]", b"true", b"{}"]),
}  # fmt: skip
TABLES: dict[str, Breaker] = {
    "bytes": lambda chance: chance.randbytes(200) + b"\xff",
    "cells": lambda chance: _broken_row(chance, ["x"] * chance.choice([1, 2, 4, 9])),
    "quote": lambda chance: _broken_row(chance, ['"never', "ends", "here"]),
    "inner quote": lambda chance: _broken_row(chance, ['"a" b', "c", "d"]),
    "id": lambda chance: _broken_row(chance, [chance.choice(["../x", "/x", "..", "i3"]), "Q?", "A"]),
    "question": lambda chance: _broken_row(chance, ["x", "", "A"]),
    "answer": lambda chance: _broken_row(chance, ["x", "Q?", ""]),
    "header": lambda chance: _table([chance.choice([["a", "b", "c"], ["id", "id", "question"], ["x", "y", ""]]), *ROWS[1:]]),
    "encoding": lambda chance: _table(ROWS).decode().encode(chance.choice(["utf-16", "utf-16-le", "utf-32"])),
    "latin": lambda chance: _table(ROWS).replace(b"Question 3", bytes([chance.randrange(0xC0, 0xFF)])),
    "nul": lambda chance: _table(ROWS).replace(b"Question 3", b"\0"),
    "long": lambda chance: _broken_row(chance, ["x", "q" * chance.choice([131_073, 1_200_000]), "A"]),
    "empty": lambda chance: chance.choice([b"", b"\n\n", b"id,question,answer\n"]),
}  # fmt: skip
SKILLS: dict[str, Breaker] = {
    "bytes": lambda chance: b"\xff" + chance.randbytes(50),
    "markers": lambda chance: chance.choice([b"<!-- LOCKED_START -->", b"<!-- SLOW_UPDATE_END -->"]),
    "long": lambda chance: b"x" * (262_145 + chance.randrange(9)),
    "longer": lambda chance: b"x" * 1_100_000,
}


def cases() -> Iterator[tuple[str, bytes]]:
    """Where to put what."""
    for file, breakers, times in (("d.jsonl", JSON_LINES, 7), ("d.csv", TABLES, 5), ("skill.md", SKILLS, 4)):
        for name, broken in breakers.items():
            for number in range(times):
                yield file, broken(random.Random(f"{file} {name} {number}"))


CASES = list(cases())


@pytest.fixture
def task(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    return tmp_path / "task"


def test_there_are_two_hundred_of_them() -> None:
    assert len(CASES) >= 200
    assert len({content for _, content in CASES}) > 150


@pytest.mark.parametrize("number", range(len(CASES)))
def test_broken_input_is_told_in_one_line(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    file, content = CASES[number]
    (task / file).write_bytes(content)
    options = [] if file == "skill.md" else ["env.split_mode=ratio", f"env.data_path={file}", "env.split_ratio=1:1:1"]
    out = tmp_path / "run"
    command = [
        "train",
        str(task / "task.yaml"),
        "--out-root",
        str(out),
        "--cfg-options",
        "train.num_epochs=1",
        *options,
    ]
    assert run(command) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert line.startswith("burnish: ")
    assert line.isprintable()
    assert len(line) < 500
    assert file in line
    assert not out.exists()
