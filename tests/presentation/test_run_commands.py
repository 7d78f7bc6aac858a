"""`burnish runs`: what it lists, shows and deletes, and what it refuses."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.infrastructure.persistence.locks import FileLocks
from burnish.presentation.cli import run

SMALL = ("train.num_epochs=1", "train.steps_per_epoch=2", "evaluation.eval_test=false")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert run(["train", str(EXAMPLE / "task.yaml"), "--out-root", str(folder), "--cfg-options", *SMALL]) == 0
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> Path:
    """A directory with two runs, of which the second was killed and has nothing but its database, and other things."""
    runs = tmp_path / "runs"
    shutil.copytree(trained, runs / "ended")
    shutil.copytree(trained, runs / "killed")
    for name in ("summary.json", "history.jsonl", "timing.json"):
        (runs / "killed" / name).unlink()
    (runs / "notes").mkdir()
    (runs / "notes" / "config.yaml").write_text("mine: true\n")
    (runs / "notes.txt").write_text("not a folder\n")
    return runs


def set_timing(folder: Path, **changes: object) -> None:
    file = folder / "timing.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("burnish: ")
    assert len(captured.err.splitlines()) == 1, captured.err
    return captured.err


def test_runs_are_listed_with_their_scores_and_nothing_else_is(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "list", str(runs)]) == 0
    heads, ended, killed = told(capsys)
    summary = json.loads((runs / "ended" / "summary.json").read_text())
    assert heads.split() == ["folder", "run", "task", "ended", "start", "selected", "steps"]
    scores = [f"{summary['baseline_score']:.4f}", f"{summary['selected_score']:.4f}", "2"]
    assert ended.split() == ["ended", summary["run_id"], "ticket-routing", "completed", *scores]
    assert killed.split() == ["killed", "-", "-", "unfinished", "-", "-", "-"]


def test_machines_get_an_object_a_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "list", str(runs), "--json"]) == 0
    ended, killed = (json.loads(line) for line in told(capsys))
    summary = json.loads((runs / "ended" / "summary.json").read_text())
    for name in ("run_id", "task", "stop_reason", "baseline_score", "selected_score"):
        assert ended[name] == summary[name], name
    assert ended["steps"] == summary["steps_executed"]
    assert killed["stop_reason"] == "unfinished"
    assert killed["run_id"] is None


def test_runs_are_listed_by_the_time_they_were_started(
    runs: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained, runs / "a")
    set_timing(runs / "a", started_at="2100-01-01T00:00:00+00:00")
    assert run(["runs", "list", str(runs)]) == 0
    assert [line.split()[0] for line in told(capsys)] == ["folder", "ended", "a", "killed"]


def test_a_run_that_is_going_on_again_is_unfinished(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_timing(runs / "ended", ended_at=None)
    assert run(["runs", "list", str(runs), "--json"]) == 0
    assert json.loads(told(capsys)[0])["stop_reason"] == "unfinished"


def test_the_default_directory_is_runs(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs.parent)
    assert run(["runs", "list"]) == 0
    assert len(told(capsys)) == 3


def test_without_any_run_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["runs", "list"]) == 0
    assert told(capsys) == ["no runs in runs"]
    assert run(["runs", "list", str(tmp_path)]) == 0
    assert told(capsys) == [f"no runs in {tmp_path}"]
    assert run(["runs", "list", "--json"]) == 0
    assert told(capsys) == []


def test_a_damaged_summary_spoils_no_other_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "killed" / "summary.json").write_text("{")
    assert run(["runs", "list", str(runs)]) == 0
    _, ended, damaged = told(capsys)
    assert "completed" in ended
    assert "unreadable" in damaged
    assert run(["runs", "show", str(runs / "killed")]) == 0
    assert "unreadable" in told(capsys)[0]


def test_a_run_is_shown_with_a_line_for_each_step(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "show", str(runs / "ended")]) == 0
    first, scores, _, heads, *steps = told(capsys)
    assert first.startswith("run ticket-routing-")
    assert first.endswith(": task ticket-routing, completed, 2 steps")
    assert scores.startswith("validation: 0.")
    assert heads.split() == ["step", "epoch", "decision", "reason", "candidate", "against", "edits", "characters"]
    assert [step.split()[0] for step in steps] == ["1", "2"]
    assert "accepted, new best" in steps[0]


def test_machines_get_the_summary_and_the_records(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "show", str(runs / "ended"), "--json"]) == 0
    (line,) = told(capsys)
    shown = json.loads(line)
    assert shown["summary"] == json.loads((runs / "ended" / "summary.json").read_text())
    history = (runs / "ended" / "history.jsonl").read_text().splitlines()
    assert shown["records"] == [json.loads(record) for record in history]
    assert shown["stop_reason"] == "completed"


def test_of_an_unfinished_run_its_database_tells_how_far_it_came(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runs", "show", str(runs / "killed"), "--json"]) == 0
    shown = json.loads(told(capsys)[0])
    ended = json.loads((runs / "ended" / "summary.json").read_text())
    assert shown["stop_reason"] == "unfinished"
    assert shown["summary"] is None
    assert shown["run_id"] == ended["run_id"]
    assert shown["selected_score"] == ended["selected_score"]
    assert [record["step"] for record in shown["records"]] == [1, 2]


def test_a_failed_runs_code_is_shown(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = runs / "ended" / "summary.json"
    changes = {"stop_reason": "failed", "code": "skill_training.run.inconclusive", "warnings": ["constant_scores"]}
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    assert run(["runs", "show", str(runs / "ended")]) == 0
    lines = told(capsys)
    assert lines[1] == "failure: skill_training.run.inconclusive"
    assert lines[3] == "warning: constant_scores"


def test_a_run_is_deleted_with_its_folder(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "ended" / ".summary.json.a1b2c3_d").write_text("what a killed process left half written")
    assert run(["runs", "delete", str(runs / "ended"), "--yes"]) == 0
    assert told(capsys)[0].startswith(f"deleted {runs / 'ended'}: ")
    assert not (runs / "ended").exists()
    assert (runs / "killed" / "burnish.db").exists()


def test_what_burnish_did_not_write_stays(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = runs / "ended"
    for name in ("mine.md", "burnish.db.bak", ".summary.json.mine"):
        (folder / name).write_text("mine")
    (folder / "best_skill.md").unlink()
    (folder / "best_skill.md").mkdir()
    (folder / "best_skill.md" / "summary.json").write_text("mine")
    assert run(["runs", "delete", str(folder), "--yes"]) == 0
    assert told(capsys)[1] == (
        "the folder stays, it holds other files: .summary.json.mine, best_skill.md, burnish.db.bak, mine.md"
    )
    left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert left == {".summary.json.mine", "best_skill.md", "best_skill.md/summary.json", "burnish.db.bak", "mine.md"}
    assert run(["runs", "delete", str(folder), "--yes"]) == 66


def test_a_linked_file_goes_and_what_it_leads_to_stays(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").write_text("mine")
    (runs / "ended" / "best_skill.md").unlink()
    (runs / "ended" / "best_skill.md").symlink_to(tmp_path / "elsewhere.md")
    assert run(["runs", "delete", str(runs / "ended"), "--yes"]) == 0
    assert not (runs / "ended").exists()
    assert (tmp_path / "elsewhere.md").read_text() == "mine"


def test_a_run_with_a_corrupt_database_can_be_deleted(runs: Path) -> None:
    (runs / "ended" / "burnish.db").write_bytes(b"no database at all" * 100)
    assert run(["runs", "delete", str(runs / "ended"), "--yes"]) == 0
    assert not (runs / "ended").exists()


@pytest.fixture
def being_trained(runs: Path) -> Iterator[Path]:
    folder = runs / "ended"
    run_id = json.loads((folder / "timing.json").read_text())["run_id"]
    locks = FileLocks(folder / "burnish.db")
    assert asyncio.run(locks.acquire(run_id))
    yield folder
    asyncio.run(locks.release_all())


def test_a_run_that_is_being_trained_is_not_deleted(being_trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in being_trained.iterdir())
    assert run(["runs", "delete", str(being_trained), "--yes"]) == 75
    assert "skill_training.run.already_active" in refused(capsys)
    assert sorted(path.name for path in being_trained.iterdir()) == before


def test_nobody_to_ask_and_no_yes_deletes_nothing(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(["runs", "delete", str(runs / "ended")]) == 2
    assert "--yes" in refused(capsys)
    assert (runs / "ended" / "summary.json").exists()


class Terminal(io.StringIO):
    """A terminal at which somebody has typed something."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "is_there"), [("n\n", True), ("\n", True), ("y\n", False)])
