"""Keeps secrets out of texts that leave the process by the side door: logs and error reports."""

from __future__ import annotations

import re
from collections.abc import Iterable

REDACTED = "[REDACTED]"

SHORTEST_SECRET = 8
"""Known secrets shorter than this are not looked for: they would hit innocent text."""

_NAMED = re.compile(
    r"""(?ix) \b
    ( [\w-]* (?: api[_-]?key | token | secret | password | passwd | pwd | credential s? | authorization | accountkey
    | connection[_-]?string | sig | signature ) [\w-]* )
    (\s* ["']? \s* [=:] \s* ["']?) (?: bearer \s+ | basic \s+ )? [^\s"'&,;]+ """
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")
_USER_INFO = re.compile(r"(://)[^\s/@:]+:[^\s/@]+@")
_TELLING = re.compile(r"(?i)[\w.~+/=-]*(?:secret|passw|credential)[\w.~+/=-]*")
_TOKEN_LIKE = re.compile(r"(?<![\w./])(?=[\w.~+=-]*\d)(?=[\w.~+=-]*[A-Za-z])[\w.~+=-]{12,}")


def redact(text: str, known: Iterable[str] = ()) -> str:
    """`text` without known secrets, and without what has the shape of one.

    Shapes: `name=value` with a telling name, bearer tokens, user:password@ in addresses, words that hold letters and
    digits and are at least 12 characters long. Rather too much than too little: this is for logs, not for data.
    """
    for secret in sorted({secret for secret in known if len(secret) >= SHORTEST_SECRET}, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = _USER_INFO.sub(rf"\1{REDACTED}@", text)
    text = _NAMED.sub(rf"\1\2{REDACTED}", text)
    text = _BEARER.sub(rf"\1 {REDACTED}", text)
    text = _TELLING.sub(REDACTED, text)
    return _TOKEN_LIKE.sub(REDACTED, text)
