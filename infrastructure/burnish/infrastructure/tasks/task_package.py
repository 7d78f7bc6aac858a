"""Items that an installed package brings: entry points of the group `burnish.tasks`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from burnish.domain.rollouts import SPLITS
from burnish.infrastructure.tasks.items import DEFAULT_RULES, Collected, Item, ItemRules
from burnish.infrastructure.tasks.json_values import json_value
from burnish.infrastructure.tasks.plugins import TASKS, load_plugin
from burnish.infrastructure.tasks.refusals import DataError, RefusalError, at, shown
from burnish.infrastructure.tasks.splits import DEFAULT_RATIO, Splits, checked_splits, deal


def read_package_items(
    name: str,
    rules: ItemRules = DEFAULT_RULES,
    *,
    seed: int,
    ratio: str = DEFAULT_RATIO,
    needs_test: bool = False,
) -> Splits:
    """The splits of an installed task.

    Its entry point is a function without parameters that returns records, as a JSON Lines file would hold them: a mapping
    with `train`, `val` and perhaps `test`, or all of them, to be dealt out by the ratio. Raises DataError as the readers of
    files do, and when the function fails or returns something else.
    """
    what = f"task {shown(name)}"
    load = load_plugin(TASKS, name)
    if not callable(load):
        raise DataError(f"{what}: its entry point is no function; name one that returns the items")
    try:
        found: object = load()
        if isinstance(found, Mapping):
            parts = cast("Mapping[object, object]", found)
            records = {str(split): _records(part) for split, part in parts.items()}
        else:
            records = {"": _records(found)}
    except (Exception, SystemExit) as error:
        raise DataError(
            f"{what}: its function raised {type(error).__name__}; call it in Python to see where"
        ) from error
    if None in records.values():
        raise DataError(f"{what}: its function returned no list of records; return one, or one for each split")
    if "" in records:
        return deal(_items(what, records[""] or (), rules), what, seed=seed, ratio=ratio, needs_test=needs_test)
    for split in records:
        if split not in SPLITS:
            raise DataError(f"{what}: {shown(split)} is no split; there are train, val and test")
    items = {split: _items(f"{what} {split}", records.get(split) or (), rules) for split in SPLITS}
    return checked_splits(what, items, needs_test=needs_test)


def _records(part: object) -> tuple[object, ...] | None:
    """The records; None when it is no list of them."""
    if isinstance(part, str | bytes | Mapping) or not isinstance(part, Iterable):
        return None
    return tuple(cast("Iterable[object]", part))


def _items(what: str, records: Iterable[object], rules: ItemRules) -> tuple[Item, ...]:
    collected = Collected(rules)
    try:
        for number, record in enumerate(records, start=1):
            place = f"item {number}"
            with at(place):
                collected.add(json_value(record), place)
    except RefusalError as refusal:
        raise DataError(f"{what} {refusal.place}: {refusal.what}") from None
    return tuple(collected.items)
