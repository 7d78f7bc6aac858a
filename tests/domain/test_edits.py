"""apply_patch: edits are literal, and nothing an edit does reaches front matter, regions or the marker sequence."""

from typing import cast

import pytest
from edit_examples import (
    ALL_REGIONS,
    APPENDIX_BLOCK,
    EMPTY_CONTENT,
    FRONT_MATTER,
    LOCKED,
    LOCKED_BLOCK,
    LOCKED_END,
    PROTECTION_CHANGED,
    SLOW,
    SLOW_BLOCK,
    SLOW_END,
    TARGET_NOT_FOUND,
    TARGET_PROTECTED,
    TARGET_REQUIRED,
    append,
    delete,
    insert_after,
    replace,
)

from burnish.domain.edits import ApplyReport, Edit, EditOp, EditSource, FailedEdit, Patch, apply_patch


def applied_to(document: str, *edits: Edit) -> ApplyReport:
    return apply_patch(document, Patch(edits))


def outcome_of(document: str, edit: Edit) -> str:
    """The text when the edit was applied, the reason when it was refused; checks that a refusal changes nothing."""
    report = applied_to(document, edit)
    if report.applied:
        assert report.failed == ()
        return report.content
    assert report.content == document
    assert not report.has_changes
    return report.failed[0].reason


@pytest.mark.parametrize(
    ("document", "edit", "expected"),
    [
        pytest.param("", append("A"), "A", id="append-to-empty-is-bare"),
        pytest.param("x", append("A"), "x\n\nA", id="append-puts-a-blank-line-between"),
        pytest.param("x\n", append("A"), "x\n\n\nA", id="append-adds-two-line-feeds-behind-a-newline-too"),
        pytest.param("\n", append("A"), "\n\n\nA", id="white-space-is-not-an-empty-document"),
        pytest.param("x", append("  A \n"), "x\n\n  A \n", id="append-trims-nothing"),
        pytest.param("x", append(" "), "x\n\n ", id="blank-content-is-content"),
        pytest.param("x", Edit(EditOp.APPEND, "A", "nowhere"), "x\n\nA", id="append-ignores-its-target"),
        pytest.param("ab", insert_after("a", "1"), "a1b", id="insert-is-verbatim-right-behind"),
        pytest.param("a\nb", insert_after("a", "1"), "a1\nb", id="insert-does-not-skip-to-the-line-end"),
        pytest.param("aa", insert_after("a", "1"), "a1a", id="insert-at-first-occurrence"),
        pytest.param("x a a", replace("a", "b"), "x b a", id="replace-first-occurrence-only"),
        pytest.param("a", replace("a", "aa"), "aa", id="replacement-is-not-searched-again"),
        pytest.param("aba", delete("a"), "ba", id="delete-first-occurrence-only"),
        pytest.param("ab", Edit(EditOp.DELETE, "ignored", "b"), "a", id="delete-ignores-its-content"),
        pytest.param("a \t b", delete(" \t "), "ab", id="blank-target-is-a-target"),
        pytest.param("abc", delete("abc"), "", id="delete-everything"),
        pytest.param("a\r\nb\r\n", insert_after("a\r\n", "c\r\n"), "a\r\nc\r\nb\r\n", id="crlf-stays"),
        pytest.param("\ufeffa", replace("a", "b"), "\ufeffb", id="byte-order-mark-stays"),
        pytest.param("a.b", replace(".", "\\1"), "a\\1b", id="no-patterns-no-escapes"),
        pytest.param("\ud800a\x00", replace("a\x00", "b"), "\ud800b", id="any-code-point"),
    ],
)
def test_edit_is_applied_to_the_letter(document: str, edit: Edit, expected: str) -> None:
    report = applied_to(document, edit)
    assert report == ApplyReport(expected, (edit,), (), has_changes=True)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        pytest.param(append(""), EMPTY_CONTENT, id="append-nothing"),
        pytest.param(insert_after("a", ""), EMPTY_CONTENT, id="insert-nothing"),
        pytest.param(replace("a", ""), EMPTY_CONTENT, id="replace-by-nothing"),
        pytest.param(replace("", ""), EMPTY_CONTENT, id="content-is-checked-before-missing-target"),
        pytest.param(replace("absent", ""), EMPTY_CONTENT, id="content-is-checked-before-absent-target"),
        pytest.param(insert_after("", "x"), TARGET_REQUIRED, id="insert-without-target"),
        pytest.param(replace("", "x"), TARGET_REQUIRED, id="replace-without-target"),
        pytest.param(delete(""), TARGET_REQUIRED, id="delete-without-target"),
        pytest.param(insert_after("absent", "x"), TARGET_NOT_FOUND, id="insert-after-absent"),
        pytest.param(replace("A", "x"), TARGET_NOT_FOUND, id="case-matters"),
        pytest.param(delete("a  b"), TARGET_NOT_FOUND, id="white-space-matters"),
        pytest.param(delete("e\u0301"), TARGET_NOT_FOUND, id="no-unicode-normalization"),
        pytest.param(Edit(cast("EditOp", "rename"), "x", "a"), "unknown edit op: rename", id="unknown-op"),
    ],
)
def test_edit_that_cannot_be_applied_says_why(edit: Edit, reason: str) -> None:
    document = "a b é"
    assert applied_to(document, edit) == ApplyReport(document, (), (FailedEdit(edit, reason),), has_changes=False)


