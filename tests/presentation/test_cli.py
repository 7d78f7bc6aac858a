"""The console: what it prints, its exit codes, what it refuses, and what it leaves on disk."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.presentation.cli import run

TASK = str(EXAMPLE / "task.yaml")
SMALL = ("train.num_epochs=1", "train.steps_per_epoch=2", "evaluation.eval_test=false")


def lines_of(folder: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def test_the_example_shows_every_kind_of_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--example", "skill-training"]) == 0
    out = capsys.readouterr().out
    assert out.count("epoch ") == 6
    for told in (
        "accepted, new best",
        "rejected",
        "target not found in current skill document",
        "slow update +1 improved",
        "memory",
        "has_accepted_any: true",
        "best score: 1.00",
        "best skill:",
    ):
        assert told in out


def test_an_unknown_example_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--example", "nothing"]) == 2
    assert capsys.readouterr().err == "burnish: --example: there is no example 'nothing': use skill-training\n"


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == "burnish 0.1.0\n"


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "train" in capsys.readouterr().out


def test_training_leaves_the_promised_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert run(["train", TASK, "--out-root", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "simulated models: these scores say nothing about any real model" in out
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "best_skill.md",
        "final_skill.md",
        "summary.json",
        "history.jsonl",
        "timing.json",
        "config.yaml",
        "log.jsonl",
        "burnish.db",
    }
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["simulated"] is True
    assert summary["test"]["initial"]["hard"] < 0.3
    assert summary["test"]["best"]["hard"] > 0.8
    assert summary["selected_score"] == summary["best_score"]
    assert len(lines_of(folder, "history.jsonl")) >= summary["steps_executed"]


def test_the_same_command_gives_the_same_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        assert run(["train", TASK, "--out-root", str(tmp_path / name), "--cfg-options", *SMALL]) == 0
    for name in ("best_skill.md", "final_skill.md", "history.jsonl", "summary.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_finished_run_is_not_trained_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", TASK, "--out-root", str(tmp_path), "--cfg-options", *SMALL]
    assert run(command) == 0
    before = (tmp_path / "summary.json").read_bytes()
    capsys.readouterr()
    assert run(command) == 0
    assert "rollout" not in capsys.readouterr().out
    assert (tmp_path / "summary.json").read_bytes() == before


def test_another_configuration_in_the_same_folder_is_refused_naming_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", TASK, "--out-root", str(tmp_path), "--cfg-options", *SMALL]) == 0
    before = (tmp_path / "config.yaml").read_bytes()
    capsys.readouterr()
    assert run(["train", TASK, "--out-root", str(tmp_path), "--cfg-options", *SMALL, "optimizer.learning_rate=5"]) == 75
    error = capsys.readouterr().err
    assert "skill_training.run.identity_mismatch" in error
    assert "optimizer.learning_rate" in error
    assert (tmp_path / "config.yaml").read_bytes() == before


def test_the_default_folder_is_named_after_the_task_and_fresh_takes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for extra in ([], ["--fresh"]):
        assert run(["train", TASK, *extra, "--cfg-options", *SMALL]) == 0
    folders = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(folders) == 2
    assert folders[0].startswith("ticket-routing-")
    assert folders[1] == f"{folders[0]}-2"


def test_machines_get_one_json_object_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", TASK, "--json", "--out-root", str(tmp_path), "--cfg-options", *SMALL]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "RunStarted"
    assert kinds[-1] == "Summary"
    assert kinds.count("StepFinished") == 2


def test_a_skill_can_be_scored_without_training(capsys: pytest.CaptureFixture[str]) -> None:
    rules = str(EXAMPLE / "house_rules.md")
    assert run(["eval", TASK, "--skill", rules, "--split", "val"]) == 0
    assert capsys.readouterr().out == "val: hard 1.0000, soft 1.0000 over 48 items\n"


def test_config_show_names_the_source_of_every_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", TASK, "--cfg-options", "train.seed=7"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "train.seed: 7  # --cfg-options" in lines
    assert any(line.startswith("env.scorer: exact_match  # ") and line.endswith("task.yaml") for line in lines)
    assert "train.accumulation: 1  # default" in lines


def test_config_check_says_when_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "check", "--config", TASK]) == 0
    assert capsys.readouterr().out.endswith("settings are right\n")


def copy_task(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    return tmp_path / "task"


BROKEN = {
    "no such task": ["train", "missing.yaml"],
    "no task at all": ["train"],
    "unknown key": ["train", TASK, "--cfg-options", "train.batchsize=3"],
    "wrong type": ["train", TASK, "--cfg-options", "train.batch_size=many"],
    "no value": ["train", TASK, "--cfg-options", "train.batch_size="],
    "unknown split": ["eval", TASK, "--split", "dev"],
    "bad run id": ["train", TASK, "--run-id", "a/b"],
    "missing skill": ["train", TASK, "--cfg-options", "env.skill_init=nothing.md"],
    "missing items": ["train", TASK, "--cfg-options", "env.split_dir=nothing"],
    "no endpoint": ["train", TASK, "--cfg-options", "model.target_backend=openai_compatible", "model.target=m"],
    "gate off": ["train", TASK, "--cfg-options", "evaluation.use_gate=false"],
    "unknown scorer": ["train", TASK, "--cfg-options", "env.scorer=magic"],
    "no knowledge": ["train", TASK, "--cfg-options", "model.simulated.knowledge=nothing.md"],
}


@pytest.mark.parametrize("arguments", BROKEN.values(), ids=BROKEN.keys())
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL", raising=False)
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("burnish: ")
    assert "Traceback" not in told.err
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").rglob("summary.json"))


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("skill.md", b"x" * 262_145, "262144"),
        ("skill.md", b"\xff\xfe", "UTF-8"),
        ("skill.md", b"<!-- LOCKED_START -->", "markers"),
        ("items/val/items.jsonl", b"", "val"),
        ("items/val/items.jsonl", b'{"id": "tr-001", "question": "q"}\n', "answer"),
        ("items/val/items.jsonl", b'{"id": "a", "question": "q", "answer": "x"}\n' * 2, "a"),
        ("task.yaml", b"env: &a [*a]\n", "task.yaml"),
        ("task.yaml", b"env: !!python/object:os.system {}\n", "task.yaml"),
        ("task.yaml", b"env: {name: \x00}\n", "task.yaml"),
        ("task.yaml", b"_base_: task.yaml\n", "task.yaml"),
    ],
)
def test_a_broken_file_is_named_with_its_fault(
    file: str, content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = copy_task(tmp_path)
    (task / file).write_bytes(content)
    assert run(["train", str(task / "task.yaml"), "--out-root", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    assert told in error
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(["train", TASK, "--out-root", str(tmp_path / "file")]) == 2
    assert "--out-root" in capsys.readouterr().err


def test_a_corrupt_database_is_a_clear_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "burnish.db").write_bytes(b"no database at all, whatever its name says" * 100)
    assert run(["train", TASK, "--out-root", str(tmp_path)]) == 69
    error = capsys.readouterr().err
    assert error.startswith("burnish: skill_training.store.unavailable")
    assert "Traceback" not in error


def test_a_task_with_windows_line_ends_and_a_byte_order_mark_works(tmp_path: Path) -> None:
    task = copy_task(tmp_path)
    for name in ("task.yaml", "items/train/items.jsonl"):
        text = (task / name).read_text(encoding="utf-8")
        (task / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    command = ["train", str(task / "task.yaml"), "--out-root", str(tmp_path / "out"), "--cfg-options", *SMALL]
    assert run(command) == 0


def test_the_audit_log_of_a_run_is_verified_and_a_cut_tail_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", TASK, "--out-root", str(tmp_path), "--cfg-options", *SMALL]) == 0
    capsys.readouterr()
    assert run(["audit", "verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("audit records, unbroken\n")
    with closing(sqlite3.connect(tmp_path / "burnish.db")) as connection:
        connection.execute("DELETE FROM audit WHERE sequence = (SELECT max(sequence) FROM audit)")
        connection.commit()
    assert run(["audit", "verify", str(tmp_path)]) == 70
    assert "the anchor counts" in capsys.readouterr().err


def test_an_altered_audit_record_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", TASK, "--out-root", str(tmp_path), "--cfg-options", *SMALL]) == 0
    with closing(sqlite3.connect(tmp_path / "burnish.db")) as connection:
        connection.execute("UPDATE audit SET outcome = 'ok?' WHERE sequence = 0")
        connection.commit()
    capsys.readouterr()
    assert run(["audit", "verify", str(tmp_path)]) == 70
    assert "record 0 was altered" in capsys.readouterr().err


def test_a_folder_without_a_run_has_no_audit_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "verify", str(tmp_path)]) == 2
    assert "is this a run folder?" in capsys.readouterr().err


def test_the_settings_reference_is_the_page_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "reference"]) == 0
    page = EXAMPLE.parent.parent / "docs" / "configuration.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8"), "write it anew: burnish config reference"


def test_changed_items_are_another_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = copy_task(tmp_path)
    command = ["train", str(task / "task.yaml"), "--out-root", str(tmp_path / "run"), "--cfg-options", *SMALL]
    assert run(command) == 0
    items = task / "items" / "val" / "items.jsonl"
    items.write_text(
        items.read_text(encoding="utf-8").replace('"question": "', '"question": "So: ', 1), encoding="utf-8"
    )
    capsys.readouterr()
    assert run(command) == 75
    assert "identity_mismatch" in (error := capsys.readouterr().err)
    assert "(items)" in error


def test_files_of_others_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "best_skill.md").write_text("mine")
    assert run(["train", TASK, "--out-root", str(tmp_path), "--cfg-options", *SMALL]) == 2
    assert "holds best_skill.md, which is no run's" in capsys.readouterr().err
    assert (tmp_path / "best_skill.md").read_text() == "mine"


@pytest.mark.parametrize(("option", "value"), [("--fresh", None), ("--run-id", "another")])
def test_a_folder_holds_one_run(
    option: str, value: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", TASK, "--out-root", str(tmp_path), "--cfg-options", *SMALL]
    assert run(command) == 0
    before = (tmp_path / "summary.json").read_bytes()
    assert run([*command[:2], option, *([value] if value else []), *command[2:]]) == 2
    assert "name another --out-root" in capsys.readouterr().err
    assert (tmp_path / "summary.json").read_bytes() == before


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    for named in (f"env.skill_init={tmp_path / 'fifo'}", "env.skill_init=/dev/zero"):
        assert run(["train", TASK, "--out-root", str(tmp_path / "run"), "--cfg-options", named]) == 2
        assert "is no regular file" in capsys.readouterr().err


def test_scoring_a_skill_needs_no_optimizer(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", TASK, "--split", "val", "--cfg-options", "model.simulated.knowledge=nothing.md"]) == 0
