"""What installed packages bring: entry points of the groups `burnish.scorers` and `burnish.tasks`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final, Literal, TypeAlias, cast

from burnish.infrastructure.tasks.refusals import DataError, shown

Group: TypeAlias = Literal["burnish.scorers", "burnish.tasks"]

SCORERS: Final = "burnish.scorers"
TASKS: Final = "burnish.tasks"


def plugin_names(group: Group) -> tuple[str, ...]:
    """The names of what is installed for the group, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


def load_plugin(group: Group, name: str) -> object:
    """What the entry point of that name stands for.

    Raises DataError when there is none, when two packages bring one, or when importing it fails.
    """
    what = f"{group.removeprefix('burnish.').removesuffix('s')} {shown(name)}"
    found = {entry.value: entry for entry in entry_points(group=group, name=name)}
    if not found:
        known = ", ".join(plugin_names(group)) or "none"
        raise DataError(
            f"{what}: no installed package brings it (entry points of {group}: {known}); install its package"
        )
    if len(found) > 1:
        owners = " and ".join(sorted(_owner(entry) for entry in found.values()))
        raise DataError(f"{what}: both {owners} bring one of that name; uninstall one of them")
    (entry,) = found.values()
    try:
        return cast("object", entry.load())
    except (Exception, SystemExit) as error:
        problem = f"importing it raised {type(error).__name__}"
        raise DataError(f"{what}: {problem}; import {shown(entry.value)} in Python to see where") from error


def _owner(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name
