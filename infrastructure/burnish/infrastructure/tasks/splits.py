"""Splits: which items a run trains on, validates with and is tested by."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from burnish.domain.rollouts import SPLITS, TEST, TRAIN, VALIDATION
from burnish.infrastructure.tasks.item_files import ENDINGS, is_data_file, read_items
from burnish.infrastructure.tasks.items import DEFAULT_RULES, Item, ItemRules
from burnish.infrastructure.tasks.refusals import DataError, shown, shown_path, unreadable

DEFAULT_RATIO = "2:1:7"
"""System B's shares of train, val and test."""

_SHARE = re.compile(r"[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class Splits:
    """A task's items; no id occurs twice, be it in one split or in two."""

    train: tuple[Item, ...]
    val: tuple[Item, ...]
    test: tuple[Item, ...] = ()

    def named(self, split: str) -> tuple[Item, ...]:
        """The items of train, val or test; no other split has any."""
        return {TRAIN: self.train, VALIDATION: self.val, TEST: self.test}.get(split, ())

    def limited(self, *, val: int = 0, test: int = 0) -> Splits:
        """The same with the first `val` and `test` items of these splits (`sel_env_num`, `test_env_num`); 0: all."""
        return Splits(self.train, first(self.val, val), first(self.test, test))


@dataclass(frozen=True, slots=True)
class SplitRatio:
    """The shares of the splits in a file of items: positive whole numbers."""

    train: int
    val: int
    test: int


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """How many items each split gets."""

    train: int
    val: int
    test: int


def read_split_folder(folder: Path, rules: ItemRules = DEFAULT_RULES, *, needs_test: bool = False) -> Splits:
    """The splits of a folder that holds train/, val/ and perhaps test/.

    Each has one or more data files, read as those of `read_item_folder`. Instead of a folder train/ there may be one file
    train.jsonl, train.csv and so on. Raises DataError about files as `read_items`, about an id that occurs twice, and when
    train, val or, with `needs_test`, test has no items.
    """
    name = shown_path(folder)
    try:
        if not folder.is_dir():
            raise DataError(f"{name}: not a folder; name the one that holds train/, val/ and test/")
        items = {split: _read_split(folder, split, rules) for split in SPLITS}
    except OSError as error:
        raise unreadable(folder, error) from None
    return checked_splits(name, items, needs_test=needs_test)


def checked_splits(name: str, items: Mapping[str, tuple[Item, ...]], *, needs_test: bool) -> Splits:
    """The splits of the items by split; `name` is where they come from.

    Raises DataError when a split that is needed has none, and about an id in two splits.
    """
    for split in SPLITS:
        if not items[split] and (split != TEST or needs_test):
            raise DataError(
                f"{name}: the split {split} has no items; put a data file ({', '.join(ENDINGS)}) into {split}/"
            )
    _refuse_shared_ids(name, items)
    return Splits(items[TRAIN], items[VALIDATION], items[TEST])


def read_split_file(
    path: Path,
    rules: ItemRules = DEFAULT_RULES,
    *,
    seed: int,
    ratio: str = DEFAULT_RATIO,
    needs_test: bool = False,
) -> Splits:
    """The items of one file, or of a folder of files, dealt out by the ratio.

    Raises DataError about files as `read_items`, and as `deal` does.
    """
    try:
        items = read_item_folder(path, rules) if path.is_dir() else read_items(path, rules)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    return deal(items, shown_path(path), seed=seed, ratio=ratio, needs_test=needs_test)


def deal(
    items: Sequence[Item], name: str, *, seed: int, ratio: str = DEFAULT_RATIO, needs_test: bool = False
) -> Splits:
    """The items shuffled with the seed and dealt out by the ratio of train, val and test; `name` is where they come from.

    Raises DataError about the ratio, and when train, val or, with `needs_test`, test would have no items: that happens to
    val with up to five items at 2:1:7.
    """
    shares = parse_ratio(ratio)
    if not items:
        raise DataError(f"{name}: holds no items; write some into it")
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - a seeded plan, not a secret
    counts = split_counts(len(shuffled), shares)
    for split, count in ((TRAIN, counts.train), (VALIDATION, counts.val), (TEST, counts.test)):
        if count == 0 and (split != TEST or needs_test):
            raise DataError(
                f"{name}: with {len(shuffled)} items and the ratio {shown(ratio)}, the split {split} has none; "
                f"add items, or give {split} a larger share"
            )
    validation_end = counts.train + counts.val
    return Splits(
        train=tuple(shuffled[: counts.train]),
        val=tuple(shuffled[counts.train : validation_end]),
        test=tuple(shuffled[validation_end:]),
    )


def parse_ratio(text: str) -> SplitRatio:
    """The ratio in a text such as 2:1:7. Raises DataError when it is not three positive whole numbers (at most 999999)."""
    shares = [part.strip() for part in text.split(":")]
    if len(shares) != len(SPLITS) or not all(map(_SHARE.fullmatch, shares)):
        raise DataError(
            f"the split ratio {shown(text)} is not three positive whole numbers; write train:val:test as 2:1:7"
        )
    train, val, test = map(int, shares)
    return SplitRatio(train, val, test)


def split_counts(count: int, ratio: SplitRatio) -> SplitCounts:
    """Deal `count` items out by largest remainder: the whole part of each share, and what is left to the largest rests.

    Equal rests: the larger weight goes first, then train before val before test. Rests are compared as floats, as
    system B does, so that the same file, ratio and seed give the same splits there and here: of 8 items at 2:1:7, whose
    shares are 1.6, 0.8 and 5.6, train gets one before test, for as floats 1.6 - 1 is a last bit larger than 5.6 - 5.
    """
    weights = (ratio.train, ratio.val, ratio.test)
    total = sum(weights)
    counts = [count * weight // total for weight in weights]
    rests = [count * weight / total - whole for weight, whole in zip(weights, counts, strict=True)]
    by_rest = sorted(range(len(weights)), key=lambda index: (-rests[index], -weights[index]))
    for index in by_rest[: count - sum(counts)]:
        counts[index] += 1
    return SplitCounts(*counts)


def first(items: tuple[Item, ...], count: int) -> tuple[Item, ...]:
    """The first `count` items; 0: all of them. Raises ValueError when `count` is negative."""
    if count < 0:
        raise ValueError(f"a number of items cannot be negative: {count}")
    return items[:count] if count else items


def read_item_folder(folder: Path, rules: ItemRules = DEFAULT_RULES) -> tuple[Item, ...]:
    """The items of the folder's data files, in the order of their names (system B reads the first only).

    Hidden files and inner folders are skipped; a .json file may hold a single item, whose id is the file's name unless it
    has one. Raises DataError as `read_items`, and about an id that occurs twice; OSError when the folder cannot be read.
    """
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return _read_files([entry for entry in entries if is_data_file(entry)], rules, one_a_file=True)


def _read_split(folder: Path, split: str, rules: ItemRules) -> tuple[Item, ...]:
    places = [folder / split, *(folder / f"{split}{ending}" for ending in ENDINGS)]
    found = [place for place in places if place.exists()]
    if len(found) > 1:
        names = " and ".join(place.name for place in found)
        raise DataError(f"{shown_path(folder)}: the split {split} is given twice, as {names}; keep one of them")
    if not found:
        return ()
    (place,) = found
    return read_item_folder(place, rules) if place.is_dir() else _read_files([place], rules, one_a_file=False)


def _read_files(files: Sequence[Path], rules: ItemRules, *, one_a_file: bool) -> tuple[Item, ...]:
    items: list[Item] = []
    homes: dict[str, str] = {}
    for file in files:
        for item in read_items(file, rules, one_a_file=one_a_file):
            if item.item_id in homes:
                raise DataError(
                    f"{shown_path(file)}: the id {shown(item.item_id)} stands in {homes[item.item_id]} already; "
                    "give every item its own id"
                )
            homes[item.item_id] = shown_path(Path(file.name))
            items.append(item)
    return tuple(items)


def _refuse_shared_ids(name: str, items: Mapping[str, tuple[Item, ...]]) -> None:
    homes: dict[str, str] = {}
    for split in SPLITS:
        for item in items[split]:
            home = homes.setdefault(item.item_id, split)
            if home != split:
                raise DataError(
                    f"{name}: the item {shown(item.item_id)} is in {home} and in {split}; "
                    "keep it in one split, or give its twin another id"
                )
