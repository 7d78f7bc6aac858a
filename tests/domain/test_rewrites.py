"""A rewrite takes the place of the whole document, and leaves what is protected as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.edits import NOT_APPLICABLE, PROTECTION_CHANGED, Edit, EditOp, Patch, apply_patch
from burnish.domain.regions import RegionKind, protection

MATTER = "---\nname: tickets\n---\n"
LOCKED = f"{RegionKind.LOCKED.start_marker}\nNever promise money.\n{RegionKind.LOCKED.end_marker}"
SLOW = f"{RegionKind.SLOW_UPDATE.start_marker}\nAsk first.\n{RegionKind.SLOW_UPDATE.end_marker}"
SKILL = f"{MATTER}\n# Tickets\n\n{LOCKED}\n\n- Be kind.\n\n{SLOW}\n"


def rewritten(document: str, content: str) -> str:
    report = apply_patch(document, Patch((Edit(EditOp.REWRITE, content),)))
    assert not report.failed
    return report.content


def refusal(document: str, content: str, op: EditOp = EditOp.REWRITE) -> str:
    report = apply_patch(document, Patch((Edit(op, content),)))
    assert report.content == document
    (failed,) = report.failed
    return failed.reason


def test_a_document_without_protected_parts_becomes_the_new_text() -> None:
    assert rewritten("# Old\n", "# New\n") == "# New\n"
    assert rewritten("", "# New\n") == "# New\n"


def test_protected_parts_that_are_left_out_are_put_back() -> None:
    assert rewritten(SKILL, "# New\n") == f"{MATTER}# New\n\n{LOCKED}\n\n{SLOW}\n"


def test_protected_parts_stay_where_the_new_text_has_them() -> None:
    new = f"{MATTER}# New\n\n{LOCKED}\n\n- Be brief.\n\n{SLOW}\n"
    assert rewritten(SKILL, new) == new


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"# New\n\n{SLOW}\n\n{LOCKED}\n", id="other order"),
        pytest.param(f"# New\n\n{LOCKED}\n", id="one is missing"),
        pytest.param(f"# New\n\n{LOCKED.replace('Never', 'Always')}\n\n{SLOW}\n", id="other text"),
        pytest.param(f"# New\n\n{RegionKind.LOCKED.start_marker}\n", id="a lone marker"),
        pytest.param("---\nname: other\n---\n# New\n", id="other front matter"),
    ],
)
def test_a_rewrite_that_changes_a_protected_part_is_refused(content: str) -> None:
    assert refusal(SKILL, content) == PROTECTION_CHANGED


def test_a_rewrite_that_brings_front_matter_or_markers_is_refused() -> None:
    assert refusal("# Old\n", MATTER + "# New\n") == PROTECTION_CHANGED
    assert refusal("# Old\n", f"# New\n{LOCKED}\n") == PROTECTION_CHANGED


def test_later_edits_apply_to_the_rewritten_text() -> None:
    patch = Patch((Edit(EditOp.REWRITE, "# New\n"), Edit(EditOp.APPEND, "- Be brief.")))
    report = apply_patch(SKILL, patch)
    assert report.content == f"{MATTER}# New\n\n{LOCKED}\n\n- Be brief.\n\n{SLOW}\n"


def test_a_suggestion_cannot_be_applied() -> None:
    assert refusal(SKILL, "Merge both rules.", EditOp.SUGGEST) == NOT_APPLICABLE


@given(st.text(alphabet="-\n# ab<!>\r", max_size=60) | st.sampled_from([LOCKED, SLOW, MATTER, SKILL, LOCKED + SLOW]))
def test_whatever_is_written_protected_parts_agree_afterwards(content: str) -> None:
    report = apply_patch(SKILL, Patch((Edit(EditOp.REWRITE, content),)))
    assert protection(report.content).same_as(protection(SKILL))
