"""docs/data.md and docs/scorers.md say what is true: their files and commands give what they show, their tables hold."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest
from installed_packages import install

from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.plugins import SCORERS, TASKS
from burnish.infrastructure.tasks.scorers import load_scorer
from burnish.infrastructure.tasks.task_package import read_package_items
from burnish.presentation.cli import run

DOCS = Path(__file__).parent.parent.parent / "docs"
BLOCK = re.compile(r"```(\w+)(?: (\S+))?\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Language, file name and text of each block."""
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [(language, name, text) for language, name, text in found]


def _table(page: str) -> list[list[str]]:
    """The cells of the rows below the header with the agent's text."""
    text = (DOCS / page).read_text(encoding="utf-8").partition("| the agent writes |")[2]
    rows = text.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("page", ["data.md", "scorers.md"])
def test_the_commands_of_a_page_say_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for language, name, text in blocks(page):
        if name:
            Path(name).write_text(text, encoding="utf-8")
        elif language == "console":
            command, *shown = text.splitlines()
            capsys.readouterr()
            run(shlex.split(command.removeprefix("$ burnish ")))
            told = capsys.readouterr()
            said = (told.out + told.err).replace(f"{tmp_path}/", "").splitlines()
            assert said == shown, command
            commands += 1
    assert commands


@pytest.mark.parametrize("row", _table("scorers.md"), ids=lambda row: " ".join(row[:3]))
def test_the_table_of_scores_holds(row: list[str]) -> None:
    name, right, answer, hard, soft, reason = row
    scorer = load_scorer(name.strip("`"), DOCS)
    score = scorer(scorer.extract(answer.strip("`")), Item("a", "Q?", (right.strip("`"),)))
    assert (score.hard, round(score.soft, 6), score.reason) == (float(hard), float(soft), reason)


def _source(page: str, name: str) -> str:
    return next(text for _, block, text in blocks(page) if block == name)


def test_the_function_of_the_page_is_a_scorer(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(_source("scorers.md", "checks.py"), encoding="utf-8")
    score = load_scorer("checks:score", tmp_path)(
        "one two three four five six seven eight nine ten", Item("a", "Q?", ())
    )
    assert (score.hard, score.soft, score.reason) == (0.0, 0.5, "10 words, and 5 are enough")


def test_the_package_of_the_page_brings_a_scorer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = _source("scorers.md", "my_package.py")
    install(tmp_path, monkeypatch, "my_package", source, {SCORERS: {"brevity": "my_package:brevity"}})
    scorer = load_scorer("brevity", tmp_path)
    assert scorer is importlib.import_module("my_package").brevity
    assert scorer("short enough", Item("a", "Q?", ())).hard == 1.0


def test_the_package_of_the_page_brings_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = next(text for language, _, text in blocks("data.md") if language == "python")
    install(tmp_path, monkeypatch, "sums_package", source, {TASKS: {"sums": "sums_package:sums"}})
    splits = read_package_items("sums", seed=42)
    assert [len(splits.named(split)) for split in ("train", "val", "test")] == [20, 10, 70]
