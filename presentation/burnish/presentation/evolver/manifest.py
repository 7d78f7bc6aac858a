"""The evolver's manifest, `evolver.yaml`: what a host's framework reads before it offers the method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from pydantic import TypeAdapter

from burnish.presentation.settings.yaml_text import read_document

_FILE = "evolver.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What it says: `entry` is `module:class`, `needs` what a host must provide beside `llm` and `run_agent`."""

    description: str
    entry: str
    needs: tuple[str, ...]
    params: Mapping[str, object]


def load_manifest() -> Manifest:
    """The manifest that is shipped, with the default of every parameter."""
    text = files("burnish.presentation.evolver").joinpath(_FILE).read_text(encoding="utf-8")
    read = TypeAdapter(dict[str, object]).validate_python(read_document(text))
    return Manifest(
        description=str(read["description"]),
        entry=str(read["class"]),
        needs=TypeAdapter(tuple[str, ...]).validate_python(read["needs"]),
        params=TypeAdapter(dict[str, object]).validate_python(read["params"]),
    )