def test_op_given_as_plain_text_works_like_the_member() -> None:
    assert outcome_of("ab", Edit(cast("EditOp", "delete"), target="a")) == "b"


def test_edits_see_the_text_the_earlier_ones_left() -> None:
    report = applied_to("one", append("two"), replace("two", "three"), delete("two"), insert_after("three", "!"))
    assert report.content == "one\n\nthree!"
    assert [failure.reason for failure in report.failed] == [TARGET_NOT_FOUND]
    assert len(report.applied) == 3


def test_failed_edit_does_not_stop_the_others() -> None:
    good, bad = replace("a", "b"), delete("absent")
    report = applied_to("a", bad, good, bad)
    assert report == ApplyReport("b", (good,), (FailedEdit(bad, TARGET_NOT_FOUND),) * 2, has_changes=True)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param((), id="no-edits"),
        pytest.param((replace("a", "a"),), id="identity"),
        pytest.param((insert_after("a", "x"), delete("x")), id="there-and-back"),
    ],
)
def test_has_changes_compares_texts_not_counts(edits: tuple[Edit, ...]) -> None:
    assert applied_to("a", *edits) == ApplyReport("a", edits, (), has_changes=False)


def test_defaults_of_an_edit() -> None:
    edit = Edit(EditOp.APPEND)
    assert (edit.content, edit.target, edit.origin, edit.skill_version) == ("", "", "", "")
    assert (edit.support_count, edit.source, edit.merge_level) == (None, None, None)
    assert Patch() == Patch((), "")
    assert [op.value for op in EditOp] == ["append", "insert_after", "replace", "delete", "rewrite", "suggest"]
    assert [source.value for source in EditSource] == ["failure", "success"]


# Where edits go


@pytest.mark.parametrize(("start", "end"), ALL_REGIONS)
@pytest.mark.parametrize("op", [EditOp.INSERT_AFTER, EditOp.REPLACE, EditOp.DELETE])
def test_target_only_inside_a_region_is_refused(start: str, end: str, op: EditOp) -> None:
    assert outcome_of(f"a\n{start}\nrule rule\n{end}\nb", Edit(op, "x", "rule")) == TARGET_PROTECTED


@pytest.mark.parametrize(("start", "end"), ALL_REGIONS)
def test_first_occurrence_outside_regions_is_edited(start: str, end: str) -> None:
    region = f"{start}rule rule{end}"
    assert outcome_of(f"{region} {region}rule rule", replace("rule", "x")) == f"{region} {region}x rule"


@pytest.mark.parametrize(("start", "end"), ALL_REGIONS)
@pytest.mark.parametrize("reach", range(1, 9))
def test_target_that_reaches_into_a_region_is_refused(start: str, end: str, reach: int) -> None:
    document = f"before{start}rule{end}behind"
    assert outcome_of(document, delete("before" + start[:reach])) == TARGET_PROTECTED
    assert outcome_of(document, delete(end[-reach:] + "behind")) == TARGET_PROTECTED


