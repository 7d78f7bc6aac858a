"""Front matter, regions and markers: what is found, read, replaced and refused."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.regions import (
    MAX_SKILL_CHARACTERS,
    RegionKind,
    Span,
    front_matter_span,
    markers_are_balanced,
    protection,
    read_region,
    replace_region,
    splice_keeps_markers,
    without_markers,
)

SLOW, SLOW_END = "<!-- SLOW_UPDATE_START -->", "<!-- SLOW_UPDATE_END -->"
APPENDIX, APPENDIX_END = "<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"
LOCKED, LOCKED_END = "<!-- LOCKED_START -->", "<!-- LOCKED_END -->"
MARKERS = [SLOW, SLOW_END, APPENDIX, APPENDIX_END, LOCKED, LOCKED_END]
FRONT_MATTER = "---\nname: demo\n---"


def test_markers_are_spelt_as_skill_authors_write_them() -> None:
    assert [marker for kind in RegionKind for marker in (kind.start_marker, kind.end_marker)] == MARKERS


def test_longest_skill_has_262144_characters() -> None:
    assert MAX_SKILL_CHARACTERS == 262_144


# Front matter


@pytest.mark.parametrize(
    "matter",
    [
        pytest.param(FRONT_MATTER, id="plain"),
        pytest.param("---\n---", id="empty"),
        pytest.param("---\r\nname: demo\r\n---", id="crlf"),
        pytest.param("---\rname: demo\r---", id="cr"),
        pytest.param("\ufeff---\nname: demo\n---", id="byte-order-mark"),
        pytest.param("--- \t\nname: demo\n---\t ", id="blanks-behind-the-fences"),
        pytest.param("---\na: ---\nb---\n ---\n----\n---x\n---", id="dashes-that-are-no-fence"),
        pytest.param(f"---\na: {LOCKED}\n---", id="marker-inside"),
    ],
)
@pytest.mark.parametrize("body", ["", "\n", "\nbody", "\r\nbody\n---\n", "\rbody"])
def test_front_matter_ends_with_its_closing_fence(matter: str, body: str) -> None:
    assert front_matter_span(matter + body) == Span(0, len(matter))
    assert protection(matter + body).front_matter == matter


@pytest.mark.parametrize(
    "document",
    [
        pytest.param("", id="empty"),
        pytest.param("---", id="fence-only"),
        pytest.param("------", id="two-fences-on-one-line"),
        pytest.param("---\nname: demo", id="never-closed"),
        pytest.param("---\nname: demo\n--- x", id="text-behind-the-closing-fence"),
        pytest.param("--- x\nname: demo\n---", id="text-behind-the-opening-fence"),
        pytest.param("----\nname: demo\n----", id="four-dashes"),
        pytest.param("\n---\nname: demo\n---", id="not-on-the-first-line"),
        pytest.param(" ---\nname: demo\n---", id="indented"),
        pytest.param("\ufeff\ufeff---\nname: demo\n---", id="two-byte-order-marks"),
        pytest.param("# Title\n\n---\n\n---\n", id="rules-in-the-text"),
        pytest.param("---\u2028name: demo\u2028---", id="other-line-separators"),
    ],
)
def test_text_that_is_no_front_matter(document: str) -> None:
    assert front_matter_span(document) == Span(0, 0)
    assert protection(document).spans == ()


# Regions


@pytest.mark.parametrize(
    ("document", "kinds", "texts"),
    [
        pytest.param("plain", [], [], id="none"),
        pytest.param(f"a{LOCKED}b{LOCKED_END}c", ["LOCKED"], [f"{LOCKED}b{LOCKED_END}"], id="one"),
        pytest.param(f"{SLOW}{SLOW_END}", ["SLOW_UPDATE"], [f"{SLOW}{SLOW_END}"], id="empty-one"),
        pytest.param(
            f"{APPENDIX}1{APPENDIX_END}{SLOW}2{SLOW_END}{APPENDIX}3{APPENDIX_END}",
            ["APPENDIX", "SLOW_UPDATE", "APPENDIX"],
            [f"{APPENDIX}1{APPENDIX_END}", f"{SLOW}2{SLOW_END}", f"{APPENDIX}3{APPENDIX_END}"],
            id="three-in-a-row",
        ),
        pytest.param(f"a{LOCKED}b", [], [], id="lone-start"),
        pytest.param(f"a{LOCKED_END}b", [], [], id="lone-end"),
        pytest.param(f"{LOCKED_END}{LOCKED}", [], [], id="end-before-start"),
        pytest.param(f"{LOCKED}{SLOW_END}", [], [], id="ends-of-another-kind"),
        pytest.param(f"{SLOW}a{LOCKED}b{LOCKED_END}", ["LOCKED"], [f"{LOCKED}b{LOCKED_END}"], id="behind-a-lone-start"),
        pytest.param(
            f"{LOCKED}a{LOCKED}b{LOCKED_END}c{LOCKED_END}",
            ["LOCKED"],
            [f"{LOCKED}a{LOCKED}b{LOCKED_END}"],
            id="to-the-next-end",
        ),
        pytest.param(
            f"{SLOW}{LOCKED}{LOCKED_END}{SLOW_END}",
            ["SLOW_UPDATE"],
            [f"{SLOW}{LOCKED}{LOCKED_END}{SLOW_END}"],
            id="nested-belongs-to-the-outer",
        ),
        pytest.param(
            f"{SLOW}{LOCKED}{SLOW_END}{LOCKED_END}", ["SLOW_UPDATE"], [f"{SLOW}{LOCKED}{SLOW_END}"], id="crossing"
        ),
        pytest.param(f"---\n{LOCKED}\n---\n{LOCKED_END}", [], [], id="start-in-front-matter"),
        pytest.param("<!-- locked_start -->x<!-- locked_end -->", [], [], id="lower-case-is-a-comment"),
    ],
)
def test_regions_reach_from_a_start_to_the_next_end_of_the_kind(
    document: str, kinds: list[str], texts: list[str]
) -> None:
    found = protection(document)
    assert [region.kind.value for region in found.regions] == kinds
    assert [region.text for region in found.regions] == texts
    assert [document[region.span.start : region.span.end] for region in found.regions] == texts


def test_protected_spans_are_front_matter_and_regions_in_order() -> None:
    document = f"{FRONT_MATTER}\na\n{LOCKED}b{LOCKED_END}c{SLOW}{SLOW_END}{LOCKED}"
    found = protection(document)
    spans = [document[span.start : span.end] for span in found.spans]
    assert spans == [FRONT_MATTER, f"{LOCKED}b{LOCKED_END}", f"{SLOW}{SLOW_END}"]
    assert found.markers == (LOCKED, LOCKED_END, SLOW, SLOW_END, LOCKED)


def test_markers_in_the_front_matter_are_in_the_sequence_but_make_no_region() -> None:
    found = protection(f"---\n{LOCKED}{LOCKED_END}\n---\n{SLOW}")
    assert found.markers == (LOCKED, LOCKED_END, SLOW)
    assert found.regions == ()


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        pytest.param(f"{FRONT_MATTER}\nmoved {LOCKED}x{LOCKED_END}{SLOW} text", True, id="other-free-text"),
        pytest.param(f"{FRONT_MATTER}\n{LOCKED}y{LOCKED_END}{SLOW}", False, id="other-region"),
        pytest.param(f"{FRONT_MATTER}\n{LOCKED}x{LOCKED_END}", False, id="lone-marker-gone"),
        pytest.param(f"{FRONT_MATTER}\n{SLOW}{LOCKED}x{LOCKED_END}", False, id="other-order"),
        pytest.param(f"{FRONT_MATTER} \n{LOCKED}x{LOCKED_END}{SLOW}", False, id="other-front-matter"),
        pytest.param(f"\n{FRONT_MATTER}\n{LOCKED}x{LOCKED_END}{SLOW}", False, id="no-front-matter"),
    ],
)
def test_protection_is_the_same_when_everything_protected_is(other: str, *, is_same: bool) -> None:
    guard = protection(f"{FRONT_MATTER}\n{LOCKED}x{LOCKED_END}{SLOW}")
    assert guard.same_as(protection(other)) is is_same
    assert protection(other).same_as(guard) is is_same


@pytest.mark.parametrize(
    ("document", "is_balanced"),
    [
        pytest.param("", True, id="empty"),
        pytest.param("a <!-- comment --> b", True, id="no-markers"),
        pytest.param(f"{FRONT_MATTER}\n{SLOW}a{SLOW_END}{LOCKED}b{LOCKED_END}", True, id="in-a-row"),
        pytest.param(f"{LOCKED}1{LOCKED_END}{LOCKED}2{LOCKED_END}", True, id="same-kind-twice"),
        pytest.param(LOCKED, False, id="lone-start"),
        pytest.param(LOCKED_END, False, id="lone-end"),
        pytest.param(f"{LOCKED}{LOCKED_END}{LOCKED_END}", False, id="second-end"),
        pytest.param(f"{LOCKED_END}{LOCKED}", False, id="wrong-order"),
        pytest.param(f"{LOCKED}{SLOW_END}", False, id="other-kind"),
        pytest.param(f"{LOCKED}{LOCKED}{LOCKED_END}{LOCKED_END}", False, id="nested-same-kind"),
        pytest.param(f"{SLOW}{LOCKED}{LOCKED_END}{SLOW_END}", False, id="nested"),
        pytest.param(f"{SLOW}{LOCKED}{SLOW_END}{LOCKED_END}", False, id="crossing"),
        pytest.param(f"{SLOW}{LOCKED_END}{SLOW_END}", False, id="stray-end-inside"),
        pytest.param(f"---\n{LOCKED}{LOCKED_END}\n---\n", False, id="in-front-matter"),
        pytest.param(f"---\n{LOCKED}\n---\n{LOCKED_END}", False, id="across-the-closing-fence"),
        pytest.param(f"---\n{LOCKED}{LOCKED_END}\n", True, id="behind-a-rule-that-is-no-front-matter"),
    ],
)
def test_markers_are_balanced_when_every_one_belongs_to_a_region_of_its_own(
    document: str, *, is_balanced: bool
) -> None:
    assert markers_are_balanced(document) is is_balanced


# Reading and replacing


@pytest.mark.parametrize(
    ("document", "content"),
    [
        pytest.param("", None, id="none"),
        pytest.param(f"{LOCKED}x{LOCKED_END}", None, id="other-kind"),
        pytest.param(f"{SLOW}x", None, id="lone-marker"),
        pytest.param(f"---\n{SLOW}x{SLOW_END}\n---\n", None, id="in-front-matter"),
        pytest.param(f"{SLOW}{SLOW_END}", "", id="empty"),
        pytest.param(f"a{SLOW}\r\n\n x\n\ny \n{SLOW_END}b", " x\n\ny ", id="line-breaks-around-it-do-not-count"),
        pytest.param(f"{SLOW}1{SLOW_END}{SLOW}2{SLOW_END}", "1", id="first-of-two"),
        pytest.param(f"{SLOW}\nx\n{SLOW_END}", "x", id="nothing-but-line-breaks-is-taken-off"),
    ],
)
def test_region_reads_as_the_text_between_its_markers(document: str, content: str | None) -> None:
    assert read_region(document, RegionKind.SLOW_UPDATE) == content


BLOCK = f"{SLOW}\nnew\n{SLOW_END}"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param("", f"{BLOCK}\n", id="empty-document"),
        pytest.param("a", f"a\n\n{BLOCK}\n", id="blank-line-before"),
        pytest.param("a\n", f"a\n\n{BLOCK}\n", id="newline-is-completed-to-a-blank-line"),
        pytest.param("a\n\n", f"a\n\n{BLOCK}\n", id="blank-line-is-there"),
        pytest.param(FRONT_MATTER, f"{FRONT_MATTER}\n\n{BLOCK}\n", id="behind-front-matter"),
        pytest.param(
            f"a\n{APPENDIX}x{APPENDIX_END}", f"a\n{APPENDIX}x{APPENDIX_END}\n\n{BLOCK}\n", id="behind-other-regions"
        ),
        pytest.param(f"a{SLOW}old{SLOW_END}b", f"a{BLOCK}b", id="in-its-place"),
        pytest.param(f"{SLOW}1{SLOW_END}{SLOW}2{SLOW_END}", f"{BLOCK}{SLOW}2{SLOW_END}", id="first-of-two"),
        pytest.param(f"{SLOW_END}a", f"{SLOW_END}a\n\n{BLOCK}\n", id="a-lone-end-does-no-harm"),
        pytest.param(f"{LOCKED}a", f"{LOCKED}a\n\n{BLOCK}\n", id="nor-a-lone-start-of-another-kind"),
    ],
)
def test_region_is_replaced_or_added_at_the_end(document: str, expected: str) -> None:
    assert replace_region(document, RegionKind.SLOW_UPDATE, "new") == expected


@pytest.mark.parametrize(
    ("document", "content"),
    [
        pytest.param("---\nrule on the first line", "a\n---\nb", id="added-text-would-close-front-matter"),
        pytest.param(f"---\n{SLOW}\nold\n{SLOW_END}", "a\n---", id="new-text-would-close-front-matter"),
        pytest.param(f"a {SLOW} b", "c", id="lone-start-would-take-the-new-end"),
    ],
)
def test_document_stays_as_it_is_when_a_region_would_disturb_what_is_protected(document: str, content: str) -> None:
    assert replace_region(document, RegionKind.SLOW_UPDATE, content) == document


@pytest.mark.parametrize("marker", MARKERS)
def test_region_content_with_a_marker_is_the_callers_bug(marker: str) -> None:
    with pytest.raises(ValueError, match="marker"):
        replace_region("", RegionKind.APPENDIX, f"a{marker}b")


fragments = st.sampled_from(
    [*MARKERS, "<!-- LOCKED_", "START -->", "---", "---\n", "\n", "\n---\n", "\r\n", "\ufeff", "a", "rule", " ", "<"]
)
texts = st.lists(fragments, max_size=12).map("".join)
contents = texts.map(without_markers)


@given(texts, st.sampled_from(RegionKind), contents)
def test_replaced_region_reads_back_or_nothing_changed(document: str, kind: RegionKind, content: str) -> None:
    before = protection(document)
    changed = replace_region(document, kind, content)
    after = protection(changed)
    assert after.front_matter == before.front_matter
    if changed != document:
        assert read_region(changed, kind) == content.strip("\r\n")
        others = [region.text for region in before.regions]
        if kind in (region.kind for region in before.regions):
            others.remove(next(region.text for region in before.regions if region.kind is kind))
        kept = [region.text for region in after.regions]
        kept.remove(next(region.text for region in after.regions if region.kind is kind))
        assert kept == others
        assert replace_region(changed, kind, content) == changed


@given(contents, st.sampled_from(RegionKind), contents)
def test_a_document_with_balanced_markers_keeps_them_balanced(document: str, kind: RegionKind, content: str) -> None:
    once = replace_region(document, kind, "x")
    twice = replace_region(once, kind, content)
    assert markers_are_balanced(once)
    assert markers_are_balanced(twice)


# Markers taken out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("a <!-- b --> c", "a <!-- b --> c", id="comments-stay"),
        pytest.param(f"a{LOCKED}b{SLOW_END}c", "abc", id="every-kind"),
        pytest.param(f"<!-- LOCKED_{SLOW}START -->", "", id="assembled-by-removing-another"),
        pytest.param(f"<!-- <!-- LOC{APPENDIX}KED_END -->LOCKED_START -->", "", id="assembled-twice"),
        pytest.param(f"x<!-- LOCKED_{LOCKED}{LOCKED}END -->y", "xy", id="two-inside"),
        pytest.param(f"<!-- LOCKED_{LOCKED}", "<!-- LOCKED_", id="half-stays"),
        pytest.param("<!-- LOCKED_" * 3000 + LOCKED + "START -->" * 3000, "", id="three-thousand-deep"),
    ],
)
def test_text_without_markers(text: str, expected: str) -> None:
    assert without_markers(text) == expected


@st.composite
def assembled(draw: st.DrawFn) -> str:
    """Markers put into markers, at any place and any depth."""
    text = draw(texts)
    for marker in draw(st.lists(st.sampled_from(MARKERS), max_size=5)):
        cut = draw(st.integers(0, len(marker)))
        text = marker[:cut] + text + marker[cut:]
    return text


@given(assembled())
def test_no_marker_is_left_however_they_are_assembled(text: str) -> None:
    expected, shorter = text, re.sub("|".join(MARKERS), "", text)
    while expected != shorter:
        expected, shorter = shorter, re.sub("|".join(MARKERS), "", shorter)
    assert without_markers(text) == expected


@given(texts, st.data(), texts)
def test_local_look_at_a_splice_agrees_with_the_whole_text(text: str, data: st.DataObject, inserted: str) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    is_kept = protection(text).markers == protection(text[:start] + inserted + text[end:]).markers
    assert splice_keeps_markers(text, start, end, inserted) is is_kept
