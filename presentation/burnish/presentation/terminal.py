"""What a terminal is and may be sent."""

from __future__ import annotations

import sys
from collections.abc import Mapping


def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout is not None and sys.stdout.isatty()


def can_ask() -> bool:
    """Whether there is somebody to answer a question."""
    return sys.stdin is not None and sys.stdin.isatty()


def is_coloured(environ: Mapping[str, str]) -> bool:
    """Whether lines may have colours: on a terminal that is not dumb, unless NO_COLOR is set."""
    return is_terminal() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """A text somebody else has written, fit for the terminal: its control characters are shown, not obeyed.

    Off a terminal the text stays as it is.
    """
    if not is_terminal():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in text)
