"""What the evolver refuses: one line that says where, what and the remedy."""

from __future__ import annotations

from burnish.application.result import ErrorCode, ErrorKind


class EvolverError(Exception):
    """A call that cannot be made as it is: nothing was changed by it.

    `line` is for people; `code` is of the catalogue of failures, and its kind says whether the call is wrong (invalid),
    stands against what is there (conflict), or met something that does not work (unavailable).
    """

    def __init__(self, line: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(line)
        self.line = line
        self.code = code

    @property
    def kind(self) -> ErrorKind:
        """What kind of failure it is."""
        return self.code.kind


def conflict(line: str) -> EvolverError:
    """The refusal of a call that stands against what is kept, or against the document."""
    return EvolverError(line, ErrorCode.RUN_IDENTITY_MISMATCH)