def test_on_a_terminal_it_asks(
    answer: str,
    is_there: bool,  # noqa: FBT001
    runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert run(["runs", "delete", str(runs / "ended")]) == 0
    out = capsys.readouterr().out
    assert f"(completed) in {runs / 'ended'}?" in out
    assert ("nothing was deleted" in out) is is_there
    assert (runs / "ended").exists() is is_there


def test_a_link_to_a_run_folder_is_not_followed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / "link").symlink_to(runs / "ended")
    assert run(["runs", "delete", str(runs / "link"), "--yes"]) == 2
    assert "is a link" in refused(capsys)
    assert (runs / "ended" / "summary.json").exists()


REFUSED = {
    "list: no directory": (["list", "{runs}/none"], 66, "does not exist"),
    "list: a file": (["list", "{runs}/notes.txt"], 66, "is not a directory"),
    "list: a run folder": (["list", "{runs}/ended"], 2, "is a run folder itself"),
    "show: nothing there": (["show", "{runs}/none"], 66, "does not exist"),
    "show: no run": (["show", "{runs}/notes"], 66, "is not a run folder"),
    "show: a file": (["show", "{runs}/notes.txt"], 66, "is not a run folder"),
    "delete: nothing there": (["delete", "{runs}/none", "--yes"], 66, "does not exist"),
    "delete: no run": (["delete", "{runs}/notes", "--yes"], 66, "is not a run folder"),
    "delete: their directory": (["delete", "{runs}", "--yes"], 66, "is not a run folder"),
}


