"""`burnish runs import`: a run folder of a recording, from which training goes on; and what a recording carries."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.infrastructure.persistence.recording import Recording, read_recording, write_recording
from burnish.presentation.cli import run

TASK = str(EXAMPLE / "task.yaml")
SMALL = ("train.num_epochs=2", "train.steps_per_epoch=2", "evaluation.sel_env_num=10", "evaluation.test_env_num=5")
RESULTS = ("best_skill.md", "final_skill.md", "history.jsonl", "summary.json", "config.yaml")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert train(folder) == 0
    return folder


@pytest.fixture
def recording(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = tmp_path / "run.recording"
    assert run(["runs", "export", str(trained), "-o", str(file)]) == 0
    capsys.readouterr()
    return file


def train(folder: Path, *options: str) -> int:
    return run(["train", TASK, "--out-root", str(folder), "--cfg-options", *SMALL, *options])


def import_into(file: Path, folder: Path) -> int:
    return run(["runs", "import", str(file), "--out-root", str(folder)])


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("burnish: ")
    return line


def rewrite(file: Path, change: Callable[[Recording], Recording]) -> None:
    write_recording(file, change(read_recording(file)))


def test_training_goes_on_from_an_imported_run_and_ends_the_same(
    recording: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "imported"
    assert import_into(recording, folder) == 0
    run_id = json.loads((trained / "timing.json").read_text())["run_id"]
    assert capsys.readouterr().out.endswith(f" answers of run {run_id}\n")
    assert (folder / "config.yaml").read_bytes() == (trained / "config.yaml").read_bytes()
    assert train(folder) == 0
    for name in RESULTS:
        assert (folder / name).read_bytes() == (trained / name).read_bytes(), name
    again = tmp_path / "again.recording"
    assert run(["runs", "export", str(folder), "-o", str(again)]) == 0
    assert again.read_bytes() == recording.read_bytes()  # nothing was asked


def test_what_a_recording_lacks_is_asked_live(recording: Path, trained: Path, tmp_path: Path) -> None:
    rewrite(recording, lambda whole: Recording(about=whole.about, entries=whole.entries[::2]))
    assert import_into(recording, tmp_path / "imported") == 0
    assert train(tmp_path / "imported") == 0
    for name in RESULTS:
        assert (tmp_path / "imported" / name).read_bytes() == (trained / name).read_bytes(), name


def test_an_imported_run_exports_to_the_same_bytes(recording: Path, tmp_path: Path) -> None:
    assert import_into(recording, tmp_path / "imported") == 0
    assert run(["runs", "export", str(tmp_path / "imported"), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_bytes() == recording.read_bytes()


def test_a_recording_of_an_older_version_is_imported_and_trained_on(
    recording: Path, trained: Path, tmp_path: Path
) -> None:
    rewrite(recording, lambda now: Recording(about={"run_id": now.about["run_id"]}, entries=now.entries))
    folder = tmp_path / "imported"
    assert import_into(recording, folder) == 0
    assert not (folder / "config.yaml").exists()
    assert run(["runs", "export", str(folder), "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_bytes() == recording.read_bytes()
    assert train(folder) == 0
    assert (folder / "summary.json").read_bytes() == (trained / "summary.json").read_bytes()


def test_an_imported_run_is_listed_shown_and_deleted(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs" / "imported"
    assert import_into(recording, folder) == 0
    capsys.readouterr()
    assert run(["runs", "list", str(tmp_path / "runs")]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2:4] == ["ticket-routing", "unfinished"]
    assert run(["runs", "show", str(folder)]) == 0
    assert "task ticket-routing, unfinished, 0 steps" in capsys.readouterr().out
    assert run(["runs", "delete", str(folder), "--yes"]) == 0
    assert not folder.exists()


def test_an_imported_run_is_not_trained_with_other_settings(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_into(recording, tmp_path / "imported") == 0
    capsys.readouterr()
    assert train(tmp_path / "imported", "optimizer.learning_rate=5") == 75
    assert "optimizer.learning_rate" in capsys.readouterr().err


def test_an_imported_run_is_not_trained_under_another_id(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(recording, lambda now: Recording(about={"run_id": now.about["run_id"]}, entries=now.entries))
    assert import_into(recording, tmp_path / "imported") == 0
    capsys.readouterr()
    command = ["train", TASK, "--out-root", str(tmp_path / "imported"), "--run-id", "another", "--cfg-options", *SMALL]
    assert run(command) == 2
    assert "holds run" in refused(capsys)


def test_without_a_folder_an_import_goes_where_the_task_would_train(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["runs", "import", str(recording)]) == 0
    run_id = read_recording(recording).about["run_id"]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [run_id]
    assert run(["train", TASK, "--cfg-options", *SMALL]) == 0
    assert (tmp_path / "runs" / run_id / "summary.json").exists()
    capsys.readouterr()
    assert run(["runs", "import", str(recording)]) == 2
    assert "holds a run already" in refused(capsys)


def test_a_folder_with_other_files_stays_as_it_is(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    assert import_into(recording, tmp_path / "mine") == 2
    assert "name a new or an empty folder" in refused(capsys)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    assert import_into(recording, tmp_path / "mine" / "notes.txt") == 2
    assert "is no folder" in refused(capsys)


def test_an_empty_folder_is_used(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert import_into(recording, tmp_path / "empty") == 0
    assert (tmp_path / "empty" / "burnish.db").exists()


def packed(head: Mapping[str, object], *lines: str) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in (json.dumps(head), *lines)).encode(), mtime=0)


HEAD = {"format": "burnish-recording", "version": 1, "answers": 1, "about": {"run_id": "run-1"}}
ENTRY = json.dumps({"key": "k", "answer": "1", "is_error": False, "step": 0, "usage": []})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no such file"),
        (b"no gzip", "is no recording, or a damaged one"),
        (packed({"format": "tar"}), "is no recording of burnish"),
        (packed({**HEAD, "version": 9}, ENTRY), "is no recording this version of burnish reads"),
        (packed(HEAD), "holds 0 answers where it says 1"),
        (packed(HEAD, "{}"), "holds an answer that cannot be read"),
        (packed({**HEAD, "about": {}}, ENTRY), "names no run"),
        (packed({**HEAD, "about": {"run_id": "../up"}}, ENTRY), "names no run"),
        (packed({**HEAD, "about": {"run_id": "r", "identity": "[]"}}, ENTRY), "says of its run what cannot be read"),
        (packed({**HEAD, "about": {"run_id": "r", "task": "a\nb"}}, ENTRY), "says of its run what cannot be read"),
    ],
)
def test_a_damaged_file_is_refused_and_nothing_is_made(
    content: bytes | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.recording"
    if content is not None:
        file.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    assert import_into(file, tmp_path / "runs" / "imported") == 2
    assert told in refused(capsys)
    assert sorted(tmp_path.iterdir()) == before


def test_an_import_that_cannot_be_written_leaves_nothing(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    assert import_into(recording, tmp_path / "file" / "runs" / "imported") == 2
    assert "--out-root" in refused(capsys)


def test_the_current_folder_and_a_database_elsewhere_are_refused(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_into(recording, Path()) == 2
    assert "names the current folder" in refused(capsys)
    monkeypatch.setenv("BURNISH_DATABASE_URL", "postgresql+asyncpg://localhost/burnish")
    assert import_into(recording, tmp_path / "imported") == 2
    assert "BURNISH_DATABASE_URL" in refused(capsys)
    assert not (tmp_path / "imported").exists()


def test_an_answer_may_hold_any_sign_that_ends_a_line_elsewhere(recording: Path) -> None:
    (first, *others) = read_recording(recording).entries
    odd = type(first)(key=first.key, answer=json.dumps("a\u2028b\u0085c\u2029d", ensure_ascii=False))
    rewrite(recording, lambda whole: Recording(about=whole.about, entries=(odd, *others)))
    assert read_recording(recording).entries == (odd, *others)
