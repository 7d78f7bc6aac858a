"""The chat patch proposer: what it asks, what it makes of answers, how it fails."""

import json

import pytest
from scripted_models import ScriptedModel

from burnish.application.optimizer_ports import PatchProposer, ReflectionInput
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode
from burnish.domain.edits import Edit, EditOp, EditSource, Patch, apply_patch
from burnish.domain.regions import RegionKind
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import skill_hash
from burnish.infrastructure.models.chat import ChatError, ChatErrorCode
from burnish.infrastructure.optimizer.chat_proposer import ChatPatchProposer
from burnish.infrastructure.optimizer.patch_schema import PATCH_SCHEMA
from burnish.infrastructure.optimizer.prompt_texts import PromptName, load_prompts

SKILL = "# Greeter\n\n- Greet the guest.\n"
FAILURE = Rollout(
    "g-1", 0.0, 0.0, trajectory="Guest: Bonjour\nAnswer: Hello", fail_reason='expected "Bonjour", got "Hello"'
)
SUCCESS = Rollout("g-2", 1.0, 1.0, trajectory="Guest: Good day\nAnswer: Hello")
ANSWER = json.dumps(
    {"reasoning": "r", "edits": [{"op": "append", "target": "", "content": "- Greet in their language."}]}
)
UNREADABLE = "I would tell the agent to greet in French. SECRET-WORD"


def _reflection(
    *rollouts: Rollout,
    skill: str = SKILL,
    memory: str = "",
    include_successes: bool = True,
    edit_budget: int | None = None,
    seed: int = 0,
) -> ReflectionInput:
    return ReflectionInput(
        current_skill=skill,
        rollouts=rollouts or (FAILURE, SUCCESS),
        meta_skill_memory=memory,
        include_successes=include_successes,
        edit_budget=edit_budget,
        seed=seed,
    )


def _our_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("burnish.")]


async def _asked(reflection: ReflectionInput) -> str:
    model = ScriptedModel(ANSWER)
    await ChatPatchProposer(model).propose(reflection)
    (request,) = model.requests
    return request.user


async def test_edits_carry_their_source_and_the_skill_they_were_written_for() -> None:
    patch = await ChatPatchProposer(ScriptedModel(ANSWER)).propose(_reflection())
    edit = Edit(
        EditOp.APPEND,
        content="- Greet in their language.",
        support_count=2,
        source=EditSource.FAILURE,
        skill_version=skill_hash(SKILL),
    )
    assert patch == Patch((edit,), "r")


async def test_edits_from_successes_alone_say_so() -> None:
    patch = await ChatPatchProposer(ScriptedModel(ANSWER)).propose(_reflection(SUCCESS))
    assert [edit.source for edit in patch.edits] == [EditSource.SUCCESS]


async def test_it_is_one_call_with_the_strict_schema() -> None:
    model = ScriptedModel(ANSWER)
    proposer: PatchProposer = ChatPatchProposer(model, max_tokens=99)
    await proposer.propose(_reflection(seed=7))
    (request,) = model.requests
    assert request.purpose == "reflect"
    assert request.json_schema is PATCH_SCHEMA
    assert request.schema_name == "patch"
    assert request.max_tokens == 99
    assert request.seed == 7
    assert request.system == load_prompts().system(PromptName.ANALYST_MIXED, PromptName.EDITS)


async def test_no_seed_is_sent_where_none_was_drawn() -> None:
    model = ScriptedModel(ANSWER)
    await ChatPatchProposer(model).propose(_reflection())
    assert model.requests[0].seed is None


async def test_the_prompt_holds_skill_and_evidence_in_an_order_that_caches_well() -> None:
    asked = await _asked(_reflection(memory="Short rules work.", edit_budget=3))
    parts = [
        f"<skill>\n{SKILL}\n</skill>",
        "Short rules work.",
        "at most 3 edits",
        "1 failed, 1 succeeded",
        "g-1",
        "g-2",
    ]
    places = [asked.find(part) for part in parts]
    assert min(places) >= 0
    assert places == sorted(places)
    assert 'expected "Bonjour", got "Hello"' in asked


async def test_calls_of_one_batch_share_everything_up_to_the_rollouts() -> None:
    first, second = await _asked(_reflection(FAILURE)), await _asked(_reflection(SUCCESS))
    heading = "# Rollouts"
    assert first.partition(heading)[0] == second.partition(heading)[0]


@pytest.mark.parametrize(
    ("edit_budget", "sentence"), [(1, "at most 1 edit,"), (4, "at most 4 edits,"), (None, "no more edits than")]
)
async def test_the_edit_budget_is_told(edit_budget: int | None, sentence: str) -> None:
    assert sentence in await _asked(_reflection(edit_budget=edit_budget))


async def test_edits_beyond_the_budget_are_not_cut_here() -> None:
    edits = [{"op": "append", "target": "", "content": f"- Rule {number}."} for number in range(5)]
    model = ScriptedModel(json.dumps({"reasoning": "", "edits": edits}))
    patch = await ChatPatchProposer(model).propose(_reflection(edit_budget=2))
    assert len(patch.edits) == 5


@pytest.mark.parametrize("memory", ["", " \n"])
async def test_a_blank_memory_is_not_mentioned(memory: str) -> None:
    assert "<memory>" not in await _asked(_reflection(memory=memory))


async def test_protected_parts_are_named_when_the_skill_has_them() -> None:
    regions = "\n".join(f"{kind.start_marker}\nkeep\n{kind.end_marker}" for kind in RegionKind)
    asked = await _asked(_reflection(skill=f"---\nname: x\n---\n{SKILL}\n{regions}\n"))
    named = asked.partition("# Protected parts")[2].partition("# Budget")[0]
    assert "front matter" in named
    for kind in RegionKind:
        assert f"from `{kind.start_marker}` to `{kind.end_marker}`" in named


