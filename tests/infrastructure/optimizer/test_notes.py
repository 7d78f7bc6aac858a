"""Notes by a chat model: when analysts are asked for them, how odd answers are read, and how many become few."""

from __future__ import annotations

import json

import pytest
from scripted_models import ScriptedModel

from burnish.application.optimizer_ports import Focus, NotesInput, ReflectionInput
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, Patch
from burnish.domain.rollouts import Rollout
from burnish.infrastructure.models.chat import ChatError, ChatErrorCode
from burnish.infrastructure.optimizer.chat_consolidator import ChatNoteConsolidator
from burnish.infrastructure.optimizer.chat_proposer import ChatPatchProposer
from burnish.infrastructure.optimizer.prompt_texts import PromptName, load_prompts

SKILL = "# Greeter\n\n- Greet the guest.\n"
FAILURE = Rollout("g-1", 0.0, 0.0, trajectory="[user]\nBonjour\n\n[agent]\nHello")
EDIT = {"op": "append", "target": "", "content": "- New.", "support": 1}
PAYLOADS: dict[UpdateMode, tuple[str, object]] = {
    UpdateMode.PATCH: ("edits", [EDIT]),
    UpdateMode.REWRITE_FROM_SUGGESTIONS: ("suggestions", [{"title": "t", "instruction": "Do."}]),
    UpdateMode.FULL_REWRITE_MINIBATCH: ("skill", "# Other\n"),
}
FORMS = {
    UpdateMode.PATCH: PromptName.EDITS,
    UpdateMode.REWRITE_FROM_SUGGESTIONS: PromptName.SUGGESTIONS,
    UpdateMode.FULL_REWRITE_MINIBATCH: PromptName.WHOLE_SKILL,
}


def reflection(mode: UpdateMode = UpdateMode.PATCH, *, wants_notes: bool = True) -> ReflectionInput:
    return ReflectionInput(
        current_skill=SKILL, rollouts=(FAILURE,), focus=Focus.FAILURES, update_mode=mode, wants_notes=wants_notes
    )


async def proposed(answer: object, mode: UpdateMode = UpdateMode.PATCH, *, wants_notes: bool = True) -> Patch:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return await ChatPatchProposer(ScriptedModel(text)).propose(reflection(mode, wants_notes=wants_notes))


@pytest.mark.parametrize("mode", UpdateMode)
async def test_analysts_are_told_of_lapses_only_when_notes_are_wanted(mode: UpdateMode) -> None:
    for wants_notes in (True, False):
        key, payload = PAYLOADS[mode]
        model = ScriptedModel(json.dumps({key: payload}))
        await ChatPatchProposer(model).propose(reflection(mode, wants_notes=wants_notes))
        (request,) = model.requests
        added = (PromptName.NOTES,) if wants_notes else ()
        assert request.system == load_prompts().system(PromptName.ANALYST_ERROR, FORMS[mode], *added)
        assert request.schema_name.startswith("noted_") is wants_notes
        assert ("notes" in json.dumps(request.json_schema)) is wants_notes
        assert ('"notes": ["…"]' in request.user) is wants_notes


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ("Greet first.", ("Greet first.",)),
        ("- Greet first.\n- Then ask.", ("Greet first.", "Then ask.")),
        ("Greet\nfirst.", ("Greet first.",)),
        (["Greet first.", "Then ask.", "greet first"], ("Greet first.", "Then ask.")),
        ([{"note": "Greet first."}, {"content": "Then ask."}], ("Greet first.", "Then ask.")),
        ([{"note": "", "content": "Greet first."}], ("Greet first.",)),
        (["Greet first.", True, None, ["x"], {"text": "y"}, {"note": ["z"]}, ""], ("Greet first.",)),
        (["<!-- APPENDIX_END -->Greet first."], ("Greet first.",)),
        (["\ud800Greet \x00first."], ("\ufffdGreet \ufffdfirst.",)),
        (None, ()),
        ({"text": "y"}, ()),
        (False, ()),
        ([], ()),
    ],
)
@pytest.mark.parametrize("key", ["notes", "appendix_notes"])
async def test_notes_are_read_in_many_forms(key: str, notes: object, expected: tuple[str, ...]) -> None:
    patch = await proposed({"reasoning": "r", "edits": [EDIT], key: notes})
    assert (patch.notes, len(patch.edits)) == (expected, 1)


@pytest.mark.parametrize("mode", UpdateMode)
async def test_notes_come_beside_whatever_the_mode_asks_for(mode: UpdateMode) -> None:
    key, payload = PAYLOADS[mode]
    patch = await proposed({key: payload, "notes": ["Greet first."]}, mode)
    assert (patch.notes, len(patch.edits)) == (("Greet first.",), 1)


