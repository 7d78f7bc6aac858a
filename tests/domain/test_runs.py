"""What a run leaves behind: names of reasons, defaults of a record, hashes and ids."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.gate import GateAction
from burnish.domain.runs import (
    Checkpoint,
    StepReason,
    StepRecord,
    StopReason,
    TrainingRun,
    is_run_id,
    skill_hash,
)


def test_step_reasons_are_public_names() -> None:
    assert {reason.value for reason in StepReason} == {
        "accepted",
        "gate",
        "no_patches",
        "no_edits",
        "no_change",
        "too_long",
        "optimizer_failed",
        "inconclusive",
        "forced",
        "notes",
    }


def test_stop_reasons_are_public_names() -> None:
    assert {reason.value for reason in StopReason} == {
        "completed",
        "patience",
        "budget",
        "cancelled",
        "optimizer_failed",
        "failed",
    }


def test_step_record_claims_no_score_that_was_not_measured() -> None:
    record = StepRecord(1, 1, GateAction.REJECT, StepReason.NO_PATCHES)
    assert (record.candidate_hard, record.candidate_soft, record.candidate_score) == (None, None, None)
    assert (record.ceiling, record.held_in_score, record.code) == (None, None, None)
    assert (record.proposed, record.selected, record.applied, record.failed, record.learning_rate) == (0, 0, 0, 0, 0)
    assert (record.skill_hash, record.skill_characters) == ("", 0)


def test_run_that_has_only_begun_claims_nothing() -> None:
    run = TrainingRun(
        run_id="r",
        skill_id="s",
        best_skill="",
        best_score=0.0,
        best_step=0,
        baseline_score=None,
        selected_score=None,
        final_skill="",
        steps_executed=0,
        consecutive_rejects=0,
        has_accepted_any=False,
        steps=(),
        stop_reason=None,
    )
    assert (run.final_score, run.promoted_final, run.test, run.code) == (None, False, None, None)
    assert (run.seed, run.memory) == (0, "")


def test_step_record_has_the_fields_of_the_contract_in_order() -> None:
    contract = (
        "step epoch action reason code learning_rate proposed selected applied failed candidate_hard candidate_soft "
        "candidate_score ceiling held_in_score skill_hash"
    )
    assert [field.name for field in fields(StepRecord)][:16] == contract.split()


def test_training_run_has_the_fields_of_the_contract_in_order() -> None:
    contract = (
        "run_id skill_id best_skill best_score best_step baseline_score selected_score final_skill steps_executed "
        "consecutive_rejects has_accepted_any steps stop_reason"
    )
    assert [field.name for field in fields(TrainingRun)][:13] == contract.split()


def test_checkpoint_has_the_fields_of_system_a() -> None:
    assert {field.name for field in fields(Checkpoint)} >= {
        "run_id",
        "skill_id",
        "step",
        "epoch",
        "skill_hash",
        "score",
        "action",
        "created_at",
    }


@pytest.mark.parametrize(
    ("skill", "digest"),
    [
        pytest.param("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", id="empty"),
        pytest.param("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", id="ascii"),
        pytest.param("é", "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c", id="utf-8"),
    ],
)
def test_skill_hash_is_sha_256_of_utf_8(skill: str, digest: str) -> None:
    assert skill_hash(skill) == digest


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
def test_skill_hash_tells_any_two_texts_apart(one: str, other: str) -> None:
    assert (skill_hash(one) == skill_hash(other)) is (one == other)
    assert set(skill_hash(one)) <= set("0123456789abcdef")


def test_skill_hash_takes_text_that_is_no_utf_8() -> None:
    assert skill_hash("\ud800") != skill_hash("\udfff")


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        pytest.param("r", True, id="one-letter"),
        pytest.param("7", True, id="one-digit"),
        pytest.param("Run-17_a.b", True, id="all-that-is-allowed"),
        pytest.param("x" * 128, True, id="128-characters"),
        pytest.param("x" * 129, False, id="129-characters"),
        pytest.param("", False, id="empty"),
        pytest.param(".hidden", False, id="dot-first"),
        pytest.param("-flag", False, id="dash-first"),
        pytest.param("_x", False, id="underscore-first"),
        pytest.param("a/b", False, id="slash"),
        pytest.param("a b", False, id="space"),
        pytest.param("a\n", False, id="line-feed-at-the-end"),
        pytest.param("é", False, id="letter-beyond-ascii"),
        pytest.param("a٣", False, id="digit-beyond-ascii"),
    ],
)
def test_run_id_is_a_short_ascii_name(text: str, *, is_valid: bool) -> None:
    assert is_run_id(text) is is_valid
