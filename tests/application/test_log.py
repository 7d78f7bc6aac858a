"""Log events end in the standard library's logging: names, fields and redacted errors, no source and no locals."""

from __future__ import annotations

import logging
from typing import NoReturn

import pytest

from burnish.application.log import describe, get_logger

LOG = get_logger("burnish.test")


def fail(text: str) -> NoReturn:
    a_local_variable = "PLANTED"
    raise ValueError(text + a_local_variable[:0])


def test_an_event_has_its_fields_in_the_message_and_on_the_record(caplog: pytest.LogCaptureFixture) -> None:
    LOG.warning("stage.happened", run_id="r", code="x.y", name="taken", share="100%")
    (record,) = caplog.records
    assert record.getMessage() == "stage.happened run_id=r code=x.y name=taken share=100%"
    assert (record.levelno, record.name) == (logging.WARNING, "burnish.test")
    assert (vars(record)["event"], vars(record)["run_id"], vars(record)["field_name"]) == (
        "stage.happened",
        "r",
        "taken",
    )


def test_an_error_is_told_by_type_redacted_text_and_place(caplog: pytest.LogCaptureFixture) -> None:
    try:
        fail("password=PLANTED")
    except ValueError:
        LOG.exception("stage.failed")
    (record,) = caplog.records
    told = record.getMessage()
    assert "ValueError: " in told
    assert "in fail" in told
    assert "PLANTED" not in told
    assert not record.exc_info


def test_causes_contexts_and_groups_are_told_too_and_once() -> None:
    shared = KeyError("token=PLANTED1")
    group = ExceptionGroup("several", [OSError("password=PLANTED2"), shared])
    group.__context__ = shared
    error = RuntimeError("outer Bearer PLANTED3")
    error.__cause__ = group
    told = list(describe(error))
    assert [line.rpartition(":")[0] for line in told] == [
        "RuntimeError",
        "caused by ExceptionGroup",
        "one of them: OSError",
        "one of them: KeyError",
    ]
    assert "PLANTED" not in "".join(told)


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert list(describe(one)) == ["ValueError: one", "caused by ValueError: two"]


def test_a_suppressed_context_is_not_told() -> None:
    error = RuntimeError("outer")
    error.__context__, error.__suppress_context__ = ValueError("inner"), True
    assert list(describe(error)) == ["RuntimeError: outer"]


def test_notes_are_not_told() -> None:
    error = ValueError("text")
    error.add_note("PLANTED")
    assert list(describe(error)) == ["ValueError: text"]


def test_an_error_that_cannot_tell_its_text_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    class Mute(Exception):  # noqa: N818 - it is about its text
        def __str__(self) -> str:
            raise RuntimeError("no text")

    LOG.error("stage.failed", exc_info=Mute())
    assert "Mute: its text cannot be had" in caplog.text
