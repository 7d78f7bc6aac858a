"""Structured log events that end in the standard library's logging, so that a host's own set-up decides about them."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from typing import cast

import structlog
from structlog.typing import EventDict, WrappedLogger

from burnish.application.redaction import redact

_MOST_CAUSES = 8
_RESERVED = "field_"


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger for events named `stage.what_happened` with ids, counts and codes.

    A handler finds them in the message and as attributes of the record. Exceptions are rendered here, redacted and
    without source lines or local variables. Nothing touches structlog's global configuration, which belongs to the host.
    """
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _to_record],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logger


def _to_record(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The arguments of the standard logger's method."""
    name = str(event.pop("event"))
    failed = event.pop("exc_info", None)
    error = sys.exc_info()[1] if failed is True else failed if isinstance(failed, BaseException) else None
    fields = {key: value for key, value in event.items() if key != "stack_info"}
    message = " ".join([name, *(f"{key}={value}" for key, value in fields.items())])
    if error is not None:
        message = "\n".join([message, *describe(error)])
    taken = logging.makeLogRecord({}).__dict__.keys() | {"message", "asctime"}
    extra = {(_RESERVED + key if key in taken else key): value for key, value in fields.items()}
    return {"msg": message, "extra": {**extra, "event": name}, "exc_info": False}


def describe(error: BaseException) -> Iterator[str]:
    """An exception and its causes: types, redacted texts, and where each was raised."""
    seen: set[int] = set()
    pending: list[tuple[str, BaseException]] = [("", error)]
    while pending and len(seen) < _MOST_CAUSES:
        relation, current = pending.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield f"{relation}{type(current).__name__}: {redact(_text(current))}"
        for frame in traceback.extract_tb(current.__traceback__):
            yield f"    at {frame.filename}:{frame.lineno} in {frame.name}"
        if isinstance(current, BaseExceptionGroup):
            inner = cast("BaseExceptionGroup[BaseException]", current).exceptions
            pending.extend(("one of them: ", each) for each in inner)
        cause = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if cause is not None:
            pending.append(("caused by ", cause))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "its text cannot be had"