@pytest.mark.parametrize(("arguments", "status", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_one_line_with_the_exit_code_of_its_kind(
    arguments: list[str], status: int, reason: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(runs.rglob("*"))
    assert run(["runs", *(argument.format(runs=runs) for argument in arguments)]) == status
    assert reason in refused(capsys)
    assert sorted(runs.rglob("*")) == before


@pytest.mark.parametrize(
    ("file", "content", "status", "reason"),
    [
        ("ended/history.jsonl", b'{"step": 1}\n', 2, "line 1: is not the record of a step"),
        ("ended/history.jsonl", b"\xff", 2, "UTF-8"),
        ("killed/burnish.db", b"no database at all" * 100, 69, "skill_training.store.unavailable"),
    ],
)
def test_a_damaged_run_is_named_with_its_fault(
    file: str, content: bytes, status: int, reason: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / file).write_bytes(content)
    assert run(["runs", "show", str((runs / file).parent)]) == status
    assert reason in refused(capsys)


def test_a_run_in_its_folder_is_not_looked_for_on_a_server(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BURNISH_DATABASE_URL", "postgresql+asyncpg://ada:planted-pw@127.0.0.1:1/db")
    for command in ("show", "delete"):
        folder = runs / ("killed" if command == "show" else "ended")
        assert run(["runs", command, str(folder), *(["--yes"] if command == "delete" else [])]) == 2
        assert "is kept in its burnish.db: unset it" in refused(capsys)
