"""Any edits on any document: what the design says happens, and what is protected survives byte for byte."""

import re
from dataclasses import dataclass

from edit_examples import (
    APPENDIX,
    APPENDIX_BLOCK,
    APPENDIX_END,
    EMPTY_CONTENT,
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
    insert_after,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.edits import BOUNDED_OPS, ApplyReport, Edit, EditOp, FailedEdit, Patch, apply_patch


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


MARKER = r"<!-- (?:SLOW_UPDATE|APPENDIX|LOCKED)_(?:START|END) -->"
REGION = re.compile(r"<!-- (SLOW_UPDATE|APPENDIX|LOCKED)_START -->.*?<!-- \1_END -->", re.DOTALL)
FRONT = re.compile(r"\A\ufeff?---[ \t]*(?=[\r\n]).*?[\r\n]---[ \t]*(?=[\r\n]|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Protected:
    """What must survive, found the slow way with three regular expressions."""

    front_matter: str
    regions: list[str]
    markers: list[str]
    spans: list[tuple[int, int]]


def protected_parts(document: str) -> Protected:
    front = FRONT.match(document)
    begin = front.end() if front else 0
    regions = list(REGION.finditer(document, begin))
    return Protected(
        front_matter=document[:begin],
        regions=[region.group() for region in regions],
        markers=re.findall(MARKER, document),
        spans=([(0, begin)] if front else []) + [region.span() for region in regions],
    )


def survives(before: Protected, after: Protected) -> bool:
    return (before.front_matter, before.regions, before.markers) == (after.front_matter, after.regions, after.markers)


def expected_outcome(document: str, edit: Edit) -> tuple[str, str | None]:
    """Text and reason by the letter of design section 5, decisions 1 and 2, recomputing everything for each edit."""
    before = protected_parts(document)
    if edit.op is not EditOp.DELETE and not edit.content:
        return document, EMPTY_CONTENT
    if edit.op is EditOp.APPEND:
        place = len(document)
        for (start, end), text in zip(reversed(before.spans), reversed(before.regions), strict=False):
            if document[end:place].strip() or text.startswith(LOCKED):
                break
            place = start
        if place < len(document):
            changed = document[:place] + edit.content + "\n\n" + document[place:]
        else:
            changed = document + "\n\n" + edit.content if document else edit.content
    else:
        if not edit.target:
            return document, TARGET_REQUIRED
        found = [at for at in range(len(document)) if document.startswith(edit.target, at)]
        size = len(edit.target)
        free = [at for at in found if all(end <= at or at + size <= start for start, end in before.spans)]
        if not free:
            return document, TARGET_PROTECTED if found else TARGET_NOT_FOUND
        kept = edit.target if edit.op is EditOp.INSERT_AFTER else ""
        put = "" if edit.op is EditOp.DELETE else edit.content
        changed = document[: free[0]] + kept + put + document[free[0] + size :]
    return (changed, None) if survives(before, protected_parts(changed)) else (document, PROTECTION_CHANGED)


MARKERS = [SLOW, SLOW_END, APPENDIX, APPENDIX_END, LOCKED, LOCKED_END]
PARTS_OF_MARKERS = ["<!-- ", "<!-- LOCKED_", "<!-- SLOW_UPDATE_START", "START", "END -->", " -->", "-->", "<", ">"]
FENCES = ["---", "---\n", "\n---\n", "\r\n---\r\n", "\r---\r", "--- \t", "-", "---\nname: x\n---\n", "\ufeff---\n"]
PLAIN = ["a", "b", "rule ", " ", "\t", "\n", "\r\n", "\n\n", "\r", "\ufeff", "é", "🙂", "\x00", "\ud800"]
BLOCKS = [SLOW_BLOCK, APPENDIX_BLOCK, LOCKED_BLOCK, f"{LOCKED}a---\nrule {SLOW}{LOCKED_END}"]
fragments = st.sampled_from([*MARKERS, *PARTS_OF_MARKERS, *FENCES, *PLAIN, *BLOCKS])
texts = st.lists(fragments, max_size=5).map("".join)
beginnings = st.sampled_from(["", "", "---\nname: a\n---\n", "\ufeff---\r\nb: a\r\n---\r\n", "---\n", "\ufeff"])
endings = st.sampled_from(["", "", SLOW_BLOCK, f"{APPENDIX_BLOCK}\n{SLOW_BLOCK}\n", f"{SLOW_BLOCK}a", LOCKED_BLOCK])
middles = st.lists(fragments, max_size=10).map("".join)
documents: st.SearchStrategy[str] = st.tuples(beginnings, middles, endings).map("".join)


@dataclass(frozen=True)
class Cut:
    """A piece of whatever the document is by then: from a place given as a share of its length."""

    place: float
    length: int

    def of(self, document: str) -> str:
        start = int(self.place * len(document))
        return document[start : start + self.length]


cuts = st.builds(Cut, st.floats(0, 1, exclude_max=True), st.sampled_from([1, 1, 2, 3, 4, 8, 16, 30, 60]))
pieces = st.one_of(cuts, cuts, texts)


@st.composite
def attacks(draw: st.DrawFn) -> tuple[str, tuple[Edit, ...], str, tuple[str | None, ...]]:
    """A document, edits aimed at what the earlier ones left, and by the reference: the last text and each reason."""
    document = draw(documents)
    edits: list[Edit] = []
    reasons: list[str | None] = []
    text = document
    for op, content, target in draw(st.lists(st.tuples(st.sampled_from(BOUNDED_OPS), pieces, pieces), max_size=6)):
        edit = Edit(
            op,
            content.of(text) if isinstance(content, Cut) else content,
            target.of(text) if isinstance(target, Cut) else target,
        )
        text, reason = expected_outcome(text, edit)
        edits.append(edit)
        reasons.append(reason)
    return document, tuple(edits), text, tuple(reasons)


@given(attacks())
def test_any_edits_do_what_the_design_says_to_any_document(
    attack: tuple[str, tuple[Edit, ...], str, tuple[str | None, ...]],
) -> None:
    document, edits, expected, reasons = attack
    report = apply_patch(document, Patch(edits))
    assert report == ApplyReport(
        expected,
        tuple(edit for edit, reason in zip(edits, reasons, strict=True) if reason is None),
        tuple(FailedEdit(edit, reason) for edit, reason in zip(edits, reasons, strict=True) if reason is not None),
        has_changes=expected != document,
    )
    assert len(report.applied) + len(report.failed) == len(edits)
    assert survives(protected_parts(document), protected_parts(report.content))


@given(attacks())
def test_a_patch_is_its_edits_one_after_another(
    attack: tuple[str, tuple[Edit, ...], str, tuple[str | None, ...]],
) -> None:
    document, edits, _, _ = attack
    text = document
    for edit in edits:
        text = applied_to(text, edit).content
    assert apply_patch(document, Patch(edits)).content == text


@settings(max_examples=60)
@given(st.text(max_size=40), st.sampled_from(EditOp), st.text(max_size=6), st.text(max_size=3))
def test_any_text_is_taken_without_raising(document: str, op: EditOp, content: str, target: str) -> None:
    report = applied_to(document, Edit(op, content, target))
    assert report.has_changes == (report.content != document)


def test_target_that_occurs_ten_thousand_times_in_a_locked_region_finds_the_free_one() -> None:
    region = f"{LOCKED}\n" + "use the tool\n" * 10_000 + LOCKED_END
    report = applied_to(f"{region}\nuse the tool", *(insert_after("use the tool", f" {n}") for n in range(64)))
    assert report.content.startswith(region)
    assert report.content.endswith("\nuse the tool 63 62 61" + "".join(f" {n}" for n in range(60, -1, -1)))
