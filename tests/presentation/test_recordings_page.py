"""docs/recordings.md says what is true: its commands end well, one after another, and say what is shown of them.

Lines with numbers are an example's: they change with the simulated models.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from burnish.presentation.cli import run

ROOT = Path(__file__).parent.parent.parent
CUT = "[…]"


def commands() -> list[tuple[str, list[str]]]:
    """Each command of the page, and the lines shown below it."""
    text = (ROOT / "docs" / "recordings.md").read_text(encoding="utf-8")
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ burnish "):
                found.append((line.removeprefix("$ burnish "), []))
            else:
                found[-1][1].append(line)
    return found


def _flat(text: str) -> str:
    """The text whatever the width of a table's columns."""
    return " ".join(text.split())


def test_the_commands_of_the_page_say_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for command, shown in commands():
        capsys.readouterr()
        assert run(shlex.split(command)) == 0, command
        said = _flat(capsys.readouterr().out)
        for line in shown:
            for part in () if re.search(r"\d", line) else line.split(CUT):
                assert _flat(part) in said, f"{command}: does not say {part!r}, but:\n{said}"