@pytest.mark.parametrize(
    ("document", "target", "expected"),
    [
        pytest.param(f"a{LOCKED_BLOCK}b", "a", f"x{LOCKED_BLOCK}b", id="right-before"),
        pytest.param(f"a{LOCKED_BLOCK}b", "b", f"a{LOCKED_BLOCK}x", id="right-behind"),
        pytest.param(f"{LOCKED_BLOCK}b{SLOW_BLOCK}", "b", f"{LOCKED_BLOCK}x{SLOW_BLOCK}", id="between-two"),
        pytest.param(f"{FRONT_MATTER}\nname", "name", f"{FRONT_MATTER}\nx", id="behind-front-matter"),
        pytest.param(f"{FRONT_MATTER}\n{LOCKED_BLOCK}", "name", TARGET_PROTECTED, id="in-front-matter"),
        pytest.param(f"{FRONT_MATTER}\na", "---\na", TARGET_PROTECTED, id="across-the-closing-fence"),
        pytest.param(f"{LOCKED}aXa{LOCKED_END}aa", "aa", f"{LOCKED}aXa{LOCKED_END}x", id="not-across-the-border"),
        pytest.param(f"{LOCKED}>{LOCKED_END}>>", ">>", f"{LOCKED}>{LOCKED_END}x", id="overlapping-occurrences"),
    ],
)
def test_replacement_goes_to_the_first_free_place(document: str, target: str, expected: str) -> None:
    assert outcome_of(document, replace(target, "x")) == expected


def test_insert_between_adjacent_regions_keeps_both() -> None:
    document = f"a{SLOW_BLOCK}{LOCKED_BLOCK}"
    assert outcome_of(document, insert_after("a", "b")) == f"ab{SLOW_BLOCK}{LOCKED_BLOCK}"


# Where appends go


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(f"a\n\n{SLOW_BLOCK}", f"a\n\nNEW\n\n{SLOW_BLOCK}", id="before-slow-update"),
        pytest.param(f"a\n\n{APPENDIX_BLOCK}", f"a\n\nNEW\n\n{APPENDIX_BLOCK}", id="before-appendix"),
        pytest.param(f"a{SLOW_BLOCK}", f"aNEW\n\n{SLOW_BLOCK}", id="directly-before"),
        pytest.param(
            f"a\n{APPENDIX_BLOCK}\n \t{SLOW_BLOCK}\r\n\n",
            f"a\nNEW\n\n{APPENDIX_BLOCK}\n \t{SLOW_BLOCK}\r\n\n",
            id="before-the-whole-closing-block",
        ),
        pytest.param(f"{SLOW_BLOCK}{SLOW_BLOCK}", f"NEW\n\n{SLOW_BLOCK}{SLOW_BLOCK}", id="document-of-regions-only"),
        pytest.param(
            f"{SLOW_BLOCK}\na\n{APPENDIX_BLOCK}",
            f"{SLOW_BLOCK}\na\nNEW\n\n{APPENDIX_BLOCK}",
            id="only-the-closing-ones",
        ),
        pytest.param(
            f"a\n{LOCKED_BLOCK}\n{SLOW_BLOCK}\n",
            f"a\n{LOCKED_BLOCK}\nNEW\n\n{SLOW_BLOCK}\n",
            id="between-locked-and-slow-update",
        ),
        pytest.param(
            f"a\n{SLOW_BLOCK}\n{LOCKED_BLOCK}\n",
            f"a\n{SLOW_BLOCK}\n{LOCKED_BLOCK}\n\n\nNEW",
            id="locked-never-moves-an-append",
        ),
        pytest.param(f"{SLOW_BLOCK}\nend", f"{SLOW_BLOCK}\nend\n\nNEW", id="text-behind-the-region"),
        pytest.param(f"a\n{SLOW}\nopen", f"a\n{SLOW}\nopen\n\nNEW", id="lone-start"),
        pytest.param(f"a\n{SLOW_BLOCK}{SLOW_END}", f"a\n{SLOW_BLOCK}{SLOW_END}\n\nNEW", id="lone-end-is-text"),
        pytest.param(FRONT_MATTER, f"{FRONT_MATTER}\n\nNEW", id="front-matter-only"),
        pytest.param(
            f"{FRONT_MATTER}\n{SLOW_BLOCK}", f"{FRONT_MATTER}\nNEW\n\n{SLOW_BLOCK}", id="front-matter-and-closing-block"
        ),
        pytest.param("\ufeff", "\ufeff\n\nNEW", id="byte-order-mark-only"),
    ],
)
def test_append_goes_to_the_end_or_before_the_closing_block(document: str, expected: str) -> None:
    assert outcome_of(document, append("NEW")) == expected


