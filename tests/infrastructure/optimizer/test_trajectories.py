"""Rollouts as the optimizer gets to see them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.domain.rollouts import Rollout
from burnish.infrastructure.optimizer.trajectories import TrajectoryLimits, TrajectoryView, cut_middle, show_rollouts


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
        'trajectory:\nasked\nanswered B\nwhy it failed: expected "A", got "B"\n</failure>'
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


# --- conversations ---------------------------------------------------------------------------------------------------

CONVERSATION = "\n".join(
    [
        "[system]",
        "rules of the house",
        "[user]",
        "Where is the cup?",
        "",
        "[agent]",
        "look under the bed",
        "",
        "[tool: look]",
        "dust " * 50,
        "",
        "[agent]",
        "look on the table",
        "",
        "[observation]",
        "a cup",
        "",
        "[agent]",
        "It is on the table.",
    ]
)


def _shown(limits: TrajectoryLimits, **more: str) -> str:
    return show_rollouts([_rollout("p-1", 0.0, **more)], limits)


def test_the_papers_view_is_the_question_the_answer_and_the_reason() -> None:
    text = _shown(TrajectoryLimits(view="paper"), trajectory=CONVERSATION, fail_reason="not there")
    assert text == (
        "<failure>\nitem: p-1\ntrajectory:\n[user]\nWhere is the cup?\n\n[… 4 turns left out …]\n\n"
        "[agent]\nIt is on the table.\nwhy it failed: not there\n</failure>"
    )


@pytest.mark.parametrize(
    ("trajectory", "prediction", "shown"),
    [
        ("[user]\na\n\n[agent]\nb", "B", "trajectory:\n[user]\na\n\n[agent]\nb"),
        ("[user]\na", "B", "answer:\nB"),
        ("a long story", "B", "answer:\nB"),
        ("a long story", " ", "trajectory:\na long story"),
        (
            "[agent]\nfirst\n[tool]\nx\n[agent]\nlast",
            "",
            "trajectory:\n[agent]\nfirst\n\n[… 1 turn left out …]\n\n[agent]\nlast",
        ),
    ],
)
def test_the_papers_view_of_short_or_unmarked_trajectories(trajectory: str, prediction: str, shown: str) -> None:
    text = _shown(TrajectoryLimits(view="paper"), trajectory=trajectory, prediction=prediction)
    assert text == f"<failure>\nitem: p-1\n{shown}\n</failure>"


def test_the_papers_view_is_short_whatever_the_limit() -> None:
    long = f"[user]\n{'q' * 9_000}\n\n[agent]\n{'a' * 9_000}\nthe end"
    assert len(_shown(TrajectoryLimits(view="paper"), trajectory=long)) < 4_200
    assert len(_shown(TrajectoryLimits(view="paper", tokens=50), trajectory=long)) < 400
    assert "the end" in _shown(TrajectoryLimits(view="paper", tokens=50), trajectory=long)


def test_observations_are_cut_and_the_agents_words_are_not() -> None:
    agent = "y" * 300
    trajectory = CONVERSATION.replace("look under the bed", agent)
    text = _shown(TrajectoryLimits(obs_chars=60), trajectory=trajectory)
    assert agent in text
    assert "[tool: look]\ndust dust" in text
    assert "[… 220 characters left out …]" in text
    assert "[observation]\na cup\n\n[agent]\nIt is on the table." in text


@pytest.mark.parametrize("trajectory", [CONVERSATION, "no turns " * 20, "[agent]\n" + "a" * 500, "\r\n[user]\r\nx\r\n"])
def test_without_a_limit_on_observations_nothing_is_cut(trajectory: str) -> None:
    assert trajectory.strip("\r\n") in _shown(TrajectoryLimits(), trajectory=trajectory)
    assert trajectory.strip("\r\n") in _shown(TrajectoryLimits(obs_chars=1_000), trajectory=trajectory)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.sampled_from(["[user]\n", "[agent]\n", "[tool x]\n", "text\n", "\n", "y" * 30])).map("".join),
    st.sampled_from(["full", "paper"]),
    st.integers(0, 50),
)
def test_any_trajectory_can_be_shown(trajectory: str, view: TrajectoryView, obs_chars: int) -> None:
    text = _shown(TrajectoryLimits(view=view, obs_chars=obs_chars, tokens=100), trajectory=trajectory, prediction="p")
    assert text.startswith("<failure>\nitem: p-1")
    assert text.endswith("</failure>")


def test_partial_credit_is_told_and_is_no_success() -> None:
    rollout = Rollout("p-1", 0.999, 1.0)
    assert show_rollouts([rollout], TrajectoryLimits()) == (
        "<failure>\nitem: p-1\nscore: hard 0.999, soft 1 of 1, so it counts as failed\n</failure>"
    )
