"""aggregate and select_top_k: merging edits, and clipping them to a budget."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.edits import Edit, EditOp, EditSource, Patch
from burnish.domain.patches import aggregate, select_top_k

ADD = Edit(EditOp.APPEND, "Cite the source.")


def merged(*edits: Edit) -> tuple[Edit, ...]:
    return aggregate([Patch(edits)]).edits


def counts(edit: Edit) -> tuple[int | None, int | None]:
    return edit.support_count, edit.merge_level


@pytest.mark.parametrize(
    "patches",
    [pytest.param([], id="none"), pytest.param([None, None], id="missing"), pytest.param([Patch(), None], id="empty")],
)
def test_nothing_to_merge_is_an_empty_patch(patches: list[Patch | None]) -> None:
    assert aggregate(patches) == Patch()


def test_missing_patches_are_skipped() -> None:
    assert aggregate([None, Patch((ADD,), "why"), None]) == Patch(
        (Edit(EditOp.APPEND, ADD.content, "", 1, None, 0),), "why"
    )


@pytest.mark.parametrize(
    ("edits", "support", "merge_level"),
    [
        pytest.param([(None, None)], 1, 0, id="new-edit-counts-once"),
        pytest.param([(4, 2)], 4, 2, id="given-counts-stay"),
        pytest.param([(0, None)], 0, 0, id="no-support-is-not-missing-support"),
        pytest.param([(None, None), (None, None)], 2, 1, id="missing-support-counts-as-one"),
        pytest.param([(3, None), (None, None)], 4, 1, id="given-and-missing"),
        pytest.param([(3, 0), (4, 0)], 7, 1, id="support-adds-up"),
        pytest.param([(1, 2), (1, 0)], 2, 3, id="merge-level-of-the-first-is-higher"),
        pytest.param([(1, 0), (1, 5)], 2, 6, id="merge-level-of-the-second-is-higher"),
        pytest.param([(1, None)] * 4, 4, 3, id="four-times"),
        pytest.param([(-2, None), (5, None)], 3, 1, id="whatever-a-model-says"),
    ],
)
@pytest.mark.parametrize("together", [True, False], ids=["in-one-patch", "in-patches-of-their-own"])
def test_equal_edits_become_one(
    edits: list[tuple[int | None, int | None]], support: int, merge_level: int, *, together: bool
) -> None:
    alike = [Edit(EditOp.APPEND, "x", support_count=count, merge_level=level) for count, level in edits]
    patches = [Patch(tuple(alike))] if together else [Patch((edit,)) for edit in alike]
    (edit,) = aggregate(patches).edits
    assert counts(edit) == (support, merge_level)


@pytest.mark.parametrize(
    ("first", "second", "is_equal"),
    [
        pytest.param(
            ADD, Edit(EditOp.APPEND, "Cite the source. \t\n\u2003"), True, id="white-space-at-the-end-of-content"
        ),
        pytest.param(Edit(EditOp.DELETE, target="a"), Edit(EditOp.DELETE, target="a \n"), True, id="and-of-the-target"),
        pytest.param(ADD, Edit(EditOp.APPEND, " Cite the source."), False, id="white-space-at-the-start"),
        pytest.param(ADD, Edit(EditOp.APPEND, "cite the source."), False, id="case"),
        pytest.param(Edit(EditOp.DELETE, target="a"), Edit(EditOp.DELETE, target=" a"), False, id="start-of-target"),
        pytest.param(Edit(EditOp.REPLACE, "a", "b"), Edit(EditOp.INSERT_AFTER, "a", "b"), False, id="op"),
        pytest.param(Edit(EditOp.REPLACE, "a", "b"), Edit(EditOp.REPLACE, "b", "a"), False, id="target-and-content"),
        pytest.param(
            ADD,
            Edit(EditOp.APPEND, ADD.content, "", 2, EditSource.SUCCESS, 1, "rollout", "version"),
            True,
            id="source-origin-and-version-do-not-count",
        ),
    ],
)
def test_edits_are_equal_by_op_target_and_content(first: Edit, second: Edit, *, is_equal: bool) -> None:
    edits = merged(first, second)
    assert len(edits) == (1 if is_equal else 2)
    assert (edits[0].content, edits[0].target, edits[0].source) == (first.content, first.target, first.source)


def test_first_seen_order_and_text_stay() -> None:
    other = Edit(EditOp.DELETE, target="b")
    first = Edit(EditOp.APPEND, "a\n", source=EditSource.FAILURE, origin="1", skill_version="v")
    edits = merged(first, other, Edit(EditOp.APPEND, "a", source=EditSource.SUCCESS, origin="2"))
    assert edits == (
        Edit(EditOp.APPEND, "a\n", "", 2, EditSource.FAILURE, 1, "1", "v"),
        Edit(EditOp.DELETE, "", "b", 1, None, 0),
    )


def test_reasons_that_are_not_blank_are_joined_as_they_are() -> None:
    patches = [Patch((), " one\n"), Patch((), " \n"), Patch((), ""), Patch((), "two")]
    assert aggregate(patches).reasoning == " one\n\n---\ntwo"


@pytest.mark.parametrize(
    ("ranks", "k", "kept"),
    [
        pytest.param([(1, 0), (3, 0), (2, 0)], 2, [1, 2], id="by-support"),
        pytest.param([(1, 0), (1, 2), (1, 1)], 2, [1, 2], id="then-by-merge-level"),
        pytest.param([(1, 1), (1, 1), (1, 1)], 2, [0, 1], id="then-by-order"),
        pytest.param([(1, 9), (2, 0)], 1, [1], id="support-before-merge-level"),
        pytest.param([(None, None), (0, 0), (-1, 5), (1, 0)], 4, [3, 0, 1, 2], id="missing-counts-as-zero"),
        pytest.param([(1, 0), (2, 0)], 2, [1, 0], id="ranked-also-when-all-are-kept"),
        pytest.param([(1, 0), (2, 0)], 9, [1, 0], id="fewer-than-the-budget"),
        pytest.param([(1, 0)], 0, [], id="budget-of-zero"),
        pytest.param([], 3, [], id="no-edits"),
    ],
)
def test_best_edits_are_kept_in_rank_order(ranks: list[tuple[int | None, int | None]], k: int, kept: list[int]) -> None:
    edits = tuple(
        Edit(EditOp.APPEND, str(index), support_count=support, merge_level=level)
        for index, (support, level) in enumerate(ranks)
    )
    assert select_top_k(Patch(edits, "why"), k) == Patch(tuple(edits[index] for index in kept), "why")


def test_negative_budget_is_the_callers_bug() -> None:
    with pytest.raises(ValueError, match="at least 0, not -1"):
        select_top_k(Patch(), -1)


edits = st.builds(
    Edit,
    st.sampled_from(EditOp),
    st.sampled_from(["", "a", "a ", "a\n", " a", "b"]),
    st.sampled_from(["", "t", "t\t", "u"]),
    st.none() | st.integers(-3, 10),
    st.none() | st.sampled_from(EditSource),
    st.none() | st.integers(0, 4),
)
patches = st.builds(Patch, st.lists(edits, max_size=6).map(tuple), st.sampled_from(["", " ", "why", "so"]))
proposals = st.lists(st.none() | patches, max_size=5)


def key(edit: Edit) -> tuple[EditOp, str, str]:
    return edit.op, edit.target.rstrip(), edit.content.rstrip()


def support_by_key(*proposed: Patch | None) -> Counter[tuple[EditOp, str, str]]:
    support: Counter[tuple[EditOp, str, str]] = Counter()
    for patch in proposed:
        for edit in patch.edits if patch else ():
            support[key(edit)] += 1 if edit.support_count is None else edit.support_count
    return support


@settings(max_examples=100)
@given(proposals)
def test_merging_loses_no_support_and_no_edit(proposed: list[Patch | None]) -> None:
    patch = aggregate(proposed)
    assert support_by_key(patch) == support_by_key(*proposed)
    keys = [key(edit) for edit in patch.edits]
    assert keys == list(dict.fromkeys(key(edit) for part in proposed if part for edit in part.edits))


@settings(max_examples=100)
@given(proposals)
def test_merging_again_changes_nothing(proposed: list[Patch | None]) -> None:
    patch = aggregate(proposed)
    assert aggregate([patch]) == patch


@settings(max_examples=100)
@given(proposals)
def test_support_does_not_depend_on_the_order_of_patches(proposed: list[Patch | None]) -> None:
    assert support_by_key(aggregate(reversed(proposed))) == support_by_key(aggregate(proposed))


@settings(max_examples=100)
@given(patches, st.integers(0, 8))
def test_selection_keeps_to_the_budget_and_ranks_stably(patch: Patch, k: int) -> None:
    selected = select_top_k(patch, k)
    assert len(selected.edits) == min(k, len(patch.edits))
    assert selected.reasoning == patch.reasoning
    assert not Counter(selected.edits) - Counter(patch.edits)
    ranks = [(edit.support_count or 0, edit.merge_level or 0) for edit in selected.edits]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks == sorted(((edit.support_count or 0, edit.merge_level or 0) for edit in patch.edits), reverse=True)[:k]


@settings(max_examples=100)
@given(patches)
def test_edits_of_equal_rank_keep_their_order(patch: Patch) -> None:
    numbered = tuple(
        Edit(edit.op, edit.content, edit.target, edit.support_count, merge_level=edit.merge_level, origin=str(index))
        for index, edit in enumerate(patch.edits)
    )
    ranked = select_top_k(Patch(numbered), len(numbered)).edits
    for one, next_one in pairwise(ranked):
        if (one.support_count or 0, one.merge_level or 0) == (next_one.support_count or 0, next_one.merge_level or 0):
            assert int(one.origin) < int(next_one.origin)


@settings(max_examples=100)
@given(patches, st.integers(0, 8), st.integers(0, 8))
def test_a_smaller_budget_keeps_the_first_of_a_larger_ones_choice(patch: Patch, small: int, more: int) -> None:
    assert select_top_k(patch, small).edits == select_top_k(patch, small + more).edits[:small]