def test_appends_keep_their_order_before_the_closing_block() -> None:
    assert applied_to(SLOW_BLOCK, append("1"), append("2")).content == f"1\n\n2\n\n{SLOW_BLOCK}"


def test_append_follows_a_closing_block_that_earlier_edits_changed() -> None:
    document = f"{APPENDIX_BLOCK}\ntext\n{SLOW_BLOCK}"
    report = applied_to(document, delete("text"), append("1"), insert_after("1", f"{APPENDIX_BLOCK}"), append("2"))
    assert report.content == f"1\n\n2\n\n{APPENDIX_BLOCK}\n\n{SLOW_BLOCK}"
    assert [failure.reason for failure in report.failed] == [PROTECTION_CHANGED]


# What edits may not change


@pytest.mark.parametrize(
    ("document", "edit"),
    [
        pytest.param("a", append(SLOW), id="content-with-a-marker"),
        pytest.param("a", append(LOCKED_BLOCK), id="content-with-a-region"),
        pytest.param("", append(LOCKED_END), id="marker-into-empty-document"),
        pytest.param(f"a\n{SLOW}b", append(SLOW_END), id="end-for-a-lone-start"),
        pytest.param(f"a\n{SLOW_END}b", replace("a", SLOW), id="start-for-a-lone-end"),
        pytest.param(f"a {LOCKED_BLOCK}", replace("a", LOCKED_END), id="lone-end-before-a-region"),
        pytest.param(f"a {LOCKED_BLOCK}", replace("a", SLOW), id="lone-start-before-a-region"),
        pytest.param("<!-- LOCKED_xSTART -->", delete("x"), id="assembled-by-delete"),
        pytest.param("<!-- LOCKED_xSTART -->", replace("xS", "S"), id="assembled-by-replace"),
        pytest.param("<!-- LOCKED_ -->", insert_after("<!-- LOCKED_", "END"), id="assembled-by-insert"),
        pytest.param("a --> b", replace("a", "<!-- APPENDIX_END"), id="completed-by-what-follows"),
        pytest.param("<!-- SLOW_UPDATE_START", insert_after("START", " -->"), id="completed-by-what-precedes"),
        pytest.param("-->\n<", insert_after("<", "!-- SLOW_UPDATE_START -->"), id="prefix-of-one-character"),
        pytest.param(f"a{LOCKED}b", delete(LOCKED), id="lone-marker-removed"),
        pytest.param(f"a{LOCKED}b", delete("STA"), id="lone-marker-broken"),
        pytest.param(f"a{LOCKED}b", insert_after("LOCKED", "x"), id="lone-marker-broken-by-insert"),
        pytest.param(f"a{LOCKED}b", replace("LOCKED", "SLOW_UPDATE"), id="lone-marker-of-another-kind"),
        pytest.param(f"a{LOCKED}{SLOW}b", replace(LOCKED + SLOW, SLOW + LOCKED), id="lone-markers-reordered"),
        pytest.param(f"a{LOCKED_END}b", insert_after("b", LOCKED_END), id="lone-marker-doubled"),
    ],
)
def test_edit_that_would_change_the_markers_is_refused(document: str, edit: Edit) -> None:
    assert outcome_of(document, edit) == PROTECTION_CHANGED


