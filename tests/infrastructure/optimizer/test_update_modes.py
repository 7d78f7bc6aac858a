"""The proposer by focus and update mode: whom it asks what, and what becomes of suggestions and whole skills."""

from __future__ import annotations

import json

import pytest
from scripted_models import ScriptedModel

from burnish.application.optimizer_ports import Focus, ReflectionInput
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, EditSource, FailedEdit, Patch, apply_patch
from burnish.domain.regions import RegionKind
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import skill_hash
from burnish.domain.step_memory import TriedStep
from burnish.infrastructure.optimizer.chat_proposer import ChatPatchProposer
from burnish.infrastructure.optimizer.prompt_texts import PromptName, load_prompts

SKILL = "# Greeter\n\n- Greet the guest.\n"
FAILURE = Rollout("g-1", 0.0, 0.0, trajectory="[user]\nBonjour\n\n[agent]\nHello")
PARTIAL = Rollout("g-2", 0.5, 0.8, trajectory="[user]\nSalut\n\n[agent]\nHello")
SUCCESS = Rollout("g-3", 1.0, 1.0, trajectory="[user]\nGood day\n\n[agent]\nHello")
EMPTY = {
    UpdateMode.PATCH: '{"edits": []}',
    UpdateMode.REWRITE_FROM_SUGGESTIONS: '{"suggestions": []}',
    UpdateMode.FULL_REWRITE_MINIBATCH: json.dumps({"skill": SKILL}),
}


def _reflection(
    focus: Focus = Focus.FAILURES,
    mode: UpdateMode = UpdateMode.PATCH,
    *,
    skill: str = SKILL,
    tried: tuple[TriedStep, ...] = (),
    budget: int | None = 3,
) -> ReflectionInput:
    return ReflectionInput(
        current_skill=skill,
        rollouts=(SUCCESS, FAILURE, PARTIAL),
        focus=focus,
        update_mode=mode,
        tried=tried,
        edit_budget=budget,
    )


async def _asked(reflection: ReflectionInput) -> str:
    model = ScriptedModel(EMPTY[reflection.update_mode])
    await ChatPatchProposer(model).propose(reflection)
    return model.asked


@pytest.mark.parametrize("mode", UpdateMode)
@pytest.mark.parametrize("focus", Focus)
async def test_focus_and_mode_choose_the_instructions(focus: Focus, mode: UpdateMode) -> None:
    analyst = {
        Focus.FAILURES: PromptName.ANALYST_ERROR,
        Focus.SUCCESSES: PromptName.ANALYST_SUCCESS,
        Focus.MIXED: PromptName.ANALYST_MIXED,
    }[focus]
    form, schema = {
        UpdateMode.PATCH: (PromptName.EDITS, "patch"),
        UpdateMode.REWRITE_FROM_SUGGESTIONS: (PromptName.SUGGESTIONS, "suggestions"),
        UpdateMode.FULL_REWRITE_MINIBATCH: (PromptName.WHOLE_SKILL, "whole_skill"),
    }[mode]
    model = ScriptedModel(EMPTY[mode])
    await ChatPatchProposer(model, max_tokens=5, rewrite_tokens=6).propose(_reflection(focus, mode))
    (request,) = model.requests
    assert request.system == load_prompts().system(analyst, form)
    assert (request.purpose, request.schema_name) == ("reflect", schema)
    assert request.max_tokens == (6 if mode is UpdateMode.FULL_REWRITE_MINIBATCH else 5)


@pytest.mark.parametrize(
    ("focus", "items"), [(Focus.FAILURES, "g-1 g-2"), (Focus.SUCCESSES, "g-3"), (Focus.MIXED, "g-1 g-2 g-3")]
)
async def test_an_analyst_sees_the_rollouts_of_its_focus_and_partial_credit_is_a_failure(
    focus: Focus, items: str
) -> None:
    asked = await _asked(_reflection(focus))
    shown = [line.removeprefix("item: ") for line in asked.splitlines() if line.startswith("item: ")]
    assert shown == items.split()
    if "g-2" in items:
        assert "<failure>\nitem: g-2\nscore: hard 0.5, soft 0.8 of 1" in asked


async def test_failures_alone_are_no_evidence_for_an_analyst_of_successes() -> None:
    reflection = ReflectionInput(current_skill=SKILL, rollouts=(FAILURE, PARTIAL), focus=Focus.SUCCESSES)
    proposer = ChatPatchProposer(ScriptedModel())
    assert await proposer.propose(reflection) == Patch()
    assert proposer.usage_at_most(reflection) == ()


