"""Results and the catalogue of failure codes."""

from __future__ import annotations

import re

import pytest

from burnish.application.result import ErrorCode, ErrorKind, Failure, Result, ResultAccessError

FIXED = {
    "request.invalid": "invalid",
    "skill_training.run.not_found": "not_found",
    "skill_training.run.already_active": "conflict",
    "skill_training.run.identity_mismatch": "conflict",
    "skill_training.run.optimizer_failed": "unavailable",
    "skill_training.run.inconclusive": "unavailable",
    "skill_training.run.nothing_worked": "unavailable",
    "skill_training.store.unavailable": "unavailable",
    "skill_training.rollout.not_configured": "invalid",
    "skill_training.rollout.empty_batch": "invalid",
    "skill_training.rollout.call_failed": "unavailable",
    "skill_training.rollout.wrong_items": "invalid",
    "skill_training.rollout.invalid_score": "invalid",
    "skill_training.reflect.not_configured": "invalid",
    "skill_training.reflect.proposer_call_failed": "unavailable",
    "skill_training.reflect.proposer_returned_null": "unavailable",
    "skill_training.reflect.unreadable_patch": "unavailable",
    "skill_training.checkpoint.save_failed": "unavailable",
    "skill_training.meta.persist_failed": "unavailable",
    "internal.unexpected": "bug",
}
"""Codes hosts and scripts rely on; more may come, none may go or change its kind."""


def test_codes_and_their_kinds_stay() -> None:
    assert {code: FIXED.get(code.value, code.kind.value) for code in ErrorCode} == {
        code: code.kind.value for code in ErrorCode
    }
    assert FIXED.keys() <= {code.value for code in ErrorCode}


@pytest.mark.parametrize("code", ErrorCode)
def test_a_code_has_a_stable_form_and_words_for_people(code: ErrorCode) -> None:
    assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", code.value)
    for text in (code.meaning, code.remedy):
        assert text
        assert "\n" not in text
        assert not text.endswith(".")


def test_each_kind_has_an_exit_status_and_an_http_status() -> None:
    assert {kind.value: (kind.exit_code, kind.http_status) for kind in ErrorKind} == {
        "invalid": (2, 422),
        "not_found": (66, 404),
        "conflict": (75, 409),
        "unavailable": (69, 503),
        "bug": (70, 500),
    }


def test_a_success_holds_its_value_also_when_that_is_none() -> None:
    assert Result.ok(3).value == 3
    assert Result.ok(None).is_ok
    assert Result.ok(None).value is None
    assert Result.ok(3).failure is None


def test_a_failure_holds_its_code_and_fields() -> None:
    failed = Result.fail("request.invalid", "config.epochs", "run_id")
    assert not failed.is_ok
    assert failed.failure == Failure(ErrorCode.INVALID_REQUEST, ("config.epochs", "run_id"))
    with pytest.raises(ResultAccessError):
        _ = failed.value


def test_free_text_is_no_code() -> None:
    with pytest.raises(ValueError, match="boom"):
        Result.fail("boom: it broke")


def test_results_compare_by_what_they_hold() -> None:
    assert Result.ok(1) == Result.ok(1) != Result.ok(2)
    assert Result.fail(ErrorCode.RUN_NOT_FOUND) == Result.fail("skill_training.run.not_found")