@pytest.mark.parametrize(
    ("document", "edit", "expected"),
    [
        pytest.param(f"a{LOCKED}b", replace(f"a{LOCKED}b", f"c{LOCKED}d"), f"c{LOCKED}d", id="around-a-lone-marker"),
        pytest.param(f"a{LOCKED}b", replace("a", "c"), f"c{LOCKED}b", id="before-a-lone-marker"),
        pytest.param(f"{LOCKED_END}a{LOCKED}", delete("a"), f"{LOCKED_END}{LOCKED}", id="between-lone-markers"),
        pytest.param("a", append("<!-- LOCKED_"), "a\n\n<!-- LOCKED_", id="half-a-marker"),
        pytest.param("a", append("<!-- locked_start -->"), "a\n\n<!-- locked_start -->", id="other-case"),
        pytest.param("a", append("<!--LOCKED_START-->"), "a\n\n<!--LOCKED_START-->", id="other-spacing"),
        pytest.param("a", append("<!-- note -->"), "a\n\n<!-- note -->", id="ordinary-comment"),
    ],
)
def test_edit_that_keeps_the_marker_sequence_is_applied(document: str, edit: Edit, expected: str) -> None:
    assert outcome_of(document, edit) == expected


@pytest.mark.parametrize(
    ("document", "edit"),
    [
        pytest.param("", append(FRONT_MATTER), id="into-empty-document"),
        pytest.param("", append(f"\ufeff{FRONT_MATTER}"), id="with-byte-order-mark"),
        pytest.param("", append(FRONT_MATTER.replace("\n", "\r\n")), id="with-crlf"),
        pytest.param("", append(FRONT_MATTER.replace("\n", "\r")), id="with-cr"),
        pytest.param(SLOW_BLOCK, append(FRONT_MATTER), id="before-a-closing-block-at-the-start"),
        pytest.param(f"a\n{FRONT_MATTER}\n", delete("a\n"), id="uncovered-by-delete"),
        pytest.param(f"a{FRONT_MATTER}\n", replace("a", "\ufeff"), id="uncovered-by-a-byte-order-mark"),
        pytest.param("--x-\na\n---", delete("x"), id="opening-fence-assembled"),
        pytest.param("---x\na\n---", replace("x", " \t"), id="opening-fence-freed"),
        pytest.param("---\na\n--x-\nb", delete("x"), id="closing-fence-assembled"),
        pytest.param("---\na", append("---"), id="closing-fence-appended"),
        pytest.param("---\na---\nb", insert_after("a", "\n"), id="closing-fence-moved-to-its-own-line"),
        pytest.param("---\na\n---b", insert_after("\n---", "\r"), id="closing-fence-ends-its-line"),
        pytest.param("---\na\n---b", replace("b", "\nb"), id="closing-fence-freed"),
        pytest.param(f"---\n{LOCKED_BLOCK}\nb", replace("b", "---"), id="region-would-become-front-matter"),
        pytest.param(f"x---\n{LOCKED}\n---\n{LOCKED_END}", delete("x"), id="fence-in-a-region-would-close"),
        pytest.param(f"{FRONT_MATTER}\nb", replace("\nb", "b"), id="text-joins-the-closing-fence"),
        pytest.param(f"{FRONT_MATTER}\nb", replace("\nb", " \nb"), id="blank-joins-the-closing-fence"),
        pytest.param(f"{FRONT_MATTER}\n{LOCKED_BLOCK}", delete("\n"), id="region-joins-the-closing-fence"),
        pytest.param("---\na\n---\nb\n---\n", replace("\nb", "x"), id="later-fence-would-close"),
    ],
)
def test_edit_that_would_change_the_front_matter_is_refused(document: str, edit: Edit) -> None:
    assert outcome_of(document, edit) == PROTECTION_CHANGED


@pytest.mark.parametrize(
    ("document", "edit", "expected"),
    [
        pytest.param("a", append("---\nb: 1\n---"), "a\n\n---\nb: 1\n---", id="rules-in-the-text"),
        pytest.param(f"{FRONT_MATTER}\na", append("---"), f"{FRONT_MATTER}\na\n\n---", id="rule-behind-front-matter"),
        pytest.param(f"{FRONT_MATTER}\na", delete("\na"), FRONT_MATTER, id="front-matter-alone-is-left"),
        pytest.param(f"{FRONT_MATTER}\na", replace("\na", "\r\nb"), f"{FRONT_MATTER}\r\nb", id="other-line-break"),
        pytest.param("---\na", replace("a", "b"), "---\nb", id="rule-on-the-first-line"),
        pytest.param("---\na\n---b", delete("---\na\n"), "---b", id="unclosed-fence-removed"),
    ],
)
def test_edit_beside_the_front_matter_is_applied(document: str, edit: Edit, expected: str) -> None:
    assert outcome_of(document, edit) == expected
