"""Items from folders and from installed packages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from installed_packages import install

from burnish.infrastructure.tasks.items import DataError, ItemRules
from burnish.infrastructure.tasks.plugins import TASKS
from burnish.infrastructure.tasks.splits import read_split_file, read_split_folder
from burnish.infrastructure.tasks.task_package import read_package_items

RECORDS = [{"question": f"What is {number}?", "answer": str(number)} for number in range(10)]
JSON_ANSWERS = ItemRules(takes_json=True)


def test_a_folder_may_hold_one_item_a_file(tmp_path: Path) -> None:
    for number, record in enumerate(RECORDS):
        (tmp_path / f"sum-{number}.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "notes.md").write_text("no item", encoding="utf-8")
    (tmp_path / "inner").mkdir()
    splits = read_split_file(tmp_path, seed=1, ratio="6:2:2")
    ids = {item.item_id for split in ("train", "val", "test") for item in splits.named(split)}
    assert ids == {f"sum-{number}" for number in range(10)}


def test_files_of_all_kinds_go_together(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.csv").write_text("id,question,answer\nc,Q?,A\n", encoding="utf-8")
    (tmp_path / "train" / "b.jsonl").write_text('{"id": "l", "question": "Q?", "answer": "A"}', encoding="utf-8")
    (tmp_path / "train" / "c.json").write_text('[{"id": "d", "question": "Q?", "answer": "A"}]', encoding="utf-8")
    (tmp_path / "val.csv").write_text("id,question,answer\nv,Q?,A\n", encoding="utf-8")
    splits = read_split_folder(tmp_path)
    assert [item.item_id for item in splits.train] == ["c", "l", "d"]
    assert [item.item_id for item in splits.val] == ["v"]


def test_the_same_item_without_an_id_in_two_splits_is_refused(tmp_path: Path) -> None:
    for split in ("train", "val"):
        (tmp_path / f"{split}.csv").write_text("question,answer\nQ?,A\n", encoding="utf-8")
    with pytest.raises(DataError, match="is in train and in val; keep it in one split"):
        read_split_folder(tmp_path)


@pytest.mark.parametrize("content", ["{}", '{"data": 3}', "[]3", '"a"', '{"question": "Q?", "answer": NaN}'])
def test_a_file_that_is_no_item_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.json") as caught:
        read_split_file(tmp_path, seed=1)
    assert caught.value.line.isprintable()


def test_an_answer_may_be_an_object_where_the_scorer_takes_one(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    rows = [{**record, "answer": {"value": number, "unit": "µ"}} for number, record in enumerate(RECORDS)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    splits = read_split_file(path, JSON_ANSWERS, seed=1)
    assert {item.answers[0] for item in splits.train} <= {json.dumps(row["answer"], ensure_ascii=False) for row in rows}
    with pytest.raises(DataError, match="neither a text nor a number"):
        read_split_file(path, seed=1)


def _install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    install(tmp_path, monkeypatch, "sums_task", source, {TASKS: {"sums": "sums_task:items"}})


def test_a_package_brings_records_that_are_dealt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, f"def items():\n    yield from {RECORDS!r}\n")
    splits = read_package_items("sums", seed=42)
    assert [len(splits.named(split)) for split in ("train", "val", "test")] == [2, 1, 7]


def test_a_package_brings_splits_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"def items():\n    r = {RECORDS!r}\n    return {{'train': r[:3], 'val': tuple(r[3:5])}}\n"
    _install(tmp_path, monkeypatch, source)
    splits = read_package_items("sums", seed=42)
    assert [len(splits.named(split)) for split in ("train", "val", "test")] == [3, 2, 0]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("items = 3", "task 'sums': its entry point is no function; name one that returns the items"),
        (
            "def items():\n    raise KeyError",
            "task 'sums': its function raised KeyError; call it in Python to see where",
        ),
        ("def items(): return None", "task 'sums': its function returned no list of records; return one, or one for"),
        ("def items(): return 'abc'", "task 'sums': its function returned no list of records; return one, or one for"),
        ("def items(): return {'dev': []}", "task 'sums': 'dev' is no split; there are train, val and test"),
        ("def items(): return {'train': 3}", "task 'sums': its function returned no list of records"),
        ("def items(): return {'train': []}", "task 'sums': the split train has no items"),
        ("def items(): return []", "task 'sums': holds no items"),
        ("def items(): return [{'question': 'Q?'}]", "task 'sums' item 1: \"answer\" is missing"),
        ("def items(): return [{'question': b'Q?'}]", "task 'sums' item 1: a value of the type 'bytes' is none that"),
        ("def items(): return [{1: 2}]", "task 'sums' item 1: a key of the type 'int' is no text"),
        (
            "def items():\n    a = []\n    a.append(a)\n    return [{'x': a}]",
            "task 'sums' item 1: more than 64 objects",
        ),
    ],
)
def test_a_package_that_brings_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, line: str
) -> None:
    _install(tmp_path, monkeypatch, source)
    with pytest.raises(DataError) as caught:
        read_package_items("sums", seed=1)
    assert caught.value.line.startswith(line)


def test_a_package_that_is_not_installed_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        read_package_items("nobody", seed=1)
    assert caught.value.line == (
        "task 'nobody': no installed package brings it (entry points of burnish.tasks: none); install its package"
    )
