"""A package as an installer would leave it, with entry points, so that plug-ins are found without installing anything."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    source: str,
    entry_points: Mapping[str, Mapping[str, str]],
) -> None:
    """Put a module and its distribution into the folder, and the folder on the path until the test ends."""
    (folder / f"{name}.py").write_text(source, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line
        for group, entries in entry_points.items()
        for line in (f"[{group}]", *(f"{entry} = {target}" for entry, target in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
