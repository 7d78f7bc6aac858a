"""Every way a step can end is told apart in the report, the summary and the status."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from evolver_host import SMALL, START, Host, Json

from burnish.presentation.evolver import BlockingEvolver, LlmRequest

Thought = Callable[[LlmRequest], Json]


def patch(*edits: Json) -> Json:
    return {"reasoning": "because", "edits": [{"target": "", "content": "", "support": 1, **edit} for edit in edits]}


def appended(text: str) -> Json:
    return patch({"op": "append", "content": text})


class Scripted(Host):
    """A host whose model says one thing to analysts, and in whose documents `score=0.5` says how often tasks are solved."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.edits = patch()
        self.guidance = "Keep to the rules."
        self.fails: frozenset[str] = frozenset()

    def think(self, request: LlmRequest) -> Json:
        if request.purpose in self.fails:
            raise ConnectionError("no model")
        if request.purpose in {"reflect", "merge"}:
            return self.edits
        if request.purpose == "guidance":
            return {"verdict": "good", "reasoning": "rules help", "guidance": self.guidance}
        return super().think(request)

    def try_out(self, document: str, task: Mapping[str, Any]) -> Json:
        attempt = super().try_out(document, task)
        share = float(document.rpartition("score=")[2].split()[0]) if "score=" in document else 0.25
        solved = int(task["id"].partition("-")[2]) < share * len(self.validation_data)
        attempt["judge"] = {"score": float(solved), "feedback": "" if solved else "wrong"}
        return attempt

    def step(self, number: int, **parameters: object) -> str:
        """Make a step of the next material; the first line of its report."""
        self.write_material(number)
        self.result = BlockingEvolver({**SMALL, "lr_scheduler": "constant", **parameters}).step(self)
        assert self.result["summary"].startswith(f"Step {number}: {self.report.splitlines()[2][:10]}")
        return self.report.splitlines()[0]


@pytest.fixture
def host(tmp_path: Path) -> Scripted:
    return Scripted(tmp_path)


def text_of(host: Host) -> str:
    return host.document.read_text(encoding="utf-8")


def test_no_patches(host: Scripted) -> None:
    assert host.step(1) == "# Step 1: No patches"
    assert host.result["status"] == "done"
    assert "The document is unchanged." in host.report
    assert text_of(host) == START


def test_invalid_edits(host: Scripted) -> None:
    host.edits = patch({"op": "replace", "target": "no such text", "content": "x"})
    assert host.step(1) == "# Step 1: Invalid edits"
    assert "could be applied, so there was nothing to score" in host.report
    assert 'failed: replace `"no such text"` `"x"` (support' in host.report
    assert text_of(host) == START


def test_edits_that_change_nothing(host: Scripted) -> None:
    host.edits = patch({"op": "replace", "target": "- use r0", "content": "- use r0"})
    assert host.step(1) == "# Step 1: No change"


def test_too_long_a_candidate(host: Scripted) -> None:
    host.edits = patch({"op": "append", "content": "x" * 262_000})
    host.document.write_text("y" * 1_000)
    assert host.step(1) == "# Step 1: Too long"


def test_rejection_by_the_gate(host: Scripted) -> None:
    host.edits = appended("score=0.25")
    assert host.step(1) == "# Step 1: Rejected by the gate"
    assert "The candidate scored 0.2500 against 0.2500." in host.report
    assert text_of(host) == START


def test_early_end_of_a_hopeless_pass(host: Scripted) -> None:
    host.edits = appended("score=0.0")
    host.validation_data = [{**task, "id": f"val-{24 - place}"} for place, task in enumerate(host.validation_data, 1)]
    host.document.write_text("score=0.9")
    assert host.step(1) == "# Step 1: Rejected by the gate"
    assert "so the pass was stopped early" in host.report
    assert host.asked().count("run_agent") == 3  # two blocks of the baseline, one of the candidate


def test_acceptance(host: Scripted) -> None:
    host.edits = appended("score=0.5")
    assert host.step(1) == "# Step 1: Accepted, new best"
    assert "The candidate scored 0.5000 against 0.2500." in host.report
    assert text_of(host) == f"{START}\n\nscore=0.5"
    assert f"{len(START)} characters before" in host.report


def test_failed_optimizer(host: Scripted) -> None:
    host.fails = frozenset({"reflect"})
    assert host.step(1) == "# Step 1: Optimizer failed"
    assert host.result["status"] == "failed"
    assert "skill_training.reflect.proposer_call_failed" in host.report
    assert "may be called again" in host.result["summary"]
    assert text_of(host) == START


