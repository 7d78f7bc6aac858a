"""Libraries of optional extras that are not installed."""

from __future__ import annotations


class MissingExtraError(Exception):
    """A backend was chosen whose library is not installed; `extra` is what installs it."""

    def __init__(self, extra: str) -> None:
        super().__init__(f"needs the extra {extra}: install burnish[{extra}]")
        self.extra = extra
