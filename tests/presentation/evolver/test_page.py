"""docs/evolver.md says what is true: its host runs and prints what is shown, its table holds the parameters."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from burnish.presentation.evolver import EvolverParameters, decisions
from burnish.presentation.settings.yaml_text import read_document

PAGE = Path(__file__).parents[3] / "docs" / "evolver.md"


def block(name: str) -> str:
    """The fenced block behind a comment."""
    match = re.search(rf"<!-- {name} -->\n```\w*\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert match is not None
    return match.group(1)


def test_host_of_the_page_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block("host"), str(PAGE), "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == block("printed")


def test_table_holds_every_parameter_with_its_default() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Parameters")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", section, flags=re.MULTILINE)
    assert {name: read_document(default.strip("`")) for name, default in rows} == EvolverParameters().model_dump()


def test_page_names_every_way_a_call_can_end() -> None:
    told = PAGE.read_text(encoding="utf-8").partition("## What the report says")[2]
    titles = [value for name, value in vars(decisions).items() if name.isupper() and isinstance(value, str)]
    assert len(titles) == 13
    for title in titles:
        assert title.removeprefix("Taken without a gate") in told
