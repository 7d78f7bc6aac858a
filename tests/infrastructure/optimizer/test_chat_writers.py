"""The writers of guidance and memory: what they show a model, and what becomes of its answers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scripted_models import ScriptedModel

from burnish.application.optimizer_ports import (
    EpochComparison,
    EpochSummary,
)
from burnish.domain.edits import Edit, EditOp, EditSource
from burnish.domain.epochs import compare_epochs
from burnish.domain.regions import RegionKind
from burnish.domain.rollouts import Rollout
from burnish.domain.text_size import estimated_tokens
from burnish.infrastructure.optimizer.chat_writers import ChatGuidanceWriter, ChatMemoryWriter
from burnish.infrastructure.optimizer.comparisons import COMPARED_TOKENS

SKILL = "# Greeter\n\n- Greet the guest.\n"
ONE = Edit(EditOp.APPEND, "- Greet in French.", support_count=3, source=EditSource.FAILURE)
TWO = Edit(EditOp.DELETE, target="- Greet the guest.", support_count=2, source=EditSource.SUCCESS)


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


# --- guidance and memory ---------------------------------------------------------------------------------------------


async def test_a_guidance_writer_sees_both_skills_all_counts_and_what_changed() -> None:
    model = ScriptedModel('{"verdict": "useless", "reasoning": "r", "guidance": "Say bonsoir."}')
    assert await ChatGuidanceWriter(model).write(_comparison()) == "Say bonsoir."
    asked = model.asked
    assert "<prior_skill>\n# Old greeter\n\n</prior_skill>" in asked
    assert f"<skill>\n{SKILL}\n</skill>" in asked
    assert "<previous_guidance>\nSay bonjour.\n</previous_guidance>" in asked
    assert "Of 4 items, 1 improved, 1 regressed, 1 failed both times, 1 succeeded both times." in asked
    blocks = ["<regressed>\nitem: worse", "<persistent>\nitem: bad", "<improved>\nitem: better"]
    assert sorted(blocks, key=asked.index) == blocks
    for item in ("worse", "bad", "better"):
        assert f"prior {item}" in asked
        assert f"current {item}" in asked
    assert "prior good" not in asked
    assert "right with both skills\n\ngood" in asked
    assert "gone" not in asked
    assert model.requests[0].purpose == "guidance"


async def test_partial_credit_is_no_success_in_a_comparison() -> None:
    model = ScriptedModel('{"guidance": "x"}')
    await ChatGuidanceWriter(model).write(_comparison())
    assert "score: hard 0.3, soft 0.3 of 1, so it counts as failed" in model.asked


async def test_a_comparison_of_many_long_items_stays_within_its_limit() -> None:
    model = ScriptedModel('{"guidance": "x"}')
    failed = tuple(Rollout(f"item {number}", 0.0, 0.0, trajectory="word " * 20_000) for number in range(40))
    comparison = replace(_comparison(), prior_rollouts=failed, current_rollouts=failed)
    await ChatGuidanceWriter(model).write(comparison)
    assert all(f"item: item {number}\n" in model.asked for number in range(40))
    assert estimated_tokens(model.asked) < 1.3 * COMPARED_TOKENS


async def test_the_first_guidance_has_none_to_judge() -> None:
    model = ScriptedModel('{"guidance": ""}')
    assert await ChatGuidanceWriter(model).write(_comparison(guidance=" \n")) == ""
    assert "<previous_guidance>" not in model.asked
    assert "There is none yet." in model.asked


async def test_guidance_carries_no_markers() -> None:
    kind = RegionKind.SLOW_UPDATE
    model = ScriptedModel(json.dumps({"guidance": f"{kind.start_marker}\nSay bonsoir.\n{kind.end_marker}"}))
    assert await ChatGuidanceWriter(model).write(_comparison()) == "Say bonsoir."


async def test_without_pairs_nobody_is_asked_for_guidance() -> None:
    comparison = EpochComparison(
        prior_skill="",
        current_skill="",
        prior_rollouts=(),
        current_rollouts=(),
        analysis=compare_epochs((), ()),
        previous_guidance="",
    )
    assert await ChatGuidanceWriter(ScriptedModel()).write(comparison) == ""
    assert ChatGuidanceWriter(ScriptedModel()).usage_at_most(comparison) == ()


async def test_a_memory_writer_sees_the_memory_the_epoch_and_how_items_fared() -> None:
    model = ScriptedModel('{"reasoning": "r", "memory": "Shorter rules work.\\n"}')
    assert await ChatMemoryWriter(model).write(_summary()) == "Shorter rules work."
    assert "<memory>\nShort rules work.\n</memory>" in model.asked
    assert "Epoch 3 ended with a score of 0.6250 of 1" in model.asked
    assert "1 regressed" in model.asked
    assert model.requests[0].purpose == "memory"


async def test_a_memory_can_start_from_nothing() -> None:
    model = ScriptedModel('{"memory": "x"}')
    await ChatMemoryWriter(model).write(_summary(memory="", has_analysis=False))
    assert "It is still empty." in model.asked
    assert "regressed" not in model.asked


@pytest.mark.parametrize("memory", ["", " \n"])
async def test_a_blank_memory_does_not_wipe_out_the_old_one(memory: str) -> None:
    model = ScriptedModel(json.dumps({"memory": memory}))
    assert await ChatMemoryWriter(model).write(_summary()) == "Short rules work."
