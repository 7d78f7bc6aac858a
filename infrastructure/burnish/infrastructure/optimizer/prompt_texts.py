"""What the optimizer's models are told: one text a purpose, as shipped, or replaced by the files of a folder."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from burnish.domain.regions import front_matter_span
from burnish.infrastructure.tasks.refusals import DataError, shown, shown_path, unreadable

MAX_PROMPT_BYTES: Final = 262_144

_PACKAGE: Final = "burnish.infrastructure.optimizer"
_FOLDER: Final = "prompts"
_SUFFIX: Final = ".md"


class PromptName(StrEnum):
    """The texts; the file of one is its value and `.md`."""

    ANALYST_ERROR = "analyst_error"
    ANALYST_SUCCESS = "analyst_success"
    ANALYST_MIXED = "analyst_mixed"
    MERGE_FAILURES = "merge_failures"
    MERGE_SUCCESSES = "merge_successes"
    MERGE_FINAL = "merge_final"
    EDITS = "edits"
    """How to write edits: behind the texts of analysts and merges in update mode `patch`."""
    SUGGESTIONS = "suggestions"
    """How to write suggestions: likewise in `rewrite_from_suggestions`."""
    WHOLE_SKILL = "whole_skill"
    """How to write a whole skill: likewise in `full_rewrite_minibatch`, and behind `rewrite`."""
    NOTES = "notes"
    """How to tell lapses from defects: behind the texts of analysts, when notes are wanted."""
    RANK = "rank"
    LEARNING_RATE = "learning_rate"
    REWRITE = "rewrite"
    CONSOLIDATE_NOTES = "consolidate_notes"
    SLOW_UPDATE = "slow_update"
    META_MEMORY = "meta_memory"
    GROUND_RULES = "ground_rules"
    """What holds for all of them, the protected regions above all: at the end of every system prompt."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """A text for every name."""

    texts: Mapping[PromptName, str]

    def system(self, *names: PromptName) -> str:
        """A system prompt: the named texts, and the ground rules behind them."""
        return "\n\n".join(self.texts[name] for name in (*names, PromptName.GROUND_RULES))


def load_prompts(folder: Path | None = None) -> Prompts:
    """The shipped texts; with a folder, those of its files in their place.

    The folder holds any of the known files and nothing else (files with a leading dot are skipped); front matter is left
    out. Raises DataError for an unknown, empty or unreadable file, or no folder.
    """
    return Prompts(_shipped() if folder is None else {**_shipped(), **_replacements(folder)})


@lru_cache(maxsize=1)
def _shipped() -> Mapping[PromptName, str]:
    root = files(_PACKAGE).joinpath(_FOLDER)
    return {name: _body(root.joinpath(f"{name.value}{_SUFFIX}").read_text(encoding="utf-8")) for name in PromptName}


def _replacements(folder: Path) -> dict[PromptName, str]:
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (OSError, ValueError) as error:
        raise unreadable(folder, error) from error
    known = {f"{name.value}{_SUFFIX}": name for name in PromptName}
    for path in paths:
        if path.name not in known:
            names = ", ".join(known)
            raise DataError(f"{shown_path(folder)}: {shown(path.name)} is no prompt; the files known are {names}")
    return {known[path.name]: _read(path, ", ".join(known)) for path in paths}


def _read(path: Path, known: str) -> str:
    """The text of a file; the known names are told with every refusal, in case the file was meant to be something else."""
    where, otherwise = shown_path(path), f"or remove it (the files known are {known})"
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{where}: is no regular file; name a text file so, {otherwise}")
        if status.st_size > MAX_PROMPT_BYTES:
            raise DataError(f"{where}: is longer than {MAX_PROMPT_BYTES} bytes; shorten it, {otherwise}")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or "no such file"
        raise DataError(f"{where}: cannot be read ({reason}); check its permissions, {otherwise}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: is not UTF-8 text; save it as UTF-8, {otherwise}") from error
    body = _body(text)
    if not body:
        raise DataError(f"{where}: is empty; write a prompt into it, {otherwise}")
    return body


def _body(text: str) -> str:
    return text[front_matter_span(text).end :].strip()
