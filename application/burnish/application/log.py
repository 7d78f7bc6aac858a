"""Structured log events that end in the standard library's logging, so that a host's own set-up decides about them."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from functools import cached_property
from typing import Any, cast

from burnish.application.redaction import redact

_MOST_CAUSES = 8
_RESERVED = "field_"


class Logger:
    """Writes events named `stage.what_happened` with ids, counts and codes.

    A handler finds them in the message and as attributes of the record. Exceptions are rendered here, redacted and
    without source lines or local variables. structlog is loaded with the first event (it brings a console library along),
    and its global configuration, which belongs to the host, is left alone.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def info(self, event: str, **fields: object) -> None:
        """Something a reader of the log may want to know."""
        self._bound.info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Something went wrong, and the work goes on."""
        self._bound.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Something failed."""
        self._bound.error(event, **fields)

    def exception(self, event: str, **fields: object) -> None:
        """Something raised; call it where the exception was caught."""
        self._bound.exception(event, **fields)

    @cached_property
    def _bound(self) -> Any:  # noqa: ANN401 - structlog types its loggers so
        import structlog  # noqa: PLC0415 - see the class docstring

        return structlog.wrap_logger(
            logging.getLogger(self._name),
            processors=[structlog.stdlib.filter_by_level, _to_record],
            wrapper_class=structlog.stdlib.BoundLogger,
        )


def get_logger(name: str) -> Logger:
    """The logger of a module."""
    return Logger(name)


def _to_record(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
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