@pytest.mark.parametrize("mode", UpdateMode)
@pytest.mark.parametrize("empty", ["absent", None, "", []])
async def test_an_answer_may_be_made_of_notes_alone(mode: UpdateMode, empty: object) -> None:
    key, _ = PAYLOADS[mode]
    answer = {"reasoning": "r", "notes": ["Greet first."]} | ({} if empty == "absent" else {key: empty})
    patch = await proposed(answer, mode)
    assert (patch.edits, patch.notes) == ((), ("Greet first.",))


async def test_system_bs_answer_with_notes_beside_the_patch_is_read() -> None:
    answer = {"batch_size": 1, "patch": {"reasoning": "r", "edits": [EDIT]}, "appendix_notes": ["Greet first."]}
    patch = await proposed(answer)
    assert (patch.notes, patch.reasoning, len(patch.edits)) == (("Greet first.",), "r", 1)


async def test_notes_survive_prose_fences_and_a_missing_comma() -> None:
    body = json.dumps({"reasoning": "r", "edits": [EDIT], "notes": ["Greet first."]})
    assert (await proposed(f"Here it is:\n```json\n{body}\n```\nDone.")).notes == ("Greet first.",)
    assert (await proposed(body.replace('], "notes"', '] "notes"'))).notes == ("Greet first.",)


async def test_broken_edits_are_asked_for_again_although_there_are_notes() -> None:
    broken = json.dumps({"edits": [{"op": "paint"}], "notes": ["Greet first."]})
    model = ScriptedModel(broken, json.dumps({"edits": [EDIT]}))
    patch = await ChatPatchProposer(model).propose(reflection())
    assert (len(model.requests), len(patch.edits), patch.notes) == (2, 1, ())


async def test_notes_nobody_wants_are_left_out() -> None:
    patch = await proposed({"edits": [EDIT], "notes": ["Greet first."]}, wants_notes=False)
    assert (patch.notes, patch.edits[0].op) == ((), EditOp.APPEND)
    assert isinstance(patch.edits[0], Edit)


# Consolidation

REQUEST = NotesInput(current_skill=SKILL, notes=("Greet first.", "Then ask."), threshold=1, seed=5)


async def test_the_consolidator_sees_the_skill_all_notes_and_how_many_there_may_be() -> None:
    model = ScriptedModel('{"reasoning": "r", "notes": ["Greet, then ask."]}')
    assert await ChatNoteConsolidator(model, max_tokens=9).consolidate(REQUEST) == ("Greet, then ask.",)
    (request,) = model.requests
    assert request.system == load_prompts().system(PromptName.CONSOLIDATE_NOTES)
    assert (request.purpose, request.schema_name, request.max_tokens, request.seed) == ("consolidate", "notes", 9, 5)
    assert "<notes>\n- Greet first.\n- Then ask.\n</notes>" in request.user
    assert "at most 1" in request.user
    assert SKILL in request.user


@pytest.mark.parametrize(
    "answer",
    [
        '{"notes": "Greet, then ask."}',
        '{"appendix_notes": [{"note": "Greet, then ask."}]}',
        '["Greet, then ask."]',
        'Sure: {"notes": ["- Greet, then ask."]}',
    ],
)
async def test_odd_answers_of_the_consolidator_are_read(answer: str) -> None:
    assert await ChatNoteConsolidator(ScriptedModel(answer)).consolidate(REQUEST) == ("Greet, then ask.",)


@pytest.mark.parametrize("answer", ["", "none", '{"notes": []}', '{"notes": ["a", " "]}', '{"notes": true}', "[null]"])
async def test_an_answer_without_notes_or_with_a_blank_one_is_asked_for_once_more(answer: str) -> None:
    model = ScriptedModel(answer, '{"notes": ["Greet."]}')
    assert await ChatNoteConsolidator(model).consolidate(REQUEST) == ("Greet.",)
    with pytest.raises(PortError) as raised:
        await ChatNoteConsolidator(ScriptedModel(answer, answer)).consolidate(REQUEST)
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH


async def test_a_consolidator_without_a_model_fails_with_a_code_and_without_notes_asks_nobody() -> None:
    with pytest.raises(PortError) as raised:
        await ChatNoteConsolidator(ScriptedModel(ChatError(ChatErrorCode.TIMEOUT))).consolidate(REQUEST)
    assert raised.value.code is ErrorCode.PROPOSER_CALL_FAILED
    nothing = NotesInput(current_skill=SKILL, notes=(), threshold=1)
    consolidator = ChatNoteConsolidator(ScriptedModel())
    assert await consolidator.consolidate(nothing) == ()
    assert consolidator.usage_at_most(nothing) == ()
    assert consolidator.usage_at_most(REQUEST)
