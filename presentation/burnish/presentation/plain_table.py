"""Tables of plain text, and how steps are told in them."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from burnish.domain.gate import GateAction

NOTHING = "-"
"""What stands for something that is not known."""

DECISIONS = {
    GateAction.ACCEPT_NEW_BEST: "accepted, new best",
    GateAction.ACCEPT: "accepted",
    GateAction.REJECT: "rejected",
    None: "no decision",
}


def score_text(score: float | None) -> str:
    """A score with four digits."""
    return NOTHING if score is None else f"{score:.4f}"


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their widest text, no blanks at the end of a line."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