def test_validation_without_answers_of_the_initial_document(host: Scripted) -> None:
    host.run_agent = lambda document, tasks: 1 / 0
    assert host.step(1) == "# Step 1: Inconclusive"
    assert host.result["status"] == "failed"
    assert text_of(host) == START


def test_validation_without_answers_of_the_candidate(host: Scripted) -> None:
    host.edits = appended("score=0.5")
    answer = host.run_agent

    def run_agent(document: str, asked: list[Json]) -> object:
        return [{"task": task, "error": "down"} for task in asked] if "score" in document else answer(document, asked)

    host.run_agent = run_agent
    assert host.step(1) == "# Step 1: Inconclusive"
    assert host.result["status"] == "failed"
    assert "| candidate, on validation | 0.0000 | 0.0000 | 0 | 16 |" in host.report
    assert text_of(host) == START


def test_candidate_that_is_taken_without_a_gate(host: Scripted) -> None:
    host.edits = appended("score=0.5")
    assert host.step(1, use_gate=False) == "# Step 1: Taken without a gate, new best"
    host.edits = patch({"op": "replace", "target": "score=0.5", "content": "score=0.3"})
    assert host.step(2, use_gate=False) == "# Step 2: Taken without a gate"
    assert "against the best one's 0.5000" in host.report
    assert "score=0.3" in text_of(host)
    ended = BlockingEvolver({**SMALL, "lr_scheduler": "constant", "use_gate": False}).finalize(host)
    assert ended["status"] == "done"
    assert "score=0.5" in text_of(host)  # the best that was measured is what stays


def test_no_epoch_ends_without_a_length(host: Scripted) -> None:
    host.step(1, steps_per_epoch=None)
    assert "No epoch ever ends, since steps_per_epoch is not set: no slow update, no memory." in host.report


@pytest.mark.parametrize(
    ("is_gated", "guidance", "fate"),
    [
        (False, "score=0.3", "its guidance was forced in. The candidate scored"),
        (False, "score=0.9", "its guidance was forced in, new best."),
        (True, "score=0.3", "its guidance was rejected by the gate."),
        (True, "score=0.9", "its guidance was accepted by the gate, new best."),
    ],
)
def test_slow_update(host: Scripted, *, is_gated: bool, guidance: str, fate: str) -> None:
    host.edits, host.guidance = appended("score=0.5"), guidance
    parameters = {"steps_per_epoch": 1, "slow_update_gate": is_gated}
    host.step(1, **parameters)
    assert "Slow update" not in host.report
    assert "Memory: 39 characters" in host.report
    assert "The next step ends epoch 2 and brings a slow update" in host.result["summary"]
    host.edits = patch()
    host.step(2, **parameters)
    assert "Slow update: 0 improved, 0 regressed, " in host.report
    assert f"succeeded twice; {fate}" in host.report
    assert (guidance in text_of(host)) == ("rejected" not in fate)


def test_slow_update_and_memory_that_fail_leave_the_step_as_it_is(host: Scripted) -> None:
    host.edits, host.fails = appended("score=0.5"), frozenset({"guidance", "memory"})
    host.step(1, steps_per_epoch=1)
    assert host.step(2, steps_per_epoch=1) == "# Step 2: Rejected by the gate"
    assert host.result["status"] == "done"
    assert "Slow update: failed (" in host.report
    assert "Memory: failed (" in host.report
    assert "<!--" not in text_of(host)


def test_slow_update_without_answers(host: Scripted) -> None:
    host.edits = appended("score=0.5")
    host.step(1, steps_per_epoch=1)
    host.edits = patch()
    host.run_agent = lambda document, tasks: 1 / 0
    host.step(2, steps_per_epoch=1)
    assert host.result["status"] == "done"
    assert "no train task was answered with both epochs' documents" in host.report


def test_edits_with_their_fate(host: Scripted) -> None:
    host.edits = patch(
        {"op": "append", "content": "score=0.5", "support": 2},
        {"op": "delete", "target": "nowhere"},
        {"op": "append", "content": "third `text`"},
    )
    host.step(1)
    lines = [line for line in host.report.splitlines() if line.startswith("- ")]
    assert [line.partition(":")[0] for line in lines] == ["- applied", "- failed", "- not selected"]
    assert "At most 2 edits were allowed in this step." in host.report
    assert json.dumps("third 'text'") in lines[2]
