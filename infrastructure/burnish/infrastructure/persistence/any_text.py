"""A column for texts of any content, also on PostgreSQL, whose texts hold no NUL character."""

from __future__ import annotations

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

_ESCAPE = "\x1a"
"""SUBSTITUTE: made for this, and in no text that somebody typed, so that nearly every text is stored as it is."""


class AnyText(TypeDecorator[str]):
    """Text; on PostgreSQL with NUL written as SUBSTITUTE 0, and SUBSTITUTE itself as SUBSTITUTE 1."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """As it is stored."""
        if value is None or dialect.name != "postgresql":
            return value
        return value.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """As it was given."""
        if value is None or dialect.name != "postgresql" or _ESCAPE not in value:
            return value
        return value.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)
