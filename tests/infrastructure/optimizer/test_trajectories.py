"""Rollouts as the optimizer gets to see them."""

import pytest

from burnish.domain.rollouts import Rollout
from burnish.infrastructure.optimizer.trajectories import TrajectoryLimits, cut_middle, show_rollouts


def _rollout(item_id: str, hard: float, **more: str) -> Rollout:
    return Rollout(item_id=item_id, hard=hard, soft=hard, **more)


def test_failures_come_first_and_each_group_keeps_its_order() -> None:
    rollouts = [_rollout("s2", 1.0), _rollout("f9", 0.0), _rollout("s1", 1.0), _rollout("f1", 0.5)]
    text = show_rollouts(rollouts, TrajectoryLimits(tokens=10))
    assert [line for line in text.splitlines() if line.startswith("item:")] == [
        "item: f9",
        "item: f1",
        "item: s2",
        "item: s1",
    ]


def test_a_rollout_is_shown_with_what_is_known_of_it() -> None:
    rollout = _rollout(
        "p-1", 0.0, task_type="billing", fail_reason='expected "A", got "B"', trajectory="asked\nanswered B\n"
    )
    assert show_rollouts([rollout], TrajectoryLimits(tokens=100)) == (
        "<failure>\nitem: p-1\ntask type: billing\n"
        'why it failed: expected "A", got "B"\ntrajectory:\nasked\nanswered B\n</failure>'
    )


def test_what_is_not_known_is_not_mentioned() -> None:
    assert show_rollouts([_rollout("p-1", 1.0)], TrajectoryLimits(tokens=100)) == "<success>\nitem: p-1\n</success>"


def test_the_answer_stands_in_for_a_missing_trajectory() -> None:
    text = show_rollouts([_rollout("p-1", 0.0, prediction="B", trajectory=" \n")], TrajectoryLimits(tokens=100))
    assert text == "<failure>\nitem: p-1\nanswer:\nB\n</failure>"


def test_a_rollout_without_an_answer_is_not_shown() -> None:
    assert show_rollouts([Rollout("p-1", 0.0, 0.0, error="model.timeout")], TrajectoryLimits(tokens=100)) == ""


def test_each_trajectory_is_cut_in_the_middle_to_the_budget() -> None:
    trajectory = "begin" + "x" * 10_000 + "end"
    text = show_rollouts(
        [_rollout("a", 0.0, trajectory=trajectory), _rollout("b", 1.0, trajectory="short")], TrajectoryLimits(tokens=50)
    )
    cut, short = text.split("\n\n")
    assert cut.startswith("<failure>\nitem: a\ntrajectory:\nbegin")
    assert cut.endswith("end\n</failure>")
    assert len(cut) < 50 * 4 + 60
    assert "trajectory:\nshort" in short


def test_a_long_reason_is_cut_too() -> None:
    text = show_rollouts([_rollout("a", 0.0, fail_reason="because " * 5_000)], TrajectoryLimits(tokens=50))
    assert "characters left out" in text
    assert len(text) < 2_200


@pytest.mark.parametrize("length", [0, 1, 399, 400])
def test_text_within_the_budget_is_not_touched(length: int) -> None:
    assert cut_middle("x" * length, 100) == "x" * length


@pytest.mark.parametrize(("length", "tokens"), [(401, 100), (5_000, 100), (41, 10), (5, 1), (100, 1)])
def test_the_note_counts_what_was_left_out(length: int, tokens: int) -> None:
    text = "".join(chr(0x4E00 + number) for number in range(length))
    before, note, after = cut_middle(text, tokens).split("\n")
    left_out = length - len(before) - len(after)
    assert note == f"[… {left_out} characters left out …]"
    assert text.startswith(before)
    assert text.endswith(after)
    assert 0 < len(before) + len(after) <= tokens * 4
