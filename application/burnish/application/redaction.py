"""Keeps secrets out of texts that leave the process by the side door: logs and error reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

REDACTED = "[REDACTED]"

SHORTEST_SECRET = 8
"""Known secrets shorter than this are not looked for: they would hit innocent text."""

# Error texts may hold a model's whole answer: each pattern takes time in proportion to the text only, by possessive
# quantifiers and by never starting inside a run of its own characters.
_NAME = re.compile(r"""(?<![\w-])([\w-]++)\s*+["']?\s*+[=:]\s*+""")
_TELLING_NAME = re.compile(
    r"(?i)api[_-]?key|token|secret|password|passwd|pwd|credential|authorization|accountkey|connection[_-]?string|sig"
)
_VALUE = re.compile(
    r"""(?ix) "(?:\\.|[^"\\\n])++" | '(?:\\.|[^'\\\n])++' | ["']?+ (?: (?:bearer|basic) \s++ )? [^\s"'&,;]++ """
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s++[\w.~+/=-]{6,}+")
_USER_INFO = re.compile(r"(://)[^\s/@:]++:[^\s/@]++@")
_TELLING = re.compile(r"(?i)(?<![\w.~+/=-])[\w.~+/=-]*(?:secret|passw|credential)[\w.~+/=-]*+")
_WORD = re.compile(r"[\w.~+=-]{12,}+")
_JOINT = re.compile(r"[~+=-]")


def redact(text: str, known: Iterable[str] = ()) -> str:
    """`text` without known secrets, and without what has the shape of one.

    Shapes: `name=value` with a telling name, bearer tokens, user:password@ in addresses, words that hold letters and
    digits and are at least 12 characters long. Rather too much than too little: this is for logs, not for data.
    """
    for secret in sorted({secret for secret in known if len(secret) >= SHORTEST_SECRET}, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = _USER_INFO.sub(rf"\1{REDACTED}@", text)
    text = "".join(_without_named_values(text))
    text = _BEARER.sub(rf"\1 {REDACTED}", text)
    text = _TELLING.sub(REDACTED, text)
    return _WORD.sub(_without_token, text)


def _without_named_values(text: str) -> Iterator[str]:
    """The text in pieces, the values of telling names replaced; a value in quotes may hold blanks."""
    at = 0
    for name in _NAME.finditer(text):
        if name.start() < at or _TELLING_NAME.search(name[1]) is None:
            continue
        if (value := _VALUE.match(text, name.end())) is not None:
            yield text[at : name.end()] + REDACTED
            at = value.end()
    yield text[at:]


def _without_token(word: re.Match[str]) -> str:
    """A word, replaced from where it looks like a token; the first part of what follows a slash is a file or a folder."""
    start = 0
    if word.string[: word.start()].endswith("/"):
        joint = _JOINT.search(word[0])
        start = len(word[0]) if joint is None else joint.end()
    token = word[0][start:]
    telling = len(token) >= 12 and re.search(r"\d", token) and re.search(r"[A-Za-z]", token)
    return word[0][:start] + REDACTED if telling else word[0]


def fit_to_keep(text: str, known: Iterable[str] = ()) -> str:
    """`text` as it may be kept and shown: known secrets masked, code points that UTF-8 cannot carry replaced."""
    if text.isascii() and not known:
        return text
    for secret in known:
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, REDACTED)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
