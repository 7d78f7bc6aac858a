"""The notes of an appendix: what is the same note, where notes are put, and that nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burnish.domain.appendix import fit_notes, new_notes, note_key, notes_of, with_notes, with_only_notes
from burnish.domain.regions import RegionKind, protection, read_region

START, END = "<!-- APPENDIX_START -->", "<!-- APPENDIX_END -->"
SLOW = "<!-- SLOW_UPDATE_START -->\nKeep going.\n<!-- SLOW_UPDATE_END -->"
HEADING = "## Execution Notes Appendix"
SKILL = "# Skill\n\n\n\n- A rule.\n"
NOTED = f"{SKILL}\n{START}\n{HEADING}\n\n- Read the last line.\n{END}\n"

pieces = st.sampled_from(
    [
        *(marker for kind in RegionKind for marker in (kind.start_marker, kind.end_marker)),
        *(
            "- ",
            "-",
            "\n",
            "\n\n\n",
            "\r\n",
            " ",
            "---",
            "a",
            "B.",
            "<!-- ",
            "APPENDIX_END -->",
            HEADING,
            "\u2028",
            "\x85",
        ),
    ]
)
texts = st.lists(pieces | st.text(max_size=4), max_size=12).map("".join)
noted = st.tuples(texts, texts, texts).map(lambda parts: f"{parts[0]}{START}{parts[1]}{END}{parts[2]}")
documents = texts | noted | st.just(NOTED)
notes = st.lists(texts, max_size=5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Read the last line.", "read  the LAST line"),
        ("STRASSE", "straße"),
        ("a\tb\nc", "A B C;:,_-. "),
        ("...", ""),
    ],
)
def test_case_white_space_and_punctuation_at_the_end_do_not_make_another_note(one: str, other: str) -> None:
    assert note_key(one) == note_key(other)


def test_the_first_wording_of_a_note_stays_and_blank_ones_are_dropped() -> None:
    given_notes = ["Read on.", " ", "\n", "...", "read ON", "- Check the code", f"{START}Stop{END}", "Two\nlines"]
    assert fit_notes(given_notes) == ("Read on.", "Check the code", "Stop", "Two lines")


def test_a_marker_that_appears_by_putting_a_note_on_one_line_is_taken_out() -> None:
    assert fit_notes(["a <!--\nAPPENDIX_END --> b", "<!-- <!-- LOCKED_END --> APPENDIX_END --> c"]) == ("a b", "c")


def test_the_first_notes_are_put_into_an_appendix_of_their_own_at_the_end() -> None:
    document = with_notes(f"{SKILL}\n{SLOW}\n", ["Read the last line.", "Check the code."])
    expected = f"{HEADING}\n\n- Read the last line.\n- Check the code."
    assert document == f"{SKILL}\n{SLOW}\n\n{START}\n{expected}\n{END}\n"
    assert notes_of(document) == ("Read the last line.", "Check the code.")


def test_further_notes_are_put_behind_those_that_are_there_whatever_else_stands_there() -> None:
    document = f"{SKILL}\n{START}\n\nBy hand:\n- One.\n\n\n{END}\n{SLOW}"
    assert with_notes(document, ["one", "Two.", "TWO"]) == document.replace("- One.", "- One.\n- Two.")
    assert with_notes(f"{START}{END}", ["One."]) == f"{START}\n{HEADING}\n\n- One.\n{END}"
    assert with_notes(f"{START}- One. {END}", ["Two."]) == f"{START}- One.\n- Two.\n{END}"


@pytest.mark.parametrize("nothing", [[], ["  ", "..."], ["read the last line"]])
def test_without_a_new_note_the_text_stays_as_it_is(nothing: list[str]) -> None:
    assert with_notes(NOTED, nothing) == NOTED
    assert with_notes(SKILL, nothing if nothing != ["read the last line"] else []) == SKILL


def test_notes_take_the_place_of_others_and_what_stands_beside_them_stays() -> None:
    document = f"{SKILL}\n{START}\n\nBy hand:\n- One.\n- Two.\nBelow.\n- Three.\n{END}\n"
    expected = f"{SKILL}\n{START}\n\nBy hand:\n- All.\nBelow.\n{END}\n"
    assert with_only_notes(document, ["All."]) == expected
    assert with_only_notes(expected, ["All."]) == expected
    assert with_only_notes(SKILL, ["All."]) == SKILL


def test_a_document_whose_other_markers_would_pair_up_anew_is_left_alone() -> None:
    lone = f"{START}\nbody"
    assert with_notes(lone, ["One."]) == lone


@given(documents, notes)
def test_adding_notes_changes_nothing_else(document: str, added: list[str]) -> None:
    after = with_notes(document, added)
    fresh = new_notes(document, added)
    before, now = protection(document), protection(after)
    assert now.front_matter == before.front_matter
    if after == document:
        return
    assert fresh
    assert notes_of(after) == (*notes_of(document), *fresh)
    others = [region for region in before.regions if region.kind is not RegionKind.APPENDIX]
    assert [region.text for region in now.regions if region.kind is not RegionKind.APPENDIX] == [r.text for r in others]
    inner = read_region(document, RegionKind.APPENDIX)
    if inner is None:
        assert after.startswith(document)
    else:
        assert now.markers == before.markers
        assert inner.rstrip() in after
    assert with_notes(after, added) == after


@given(documents, notes, notes)
def test_notes_can_be_replaced_and_what_is_outside_of_the_appendix_stays(
    document: str, added: list[str], instead: list[str]
) -> None:
    written = with_notes(document, added)
    after = with_only_notes(written, instead)
    before, now = protection(written), protection(after)
    assert (now.front_matter, now.markers) == (before.front_matter, before.markers)
    if after != written and notes_of(written):
        assert notes_of(after) == fit_notes(instead)
    assert with_only_notes(after, instead) == after or not fit_notes(instead)


@given(notes)
def test_fit_notes_are_lines_without_markers_and_stay_as_they_are(given_notes: list[str]) -> None:
    fit = fit_notes(given_notes)
    assert fit_notes(fit) == fit
    assert len({note_key(note) for note in fit}) == len(fit)
    for note in fit:
        assert note.strip() == note
        assert len(note.splitlines()) == 1
        assert not protection(note).markers
