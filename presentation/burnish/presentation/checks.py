"""What a check found: all well, something to know, or something that has to be put right first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from burnish.application.result import ErrorKind


class State(StrEnum):
    """How it stands."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at; `told` is one line, with the remedy where there is one to give.

    `is_outside` tells a failure of the surroundings (a server, a disk) from one of the task.
    """

    name: str
    state: State
    told: str
    is_outside: bool = False


def ok(name: str, told: str) -> Check:
    """All well."""
    return Check(name=name, state=State.OK, told=told)


def warning(name: str, told: str) -> Check:
    """A run would begin, but this should be known."""
    return Check(name=name, state=State.WARNING, told=told)


def failed(name: str, told: str, *, is_outside: bool = False) -> Check:
    """A run would fail."""
    return Check(name=name, state=State.FAILED, told=told, is_outside=is_outside)


def exit_code(checks: Iterable[Check]) -> int:
    """The exit status by the worst of them: 0 also with warnings, then a fault of the task, then one outside."""
    faults = [check for check in checks if check.state is State.FAILED]
    if not faults:
        return 0
    outside = any(check.is_outside for check in faults)
    return (ErrorKind.UNAVAILABLE if outside else ErrorKind.INVALID).exit_code
