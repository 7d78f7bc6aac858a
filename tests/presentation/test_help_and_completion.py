"""Help texts, the command reference, and what the shell is offered."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from console_training import start
from ticket_server import EXAMPLE
from typer.main import get_command

from burnish.presentation.cli import app, run
from burnish.presentation.completion import complete_runs, complete_tasks
from burnish.presentation.help_texts import commands_of

COMMANDS = [words.split()[1:] for words, _ in commands_of(get_command(app))]
PAGE = EXAMPLE.parent.parent / "docs" / "console.md"


@pytest.mark.parametrize("command", COMMANDS, ids=map(" ".join, COMMANDS))
def test_every_help_ends_with_an_example_that_is_a_command(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--help"]) == 0
    last = capsys.readouterr().out.rstrip().splitlines()[-1].strip()
    assert last.startswith(f"Example: {' '.join(['burnish', *command])}".rstrip())
    words = last.removeprefix("Example: burnish ").split(" > ")[0].split()
    known = [each for each in COMMANDS if each == words[: len(each)] and each]
    assert known, f"no command begins like that: {last}"
    options = {word for word in words if word.startswith("--")}
    assert run([*max(known, key=len), "--help"]) == 0
    assert options <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_the_promised_commands_are_there() -> None:
    there = {command[0] for command in COMMANDS if command}
    assert there >= {"init", "train", "eval", "config", "runs", "show", "diff", "adopt", "doctor", "estimate", "replay"}


def test_the_page_in_the_docs_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "commands"]) == 0
    assert capsys.readouterr().out == PAGE.read_text(encoding="utf-8"), "write it anew: burnish config commands"


def test_the_page_is_about_every_command() -> None:
    heads = re.findall(r"^## burnish ?(.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    groups = {"audit", "config", "runs"}
    assert heads == [words for words in map(" ".join, COMMANDS) if words not in groups]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "tickets")
    for name in ("demo", "other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "timing.json").write_text("{}")
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "task.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("typed", ["", "ex", "examples/", "examples/tick", "./ex"])
def test_task_files_are_offered_wherever_they_are(typed: str, here: Path) -> None:
    dot = "./" if typed.startswith("./") else ""
    assert complete_tasks(typed) == [f"{dot}examples/tickets/task.yaml"]


def test_run_folders_are_offered_and_other_folders_are_not(here: Path) -> None:
    assert complete_runs("") == ["runs/demo", "runs/other"]
    assert complete_runs("runs/d") == ["runs/demo"]
    assert complete_runs(str(here / "runs" / "o")) == [str(here / "runs" / "other")]


def test_nothing_is_offered_where_nothing_is(here: Path) -> None:
    assert complete_tasks("nowhere/") == []
    assert complete_runs("examples/tickets/task.yaml/") == []


def offered(line: str, here: Path, shell: str = "bash") -> list[str]:
    words = line.split(" ")
    environ = {
        "_BURNISH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
    }
    with start([], environ, cwd=here) as process:
        out, error = process.communicate(timeout=60)
    assert error == ""
    return out.split()


def test_bash_is_offered_commands_options_and_files(here: Path) -> None:
    assert offered("burnish est", here) == ["estimate"]
    assert offered("burnish runs d", here) == ["delete"]
    assert "--quiet" in offered("burnish train --q", here)
    assert offered("burnish train ex", here) == ["examples/tickets/task.yaml"]
    assert offered("burnish doctor ", here) == ["examples/tickets/task.yaml"]
    assert offered("burnish runs show runs/", here) == ["runs/demo", "runs/other"]
    assert offered("burnish adopt runs/d", here) == ["runs/demo"]


def test_zsh_and_fish_are_offered_the_same(here: Path) -> None:
    assert any("estimate" in word for word in offered("burnish est", here, "zsh"))
