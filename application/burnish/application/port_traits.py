"""What ports may tell of themselves, beside doing their work: all of it is optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from burnish.application.usage import UsageNote


def fingerprint_of(port: object) -> str:
    """What a port says of itself, for the keys of its answers; its type when it says nothing."""
    fingerprint = getattr(port, "fingerprint", None)
    return fingerprint if isinstance(fingerprint, str) else type(port).__qualname__


def usage_at_most(port: object, *request: object) -> Sequence[UsageNote] | None:
    """The most tokens a call with these arguments can use, by the port's `usage_at_most`; None when it does not say."""
    method = getattr(port, "usage_at_most", None)
    return cast("Sequence[UsageNote] | None", method(*request)) if callable(method) else None


def text_behind(port: object, digest: str) -> str:
    """The text behind a digest the port handed out, by its `text_behind`; empty when it does not say."""
    method = getattr(port, "text_behind", None)
    text = method(digest) if callable(method) else None
    return text if isinstance(text, str) else ""
