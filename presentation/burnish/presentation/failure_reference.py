"""The reference of failure codes, written from their catalogue."""

from __future__ import annotations

from burnish.application.result import ErrorCode, ErrorKind

_HEAD = """\
# Failure codes

A message is answered with a value or with one of these codes, never with an exception's text; what the failure is about
(fields, item ids) comes beside the code. Codes are stable: hosts and scripts may rely on them. What a caller should do
follows from the kind, which consoles and hosts map:

| kind | exit code | HTTP status | what it says |
|---|---|---|---|
"""

_SAYS = {
    ErrorKind.INVALID: "the request, a file or the configuration must be corrected",
    ErrorKind.NOT_FOUND: "there is no such thing",
    ErrorKind.CONFLICT: "not now, or not with these settings",
    ErrorKind.UNAVAILABLE: "something outside does not work: repair it, and start again",
    ErrorKind.BUG: "a fault of burnish: report it",
}

EXIT_CODES = (
    ("0", "finished"),
    *((str(kind.exit_code), _SAYS[kind]) for kind in sorted(ErrorKind, key=lambda kind: kind.exit_code)),
    ("130", "stopped by Ctrl-C"),
    ("143", "stopped by SIGTERM"),
)
"""What a command's exit status says."""


def failure_reference() -> str:
    """The page, in Markdown."""
    kinds = [f"| {kind.value} | {kind.exit_code} | {kind.http_status} | {_SAYS[kind]} |" for kind in ErrorKind]
    codes = [f"| `{code.value}` | {code.kind.value} | {code.meaning} | {code.remedy} |" for code in ErrorCode]
    table = ["| code | kind | meaning | remedy |", "|---|---|---|---|", *codes]
    return _HEAD + "\n".join((*kinds, "", *table, "", "This page is printed by `burnish config failures`.", ""))
