"""What people see of a run: the trail's lines, the table on a terminal, the lines for machines."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live
from terminals import Terminal
from ticket_server import EXAMPLE

from burnish.application.events import Event, MemoryUpdated, Reflected, SlowUpdated, StepFinished
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason, StepRecord
from burnish.presentation.cli import run
from burnish.presentation.live_table import StepTable
from burnish.presentation.trail import Trail

TASK = str(EXAMPLE / "task.yaml")


def finished(**changes: object) -> StepFinished:
    fields: dict[str, object] = {
        "step": 2,
        "epoch": 1,
        "action": GateAction.REJECT,
        "reason": StepReason.GATE,
        "learning_rate": 4,
        "candidate_score": 0.5,
        "compared_with": 0.75,
    }
    record = StepRecord(**(fields | changes))  # type: ignore[arg-type]  # a test names fields as it likes
    return StepFinished(run_id="r", step=2, epoch=1, record=record, current_score=0.75, best_score=0.75)


async def told(*events: Event) -> list[str]:
    lines: list[str] = []
    trail = Trail(lines.append)
    for event in events:
        await trail.emit(event)
    return [line for line in lines if line.startswith("  ")]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (finished(), "  gate        rejected: candidate 0.50 against 0.75"),
        (
            finished(candidate_score=None, ceiling=0.6),
            "  gate        rejected: candidate stopped early, at best 0.60 against 0.75",
        ),
        (
            finished(action=GateAction.ACCEPT_NEW_BEST, reason=StepReason.ACCEPTED, candidate_score=0.9),
            "  gate        accepted, new best: candidate 0.90 against 0.75",
        ),
        (
            finished(action=GateAction.ACCEPT, reason=StepReason.ACCEPTED, candidate_score=0.75),
            "  gate        accepted: candidate 0.75 against 0.75",
        ),
        (
            finished(reason=StepReason.OPTIMIZER_FAILED, code="skill_training.reflect.unreadable_patch"),
            "  gate        not asked: the optimizer failed (skill_training.reflect.unreadable_patch)",
        ),
        (
            finished(action=None, reason=StepReason.INCONCLUSIVE),
            "  gate        not asked: too many items without an answer: no decision",
        ),
        (
            finished(action=GateAction.ACCEPT, reason=StepReason.FORCED, learning_rate=0),
            "  re-score    forced in, best stays: candidate 0.50 against 0.75",
        ),
        (
            finished(action=GateAction.ACCEPT, reason=StepReason.NOTES, learning_rate=0, notes_added=2, notes_total=5),
            "  notes       2 new, 5 in all; forced in, best stays: candidate 0.50 against 0.75",
        ),
        (
            finished(
                action=GateAction.ACCEPT_NEW_BEST,
                reason=StepReason.NOTES,
                candidate_score=0.8,
                notes_added=1,
                notes_total=2,
                notes_consolidated=3,
            ),
            "  notes       1 new, 2 in all, 3 saved by consolidation; forced in, new best: candidate 0.80 against 0.75",
        ),
        (
            finished(reason=StepReason.TOO_LONG, notes_added=1, notes_total=1),
            "  notes       1 new, 1 in all; left out: the candidate is longer than a skill may be",
        ),
        (
            Reflected(run_id="r", step=2, epoch=1, proposed=1, notes=("a", "b")),
            "  reflect     1 edit proposed, 2 notes",
        ),
        (Reflected(run_id="r", step=2, epoch=1, proposed=0, code="some.code"), "  reflect     failed: some.code"),
        (SlowUpdated(run_id="r", step=2, epoch=1, analysis=None, code="some.code"), "  slow update failed: some.code"),
        (
            MemoryUpdated(run_id="r", step=2, epoch=1, characters=3, code="some.code"),
            "  memory      failed: some.code; the old memory stays",
        ),
    ],
)
async def test_every_outcome_has_its_line(event: Event, line: str) -> None:
    assert await told(event) == [line]


async def test_what_a_resumed_run_only_replays_is_not_told_again() -> None:
    assert await told(Reflected(run_id="r", step=1, epoch=1, proposed=3, replayed=True)) == []


async def test_a_terminal_gets_one_row_a_step() -> None:
    shown = io.StringIO()
    with Live(console=Console(file=shown, force_terminal=True, width=100), auto_refresh=False) as live:
        table = StepTable(live)
        await table.emit(finished())
        await table.emit(finished(action=None, reason=StepReason.INCONCLUSIVE, candidate_score=None))
        await table.emit(finished(candidate_score=None, ceiling=0.6))
        await table.emit(finished(action=GateAction.ACCEPT, reason=StepReason.FORCED, learning_rate=0))
        await table.emit(finished(action=GateAction.ACCEPT, reason=StepReason.NOTES, notes_added=7))
    last = shown.getvalue().rpartition("candidate")[2]
    for text in ("reject (gate)", "inconclusive", "<= 0.600", "accept (forced)", "slow", "accept (notes)", "+7"):
        assert text in last


def test_spans_go_to_a_file_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = tmp_path / "traces.jsonl"
    small = ("train.num_epochs=1", "train.steps_per_epoch=1", "evaluation.eval_test=false")
    command = ["train", TASK, "--out-root", str(tmp_path / "run"), "--traces", str(traces), "--cfg-options", *small]
    assert run(command) == 0
    names = {json.loads(line)["name"] for line in traces.read_text(encoding="utf-8").splitlines()}
    assert names >= {"mediator TrainSkill", "stage rollout", "stage reflect", "stage gate"}


SCORER = """
def score(prediction, item):
    return float("nan")
