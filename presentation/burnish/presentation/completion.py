"""What the shell offers when Tab is pressed: task files and run folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from burnish.presentation.run_folder import DATABASE, TIMING

_DEPTH = 3
_MOST = 200
_ENDINGS = (".yaml", ".yml")


def complete_tasks(incomplete: str) -> list[str]:
    """The YAML files whose path begins like that, also some folders further down."""
    return _offered(incomplete, lambda path: path.suffix in _ENDINGS and path.is_file())


def complete_runs(incomplete: str) -> list[str]:
    """The run folders whose path begins like that; without a beginning, those in `runs`."""
    return _offered(incomplete, lambda path: (path / TIMING).is_file() or (path / DATABASE).is_file())


def _offered(incomplete: str, fits: Callable[[Path], bool]) -> list[str]:
    if incomplete.startswith("./"):
        return [f"./{path}" for path in _offered(incomplete[2:], fits)]
    head, slash, _ = incomplete.rpartition("/")
    start = Path(head + slash) if slash else Path()
    found: list[str] = []
    for path in _below(start, incomplete, _DEPTH):
        if fits(path):
            found.append(str(path))
        if len(found) == _MOST:
            break
    return found


def _below(folder: Path, prefix: str, depth: int) -> Iterator[Path]:
    """What lies below a folder, neither hidden things nor links to folders, as far as the path begins with the prefix."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith(".") or not str(path).startswith(prefix):
            continue
        yield path
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _below(path, prefix, depth - 1)
