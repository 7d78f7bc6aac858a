"""Items from Parquet, where pyarrow is installed and where it is not."""

from __future__ import annotations

import importlib
import io
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from burnish.infrastructure.tasks.item_files import parse_items
from burnish.infrastructure.tasks.items import DataError, Item, ItemRules

PARQUET = Path("items.parquet")


def _written(columns: dict[str, list[object]]) -> bytes:
    arrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(columns), buffer)
    return buffer.getvalue()


def _refusal(data: bytes) -> str:
    with pytest.raises(DataError) as caught:
        parse_items(data, PARQUET)
    return caught.value.line


def test_rows_are_items() -> None:
    data = _written(
        {
            "id": [1, 2],
            "question": ["Q?", "R?"],
            "answers": [["A"], ["B", "C"]],
            "tolerance": [0.5, float("nan")],
            "day": [date(2026, 1, 2), None],
            "time": [datetime(2026, 1, 2, 3, tzinfo=UTC), None],
            "price": [Decimal("1.50"), None],
            "inner": [{"a": [1]}, None],
            "image": [b"\xff", None],
            "images": [[{"bytes": b"\xff"}], None],
        }
    )
    one, two = parse_items(data, PARQUET)
    assert one == Item(
        "1",
        "Q?",
        ("A",),
        extra={
            "tolerance": 0.5,
            "day": "2026-01-02",
            "time": "2026-01-02T03:00:00+00:00",
            "price": "1.50",
            "inner": {"a": [1]},
        },
    )
    assert two.answers == ("B", "C")
    assert two.extra["tolerance"] is None


def test_columns_are_mapped() -> None:
    data = _written({"text": ["Q?"], "label": ["A"]})
    (item,) = parse_items(data, PARQUET, ItemRules(fields={"question": "text", "answer": "label"}))
    assert (item.question, item.answers) == ("Q?", ("A",))


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        ({"id": ["a"]}, 'items.parquet row 1: "question" is missing; write what the agent is asked'),
        ({"question": ["Q?", None], "answer": ["A", "B"]}, 'items.parquet row 2: "question" is missing'),
        (
            {"question": ["Q?"], "answer": [float("inf")]},
            "items.parquet row 1: a number is infinite; write a finite one",
        ),
        (
            {"question": ["Q?", "Q?"], "answer": ["A", "A"]},
            "items.parquet row 2: the same item without an id stands in",
        ),
        ({"question": ["q" * 1_100_000], "answer": ["A"]}, "items.parquet row 1: longer than 1 MiB; shorten the item"),
    ],
)
def test_a_row_is_refused_in_one_line(columns: dict[str, list[object]], line: str) -> None:
    assert _refusal(_written(columns)).startswith(line)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1", b'{"id": 1}'])
def test_what_is_no_parquet_is_refused(data: bytes) -> None:
    pytest.importorskip("pyarrow")
    assert _refusal(data).startswith("items.parquet: not readable as Parquet (")


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9])
def test_half_a_file_is_refused(cut: float) -> None:
    data = _written({"question": ["Q?"], "answer": ["A"]})
    for broken in (data[: int(len(data) * cut)], data[: int(len(data) * cut)] + data[-8:]):
        assert _refusal(broken).startswith("items.parquet: not readable as Parquet (")


def test_a_large_table_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _written({"question": ["Q?"], "answer": ["A"]})
    monkeypatch.setattr("burnish.infrastructure.tasks.parquet_items.MAX_UNPACKED_BYTES", 10)
    assert _refusal(data) == "items.parquet: larger than 1 GiB when unpacked; split it into several files"


def test_without_pyarrow_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert _refusal(b"PAR1") == (
        "items.parquet: reading Parquet needs pyarrow, which is not installed: pip install burnish[parquet]"
    )
