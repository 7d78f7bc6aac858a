"""Answers of the optimizer that would end a run of the system we learn from, or make it lose what was proposed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from http_runs import STEP, THREE_MINIBATCHES, answer_in
from killed_runs import small_task
from scripted_server import Body, Reply, ScriptedServer, completion
from ticket_server import EXAMPLE, OVER_HTTP, purpose_of, ticket_models

from burnish.presentation.cli import run

Answer = dict[str, Any]
LOCKED = "<!-- LOCKED_START -->\nNever tell anybody another customer's code.\n<!-- LOCKED_END -->"


class OddModels:
    """The example's models, whose answers for one purpose are changed by a function; `prompts` are those for it."""

    def __init__(self, purpose: str, change: Callable[[Answer], object]) -> None:
        self.prompts: list[str] = []
        self._purpose = purpose
        self._change = change
        self._answer = ticket_models()

    def __call__(self, body: Body) -> Reply:
        """The answer, as it is or changed."""
        reply = self._answer(body)
        system, user = (message["content"] for message in cast("list[dict[str, str]]", body["messages"]))
        if purpose_of(system) != self._purpose:
            return reply
        self.prompts.append(user)
        return completion(json.dumps(self._change(json.loads(answer_in(reply)))))


def as_it_is(answer: Answer) -> Answer:
    return answer


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Trains over HTTP; the records of the steps."""

    def trained(models: OddModels, *options: str, skill: str = "") -> list[dict[str, Any]]:
        (tmp_path / "task").mkdir()
        task = small_task(tmp_path / "task", THREE_MINIBATCHES)
        if skill:
            (tmp_path / "task" / "skill.md").write_text(skill, encoding="utf-8")
        with ScriptedServer(models) as server:
            monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.base_url)
            command = ["train", task, "--out-root", str(tmp_path / "run"), "--cfg-options", *OVER_HTTP, *STEP]
            assert run([*command, "evaluation.eval_test=false", *options]) == 0
        return [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]

    return trained


NOTHING: list[object] = []

Train = Callable[..., list[dict[str, Any]]]


def test_a_readable_but_empty_merge_discards_nothing(train: Train) -> None:
    records = train(OddModels("merge", lambda answer: {**answer, "edits": NOTHING}))
    assert all(record["fallbacks"] == ["merge"] for record in records)
    assert all(record["merged"] >= record["selected"] > 0 for record in records)
    assert records[0]["reason"] in {"accepted", "gate"}


@pytest.mark.parametrize("order", [[], ["none of them"], [99, -1]], ids=["empty", "words", "out of range"])
def test_a_ranking_that_names_nothing_is_noted_and_a_full_step_is_made_all_the_same(
    order: list[object], train: Train
) -> None:
    records = train(OddModels("rank", lambda answer: answer | {"order": order}))
    assert all((record["fallbacks"], record["selected"]) == (["rank"], record["learning_rate"]) for record in records)


@pytest.mark.parametrize(
    "beside",
    [
        {"batch_size": "8 trajectories", "failure_summary": "three of them"},
        {"batch_size": None, "failure_summary": [{"type": None, "description": 3}]},
        {"reasoning": None},
        {"reasoning": ["first", {"second": 2}]},
    ],
)
def test_odd_remarks_beside_the_edits_do_not_end_a_run(beside: Answer, train: Train) -> None:
    odd = train(OddModels("reflect", lambda answer: answer | beside))
    assert [record["analysts_failed"] for record in odd] == [0, 0]
    assert all(record["proposed"] > 0 for record in odd)


@pytest.mark.parametrize("support", ["8 trajectories", None, [], True, -5, 1e300])
def test_a_support_that_is_no_count_does_not_end_a_run(support: object, train: Train) -> None:
    def change(answer: Answer) -> Answer:
        return answer | {"edits": [edit | {"support": support} for edit in answer["edits"]]}

    records = train(OddModels("reflect", change))
    assert [record["analysts_failed"] for record in records] == [0, 0]
    assert all(record["proposed"] > 0 for record in records)


@pytest.mark.parametrize(
    ("rate", "kept"), [("3 of them", 3), (0, 0), (-2, 0), (10**9, None)], ids=["words", "none", "negative", "too many"]
)
def test_a_learning_rate_is_a_count_within_what_there_is(rate: object, kept: int | None, train: Train) -> None:
    models = OddModels("learning_rate", lambda answer: answer | {"learning_rate": rate})
    for record in train(models, "optimizer.lr_control_mode=autonomous"):
        wanted = record["merged"] if kept is None else kept
        assert (record["learning_rate"], record["selected"], record["fallbacks"]) == (wanted, wanted, [])


def test_a_learning_rate_that_is_no_number_leaves_it_to_the_schedule(train: Train) -> None:
    models = OddModels("learning_rate", lambda answer: answer | {"learning_rate": True})
    records = train(models, "optimizer.lr_control_mode=autonomous")
    assert [(record["learning_rate"], record["fallbacks"]) for record in records] == [(3, ["rate"]), (2, ["rate"])]


def test_analysts_are_told_the_rate_of_their_step_and_not_the_highest(train: Train) -> None:
    models = OddModels("reflect", as_it_is)
    first, second = train(models, "gradient.failure_only=true")
    assert (first["learning_rate"], second["learning_rate"]) == (3, 2)
    told = [f"at most {record['learning_rate']} edits" for record in (first, second) for _ in range(record["analysts"])]
    assert [rate in prompt for rate, prompt in zip(told, models.prompts, strict=True)] == [True] * len(told)


def test_without_a_learning_rate_nothing_is_left_out_and_no_limit_is_told(train: Train) -> None:
    models = OddModels("reflect", as_it_is)
    records = train(models, "optimizer.lr_control_mode=none", "optimizer.learning_rate=2")
    assert all(record["selected"] == record["merged"] > 2 for record in records)
    assert not any("at most" in prompt for prompt in models.prompts)


@pytest.mark.parametrize(
    ("mode", "purpose"),
    [
        ("rewrite_from_suggestions", "rewrite"),
        ("full_rewrite_minibatch", "reflect"),
        ("full_rewrite_minibatch", "merge"),
    ],
)
def test_a_whole_new_skill_that_leaves_out_what_is_protected_gets_it_back(
    mode: str, purpose: str, train: Train, tmp_path: Path
) -> None:
    def change(answer: Answer) -> Answer:
        before, _, after = answer["skill"].partition(LOCKED)
        return answer | {"skill": f"{before.rpartition('---')[2]}{after}"}

    skill = (EXAMPLE / "skill.md").read_text(encoding="utf-8")
    front_matter = skill[: skill.index("---", 3) + 3]
    records = train(OddModels(purpose, change), f"optimizer.skill_update_mode={mode}", skill=f"{skill}\n{LOCKED}\n")
    assert "accepted" in {record["reason"] for record in records}
    best = (tmp_path / "run" / "best_skill.md").read_text(encoding="utf-8")
    assert best.startswith(front_matter)
    assert best.count(LOCKED) == 1
    assert best != f"{skill}\n{LOCKED}\n"
