"""Logging and tracing for burnish's own console; a host keeps its own set-up and never calls this."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

from burnish.application.redaction import REDACTED

_LOGGER = "burnish"


class _Redaction:
    """Masks known secrets in every text of an event: the last line of defence, not the first."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = tuple(secrets)

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return {key: self._clean(value) for key, value in event.items()}

    def _clean(self, value: object) -> object:
        if not isinstance(value, str):
            return value
        for secret in self._secrets:
            value = value.replace(secret, REDACTED)
        return value


class _Handler(logging.StreamHandler[TextIO]):
    """Writes what it can: a full disk ends no run because of its log, and puts no traceback on the terminal."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Let the record go when it could not be written."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


@contextmanager
def console_logging(file: TextIO, *, level: int, secrets: Sequence[str]) -> Generator[None]:
    """Write burnish's log events as JSON lines to a file (or a terminal) while the block runs; no local variables."""
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _Redaction(secrets),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
    )
    handler = _Handler(file)
    handler.setFormatter(formatter)
    logger = logging.getLogger(_LOGGER)
    before = (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


@contextmanager
def console_tracing(file: Path) -> Generator[None]:
    """Write spans as JSON lines to a file while the block runs. The SDK is loaded only when this is used."""
    from opentelemetry import trace  # noqa: PLC0415 - see above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor  # noqa: PLC0415

    with file.open("w", encoding="utf-8") as out:
        provider = TracerProvider()
        exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        try:
            yield
        finally:
            provider.shutdown()
