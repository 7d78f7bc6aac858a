"""The README says what is true: its example is the real output, its code runs, its table is the catalogue."""

from __future__ import annotations

import asyncio
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from burnish.application.result import ErrorCode, ErrorKind
from burnish.presentation.example import run_example
from burnish.presentation.failure_reference import failure_reference

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def text() -> str:
    return README.read_text(encoding="utf-8")


def block(before: str) -> str:
    """The fenced block behind a comment."""
    match = re.search(re.escape(before) + r"\n```\w*\n(.*?)```", text(), flags=re.DOTALL)
    assert match is not None, f"no block behind {before}"
    return match.group(1)


def test_the_example_in_the_readme_is_the_real_output() -> None:
    lines: list[str] = []
    asyncio.run(run_example(lines.append))
    shown = block("<!-- example: burnish --example skill-training -->").splitlines()
    assert shown[0] == "$ burnish --example skill-training"
    parts = "\n".join(shown[1:]).split("\n[…]\n")
    assert len(parts) > 1
    real = "\n".join(lines)
    at = 0
    for part in parts:
        found = real.find(part.strip("\n"), at)
        assert found >= 0, f"not in the real output, or out of order:\n{part}"
        at = found + len(part)
    assert real.startswith(parts[0])


def test_the_embedding_example_runs() -> None:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block("<!-- embedding -->"), "README.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == "# Refund mails\n\n- Ask for the order number.\n"


def test_the_table_of_kinds_is_the_catalogue() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \|$", text(), flags=re.MULTILINE)
    assert rows == [(kind.value, str(kind.exit_code), str(kind.http_status)) for kind in ErrorKind]


def test_the_page_of_failure_codes_is_printed_from_the_catalogue() -> None:
    page = Path("docs/failures.md").read_text(encoding="utf-8")
    assert page == failure_reference()
    for code in ErrorCode:
        assert f"| `{code.value}` | {code.kind.value} | {code.meaning} | {code.remedy} |" in page


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert len(text().splitlines()) <= 150
    for target in re.findall(r"\]\(([^)#]+)\)", text()):
        assert target.startswith("https://") or (ROOT / target).exists(), target
