"""From a task file and the command line's options to checked settings, each with the place it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from burnish.presentation.settings.errors import SettingsError, shown_path
from burnish.presentation.settings.keys import KEYS
from burnish.presentation.settings.layers import Layer, merge, read_chain, read_options
from burnish.presentation.settings.model_section import BACKEND_NAMES, ROLES_OF_BACKEND
from burnish.presentation.settings.problems import explain, set_at
from burnish.presentation.settings.sections import TaskSettings
from burnish.presentation.settings.yaml_text import Value

DEFAULT = "default"
MAX_PROBLEMS = 50
"""That are told one by one."""


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A task's settings.

    `sources` tells for every key where its value came from: "default", a file's name as people would write it, or
    "--cfg-options". `base_dir` is the task file's folder, absolute: relative paths in the settings start there, whichever
    file or option they came from, and the `.env` file is looked for there.
    """

    settings: TaskSettings
    sources: Mapping[str, str]
    base_dir: Path


def load_task(path: Path | str, overrides: Sequence[str] = ()) -> LoadedTask:
    """Read the task file, the files it builds on, and the options (`section.key=value`) over them.

    Raises SettingsError with a line for every problem there is; a file that cannot be read, or is no YAML, ends the
    search at once.
    """
    file = Path(path)
    files = read_chain(file)
    options, lines = read_options(overrides)
    layers = tuple(map(with_both_roles, (*files, options)))
    tree: dict[str, Value] = {}
    for layer in layers:
        tree = merge(tree, layer.tree)
    try:
        settings = TaskSettings.model_validate(tree)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        # A rule across keys can fail at a key nobody set: the task file is where to set it.
        found = [
            f"{shown_path(_origin(layers, set_at(problem)) or str(file))}: {explain(problem)}"
            for problem in problems[:MAX_PROBLEMS]
        ]
        left = len(problems) - len(found)
        more = (f"{shown_path(str(file))}: and {left} more of this kind",) if left else ()
        raise SettingsError((*lines, *found, *more)) from None
    if lines:
        raise SettingsError(lines)
    sources = {key: _origin(layers, key.split(".")) or DEFAULT for key in KEYS}
    return LoadedTask(settings, MappingProxyType(sources), file.absolute().parent)


def with_both_roles(layer: Layer) -> Layer:
    """The layer with the backends of both roles where it sets model.backend and not those; below it they lose to it."""
    model = layer.tree.get("model")
    backend = model.get("backend") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(backend, str):
        return layer
    roles = ROLES_OF_BACKEND.get(BACKEND_NAMES.get(backend.lower(), backend.lower()))
    if roles is None:
        return layer  # refused as a whole
    both: dict[str, Value] = dict(zip(("target_backend", "optimizer_backend"), roles, strict=True))
    return Layer(layer.name, {**layer.tree, "model": {**both, **model}})


def _origin(layers: Sequence[Layer], path: Sequence[str]) -> str | None:
    """The name of the highest layer that sets the key, or None."""
    return next((layer.name for layer in reversed(layers) if layer.sets(path)), None)
