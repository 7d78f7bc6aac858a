"""Which names `env.scorer` may have: those built in, and those of installed packages."""

from __future__ import annotations

import difflib
import re
from typing import Final

from burnish.presentation.settings.errors import listed

SCORERS: Final = (
    "exact_match",
    "f1",
    "contains",
    "regex",
    "numeric",
    "anls",
    "json_match",
    "llm_judge",
    "python",
)
"""Built in; `python` is the function that `env.scorer_function` names."""

DESCRIPTION: Final = "exact_match, f1, contains, regex, numeric, anls, json_match, llm_judge, python"

_SHOWABLE: Final = re.compile(r"[A-Za-z0-9_.-]{1,40}")


def bad_scorer(name: str) -> str | None:
    """What is wrong with a scorer's name, or None."""
    if name in SCORERS:
        return None
    # Only names of others are worth looking through what is installed.
    from burnish.infrastructure.tasks.plugins import SCORERS as GROUP  # noqa: PLC0415
    from burnish.infrastructure.tasks.plugins import plugin_names  # noqa: PLC0415

    known = (*SCORERS, *plugin_names(GROUP))
    if name in known:
        return None
    what = name if _SHOWABLE.fullmatch(name) else "another text"
    meant = difflib.get_close_matches(name.lower(), known, n=1)
    return f"must be {listed(known)}, not {what}" + (f": did you mean {meant[0]}?" if meant else "")