async def test_only_the_protected_parts_there_are_get_named() -> None:
    locked = f"{RegionKind.LOCKED.start_marker}\nkeep\n{RegionKind.LOCKED.end_marker}"
    named = (await _asked(_reflection(skill=f"{SKILL}\n{locked}\n"))).partition("# Protected parts")[2]
    assert "LOCKED_START" in named
    assert "SLOW_UPDATE" not in named
    assert "front matter" not in named


async def test_protected_parts_are_not_mentioned_without_any() -> None:
    assert "# Protected parts" not in await _asked(_reflection())


async def test_an_empty_skill_can_only_be_appended_to() -> None:
    assert "every edit must be an append" in await _asked(_reflection(skill=""))


async def test_without_successes_only_failures_are_shown() -> None:
    asked = await _asked(_reflection(include_successes=False))
    assert "1 failed, 0 succeeded" in asked
    assert "g-2" not in asked


@pytest.mark.parametrize(
    ("rollout", "include_successes"), [(SUCCESS, False), (Rollout("g-3", 0.0, 0.0, error="model.timeout"), True)]
)
async def test_nothing_to_show_is_an_empty_patch_without_a_call(rollout: Rollout, *, include_successes: bool) -> None:
    model = ScriptedModel()
    reflection = _reflection(rollout, include_successes=include_successes)
    assert await ChatPatchProposer(model).propose(reflection) == Patch()
    assert model.requests == []


async def test_long_trajectories_are_cut() -> None:
    model = ScriptedModel(ANSWER)
    rollout = Rollout("g-1", 0.0, 0.0, trajectory="first words " + "x" * 50_000 + " last words")
    await ChatPatchProposer(model, trajectory_tokens=100).propose(_reflection(rollout))
    asked = model.requests[0].user
    assert len(asked) < 2_000
    assert "first words" in asked
    assert "last words" in asked
    assert "characters left out" in asked


async def test_an_unreadable_answer_gets_one_more_try() -> None:
    model = ScriptedModel(UNREADABLE, ANSWER)
    patch = await ChatPatchProposer(model).propose(_reflection())
    assert len(patch.edits) == 1
    first, second = model.requests
    assert second.system == first.system
    assert second.json_schema is PATCH_SCHEMA
    assert second.purpose == "reflect"
    complaint = second.user.removeprefix(first.user)
    assert complaint != second.user
    assert UNREADABLE in complaint
    assert "it holds no JSON object with a list of edits" in complaint


async def test_the_model_sees_its_own_long_answer_cut() -> None:
    model = ScriptedModel("start " + "x" * 50_000 + " finish", ANSWER)
    await ChatPatchProposer(model).propose(_reflection())
    complaint = model.requests[1].user.removeprefix(model.requests[0].user)
    assert len(complaint) < 5_000
    assert "start" in complaint
    assert "finish" in complaint


async def test_two_unreadable_answers_are_a_coded_failure() -> None:
    model = ScriptedModel(UNREADABLE, UNREADABLE, ANSWER)
    with pytest.raises(PortError) as raised:
        await ChatPatchProposer(model).propose(_reflection())
    assert raised.value.code is ErrorCode.UNREADABLE_PATCH
    assert len(model.requests) == 2


@pytest.mark.parametrize("code", [ChatErrorCode.TRUNCATED, ChatErrorCode.REFUSED_KEY, ChatErrorCode.UNREADABLE])
async def test_a_call_that_fails_is_a_coded_failure_with_its_cause_in_the_log(
    code: ChatErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(PortError) as raised:
        await ChatPatchProposer(ScriptedModel(ChatError(code, attempts=3))).propose(_reflection())
    assert raised.value.code is ErrorCode.PROPOSER_CALL_FAILED
    assert code.value not in str(raised.value)
    assert _our_lines(caplog) == [f"reflect.call_failed code={code.value} attempts=3"]


async def test_a_repair_call_that_fails_is_a_failed_call() -> None:
    model = ScriptedModel(UNREADABLE, ChatError(ChatErrorCode.TIMEOUT))
    with pytest.raises(PortError) as raised:
        await ChatPatchProposer(model).propose(_reflection())
    assert raised.value.code is ErrorCode.PROPOSER_CALL_FAILED


async def test_log_and_error_hold_nothing_of_answers_or_prompts(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(PortError) as raised:
        await ChatPatchProposer(ScriptedModel(UNREADABLE, UNREADABLE)).propose(_reflection())
    assert [line.partition(" ")[0] for line in _our_lines(caplog)] == ["reflect.unreadable_answer"] * 2
    told = caplog.text + repr(raised.value) + repr(raised.value.__cause__)
    assert "SECRET-WORD" not in told
    assert "Greet" not in told


async def test_an_empty_patch_is_an_answer() -> None:
    model = ScriptedModel('{"reasoning": "nothing new", "edits": []}')
    assert await ChatPatchProposer(model).propose(_reflection()) == Patch((), "nothing new")


async def test_inserted_lines_fit_the_skill() -> None:
    edit = {"op": "InsertAfter", "target": "- Greet the guest.", "content": "- Use their language."}
    patch = await ChatPatchProposer(ScriptedModel(json.dumps({"edits": [edit]}))).propose(_reflection())
    assert apply_patch(SKILL, patch).content == "# Greeter\n\n- Greet the guest.\n- Use their language.\n"


@pytest.mark.parametrize(("trajectory_tokens", "max_tokens"), [(0, 1), (1, 0)])
def test_a_budget_below_one_is_refused(trajectory_tokens: int, max_tokens: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ChatPatchProposer(ScriptedModel(), trajectory_tokens=trajectory_tokens, max_tokens=max_tokens)
