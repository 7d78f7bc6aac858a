"""One request through an SDK, whose exceptions become failures without its words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

from burnish.infrastructure.models.chat import ChatErrorCode
from burnish.infrastructure.models.failures import CallFailure, code_of_status
from burnish.infrastructure.models.parameters import refused_parameter

CONNECT_TIMEOUT_SECONDS: Final = 10.0
POOL_ROOM: Final = 4
"""Connections a permitted call: a pool as large as the concurrency makes the HTTP library queue."""

Payload = dict[str, object]

# What may be logged of a server's error: any other word of it could be a piece of a prompt or a key.
_LOGGED_REASONS: Final = frozenset({"context_length_exceeded", "insufficient_quota", "unsupported_parameter"})


class CredentialError(Exception):
    """No token could be had to sign a request with; `is_transient` when it may be had a moment later."""

    def __init__(self, *, is_transient: bool = False) -> None:
        super().__init__("no token")
        self.is_transient = is_transient


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A connected SDK: how to send, and its exceptions from the most to the least special."""

    post: Callable[[Payload], Awaitable[bytes]] = field(repr=False)
    """Send a payload; the body of a reply of status 200."""
    close: Callable[[], Awaitable[None]] = field(repr=False)
    status_error: type[Exception]
    timeout_error: type[Exception]
    connection_error: type[Exception]
    any_error: type[Exception]
    patterns: Mapping[str, re.Pattern[str]]
    """How a server's texts name the parameters that a request can do without."""

    async def deliver(self, payload: Payload, timeout_seconds: float) -> bytes | CallFailure:
        """The reply's body, or why there is none; never longer than the time-out."""
        try:
            # The HTTP library's time-outs are between bytes: a server that drips would never run into them.
            async with asyncio.timeout(timeout_seconds):
                return await self.post(payload)
        except self.status_error as error:
            return self._refusal(cast("_StatusError", error), payload)
        except (TimeoutError, self.timeout_error):
            return CallFailure(code=ChatErrorCode.TIMEOUT, is_transient=True)
        except self.connection_error:
            return CallFailure(code=ChatErrorCode.CONNECTION, is_transient=True)
        except self.any_error:
            return CallFailure(code=ChatErrorCode.UNREADABLE)
        except CredentialError as error:
            code = ChatErrorCode.CONNECTION if error.is_transient else ChatErrorCode.REFUSED_KEY
            return CallFailure(code=code, is_transient=error.is_transient)
        except UnicodeEncodeError:  # a lone surrogate in a prompt cannot be sent as JSON
            return CallFailure(code=ChatErrorCode.BAD_REQUEST)

    def _refusal(self, error: _StatusError, payload: Payload) -> CallFailure:
        status = error.status_code
        told = _told(error.body)
        reason, parameter = told.get("code"), told.get("param")
        is_filter = reason == "content_filter"  # Azure refuses a prompt with a 400
        code = ChatErrorCode.FILTERED if is_filter else code_of_status(status)
        return CallFailure(
            code=code,
            is_transient=code in {ChatErrorCode.RATE_LIMITED, ChatErrorCode.SERVER_ERROR},
            status=status,
            retry_after=error.response.headers.get("retry-after"),
            named=refused_parameter(error.response.text, parameter, reason, self.patterns)
            if status in {400, 422}
            else None,
            reason=reason if isinstance(reason, str) and reason in _LOGGED_REASONS else None,
            parameter=parameter if isinstance(parameter, str) and parameter in payload else None,
        )


class _Response(Protocol):
    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def text(self) -> str: ...


class _StatusError(Protocol):
    """What the SDKs' exceptions for statuses have in common."""

    @property
    def status_code(self) -> int: ...

    @property
    def body(self) -> object: ...

    @property
    def response(self) -> _Response: ...


def _told(body: object) -> Mapping[str, object]:
    """The fields of an error, in whichever of the two ways they are nested."""
    if not isinstance(body, Mapping):
        return {}
    fields = cast("Mapping[str, object]", body)
    inner = fields.get("error")
    return cast("Mapping[str, object]", inner) if isinstance(inner, Mapping) else fields
