"""The simulated coach in every role of the optimizer, asked by the real ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.application.optimizer_ports import (
    EpochComparison,
    EpochSummary,
    Focus,
    MergeInput,
    NotesInput,
    RankInput,
    RateInput,
    ReflectionInput,
    RewriteInput,
)
from burnish.application.ports import PortError
from burnish.application.usage import UsageNote, collecting_usage
from burnish.domain.config import UpdateMode
from burnish.domain.edits import Edit, EditOp, Patch, apply_patch
from burnish.domain.epochs import compare_epochs
from burnish.domain.regions import RegionKind, replace_region
from burnish.domain.rollouts import BatchScore, Rollout
from burnish.infrastructure.models.chat import ChatAnswer, ChatError, ChatErrorCode, ChatModel, ChatRequest
from burnish.infrastructure.models.metered import MeteredModel
from burnish.infrastructure.optimizer.chat_optimizer import ChatOptimizer, OptimizerLimits, chat_optimizer
from burnish.infrastructure.simulation.coach import SimulatedCoach
from burnish.infrastructure.simulation.rules import Rule, parse_rules, rule_lines
from burnish.infrastructure.simulation.usage import estimated_usage

WORDS = ("apple", "bread", "candle", "drum", "engine", "fence", "garden", "hammer")
KNOWLEDGE = "\n".join(
    [
        "- Answer with the queue, and nothing else.",
        *(f'- When a ticket mentions "{word}", the queue is Q{number}.' for number, word in enumerate(WORDS)),
        "- Otherwise the queue is QQ.",
    ]
)
RIGHT = set(parse_rules(KNOWLEDGE).stated)
SKILL = """---
name: test
---

# Tickets

- Answer with the queue, and nothing else.
- When a ticket mentions "apple", the queue is Q0.
- Otherwise the queue is QQ.

<!-- LOCKED_START -->
- Be kind.
<!-- LOCKED_END -->

