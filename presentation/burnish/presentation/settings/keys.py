"""All keys of a task file, as one table."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from burnish.presentation.settings.fields import Kind, Section
from burnish.presentation.settings.sections import TaskSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One setting: its path (`train.batch_size`), and what its field declares."""

    path: str
    kind: Kind
    default: object
    description: str
    is_nullable: bool
    is_mapping: bool = False
    """Whether its value is a mapping of names the user chooses."""


def value_at(settings: TaskSettings, path: str) -> object:
    """The value of the key; raises AttributeError for a path that is no key."""
    value: object = settings
    for name in path.split("."):
        value = getattr(value, name)
    return value


def nearest(path: str) -> str | None:
    """The key or section a misspelt or misplaced path most likely means, or None."""
    section, _, name = path.rpartition(".")
    homonyms = [known for known in KEYS if known.rpartition(".")[2] == name]
    if homonyms:
        return min(homonyms, key=lambda known: known.count("."))
    siblings = {known.rpartition(".")[2]: known for known in (*KEYS, *SECTIONS) if known.rpartition(".")[0] == section}
    for alike in difflib.get_close_matches(name, siblings, n=1):
        return siblings[alike]
    alike_as_a_whole = difflib.get_close_matches(path, KEYS, n=1, cutoff=0.75)
    return alike_as_a_whole[0] if alike_as_a_whole else None


def _walk(section: type[Section], prefix: str) -> Iterator[tuple[str, FieldInfo | type[Section]]]:
    for name, field in section.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            yield f"{prefix}{name}", inner
            yield from _walk(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _key(path: str, field: FieldInfo) -> Key:
    match field.json_schema_extra:
        case {"kind": str(kind)}:
            pass
        case _:
            raise ValueError(f"{path} declares no kind: use identity(...) or operation(...)")
    return Key(
        path=path,
        kind=Kind(kind),
        default=field.default,
        description=field.description or "",
        is_nullable=types.NoneType in typing.get_args(field.annotation),
        is_mapping=typing.get_origin(field.annotation) is Mapping,
    )


_FIELDS = tuple(_walk(TaskSettings, ""))

SECTIONS = tuple(path for path, field in _FIELDS if not isinstance(field, FieldInfo))
"""Paths of the sections, a subsection after its section."""

KEYS: Mapping[str, Key] = types.MappingProxyType(
    {path: _key(path, field) for path, field in _FIELDS if isinstance(field, FieldInfo)}
)
"""Every key by its path, in the order of the sections."""

MAPPINGS = tuple(path for path, key in KEYS.items() if key.is_mapping)
"""Paths of the keys that hold a mapping."""


def mapping_of(path: str) -> str | None:
    """The key whose mapping the path leads into, or None."""
    return next((key for key in MAPPINGS if path.startswith(f"{key}.")), None)
