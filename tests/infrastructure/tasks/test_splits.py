"""Splits: from a folder, from a file by ratio, and what is refused in which words."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import astuple
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.splits import (
    SplitCounts,
    SplitRatio,
    Splits,
    first,
    parse_ratio,
    read_split_file,
    read_split_folder,
    split_counts,
)

TWO_ONE_SEVEN = SplitRatio(2, 1, 7)
TWO_ONE_SEVEN_COUNTS = [
    (0, 0, 1), (1, 0, 1), (1, 0, 2), (1, 0, 3), (1, 0, 4),
    (1, 1, 4), (1, 1, 5), (2, 1, 5), (2, 1, 6), (2, 1, 7),
    (2, 1, 8), (2, 1, 9), (3, 1, 9), (3, 1, 10), (3, 1, 11),
    (3, 2, 11), (3, 2, 12), (4, 2, 12), (4, 2, 13), (4, 2, 14),
    (4, 2, 15), (4, 2, 16), (5, 2, 16), (5, 2, 17), (5, 2, 18),
    (5, 3, 18), (5, 3, 19), (5, 3, 20), (6, 3, 20), (6, 3, 21),
]  # fmt: skip
"""Train, val and test of 1 to 30 items at 2:1:7, as system B deals them."""
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "ticket-routing" / "items"


def _items(*names: str) -> tuple[Item, ...]:
    return tuple(Item(name, f"{name}?", ("A",)) for name in names)


def _write(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [{"id": name, "question": f"{name}?", "answer": "A"} for name in names]
    text = json.dumps(records) if path.suffix == ".json" else "\n".join(map(json.dumps, records))
    path.write_text(text, encoding="utf-8")
    return path


def _numbered(path: Path, count: int) -> Path:
    return _write(path, *(f"i{number}" for number in range(count)))


def _dealt(count: int, ratio: SplitRatio) -> SplitCounts:
    """The rule said differently: everybody gets the whole part, then one by one the one with the largest fraction."""
    weights = {"train": ratio.train, "val": ratio.val, "test": ratio.test}
    parts = {split: math.modf(count * weight / sum(weights.values())) for split, weight in weights.items()}
    counts = {split: int(whole) for split, (_, whole) in parts.items()}
    fractions = {split: fraction for split, (fraction, _) in parts.items()}
    while sum(counts.values()) < count:
        luckiest = max(fractions, key=lambda split: (fractions[split], weights[split]))
        counts[luckiest] += 1
        del fractions[luckiest]
    return SplitCounts(**counts)


def _distance(counts: tuple[int, ...], shares: Iterable[Fraction]) -> Fraction:
    return sum(((have - share) ** 2 for have, share in zip(counts, shares, strict=True)), start=Fraction(0))


@pytest.mark.parametrize(("count", "expected"), list(enumerate(TWO_ONE_SEVEN_COUNTS, start=1)))
def test_counts_of_small_files(count: int, expected: tuple[int, int, int]) -> None:
    assert astuple(split_counts(count, TWO_ONE_SEVEN)) == expected


@pytest.mark.parametrize("count", range(1, 31))
@pytest.mark.parametrize("ratio", [TWO_ONE_SEVEN, SplitRatio(1, 1, 1), SplitRatio(3, 2, 4)])
def test_counts_follow_the_largest_fractions(ratio: SplitRatio, count: int) -> None:
    assert split_counts(count, ratio) == _dealt(count, ratio)


@pytest.mark.parametrize("count", range(1, 31))
@pytest.mark.parametrize("ratio", [TWO_ONE_SEVEN, SplitRatio(1, 1, 1), SplitRatio(3, 2, 4)])
def test_no_other_counts_are_nearer_to_the_shares(ratio: SplitRatio, count: int) -> None:
    shares = [Fraction(count * weight, sum(astuple(ratio))) for weight in astuple(ratio)]
    others = [each for each in product(range(count + 1), repeat=3) if sum(each) == count]
    assert _distance(astuple(split_counts(count, ratio)), shares) == min(_distance(each, shares) for each in others)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, (0, 0, 0)),
        (1, (0, 0, 1)),
        (2, (1, 0, 1)),
        (3, (1, 0, 2)),
        (5, (1, 0, 4)),
        (6, (1, 1, 4)),
        (7, (1, 1, 5)),
        (8, (2, 1, 5)),
        (10, (2, 1, 7)),
        (13, (3, 1, 9)),
        (20, (4, 2, 14)),
        (92, (18, 9, 65)),
        (177, (35, 18, 124)),
        (246, (49, 25, 172)),
        (400, (80, 40, 280)),
        (534, (107, 53, 374)),
        (2000, (400, 200, 1400)),
    ],
)
def test_counts_are_those_of_system_b(count: int, expected: tuple[int, int, int]) -> None:
    assert split_counts(count, TWO_ONE_SEVEN) == SplitCounts(*expected)


def test_equal_rests_and_weights_go_to_the_first() -> None:
    assert split_counts(10, SplitRatio(1, 1, 1)) == SplitCounts(4, 3, 3)


@pytest.mark.parametrize(("text", "ratio"), [("2:1:7", TWO_ONE_SEVEN), (" 2 : 1: 7", TWO_ONE_SEVEN)])
def test_a_ratio_is_read(text: str, ratio: SplitRatio) -> None:
    assert parse_ratio(text) == ratio


@pytest.mark.parametrize(
    "text", ["", "2:1", "2:1:7:1", "2:0:8", "2:-1:7", "0.2:0.1:0.7", "a:b:c", "²:1:7", "1:1:1000000"]
)
def test_another_ratio_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_ratio(text)
    what = f"the split ratio '{text}' is not three positive whole numbers"
    assert caught.value.line == f"{what}; write train:val:test as 2:1:7"


def test_a_file_is_dealt_out_in_shuffled_slices(tmp_path: Path) -> None:
    path = _numbered(tmp_path / "items.jsonl", 10)
    splits = read_split_file(path, seed=42)
    dealt = [item.item_id for item in (*splits.train, *splits.val, *splits.test)]
    assert dealt == ["i7", "i3", "i2", "i8", "i5", "i6", "i9", "i4", "i0", "i1"]  # random.Random(42).shuffle
    assert (len(splits.train), len(splits.val), len(splits.test)) == (2, 1, 7)


def test_the_seed_decides(tmp_path: Path) -> None:
    path = _numbered(tmp_path / "items.json", 20)
    assert read_split_file(path, seed=1) == read_split_file(path, seed=1)
    assert read_split_file(path, seed=1) != read_split_file(path, seed=2)


@pytest.mark.parametrize(
    ("count", "ratio", "split"),
    [(1, "2:1:7", "train"), (5, "2:1:7", "val"), (2, "1:1:1", "test"), (2, "9:9:1", "test")],
)
def test_a_ratio_that_leaves_a_needed_split_empty_is_refused(
    tmp_path: Path, count: int, ratio: str, split: str
) -> None:
    path = _numbered(tmp_path / "items.jsonl", count)
    with pytest.raises(DataError) as caught:
        read_split_file(path, seed=1, ratio=ratio, needs_test=True)
    assert caught.value.line == (
        f"{path}: with {count} items and the ratio '{ratio}', the split {split} has none; "
        f"add items, or give {split} a larger share"
    )


def test_a_test_split_nobody_wants_may_be_empty(tmp_path: Path) -> None:
    assert read_split_file(_numbered(tmp_path / "items.jsonl", 2), seed=1, ratio="1:1:1").test == ()


def test_a_file_without_items_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path / "items.jsonl")
    with pytest.raises(DataError) as caught:
        read_split_file(path, seed=1)
    assert caught.value.line == f"{path}: holds no items; write some into it"


def test_a_folder_is_read_file_by_file_in_name_order(tmp_path: Path) -> None:
    _write(tmp_path / "train" / "b.json", "t2")
    _write(tmp_path / "train" / "a.JSONL", "t1")
    _write(tmp_path / "train" / "c.jsonl", "t3")
    (tmp_path / "train" / "notes.md").write_text("no items", encoding="utf-8")
    (tmp_path / "train" / "._a.jsonl").write_bytes(b"\0\5\x16\7")
    _write(tmp_path / "val.jsonl", "v1")
    assert read_split_folder(tmp_path) == Splits(_items("t1", "t2", "t3"), _items("v1"), ())


def test_the_ticket_routing_example_is_read() -> None:
    splits = read_split_folder(EXAMPLE, needs_test=True)
    assert [splits.named(name)[0].item_id for name in ("train", "val", "test")] == ["tr-001", "tr-081", "tr-129"]
    assert splits.named("valid_seen") == ()


@pytest.mark.parametrize(("given", "missing"), [((), "train"), (("train",), "val"), (("train", "val"), "test")])
def test_a_folder_without_a_needed_split_is_refused(tmp_path: Path, given: tuple[str, ...], missing: str) -> None:
    for split in given:
        _write(tmp_path / split / "items.jsonl", split)
    (tmp_path / missing).mkdir()
    with pytest.raises(DataError) as caught:
        read_split_folder(tmp_path, needs_test=True)
    assert caught.value.line == (
        f"{tmp_path}: the split {missing} has no items; "
        f"put a data file (.json, .jsonl, .csv, .tsv, .parquet) into {missing}/"
    )


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_split_folder(tmp_path / "nowhere")
    assert caught.value.line == f"{tmp_path}/nowhere: not a folder; name the one that holds train/, val/ and test/"


def test_a_path_too_long_for_the_system_is_refused() -> None:
    folder = Path("x" * 5000)
    with pytest.raises(DataError) as caught:
        read_split_folder(folder)
    assert caught.value.line == f"{folder}: cannot be read (File name too long); check its name and permissions"


def test_a_split_given_twice_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "train" / "items.jsonl", "t1")
    _write(tmp_path / "train.json", "t2")
    with pytest.raises(DataError) as caught:
        read_split_folder(tmp_path)
    assert caught.value.line == f"{tmp_path}: the split train is given twice, as train and train.json; keep one of them"


def test_an_id_in_two_files_of_a_split_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "train" / "a.jsonl", "t1")
    _write(tmp_path / "train" / "b.jsonl", "t1")
    with pytest.raises(DataError) as caught:
        read_split_folder(tmp_path)
    path = tmp_path / "train" / "b.jsonl"
    assert caught.value.line == f"{path}: the id 't1' stands in a.jsonl already; give every item its own id"


def test_an_item_in_two_splits_is_refused(tmp_path: Path) -> None:
    _write(tmp_path / "train.jsonl", "t1")
    _write(tmp_path / "val.jsonl", "v1", "x" * 100)
    _write(tmp_path / "test.jsonl", "x" * 100)
    with pytest.raises(DataError) as caught:
        read_split_folder(tmp_path)
    assert caught.value.line == (
        f"{tmp_path}: the item '{'x' * 78}… is in val and in test; keep it in one split, or give its twin another id"
    )


def test_a_link_to_nowhere_is_refused_not_skipped(tmp_path: Path) -> None:
    _write(tmp_path / "train" / "a.jsonl", "t1")
    link = tmp_path / "train" / "b.jsonl"
    link.symlink_to(tmp_path / "gone.jsonl")
    with pytest.raises(DataError, match=r"b\.jsonl: cannot be read"):
        read_split_folder(tmp_path)


def test_the_same_question_may_stand_in_two_splits(tmp_path: Path) -> None:
    for split in ("train", "val"):
        record = {"id": split, "question": "Q?", "answer": "A"}
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(record), encoding="utf-8")
    splits = read_split_folder(tmp_path)
    assert splits.train[0].question == splits.val[0].question


@pytest.mark.parametrize(("count", "expected"), [(0, "abc"), (1, "a"), (3, "abc"), (9, "abc")])
def test_first_takes_from_the_front_and_zero_takes_all(count: int, expected: str) -> None:
    assert first(_items("a", "b", "c"), count) == _items(*expected)


def test_a_negative_number_of_items_is_a_bug_of_the_caller() -> None:
    with pytest.raises(ValueError, match="-1"):
        first(_items("a"), -1)


def test_val_and_test_can_be_limited() -> None:
    splits = Splits(_items("a", "b"), _items("c", "d"), _items("e", "f"))
    assert splits.limited(val=1, test=1) == Splits(_items("a", "b"), _items("c"), _items("e"))
    assert splits.limited() == splits
