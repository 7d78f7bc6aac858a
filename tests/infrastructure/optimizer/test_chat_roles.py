"""Merging, ranking, counting, rewriting, guidance and memory by a chat model: what is asked, what answers become."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from scripted_models import ScriptedModel

from burnish.application.optimizer_ports import (
    EditRanker,
    EpochComparison,
    EpochSummary,
    Focus,
    GuidanceWriter,
    MemoryWriter,
    MergeInput,
    PatchMerger,
    Ranking,
    RankInput,
    RateChooser,
    RateDecision,
    RateInput,
    Rewrite,
    RewriteInput,
    SkillRewriter,
)
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, EditSource, FailedEdit, Patch, apply_patch
from burnish.domain.epochs import compare_epochs
from burnish.domain.regions import RegionKind
from burnish.domain.rollouts import BatchScore, Rollout
from burnish.domain.runs import skill_hash
from burnish.domain.step_memory import TriedStep
from burnish.infrastructure.models.chat import ChatError, ChatErrorCode
from burnish.infrastructure.optimizer.chat_merger import ChatPatchMerger
from burnish.infrastructure.optimizer.chat_optimizer import chat_optimizer
from burnish.infrastructure.optimizer.chat_ranker import ChatEditRanker
from burnish.infrastructure.optimizer.chat_rate import ChatRateChooser
from burnish.infrastructure.optimizer.chat_rewriter import ChatSkillRewriter

SKILL = "# Greeter\n\n- Greet the guest.\n"
ONE = Edit(EditOp.APPEND, "- Greet in French.", support_count=3, source=EditSource.FAILURE)
TWO = Edit(EditOp.DELETE, target="- Greet the guest.", support_count=2, source=EditSource.SUCCESS)
SUGGESTION = Edit(EditOp.SUGGEST, "Add: greet in French.\n\nWhy: 3 failed.", "French", support_count=3)


def _edits(*edits: Edit, support: object = None) -> str:
    written: list[dict[str, object]] = [
        {"op": edit.op.value, "target": edit.target, "content": edit.content} for edit in edits
    ]
    if support is not None:
        written = [edit | {"support": support} for edit in written]
    return json.dumps({"reasoning": "both", "edits": written})


def _merge(
    *patches: Patch, focus: Focus = Focus.FAILURES, level: int = 1, mode: UpdateMode = UpdateMode.PATCH, seed: int = 0
) -> MergeInput:
    return MergeInput(
        current_skill=SKILL,
        patches=patches or (Patch((ONE,), "first"), Patch((TWO,), "second")),
        focus=focus,
        level=level,
        meta_skill_memory="Short rules work.",
        update_mode=mode,
        seed=seed,
    )


def _rate(*edits: Edit) -> RateInput:
    return RateInput(
        current_skill=SKILL,
        patch=Patch(edits or (ONE, TWO)),
        score=BatchScore(0.25, 0.5, 8, 1),
        tried=(TriedStep(step=2, rejected=(ONE,), lost=3, gained=1),),
    )


def _comparison(*, guidance: str = "Say bonjour.") -> EpochComparison:
    def rollout(item: str, hard: float, trajectory: str, error: str | None = None) -> Rollout:
        return Rollout(item, hard, hard, trajectory=trajectory, error=error)

    prior = (
        rollout("worse", 1.0, "prior worse"),
        rollout("better", 0.0, "prior better"),
        rollout("bad", 0.3, "prior bad"),
        rollout("good", 1.0, "prior good"),
        rollout("gone", 0.0, "", "model.timeout"),
    )
    current = (
        rollout("worse", 0.0, "current worse"),
        rollout("better", 1.0, "current better"),
        rollout("bad", 0.0, "current bad"),
        rollout("good", 1.0, "current good"),
        rollout("gone", 0.0, "current gone"),
    )
    return EpochComparison(
        prior_skill="# Old greeter\n",
        current_skill=SKILL,
        prior_rollouts=prior,
        current_rollouts=current,
        analysis=compare_epochs(prior, current),
        previous_guidance=guidance,
    )


def _summary(*, memory: str = "Short rules work.", has_analysis: bool = True) -> EpochSummary:
    comparison = _comparison()
    return EpochSummary(
        epoch=3,
        current_skill=SKILL,
        current_score=0.625,
        prior_memory=memory,
        analysis=comparison.analysis if has_analysis else None,
    )


def test_they_are_the_ports() -> None:
    optimizer = chat_optimizer(ScriptedModel())
    assert isinstance(optimizer.merger, PatchMerger)
    assert isinstance(optimizer.ranker, EditRanker)
    assert isinstance(optimizer.rate_chooser, RateChooser)
    assert isinstance(optimizer.rewriter, SkillRewriter)
    assert isinstance(optimizer.guidance_writer, GuidanceWriter)
    assert isinstance(optimizer.memory_writer, MemoryWriter)


# --- merging ---------------------------------------------------------------------------------------------------------


async def test_merged_edits_carry_support_level_source_and_skill() -> None:
    model = ScriptedModel(_edits(ONE, support=5))
    patch = await ChatPatchMerger(model, max_tokens=77).merge(_merge(level=2, seed=9))
    assert patch == Patch(
        (
            Edit(
                EditOp.APPEND,
                "- Greet in French.",
                support_count=5,
                merge_level=2,
                source=EditSource.FAILURE,
                skill_version=skill_hash(SKILL),
            ),
        ),
        "both",
    )
    (request,) = model.requests
    assert (request.purpose, request.schema_name, request.max_tokens, request.seed) == ("merge", "patch", 77, 9)


@pytest.mark.parametrize(
    ("told", "support"), [(1, 1), (5, 5), (6, 5), (0, 1), (-3, 1), ("4 rollouts", 4), (None, 3), (True, 3), ("all", 3)]
)
async def test_support_is_between_one_and_all_there_is(told: object, support: int) -> None:
    merged = await ChatPatchMerger(ScriptedModel(_edits(ONE, support=told))).merge(_merge())
    assert merged.edits[0].support_count == support


async def test_an_edit_nobody_proposed_that_way_has_the_support_of_one() -> None:
    new = Edit(EditOp.APPEND, "- Greet in French or Dutch.")
    merged = await ChatPatchMerger(ScriptedModel(_edits(new))).merge(_merge())
    assert merged.edits[0].support_count == 1


async def test_in_a_final_merge_sources_are_those_of_the_edits_that_went_in() -> None:
    merged = await ChatPatchMerger(ScriptedModel(_edits(ONE, TWO, Edit(EditOp.APPEND, "- New.")))).merge(
        _merge(focus=Focus.MIXED)
    )
    assert [edit.source for edit in merged.edits] == [EditSource.FAILURE, EditSource.SUCCESS, EditSource.FAILURE]


async def test_each_focus_has_its_instructions_and_proposals_stand_in_order() -> None:
    systems: list[str] = []
    for focus in Focus:
        model = ScriptedModel(_edits(ONE))
        await ChatPatchMerger(model).merge(_merge(focus=focus))
        systems.append(model.requests[0].system)
        asked = model.asked
        parts = [SKILL, "Short rules work.", '{"reasoning": "first"}', ONE.content, '{"reasoning": "second"}']
        assert [part in asked for part in parts] == [True] * 5
        assert sorted(parts, key=asked.index) == parts
        assert '"support": 3' in asked
    assert len(set(systems)) == 3


@pytest.mark.parametrize("mode", UpdateMode)
async def test_an_empty_merge_is_refused_so_that_no_proposal_is_lost(mode: UpdateMode) -> None:
    key = {"patch": "edits", "rewrite_from_suggestions": "suggestions"}.get(mode.value, "skill")
    empty = json.dumps({"reasoning": "nothing", key: [] if key != "skill" else ""})
    model = ScriptedModel(empty, empty)
    with pytest.raises(PortError) as raised:
        await ChatPatchMerger(model).merge(_merge(mode=mode))
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH
    assert len(model.requests) == 2


async def test_an_empty_merge_gets_one_more_try() -> None:
    model = ScriptedModel('{"edits": []}', _edits(ONE))
    assert len((await ChatPatchMerger(model).merge(_merge())).edits) == 1
    assert "there was something to merge" in model.requests[1].user


async def test_nothing_to_merge_is_an_empty_patch_without_a_call() -> None:
    merger = ChatPatchMerger(ScriptedModel())
    request = _merge(Patch(), Patch((), "none"))
    assert await merger.merge(request) == Patch()
    assert merger.usage_at_most(request) == ()


async def test_suggestions_are_merged_as_such() -> None:
    answer = {"reasoning": "r", "suggestions": [{"title": "French", "motivation": "m", "instruction": "Add it."}]}
    model = ScriptedModel(json.dumps(answer))
    patch = await ChatPatchMerger(model).merge(
        _merge(Patch((SUGGESTION,)), Patch((SUGGESTION,)), mode=UpdateMode.REWRITE_FROM_SUGGESTIONS)
    )
    (edit,) = patch.edits
    assert (edit.op, edit.target, edit.content) == (EditOp.SUGGEST, "French", "Add it.\n\nWhy: m")
    assert (edit.support_count, edit.merge_level) == (1, 1)
    assert '{"title": "French", "suggestion": "Add: greet in French.\\n\\nWhy: 3 failed.", "support": 3}' in model.asked


async def test_whole_skills_are_merged_into_one_that_stands_for_all() -> None:
    skills = [Edit(EditOp.REWRITE, f"# Skill {number}\n", support_count=4) for number in range(2)]
    model = ScriptedModel(json.dumps({"reasoning": "r", "changes": ["a", "b"], "skill": "# Both"}))
    merger = ChatPatchMerger(model, max_tokens=5, rewrite_tokens=6)
    patch = await merger.merge(
        _merge(*(Patch((skill,)) for skill in skills), mode=UpdateMode.FULL_REWRITE_MINIBATCH, level=3)
    )
    (edit,) = patch.edits
    assert (edit.op, edit.content, edit.support_count, edit.merge_level) == (EditOp.REWRITE, "# Both\n", 8, 3)
    assert patch.reasoning == "r\n\n- a\n- b"
    assert "<candidate>\n# Skill 0\n\n</candidate>" in model.asked
    assert model.requests[0].max_tokens == 6


# --- ranking and counting --------------------------------------------------------------------------------------------


ORDERS: list[tuple[list[object], tuple[int, ...]]] = [
    ([2, 0], (2, 0)),
    ([2, 2, 0, 2], (2, 0)),
    (["1", 0.0, "2."], (1, 0, 2)),
    ([True, -1, 3, 1.5, None, [], "second", 1], (1,)),
    ([99, 1e300, 0], (0,)),
]


@pytest.mark.parametrize(("order", "places"), ORDERS)
async def test_places_are_those_that_are_ones_each_once(order: list[object], places: Sequence[int]) -> None:
    model = ScriptedModel(json.dumps({"reasoning": "r", "order": order}))
    request = RankInput(current_skill=SKILL, patch=Patch((ONE, TWO, ONE)), budget=2, seed=4)
    assert await ChatEditRanker(model).rank(request) == Ranking(places=tuple(places), reasoning="r")
    assert (model.requests[0].purpose, model.requests[0].seed) == ("rank", 4)


@pytest.mark.parametrize("text", ["[1, 0]", "```json\n[1, 0]\n```", "Sure: {'order': [1, 0,],}"])
async def test_a_ranking_is_found_in_any_form(text: str) -> None:
    request = RankInput(current_skill=SKILL, patch=Patch((ONE, TWO)), budget=1)
    assert (await ChatEditRanker(ScriptedModel(text)).rank(request)).places == (1, 0)


@pytest.mark.parametrize("order", [[], [5], ["none"], [True]])
async def test_an_order_without_a_place_is_refused(order: list[object]) -> None:
    model = ScriptedModel(*[json.dumps({"order": order})] * 2)
    with pytest.raises(PortError) as raised:
        await ChatEditRanker(model).rank(RankInput(current_skill=SKILL, patch=Patch((ONE, TWO)), budget=1))
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH
    assert "its order holds no number from 0 to 1" in model.requests[1].user


async def test_the_ranker_sees_numbered_changes_and_the_budget() -> None:
    model = ScriptedModel('{"order": [0]}')
    await ChatEditRanker(model).rank(RankInput(current_skill=SKILL, patch=Patch((ONE, TWO)), budget=1))
    assert '{"number": 0, "op": "append", "target": "", "content": "- Greet in French.", "support": 3}' in model.asked
    assert '{"number": 1, "op": "delete"' in model.asked
    assert "at most 1 of the 2 changes" in model.asked


async def test_nothing_to_rank_or_count_is_not_asked_about() -> None:
    nothing = RankInput(current_skill=SKILL, patch=Patch(), budget=1)
    assert await ChatEditRanker(ScriptedModel()).rank(nothing) == Ranking(places=())
    empty = RateInput(current_skill=SKILL, patch=Patch(), score=BatchScore(0.0, 0.0, 0, 0))
    assert await ChatRateChooser(ScriptedModel()).choose(empty) == RateDecision(learning_rate=0)
    assert ChatRateChooser(ScriptedModel()).usage_at_most(empty) == ()


@pytest.mark.parametrize(
    ("told", "rate"),
    [
        ("3", 3),
        ('"3"', 3),
        ("2.9", 2),
        ('"about 4 edits"', 4),
        ("-2", 0),
        ('"-2"', 0),
        ("0", 0),
        ("1e99", 1_000_000),
    ],
)
async def test_a_learning_rate_is_a_whole_number_from_0_on(told: str, rate: int) -> None:
    model = ScriptedModel(f'{{"reasoning": "r", "learning_rate": {told}, "confidence": 0.5, "risks": "few"}}')
    expected = RateDecision(learning_rate=rate, reasoning="r", confidence=0.5, risks="few")
    assert await ChatRateChooser(model).choose(_rate()) == expected


@pytest.mark.parametrize(
    "told", ["true", "null", '"many"', '"2 or 3"', "[3]", '""', "NaN", "Infinity", "{}", "1" * 400]
)
async def test_what_is_no_number_is_refused(told: str) -> None:
    model = ScriptedModel(*[f'{{"learning_rate": {told}}}'] * 2)
    with pytest.raises(PortError) as raised:
        await ChatRateChooser(model).choose(_rate())
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH


@pytest.mark.parametrize(
    ("told", "confidence"),
    [("1", 1.0), ('"0.25"', 0.25), ("2", None), ("-0.1", None), ("true", None), ('"sure"', None)],
)
async def test_a_confidence_that_is_none_is_left_out(told: str, confidence: float | None) -> None:
    model = ScriptedModel(f'{{"learning_rate": 1, "confidence": {told}}}')
    assert (await ChatRateChooser(model).choose(_rate())).confidence == confidence


async def test_the_rate_chooser_sees_scores_and_what_was_tried() -> None:
    model = ScriptedModel('{"learning_rate": 1}')
    await ChatRateChooser(model).choose(_rate())
    assert "hard 0.250, soft 0.500" in model.asked
    assert "over 8 items" in model.asked
    assert "1 more stayed without an answer" in model.asked
    assert "Step 2, rejected together: lost on 3 items, gained on 1." in model.asked


# --- rewriting -------------------------------------------------------------------------------------------------------


def _rewrite(skill: str = SKILL) -> RewriteInput:
    failed = FailedEdit(Edit(EditOp.DELETE, target="- Gone."), "target not found\nin skill")
    return RewriteInput(
        current_skill=skill,
        suggestions=Patch((SUGGESTION,)),
        meta_skill_memory="Short rules work.",
        tried=(TriedStep(step=1, failed=(failed,)),),
        seed=2,
    )


async def test_a_rewriter_sees_suggestions_memory_and_what_was_tried() -> None:
    model = ScriptedModel('{"reasoning": "r", "changes": ["French"], "skill": "# New\\n\\n- Greet in French."}')
    written = await ChatSkillRewriter(model).rewrite(_rewrite())
    assert written == Rewrite(skill="# New\n\n- Greet in French.\n", summary="r\n\n- French")
    assert '"title": "French"' in model.asked
    assert "Short rules work." in model.asked
    assert '"target": "- Gone.", "content": ""}  (target not found in skill)' in model.asked
    (request,) = model.requests
    assert (request.purpose, request.schema_name, request.max_tokens, request.seed) == (
        "rewrite",
        "whole_skill",
        16_384,
        2,
    )


async def test_without_suggestions_the_skill_stays() -> None:
    request = RewriteInput(current_skill=SKILL, suggestions=Patch())
    assert await ChatSkillRewriter(ScriptedModel()).rewrite(request) == Rewrite(skill=SKILL)


@pytest.mark.parametrize("skill", ["", "  \n", None, 7, ["# Skill"]])
async def test_an_answer_without_a_skill_is_refused(skill: object) -> None:
    model = ScriptedModel(*[json.dumps({"changes": [], "skill": skill})] * 2)
    if skill == 7:
        assert (await ChatSkillRewriter(ScriptedModel('{"skill": 7}')).rewrite(_rewrite())).skill == "7\n"
        return
    with pytest.raises(PortError) as raised:
        await ChatSkillRewriter(model).rewrite(_rewrite())
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [ChatErrorCode.TRUNCATED, ChatErrorCode.REFUSED_KEY])
async def test_a_call_that_fails_is_a_coded_failure_of_every_role(
    code: ChatErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    optimizer = chat_optimizer(ScriptedModel(*[ChatError(code, attempts=2)] * 6))
    rank = RankInput(current_skill=SKILL, patch=Patch((ONE, TWO)), budget=1)
    calls = [
        optimizer.merger.merge(_merge()),
        optimizer.ranker.rank(rank),
        optimizer.rate_chooser.choose(_rate()),
        optimizer.rewriter.rewrite(_rewrite()),
        optimizer.guidance_writer.write(_comparison()),
        optimizer.memory_writer.write(_summary()),
    ]
    for call in calls:
        with pytest.raises(PortError) as raised:
            await call
        assert raised.value.code is ErrorCode.PROPOSER_CALL_FAILED
    purposes = ["merge", "rank", "learning_rate", "rewrite", "guidance", "memory"]
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("burnish.")]
    assert lines == [f"{purpose}.call_failed code={code.value} attempts=2" for purpose in purposes]


def test_a_rewrite_can_be_applied_whatever_its_protected_parts() -> None:
    locked = f"{RegionKind.LOCKED.start_marker}\n- Be kind.\n{RegionKind.LOCKED.end_marker}"
    skill = f"---\nname: x\n---\n\n# Greeter\n\n{locked}\n\n- Greet.\n"
    assert apply_patch(skill, Patch((Edit(EditOp.REWRITE, "# New\n"),))).content == (
        f"---\nname: x\n---\n# New\n\n{locked}\n"
    )
