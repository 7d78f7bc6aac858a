"""Why one request to a model's server brought no answer, and how long the server asks to be left alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from burnish.infrastructure.models.chat import ChatErrorCode
from burnish.infrastructure.models.served_settings import LONGEST_WAIT_SECONDS

_PRESSURE = frozenset({429, 503, 529})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailure:
    """Why one attempt brought no answer; holds none of the server's own words, but for a `Retry-After` not read yet.

    `named` is the parameter of the request that the server does not take, if it said so; `reason` and `parameter` are
    what may be logged of its words.
    """

    code: ChatErrorCode
    is_transient: bool = False
    status: int | None = None
    retry_after: str | None = None
    named: str | None = None
    reason: str | None = None
    parameter: str | None = None

    @property
    def is_pressure(self) -> bool:
        """Whether the server says that it is asked too much."""
        return self.status in _PRESSURE


def code_of_status(status: int) -> ChatErrorCode:
    """What a status that is no success means."""
    if status in {401, 403}:
        return ChatErrorCode.REFUSED_KEY
    if status == 404:
        return ChatErrorCode.NOT_FOUND
    if status == 429:
        return ChatErrorCode.RATE_LIMITED
    if status in {408, 409, 425} or status >= 500:
        return ChatErrorCode.SERVER_ERROR
    # Below 400 is a redirect that leads nowhere: the SDKs follow the others.
    return ChatErrorCode.BAD_REQUEST if status >= 400 else ChatErrorCode.UNREADABLE


def retry_after_seconds(header: str | None, now: datetime) -> float:
    """The wait a `Retry-After` asks for, as seconds or as an HTTP date; 0 when it is missing, past or unreadable."""
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return 0.0
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(0.0, seconds), LONGEST_WAIT_SECONDS)  # in this order, "nan" is 0
