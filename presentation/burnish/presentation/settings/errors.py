"""What is wrong with somebody's settings, one line a problem."""

from __future__ import annotations

_MAX_SHOWN = 80


class SettingsError(Exception):
    """Settings that cannot be used; each of `lines` says where, what is wrong and what to do, and fits on one line."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def shown(text: str, limit: int = _MAX_SHOWN) -> str:
    """The text fit for a one-line message: unprintable characters escaped, cut after `limit` characters."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


def listed(names: tuple[str, ...], last: str = "or") -> str:
    """The names as people enumerate them: `a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