"""


def test_a_scorer_that_gives_no_number_ends_the_run_and_names_the_item(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for split in ("train", "val", "test"):
        (tmp_path / "items" / split).mkdir(parents=True)
        item = {"id": f"{split}-1", "question": "What?", "answer": "That."}
        (tmp_path / "items" / split / "items.jsonl").write_text(json.dumps(item) + "\n")
    (tmp_path / "checks.py").write_text(SCORER)
    (tmp_path / "rules.md").write_text('- When a ticket mentions "what", the queue is ABC.\n')
    (tmp_path / "task.yaml").write_text(
        "env: {split_dir: items, scorer: python, scorer_function: 'checks:score'}\n"
        "model: {target_backend: simulated, optimizer_backend: simulated, simulated: {knowledge: rules.md}}\n"
    )
    assert run(["train", str(tmp_path / "task.yaml"), "--out-root", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "skill_training.rollout.invalid_score" in error
    assert "val-1" in error or "train-1" in error


def test_quiet_training_prints_the_best_skills_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ("train.num_epochs=1", "train.steps_per_epoch=1", "evaluation.eval_test=false")
    assert run(["train", TASK, "--out-root", str(tmp_path / "run"), "--quiet", "--cfg-options", *small]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{tmp_path / 'run' / 'best_skill.md'}\n"
    assert captured.err == ""


def test_quiet_says_what_is_wrong_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "nothing.yaml", "-q"]) == 2
    assert capsys.readouterr().err.startswith("burnish: nothing.yaml: there is no such file")


def test_a_terminal_sees_the_steps_as_a_table_and_a_bar(tmp_path: Path) -> None:
    small = ("train.num_epochs=1", "train.steps_per_epoch=2", "evaluation.eval_test=false")
    with Terminal(["train", TASK, "--out-root", str(tmp_path / "run"), "--cfg-options", *small], cwd=tmp_path) as seen:
        assert seen.finish() == 0
    assert "2/2" in seen.plain
    assert "steps" in seen.plain
    assert re.search(r"[1-9][0-9]* rollouts asked", seen.plain)
    assert "accept_new_best" in seen.plain
    assert "  gate  " not in seen.plain, "no lines beside the table"


def test_a_terminal_sees_how_far_a_score_is(tmp_path: Path) -> None:
    with Terminal(["eval", TASK, "--split", "val"], cwd=tmp_path) as seen:
        assert seen.finish() == 0
    assert "/48" in seen.plain
    assert "val: hard 0.1250" in seen.plain


def test_a_terminal_sees_a_diff_in_colours_unless_it_asks_not_to(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n")
    (tmp_path / "b.md").write_text("two\x1b]0;owned\x07\n")
    with Terminal(["diff", "a.md", "b.md"], cwd=tmp_path) as seen:
        assert seen.finish() == 0
    assert "\x1b[31m-one" in seen.text
    assert "+two\\x1b]0;owned\\x07" in seen.text, "what a skill holds is not obeyed"
    with Terminal(["diff", "a.md", "b.md"], {"NO_COLOR": "1"}, cwd=tmp_path) as seen:
        assert seen.finish() == 0
    assert "\x1b[3" not in seen.text


def test_adopting_asks_at_a_terminal_and_no_is_no(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    small = ("train.num_epochs=1", "train.steps_per_epoch=2", "evaluation.eval_test=false")
    task = str(tmp_path / "task" / "task.yaml")
    assert run(["train", task, "--out-root", str(tmp_path / "run"), "-q", "--cfg-options", *small]) == 0
    before = (tmp_path / "task" / "skill.md").read_bytes()
    for line, told in (("n", "nothing was changed"), ("y", "the best skill of run")):
        with Terminal(["adopt", "run"], cwd=tmp_path) as seen:
            seen.expect("[y/N]: ")
            assert (tmp_path / "task" / "skill.md").read_bytes() == before
            seen.answer(line)
            assert seen.finish() == 0
        assert told in seen.plain
    assert (tmp_path / "task" / "skill.md").read_bytes() == (tmp_path / "run" / "best_skill.md").read_bytes()