@pytest.mark.parametrize(
    ("focus", "source", "shown"),
    [
        (Focus.FAILURES, EditSource.FAILURE, 2),
        (Focus.SUCCESSES, EditSource.SUCCESS, 1),
        (Focus.MIXED, EditSource.FAILURE, 3),
    ],
)
@pytest.mark.parametrize("told", [None, 0, 1, 2, 9, "2 rollouts", True, [1]])
async def test_an_edit_has_its_source_and_the_support_it_can_have(
    focus: Focus, source: EditSource, shown: int, told: object
) -> None:
    edit = {"op": "append", "target": "", "content": "- x", "support": told}
    patch = await ChatPatchProposer(ScriptedModel(json.dumps({"edits": [edit]}))).propose(_reflection(focus))
    said = {1: 1, 2: 2, "2 rollouts": 2}.get(told) if isinstance(told, int | str) and told is not True else None
    expected = said if said is not None and said <= shown else shown
    assert [(each.source, each.support_count) for each in patch.edits] == [(source, expected)]


async def test_suggestions_become_edits_that_suggest() -> None:
    answer = {
        "reasoning": "r",
        "suggestions": [
            {"title": "Languages\n", "motivation": "two failed", "instruction": "Add: greet in French.", "support": 2},
            {"title": "", "motivation": "", "instruction": "Shorten it.\nA lot."},
            {"title": "no instruction", "motivation": "x", "instruction": " "},
            "shorter",
        ],
    }
    patch = await ChatPatchProposer(ScriptedModel(json.dumps(answer))).propose(
        _reflection(mode=UpdateMode.REWRITE_FROM_SUGGESTIONS)
    )
    common = {"source": EditSource.FAILURE, "skill_version": skill_hash(SKILL), "support_count": 2}
    assert patch == Patch(
        (
            Edit(EditOp.SUGGEST, "Add: greet in French.\n\nWhy: two failed", "Languages", **common),  # type: ignore[arg-type]
            Edit(EditOp.SUGGEST, "Shorten it.\nA lot.", "Shorten it.", **common),  # type: ignore[arg-type]
        ),
        "r",
    )


@pytest.mark.parametrize(
    "text", ['{"suggestions": ["say less"]}', '{"suggestions": "none"}', '{"edits": []}', "Say less."]
)
async def test_what_holds_no_suggestion_is_refused(text: str) -> None:
    with pytest.raises(PortError) as raised:
        await ChatPatchProposer(ScriptedModel(text, text)).propose(
            _reflection(mode=UpdateMode.REWRITE_FROM_SUGGESTIONS)
        )
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        (UpdateMode.PATCH, "at most 3 edits,"),
        (UpdateMode.REWRITE_FROM_SUGGESTIONS, "at most 3 suggestions,"),
        (UpdateMode.FULL_REWRITE_MINIBATCH, None),
    ],
)
async def test_a_budget_limits_edits_and_suggestions_and_no_whole_skill(mode: UpdateMode, sentence: str | None) -> None:
    asked = await _asked(_reflection(mode=mode))
    assert ("at most" in asked) is (sentence is not None)
    assert sentence is None or sentence in asked


async def _rewritten(written: str, skill: str = SKILL) -> Edit:
    answer = json.dumps({"reasoning": "r", "changes": ["French", "order"], "skill": written})
    reflection = _reflection(mode=UpdateMode.FULL_REWRITE_MINIBATCH, skill=skill)
    patch = await ChatPatchProposer(ScriptedModel(answer)).propose(reflection)
    assert patch.reasoning == "r\n\n- French\n- order"
    (edit,) = patch.edits
    assert (edit.op, edit.target, edit.support_count, edit.source) == (EditOp.REWRITE, "", 2, EditSource.FAILURE)
    return edit


@pytest.mark.parametrize(
    "written",
    [
        "# New\n\n- Greet in French.",
        "# New\n\n- Greet in French.\n\n\n",
        "```markdown\n# New\n\n- Greet in French.\n```",
        "```\n# New\n\n- Greet in French.\n```\n",
        "<skill>\n# New\n\n- Greet in French.\n</skill>",
        r"# New\n\n- Greet in French.",
        "# New\r\n\r\n- Greet in French.\r\n",
    ],
)
async def test_a_whole_skill_becomes_the_one_edit_that_rewrites(written: str) -> None:
    assert (await _rewritten(written)).content == "# New\n\n- Greet in French.\n"


async def test_a_whole_skill_takes_the_line_breaks_of_the_old_one() -> None:
    assert (await _rewritten("# New\n- a", "# Old\r\n- a\r\n")).content == "# New\r\n- a\r\n"


REGIONS = "\n\n".join(f"{kind.start_marker}\nkeep {kind.value}\n{kind.end_marker}" for kind in RegionKind)
GUARDED = f"---\nname: x\n---\n\n# Greeter\n\n{REGIONS}\n"


