"""`burnish init`: from data and three questions, or flags, to a folder that trains; and a package that installs."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_server import Body, Reply, ScriptedServer, completion
from terminals import Terminal

from burnish.presentation.cli import run

SERVER = ("--endpoint", "http://127.0.0.1:9/v1", "--model", "some-model")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL", raising=False)
    monkeypatch.setattr("sys.stdin", None)
    return tmp_path


def write_csv(path: Path, rows: int = 40, heads: tuple[str, str] = ("ticket", "code")) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        writer.writerows([f"Ticket {number}, please", f"A{number % 4}"] for number in range(rows))
    return path


def write_lines(path: Path, rows: int = 12) -> Path:
    records = [{"id": f"i{number}", "question": f"{number}?", "answer": str(number)} for number in range(rows)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("burnish: ")
    assert len(captured.err.splitlines()) == 1, captured.err
    return captured.err


def obliging(body: Body) -> Reply:
    return completion('{"edits": []}' if "response_format" in body else "A1")


def test_a_table_and_a_server_become_a_trained_skill_in_two_commands(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "tickets.csv")
    with ScriptedServer(obliging) as server:
        asked = ["--endpoint", server.base_url, "--model", "m"]
        assert run(["init", "--data", "tickets.csv", "--question", "ticket", "--answer", "code", *asked]) == 0
        out = capsys.readouterr().out
        assert out.splitlines()[0].startswith("tickets: 40 items, scorer exact_match")
        assert "burnish train tickets/task.yaml" in out
        assert run(["train", "tickets/task.yaml", "--out-root", "run", "--num_epochs", "1"]) in {0, 69}
    assert {request.body["model"] for request in server.requests} == {"m"}
    assert (here / "run" / "best_skill.md").read_text() == (here / "tickets" / "SKILL.md").read_text()


def test_what_is_made_is_right_and_says_where_the_server_is_but_no_key(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-planted-secret")
    write_lines(here / "sums.jsonl")
    assert run(["init", "made", "--data", "sums.jsonl", *SERVER]) == 0
    names = {path.name for path in (here / "made").iterdir()}
    assert names == {"task.yaml", "SKILL.md", "README.md", ".gitignore", ".env", "sums.jsonl"}
    assert (here / "made" / "sums.jsonl").read_bytes() == (here / "sums.jsonl").read_bytes()
    assert not any(b"sk-planted-secret" in path.read_bytes() for path in (here / "made").iterdir())
    assert stat.S_IMODE((here / "made" / ".env").stat().st_mode) == 0o600, "somebody will put a key into it"
    assert "OPENAI_COMPATIBLE_BASE_URL=http://127.0.0.1:9/v1\n" in (here / "made" / ".env").read_text()
    assert ".env\n" in (here / "made" / ".gitignore").read_text()
    capsys.readouterr()
    assert run(["config", "show", "made/task.yaml"]) == 0
    shown = capsys.readouterr().out
    for line in ("env.name: made", "env.scorer: numeric", "model.target: some-model", "train.batch_size: 4"):
        assert f"{line}  # made/task.yaml" in shown
    assert run(["estimate", "made/task.yaml"]) == 0


def test_without_a_server_it_is_openai_or_the_one_of_the_environment(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(here / "sums.jsonl")
    assert run(["init", "one", "--data", "sums.jsonl"]) == 0
    assert "target_backend: openai_chat" in (here / "one" / "task.yaml").read_text()
    assert not (here / "one" / ".env").exists()
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    assert run(["init", "two", "--data", "sums.jsonl"]) == 0
    assert "target_backend: openai_compatible" in (here / "two" / "task.yaml").read_text()


def test_a_folder_of_splits_is_taken_as_it_is_or_where_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split in ("train", "val", "test"):
        (here / "splits" / split).mkdir(parents=True)
        file = write_lines(here / "splits" / split / "items.jsonl", 4)
        file.write_text(file.read_text().replace(': "i', f': "{split}-'))
    assert run(["init", "copied", "--data", "splits", *SERVER]) == 0
    assert (here / "copied" / "splits" / "val" / "items.jsonl").exists()
    assert run(["init", "referring", "--data", "splits", "--no-copy", *SERVER]) == 0
    assert "split_dir: ../splits" in (here / "referring" / "task.yaml").read_text().replace('"', "")
    assert run(["doctor", "referring/task.yaml", "--offline"]) == 0


@pytest.mark.parametrize(
    ("answers", "scorer"),
    [(["1", "2.5", "3,000", "4 %"], "numeric"), (["yes", "no", "so so", "A 1"], "exact_match")],
)
def test_the_likely_scorer_is_taken_when_nobody_says_which(
    answers: list[str], scorer: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [{"id": str(at), "question": "q?", "answer": answer} for at, answer in enumerate(answers)]
    (here / "data.json").write_text(json.dumps(records))
    assert run(["init", "made", "--data", "data.json", *SERVER]) == 0
    assert f"scorer: {scorer}\n" in (here / "made" / "task.yaml").read_text()


def test_long_answers_are_compared_by_their_words(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "the quick brown fox jumps"
    (here / "data.json").write_text(json.dumps([{"id": n, "question": "q", "answer": long} for n in range(5)]))
    assert run(["init", "made", "--data", "data.json", *SERVER]) == 0
    assert "scorer: f1\n" in (here / "made" / "task.yaml").read_text()


BROKEN: dict[str, tuple[list[str], str]] = {
    "nobody to ask": ([], "--data: is not given, and nobody can be asked here"),
    "no such file": (["--data", "nothing.csv"], "nothing.csv: there is no such file"),
    "no data file": (["--data", "notes.txt"], "is no .jsonl, .json, .csv or .tsv file"),
    "an empty file": (["--data", "empty.csv"], "holds no records"),
    "no JSON": (["--data", "bad.jsonl"], "cannot be read as jsonl"),
    "deeply nested": (["--data", "deep.json"], "cannot be read as json"),
    "no UTF-8": (["--data", "latin.csv"], "is not UTF-8"),
    "a folder of other things": (["--data", "folder"], "is a folder without train/"),
    "an unknown field": (["--data", "good.csv", "--question", "q"], "--question: there is no field 'q'"),
    "an unknown answer": (["--data", "good.csv", "--answer", "a"], "--answer: there is no field 'a'"),
    "an unknown scorer": (["--data", "good.csv", "--scorer", "magic", *SERVER], "burnish: --scorer: "),
    "no address": (["--data", "good.csv", "--endpoint", "localhost"], "--endpoint: must be a server's address"),
    "a secret in the address": (["--data", "good.csv", "--endpoint", "http://a:sk-planted@b/v1"], "no user, password"),
    "no model": (["--data", "good.csv", "--endpoint", "http://b/v1"], "--model: is not given"),
    "a bad model": (["--data", "good.csv", "--model", " m"], "--model: must be a model's name"),
    "too few items": (["--data", "few.csv", *SERVER], "has 3 items"),
    "an item without an answer": (["--data", "holes.jsonl", *SERVER], "holes.jsonl line 2"),
    "a package and data": (["--task-package", "my-task", "--data", "good.csv"], "leave --data out"),
    "a package's bad name": (["--task-package", "../My Task"], "use small letters, digits and single hyphens"),
    "the current folder": ([".", "--data", "good.csv", *SERVER], "names the current folder"),
}


@pytest.mark.parametrize(("arguments", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_what_cannot_be_used_is_one_line_and_leaves_nothing(
    arguments: list[str], told: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(here / "good.csv")
    write_csv(here / "few.csv", rows=3)
    (here / "notes.txt").write_text("x")
    (here / "empty.csv").write_text("")
    (here / "bad.jsonl").write_text("{")
    (here / "deep.json").write_text("[" * 100_000)
    (here / "latin.csv").write_bytes(b"a,b\n\xff,\xfe\n")
    (here / "folder").mkdir()
    write_lines(here / "holes.jsonl")
    lines = (here / "holes.jsonl").read_text().splitlines()
    lines[1] = '{"id": "x", "question": "no answer"}'
    (here / "holes.jsonl").write_text("\n".join(lines))
    before = sorted(here.rglob("*"))
    assert run(["init", *arguments]) == 2
    error = refused(capsys)
    assert told in error
    assert "sk-planted" not in error
    assert sorted(here.rglob("*")) == before


def test_nothing_is_overwritten(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(here / "good.csv")
    (here / "good").mkdir()
    (here / "good" / "SKILL.md").write_text("mine")
    assert run(["init", "--data", "good.csv", *SERVER]) == 2
    assert "holds files already" in refused(capsys)
    assert (here / "good" / "SKILL.md").read_text() == "mine"


def test_at_a_terminal_it_asks_three_questions(here: Path) -> None:
    write_csv(here / "tickets.csv")
    with Terminal(["init"], cwd=here) as terminal:
        terminal.expect("1/3  Which file holds the questions and answers?")
        terminal.answer("nothing.csv")
        terminal.expect("there is no such file")
        terminal.answer("tickets.csv")
        terminal.expect("2/3  Which field is the question? [ticket]")
        terminal.answer("tikcet")
        terminal.expect("there is no field 'tikcet': there are 'ticket', 'code'")
        terminal.answer("")
        terminal.expect("Which field is the answer? [code]")
        terminal.answer("")
        terminal.expect("Which scorer judges it? [exact_match]")
        terminal.answer("")
        terminal.expect("3/3  Where is the server")
        terminal.answer("localhost")
        terminal.expect("must be a server's address")
        terminal.answer("http://127.0.0.1:9/v1")
        terminal.expect("Which model?")
        terminal.answer("some-model")
        assert terminal.finish() == 0
    assert "next: burnish doctor tickets/task.yaml" in terminal.plain
    assert run(["config", "check", "tickets/task.yaml"]) == 0


def test_ctrl_c_at_a_question_leaves_nothing(here: Path) -> None:
    with Terminal(["init"], cwd=here) as terminal:
        terminal.expect("questions and answers?: ")
        assert terminal.end_by_ctrl_c() == 130
    assert "burnish: interrupted; nothing was done" in terminal.plain
    assert "Traceback" not in terminal.plain
    assert list(here.iterdir()) == []


def test_a_package_installs_and_its_tests_pass(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--task-package", "my-task"]) == 0
    assert capsys.readouterr().out.startswith("my-task: 9 files")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    quiet = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    subprocess.run([*pip, "--target", str(here / "site"), str(here / "my-task")], check=True, env=quiet, timeout=120)
    environ = {**os.environ, "PYTHONPATH": str(here / "site")}
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(here / "my-task"), "tests"],
        cwd=here / "my-task",
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "4 passed" in tested.stdout
    search = os.pathsep.join([str(here / "site"), *filter(None, sys.path)])
    looked = subprocess.run(
        [sys.executable, "-m", "burnish", "doctor", "my-task/task.yaml", "--offline"],
        cwd=here,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert "6 train, 3 val, 3 test items" in looked.stdout