The end.
"""
USEFUL = Edit(EditOp.APPEND, '- When a ticket mentions "drum", the queue is Q3.', support_count=1)
ALSO_USEFUL = Edit(EditOp.APPEND, '- When a ticket mentions "fence", the queue is Q5.', support_count=3)
USELESS = Edit(EditOp.APPEND, "- Work carefully.", support_count=9)
HARMFUL = Edit(EditOp.DELETE, target="- Otherwise the queue is QQ.", support_count=9)


def _coach(useful: float = 1, useless: float = 0, harmful: float = 0, *, accuracy: float = 1.0) -> SimulatedCoach:
    return SimulatedCoach(KNOWLEDGE, useful, useless, harmful, accuracy=accuracy)


def _failure(word: str, item: str = "") -> Rollout:
    return Rollout(item or word, 0.0, 0.0, trajectory=f"[user]\nOur {word} is late\n\n[agent]\nQQ")


def _success(item: str) -> Rollout:
    return Rollout(item, 1.0, 1.0, trajectory=f"[user]\nOur {item}\n\n[agent]\nQ0")


def _reflection(
    mode: UpdateMode = UpdateMode.PATCH,
    focus: Focus = Focus.FAILURES,
    *,
    skill: str = SKILL,
    rollouts: Sequence[Rollout] = tuple(map(_failure, WORDS[1:])),
    seed: int = 0,
) -> ReflectionInput:
    return ReflectionInput(
        current_skill=skill, rollouts=tuple(rollouts), focus=focus, update_mode=mode, edit_budget=6, seed=seed
    )


def _merge(*patches: Patch, mode: UpdateMode = UpdateMode.PATCH) -> MergeInput:
    return MergeInput(current_skill=SKILL, patches=patches, focus=Focus.FAILURES, update_mode=mode)


def _rank(*edits: Edit, seed: int = 0) -> RankInput:
    return RankInput(current_skill=SKILL, patch=Patch(edits), budget=1, seed=seed)


def _comparison(skill: str, failing: Sequence[str], *, previous: str = "") -> EpochComparison:
    prior = (*(_success(word) for word in failing[:1]), *(_failure(word) for word in failing[1:]))
    current = tuple(_failure(word) for word in failing)
    return EpochComparison(
        prior_skill=SKILL,
        current_skill=skill,
        prior_rollouts=(*prior, _success("apple")),
        current_rollouts=(*current, _success("apple")),
        analysis=compare_epochs((*prior, _success("apple")), (*current, _success("apple"))),
        previous_guidance=previous,
    )


def _summary(memory: str = "", epoch: int = 2) -> EpochSummary:
    return EpochSummary(epoch=epoch, current_skill=SKILL, current_score=0.5, prior_memory=memory, analysis=None)


def _missing(skill: str) -> set[Rule]:
    return RIGHT - set(parse_rules(skill).stated)


# --- proposing -------------------------------------------------------------------------------------------------------


async def test_an_analyst_of_successes_says_mostly_nothing_and_never_harms() -> None:
    proposer = chat_optimizer(SimulatedCoach(KNOWLEDGE)).proposer
    contents: Counter[int] = Counter()
    for seed in range(1, 60):
        patch = await proposer.propose(
            _reflection(focus=Focus.SUCCESSES, rollouts=[_success("apple"), _success("pear")], seed=seed)
        )
        contents[len(patch.edits)] += 1
        assert parse_rules(apply_patch(SKILL, patch).content) == parse_rules(SKILL)
    assert contents[0] > contents[1] > 0


@pytest.mark.parametrize("mode", UpdateMode)
async def test_a_good_coach_teaches_in_every_mode(mode: UpdateMode) -> None:
    optimizer = chat_optimizer(_coach())
    patch = await optimizer.proposer.propose(_reflection(mode))
    if mode is UpdateMode.REWRITE_FROM_SUGGESTIONS:
        assert {edit.op for edit in patch.edits} == {EditOp.SUGGEST}
        assert len({edit.target for edit in patch.edits}) == 6
        request = RewriteInput(current_skill=SKILL, suggestions=patch)
        patch = Patch((Edit(EditOp.REWRITE, (await optimizer.rewriter.rewrite(request)).skill),))
    report = apply_patch(SKILL, patch)
    assert report.failed == ()
    assert len(_missing(SKILL)) == 7
    assert len(_missing(report.content)) == (3 if mode is UpdateMode.FULL_REWRITE_MINIBATCH else 1)


@pytest.mark.parametrize("mode", [UpdateMode.REWRITE_FROM_SUGGESTIONS, UpdateMode.FULL_REWRITE_MINIBATCH])
async def test_a_bad_coach_harms_in_every_mode(mode: UpdateMode) -> None:
    optimizer = chat_optimizer(_coach(0, 0, 1))
    patch = await optimizer.proposer.propose(_reflection(mode))
    skill = patch.edits[0].content
    if mode is UpdateMode.REWRITE_FROM_SUGGESTIONS:
        skill = (await optimizer.rewriter.rewrite(RewriteInput(current_skill=SKILL, suggestions=patch))).skill
    before, after = set(parse_rules(SKILL).stated), set(parse_rules(skill).stated)
    assert before - after or after - RIGHT


async def test_an_empty_skill_can_be_rewritten_too() -> None:
    patch = await chat_optimizer(_coach()).proposer.propose(_reflection(UpdateMode.FULL_REWRITE_MINIBATCH, skill=""))
    assert rule_lines(apply_patch("", patch).content)
    silent = await chat_optimizer(_coach()).proposer.propose(
        _reflection(UpdateMode.FULL_REWRITE_MINIBATCH, focus=Focus.SUCCESSES, skill="", rollouts=[_success("x")])
    )
    assert silent.edits[0].content == "# Skill\n"


# --- merging, ranking, counting --------------------------------------------------------------------------------------


async def test_merging_makes_equal_edits_one_and_loses_none() -> None:
    patch = await chat_optimizer(_coach()).merger.merge(
        _merge(Patch((USEFUL, USELESS)), Patch((HARMFUL, USEFUL)), Patch((replace(USEFUL, support_count=2),)))
    )
    assert [(edit.op, edit.content or edit.target, edit.support_count) for edit in patch.edits] == [
        (EditOp.APPEND, USEFUL.content, 4),
        (EditOp.APPEND, USELESS.content, 9),
        (EditOp.DELETE, HARMFUL.target, 9),
    ]


async def test_suggestions_survive_a_merge() -> None:
    optimizer = chat_optimizer(_coach())
    patch = await optimizer.proposer.propose(_reflection(UpdateMode.REWRITE_FROM_SUGGESTIONS))
    merged = await optimizer.merger.merge(_merge(patch, patch, mode=UpdateMode.REWRITE_FROM_SUGGESTIONS))
    assert [(edit.target, edit.content) for edit in merged.edits] == [
        (edit.target, edit.content) for edit in patch.edits
    ]
    assert [edit.support_count for edit in merged.edits] == [2 * (edit.support_count or 0) for edit in patch.edits]


async def test_whole_skills_are_merged_into_one_with_the_rules_of_all() -> None:
    skills = [f"{SKILL}\n{edit.content}\n" for edit in (USEFUL, ALSO_USEFUL)]
    patch = await chat_optimizer(_coach()).merger.merge(
        _merge(*(Patch((Edit(EditOp.REWRITE, skill),)) for skill in skills), mode=UpdateMode.FULL_REWRITE_MINIBATCH)
    )
    merged = apply_patch(SKILL, patch)
    assert merged.failed == ()
    assert len(_missing(merged.content)) == 5


async def test_an_accurate_coach_ranks_useful_before_useless_before_harmful() -> None:
    ranking = await chat_optimizer(_coach()).ranker.rank(_rank(HARMFUL, USEFUL, USELESS, ALSO_USEFUL))
    assert ranking.places == (3, 1, 2, 0)


async def test_it_errs_in_the_share_that_accuracy_leaves() -> None:
    shares: list[float] = []
    for accuracy in (0.0, 0.8):
        ranker = chat_optimizer(_coach(accuracy=accuracy)).ranker
        first = [(await ranker.rank(_rank(HARMFUL, USEFUL, seed=seed))).places[0] for seed in range(1, 150)]
        shares.append(first.count(1) / len(first))
    assert shares[0] == 0.0
    assert 0.6 < shares[1] < 0.95


async def test_suggestions_are_ranked_by_what_they_do() -> None:
    optimizer = chat_optimizer(_coach())
    patch = await optimizer.proposer.propose(_reflection(UpdateMode.REWRITE_FROM_SUGGESTIONS))
    words = Edit(EditOp.SUGGEST, "Be nicer.", "Tone")
    ranking = await optimizer.ranker.rank(_rank(words, *patch.edits))
    assert ranking.places[-1] == 0


@pytest.mark.parametrize(("edits", "rate"), [((USEFUL, HARMFUL, ALSO_USEFUL, USELESS), 2), ((USELESS, HARMFUL), 0)])
async def test_the_learning_rate_is_the_number_of_useful_edits(edits: tuple[Edit, ...], rate: int) -> None:
    request = RateInput(current_skill=SKILL, patch=Patch(edits), score=BatchScore(0.5, 0.5, 8, 0))
    decision = await chat_optimizer(_coach()).rate_chooser.choose(request)
    assert (decision.learning_rate, decision.confidence) == (rate, 1.0)


# --- the end of an epoch ---------------------------------------------------------------------------------------------


async def test_guidance_brings_right_rules_the_skill_lacks() -> None:
    writer = chat_optimizer(_coach()).guidance_writer
    guidance = await writer.write(_comparison(SKILL, ["drum", "fence"]))
    assert set(guidance.splitlines()) == {USEFUL.content, ALSO_USEFUL.content}


async def test_guidance_keeps_what_was_right_of_the_previous_and_drops_the_rest() -> None:
    previous = f"{USEFUL.content}\n- Otherwise the queue is Q7.\nBe quick."
    skill = replace_region(SKILL, RegionKind.SLOW_UPDATE, previous)
    guidance = await chat_optimizer(_coach()).guidance_writer.write(_comparison(skill, ["fence"], previous=previous))
    assert guidance.splitlines() == [USEFUL.content, ALSO_USEFUL.content]


async def test_there_is_no_guidance_where_nothing_fails() -> None:
    assert await chat_optimizer(_coach()).guidance_writer.write(_comparison(SKILL, [])) == ""


async def test_a_memory_grows_by_a_line_an_epoch_and_stays_short() -> None:
    writer, memory = chat_optimizer(_coach()).memory_writer, ""
    for epoch in range(1, 10):
        memory = await writer.write(_summary(memory, epoch))
        assert f"Epoch {epoch}: score 0.5000 with 3 rule lines" in memory
    assert len(memory.splitlines()) == 6
    assert "Epoch 3:" not in memory


# --- all of them -----------------------------------------------------------------------------------------------------

Role = Callable[[ChatOptimizer], tuple[Awaitable[object], Sequence[UsageNote]]]


def _roles(seed: int, rollouts: Sequence[Rollout], edits: Sequence[Edit], skill: str) -> list[Role]:
    patch = Patch(tuple(edits), "because")
    reflections = [_reflection(mode, Focus.MIXED, skill=skill, rollouts=rollouts, seed=seed) for mode in UpdateMode]
    merge = _merge(patch, patch)
    rank = _rank(*edits, seed=seed)
    rate = RateInput(current_skill=skill, patch=patch, score=BatchScore(0.5, 0.5, 8, 0))
    rewrite = RewriteInput(current_skill=skill, suggestions=patch)
    comparison, summary = _comparison(skill, ["drum"]), _summary("old")
    roles: list[Role] = [
        lambda optimizer, each=each: (optimizer.proposer.propose(each), optimizer.proposer.usage_at_most(each))  # type: ignore[misc]
        for each in reflections
    ]
    return [
        *roles,
        lambda optimizer: (optimizer.merger.merge(merge), optimizer.merger.usage_at_most(merge)),
        lambda optimizer: (optimizer.ranker.rank(rank), optimizer.ranker.usage_at_most(rank)),
        lambda optimizer: (optimizer.rate_chooser.choose(rate), optimizer.rate_chooser.usage_at_most(rate)),
        lambda optimizer: (optimizer.rewriter.rewrite(rewrite), optimizer.rewriter.usage_at_most(rewrite)),
        lambda optimizer: (
            optimizer.guidance_writer.write(comparison),
            optimizer.guidance_writer.usage_at_most(comparison),
        ),
        lambda optimizer: (optimizer.memory_writer.write(summary), optimizer.memory_writer.usage_at_most(summary)),
    ]


ROLES = _roles(1, [_failure("drum")], (USEFUL, USELESS, HARMFUL), SKILL)


async def test_every_answer_is_the_same_in_any_order_and_company() -> None:
    coach = SimulatedCoach(KNOWLEDGE)
    together = await asyncio.gather(*(role(chat_optimizer(coach))[0] for role in ROLES))
    alone = [await role(chat_optimizer(SimulatedCoach(KNOWLEDGE)))[0] for role in reversed(ROLES)]
    assert together == alone[::-1]


class _Babbler:
    """Answers what nobody can read, at the length asked for."""

    fingerprint = "babbler"

    def __init__(self, text: str) -> None:
        self._text = text

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        assert request.max_tokens is not None
        text = self._text[: 4 * request.max_tokens]
        return ChatAnswer(text=text, usage=estimated_usage(request, text))

    async def aclose(self) -> None:
        """Nothing is open."""


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(
    seed=st.integers(0, 3),
    words=st.lists(st.sampled_from(WORDS), max_size=4),
    texts=st.lists(st.text(max_size=40), min_size=1, max_size=3),
    skill=st.sampled_from([SKILL, "", "é漢🙂" * 50]),
    babble=st.none() | st.text(min_size=1).map(lambda text: text * 200),
    tokens=st.sampled_from([1, 20, 4_096]),
)
async def test_no_role_uses_more_than_it_said_it_could(
    seed: int, words: list[str], texts: list[str], skill: str, babble: str | None, tokens: int
) -> None:
    rollouts = [_failure(word, f"item-{number}") for number, word in enumerate(words)]
    edits = [Edit(EditOp.APPEND, text, support_count=1) for text in texts]
    inner: ChatModel = SimulatedCoach(KNOWLEDGE) if babble is None else _Babbler(babble)
    optimizer = chat_optimizer(MeteredModel(inner, "optimizer"), limits=OptimizerLimits().with_answers_of(tokens))
    for role in _roles(seed, rollouts, edits, skill):
        call, most = role(optimizer)
        with collecting_usage() as notes, suppress(PortError):
            await call
        assert bool(notes) is bool(most)
        assert {note.role for note in notes} <= {note.role for note in most}
        assert sum(note.prompt_tokens for note in notes) <= sum(note.prompt_tokens for note in most)
        assert sum(note.completion_tokens for note in notes) <= sum(note.completion_tokens for note in most)


async def test_an_answer_that_may_not_be_so_long_is_truncated_and_paid_for() -> None:
    request = ChatRequest(system="", user="<skill>\n</skill>", purpose="reflect", max_tokens=3)
    with pytest.raises(ChatError) as caught:
        await _coach().complete(request)
    assert caught.value.code is ChatErrorCode.TRUNCATED
    assert caught.value.usage is not None
    assert caught.value.usage.completion_tokens == 3


@pytest.mark.parametrize("purpose", ["merge", "rank", "learning_rate", "rewrite", "guidance", "memory", "poem", ""])
async def test_a_prompt_without_the_anchors_of_its_purpose_is_refused(purpose: str) -> None:
    request = ChatRequest(system="", user="Write a poem.\n<skill>\nx\n</skill>", purpose=purpose)
    with pytest.raises(ChatError) as caught:
        await _coach().complete(request)
    assert caught.value.code is ChatErrorCode.BAD_REQUEST


@pytest.mark.parametrize("accuracy", [-0.1, 1.1, float("nan")])
def test_an_accuracy_out_of_range_is_refused(accuracy: float) -> None:
    with pytest.raises(ValueError, match="accuracy"):
        SimulatedCoach(KNOWLEDGE, accuracy=accuracy)


def test_the_fingerprint_tells_the_accuracy() -> None:
    assert SimulatedCoach(KNOWLEDGE, accuracy=0.5).fingerprint != SimulatedCoach(KNOWLEDGE).fingerprint


# Notes


async def test_what_the_skill_would_have_prevented_is_noted_and_states_no_rule() -> None:
    line = KNOWLEDGE.splitlines()[0]
    assert rule_lines(line)
    noted = await coached(skill=KNOWLEDGE)
    assert 0 < len(noted) <= 2
    assert not rule_lines("\n".join(f"- {note}" for note in noted))
    assert await coached(skill="") == ()
    assert await coached(skill=KNOWLEDGE, wants_notes=False) == ()


async def coached(*, skill: str, wants_notes: bool = True) -> tuple[str, ...]:
    """The notes of an analyst who is shown a failure for each word."""
    rollouts = tuple(Rollout(word, 0.0, 0.0, trajectory=f"[user]\nA {word} here.\n\n[agent]\nNo") for word in WORDS)
    reflection = ReflectionInput(
        current_skill=skill, rollouts=rollouts, focus=Focus.FAILURES, edit_budget=1, wants_notes=wants_notes
    )
    return (await chat_optimizer(SimulatedCoach(KNOWLEDGE)).proposer.propose(reflection)).notes


@pytest.mark.parametrize(
    ("notes", "threshold", "expected"),
    [(("a", "b", "c"), 2, ("b", "c")), (("a", "b"), 5, ("b",)), (("a", "b", "c"), 1, ("c",)), (("a",), 1, ("a",))],
)
async def test_the_newest_notes_are_left(notes: tuple[str, ...], threshold: int, expected: tuple[str, ...]) -> None:
    request = NotesInput(current_skill="# Skill\n", notes=notes, threshold=threshold)
    assert await chat_optimizer(SimulatedCoach(KNOWLEDGE)).note_consolidator.consolidate(request) == expected
