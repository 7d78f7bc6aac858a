"""What the fields of all sections are made of: their kind, their ranges and the checks they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, TypeVar

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")


class Kind(StrEnum):
    """Whether a setting must stay the same when a run is resumed (identity) or may change (operation)."""

    IDENTITY = "identity"
    OPERATION = "operation"


def identity(default: T, description: str) -> T:
    """A field that decides what a run computes; `description` is one line."""
    return Field(default=default, description=description, json_schema_extra={"kind": Kind.IDENTITY.value})


def operation(default: T, description: str) -> T:
    """A field that only decides how a run is carried out: time-outs, concurrency, limits."""
    return Field(default=default, description=description, json_schema_extra={"kind": Kind.OPERATION.value})


class Section(BaseModel):
    """A group of settings: unknown keys refused, nothing converted, defaults checked like everything else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, validate_default=True)


def only(default: object) -> AfterValidator:
    """Accept the default alone: the setting exists in system B and has no effect here yet."""

    def check(value: T) -> T:
        if value != default:
            meant = "null" if default is None else default
            raise ValueError(f"other values than {meant} are not supported yet: remove it, or set it to {meant}")
        return value

    return AfterValidator(check)


def planned(*names: str, instead: str) -> BeforeValidator:
    """Tell choices that are still to come from misspelt ones; `instead` says what there is."""

    def check(value: T) -> T:
        if value in names:
            raise ValueError(f"{value} is not supported yet: use {instead}")
        return value

    return BeforeValidator(check)


def aliases(names: Mapping[str, str] = MappingProxyType({})) -> BeforeValidator:
    """Take a choice in any case and by its other names; the settings hold its one name."""

    def resolve(value: object) -> object:
        name = value.lower() if isinstance(value, str) else value
        return names.get(name, name) if isinstance(name, str) else value

    return BeforeValidator(resolve)


def rule(check: Callable[[T], str | None]) -> AfterValidator:
    """Refuse a value for which `check` returns a complaint."""

    def apply(value: T) -> T:
        complaint = check(value)
        if complaint is not None:
            raise ValueError(complaint)
        return value

    return AfterValidator(apply)


def rule_before(check: Callable[[object], str | None]) -> BeforeValidator:
    """Refuse a value for which `check` returns a complaint, before its type is looked at."""

    def apply(value: object) -> object:
        complaint = check(value)
        if complaint is not None:
            raise ValueError(complaint)
        return value

    return BeforeValidator(apply)


def _unstorable(text: str) -> str | None:
    if "\0" in text or (not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)):
        return "holds a character that no file can hold (NUL, or half of a surrogate pair)"
    return None


MAX_COUNT = 1_000_000_000
"""Far above anything that makes sense, so that no later sum or product runs away."""

Text = Annotated[str, rule(_unstorable)]
Count = Annotated[int, Ge(0), Le(MAX_COUNT)]
Positive = Annotated[int, Ge(1), Le(MAX_COUNT)]
Seed = Annotated[int, Ge(0), Le(2**63 - 1)]
Workers = Annotated[int, Ge(1), Le(1024)]
Share = Annotated[float, Ge(0), Le(1)]
Seconds = Annotated[float, Gt(0), Le(86_400)]
Dollars = Annotated[float, Ge(0), Le(1_000_000)]
