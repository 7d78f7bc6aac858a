"""The layers of a task's settings: a chain of files that build on one another, and the command line's options on top."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from burnish.presentation.settings.errors import SettingsError, shown, shown_path
from burnish.presentation.settings.keys import MAPPINGS, SECTIONS
from burnish.presentation.settings.yaml_text import MAX_DEPTH, Value, YamlError, read_document, read_value

BASE = "_base_"
OPTIONS = "--cfg-options"
MAX_BYTES = 1 << 20
"""Of one file."""
MAX_CHAIN = 32


@dataclass(frozen=True, slots=True)
class Layer:
    """What one file, or the command line, sets; `name` is how people know it."""

    name: str
    tree: Mapping[str, Value]

    def sets(self, path: Sequence[str]) -> bool:
        """Tell whether the layer says anything about the key or section."""
        node: object = self.tree
        for name in path:
            if not isinstance(node, dict) or name not in node:
                return False
            node = node[name]  # pyright: ignore[reportUnknownVariableType]  isinstance tells nothing about the values
        return True


def merge(below: Mapping[str, Value], above: Mapping[str, Value]) -> dict[str, Value]:
    """Both trees as one: mappings are merged, everything else (lists too) is replaced by what is above."""
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        merged[name] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def read_chain(path: Path) -> tuple[Layer, ...]:
    """The file's layer and those of the files it builds on through `_base_`, the lowest first; raises SettingsError."""
    layers: list[Layer] = []
    seen: set[tuple[int, int]] = set()
    file, name = path, str(path)
    while True:
        known, content = _read_file(file, name, built_upon=layers[-1].name if layers else None)
        if known in seen:
            chain = " -> ".join(shown_path(passed) for passed in (*(layer.name for layer in layers), name))
            raise _error(layers[-1].name, f"{BASE}: leads in a circle: {chain}")
        if len(layers) == MAX_CHAIN:
            raise _error(name, f"{BASE}: more than {MAX_CHAIN} files build on one another")
        seen.add(known)
        tree = _read_tree(content, name)
        layers.append(Layer(name, {key: value for key, value in tree.items() if key != BASE}))
        if BASE not in tree:
            return tuple(reversed(layers))
        base = tree[BASE]
        if not isinstance(base, str) or not base or Path(base).is_absolute():
            raise _error(name, f"{BASE}: must be one path, relative to this file")
        file, name = file.parent / base, os.path.normpath(Path(name).parent / base)


def read_options(options: Iterable[str]) -> tuple[Layer, tuple[str, ...]]:
    """The layer of `section.key=value` options, a later one beating an earlier one, and a line for each bad one."""
    tree: dict[str, Value] = {}
    lines: list[str] = []
    for number, option in enumerate(options, start=1):
        key, equals, text = option.partition("=")
        names = key.strip().split(".")
        if not equals:
            # What was written may be a secret: only its place is told.
            lines.append(f"{OPTIONS}: argument {number} has no '=': write section.key=value")
        elif not all(names) or len(names) > MAX_DEPTH:
            lines.append(f"{OPTIONS}: argument {number} begins with no key: write section.key=value")
        elif (mapping := next((path for path in MAPPINGS if _leads_into(names, path)), None)) is not None:
            lines.append(f"{OPTIONS}: {mapping}: is a mapping: write it into the task file")
        else:
            try:
                value = read_value(text)
            except YamlError as error:
                lines.append(f"{OPTIONS}: {shown(key.strip())}: {error.problem}")
            else:
                tree = merge(tree, _nested(names, value))
    return Layer(OPTIONS, tree), tuple(lines)


def _leads_into(names: Sequence[str], path: str) -> bool:
    return ".".join((*names, "")).startswith(f"{path}.")


def _nested(names: Sequence[str], value: Value) -> dict[str, Value]:
    *sections, last = names
    tree: dict[str, Value] = {last: value}
    for section in reversed(sections):
        tree = {section: tree}
    return tree


def _error(name: str, problem: str) -> SettingsError:
    return SettingsError((f"{shown_path(name)}: {problem}",))


def _read_file(file: Path, name: str, *, built_upon: str | None) -> tuple[tuple[int, int], bytes]:
    """The file's identity, and its content."""
    via = f" ({BASE} of {shown_path(built_upon)})" if built_upon is not None else ""
    try:
        status = file.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _error(name, f"is a folder{via}: name a YAML file")
        if not stat.S_ISREG(status.st_mode):
            raise _error(name, f"is no regular file{via}: name a YAML file")
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _error(name, f"there is no such file{via}") from None
    except OSError as error:
        raise _error(name, f"cannot be read{via}: {error.strerror}") from None
    except ValueError:
        raise _error(name, f"is no file name{via}") from None
    if len(content) > MAX_BYTES:
        raise _error(name, f"is larger than {MAX_BYTES // 1024} KiB{via}: a task file holds settings only")
    return (status.st_dev, status.st_ino), content


def _read_tree(content: bytes, name: str) -> dict[str, Value]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _error(f"{name}:{line}", "is not UTF-8: save the file as UTF-8") from None
    if "\0" in text:
        raise _error(f"{name}:{text.count(chr(10), 0, text.index(chr(0))) + 1}", "holds a NUL byte: is it a text file?")
    try:
        tree = read_document(text)
    except YamlError as error:
        raise _error(f"{name}:{error.line}", error.problem) from None
    if not isinstance(tree, dict):
        raise _error(name, "holds no sections: write, for example, 'train:' and below it '  batch_size: 40'")
    return _without_empty_sections(tree)


def _without_empty_sections(tree: dict[str, Value], prefix: str = "") -> dict[str, Value]:
    """A section whose keys are all commented out reads as null, and says nothing."""
    kept: dict[str, Value] = {}
    for name, value in tree.items():
        if f"{prefix}{name}" in MAPPINGS and value is None:
            continue
        if f"{prefix}{name}" not in SECTIONS:
            kept[name] = value
        elif isinstance(value, dict):
            kept[name] = _without_empty_sections(value, f"{prefix}{name}.")
        elif value is not None:
            kept[name] = value
    return kept
