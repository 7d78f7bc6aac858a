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


def shown_path(path: str) -> str:
    """A file's path fit for a one-line message: of a long one, the end, which tells files apart."""
    return shown(path if len(path) <= _MAX_SHOWN else f"…{path[1 - _MAX_SHOWN :]}")


def listed(names: tuple[str, ...], last: str = "or") -> str:
    """The names as people enumerate them: `a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