@pytest.mark.parametrize(
    "written",
    [
        GUARDED.replace("# Greeter", "# New"),
        "# New\n",
        "---\nname: y\n---\n# New\n",
        f"---\nname: x\n---\n# New\n\n{RegionKind.LOCKED.start_marker}\nchanged\n{RegionKind.LOCKED.end_marker}\n",
        f"# New\n{RegionKind.LOCKED.end_marker}\n",
    ],
)
async def test_a_whole_skill_that_touches_protected_parts_still_applies_without_them(written: str) -> None:
    report = apply_patch(GUARDED, Patch((await _rewritten(written, GUARDED),)))
    assert report.failed == ()
    assert report.content.startswith("---\nname: x\n---\n")
    assert REGIONS in report.content
    assert "# New" in report.content
    assert "changed" not in report.content


@pytest.mark.parametrize("written", [GUARDED.replace("# Greeter", ""), REGIONS, "---\nname: x\n---\n", "```\n\n```"])
async def test_a_whole_skill_with_nothing_but_protected_parts_is_refused(written: str) -> None:
    answer = json.dumps({"skill": written})
    with pytest.raises(PortError) as raised:
        await ChatPatchProposer(ScriptedModel(answer, answer)).propose(
            _reflection(mode=UpdateMode.FULL_REWRITE_MINIBATCH, skill=GUARDED)
        )
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH


async def test_broken_json_of_a_whole_skill_is_asked_for_again_and_not_guessed() -> None:
    model = ScriptedModel('{"skill": "- Say "yes", or "no"."}', json.dumps({"skill": "# New"}))
    await ChatPatchProposer(model).propose(_reflection(mode=UpdateMode.FULL_REWRITE_MINIBATCH))
    assert "its JSON is broken" in model.requests[1].user


async def test_what_was_tried_in_vain_is_told_with_what_came_of_it() -> None:
    rejected = (Edit(EditOp.APPEND, "- Say bonjour."), Edit(EditOp.DELETE, target="- Greet the guest."))
    failed = FailedEdit(Edit(EditOp.REPLACE, "b", "a"), "target not found in current skill document")
    steps = (
        TriedStep(step=1, rejected=rejected, lost=1, gained=2),
        TriedStep(step=2),
        TriedStep(step=3, rejected=rejected[:1], lost=4, failed=(failed,)),
    )
    asked = await _asked(_reflection(tried=steps))
    assert asked.partition("<tried>\n")[2].partition("\n</tried>")[0] == (
        "Step 1, rejected together: lost on 1 item, gained on 2.\n"
        '{"op": "append", "target": "", "content": "- Say bonjour."}\n'
        '{"op": "delete", "target": "- Greet the guest.", "content": ""}\n\n'
        "Step 3, rejected together: lost on 4 items, gained on 0.\n"
        '{"op": "append", "target": "", "content": "- Say bonjour."}\n'
        "Step 3, could not be applied:\n"
        '{"op": "replace", "target": "a", "content": "b"}  (target not found in current skill document)'
    )
    places = [asked.index(part) for part in (SKILL, "<tried>", "at most 3 edits", "<failure>")]
    assert places == sorted(places)


@pytest.mark.parametrize("tried", [(), (TriedStep(step=1),)])
async def test_nothing_tried_is_not_mentioned(tried: tuple[TriedStep, ...]) -> None:
    assert "<tried>" not in await _asked(_reflection(tried=tried))


async def test_an_empty_fail_reason_and_a_batch_size_in_words_do_no_harm() -> None:
    answer = {"batch_size": "8 trajectories", "failure_summary": "none", "edits": [{"op": "append", "content": "- x"}]}
    model = ScriptedModel(json.dumps(answer))
    rollout = Rollout("g-1", 0.0, 0.0, trajectory="t", fail_reason="")
    reflection = ReflectionInput(current_skill=SKILL, rollouts=(rollout,), focus=Focus.FAILURES)
    assert len((await ChatPatchProposer(model).propose(reflection)).edits) == 1
    assert "why it failed" not in model.asked


async def test_trajectory_options_reach_the_prompt() -> None:
    long = Rollout(
        "g-1",
        0.0,
        0.0,
        trajectory=f"[user]\nquestion\n\n[tool]\n{'x' * 500}\n\n[agent]\nthinking\n\n[tool]\nmore\n\n[agent]\nanswer",
    )
    reflection = ReflectionInput(current_skill=SKILL, rollouts=(long,), focus=Focus.FAILURES)
    model = ScriptedModel(EMPTY[UpdateMode.PATCH], EMPTY[UpdateMode.PATCH])
    await ChatPatchProposer(model, trajectory_view="paper").propose(reflection)
    await ChatPatchProposer(model, obs_chars=100).propose(reflection)
    paper, observed = (request.user for request in model.requests)
    assert "[user]\nquestion\n\n[… 3 turns left out …]\n\n[agent]\nanswer" in paper
    assert "thinking" in observed
    assert "characters left out" in observed
