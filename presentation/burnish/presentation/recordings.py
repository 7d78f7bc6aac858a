"""Recordings of runs: from a run folder to one file, and from such a file to a run folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from burnish.domain.runs import is_run_id
from burnish.infrastructure.persistence.recording import Recording, write_recording
from burnish.infrastructure.persistence.stores import open_stores
from burnish.infrastructure.tasks.refusals import shown_path
from burnish.presentation.container import utc_now
from burnish.presentation.kept_answers import KeptAnswers, kept_answers
from burnish.presentation.new_folder import new_folder
from burnish.presentation.run_database import SQLITE, VARIABLE
from burnish.presentation.run_folder import RunFolder, Timing
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.training import RUNS, recorded

_IDENTITY = TypeAdapter(dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The folder that was made of a recording."""

    folder: Path
    run_id: str
    answers: int


async def export_run(path: Path, out: Path, environ: Mapping[str, str]) -> Recording:
    """Write the answers of a folder's run into one file. Raises SettingsError when there is no such run or place."""
    kept = await kept_answers(path, environ)
    recording = Recording(about=_about(kept, RunFolder(path)), entries=kept.entries)
    try:
        write_recording(out, recording)
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise SettingsError((f"{shown_path(out)}: {reason}: choose another place",)) from error
    return recording


def _about(kept: KeptAnswers, folder: RunFolder) -> dict[str, str]:
    """What a folder made of the recording needs beside the answers, as far as it is known; always in this order."""
    timing = folder.timing()
    known = {
        "run_id": kept.run_id,
        "task": timing.task if timing is not None else "",
        "config": folder.config() or "",
        "identity": "" if kept.identity is None else json.dumps(dict(kept.identity), sort_keys=True),
    }
    return {name: text for name, text in known.items() if text}


async def import_run(file: Path, out_root: Path | None, environ: Mapping[str, str]) -> Imported:
    """Make a run folder that holds a recording's answers, so that training goes on from them.

    Raises SettingsError for a file that is no recording, or a damaged one, and for a folder that holds a run or anything
    else. The folder is there whole or not at all.
    """
    if environ.get(VARIABLE, "").strip():
        raise SettingsError((f"environment: {VARIABLE}: is set, and an import has a database of its own: unset it",))
    recording = recorded(file)
    run_id, identity = _named(file, recording.about)
    path = RUNS / run_id if out_root is None else out_root
    if RunFolder(path).holds_run:
        raise SettingsError((f"--out-root: {shown_path(path)}: holds a run already: name another folder",))
    with new_folder(path, "--out-root") as temporary:
        folder = RunFolder(temporary)
        async with open_stores(folder.database) as stores:
            if identity is not None:
                await stores.runs.claim(run_id, identity)
                await stores.runs.release(run_id)
            await asyncio.gather(*(stores.journal.append(run_id, entry) for entry in recording.entries))
        if config := recording.about.get("config"):
            folder.write_config(config)
        task = recording.about.get("task", "")
        folder.write_timing(Timing(run_id=run_id, task=task, database=SQLITE, started_at=utc_now()))
    return Imported(folder=path, run_id=run_id, answers=recording.answers)


def _named(file: Path, about: Mapping[str, str]) -> tuple[str, Mapping[str, str] | None]:
    """The run's id, and its identity if the recording tells it. Raises SettingsError when what it tells is odd."""
    run_id = about.get("run_id", "")
    if not is_run_id(run_id):
        raise SettingsError((f"{shown_path(file)}: names no run: export the run again",))
    try:
        identity = _IDENTITY.validate_json(about["identity"]) if "identity" in about else None
    except ValidationError:
        identity = {}
    if identity == {} or not about.get("task", "").isprintable():
        raise SettingsError((f"{shown_path(file)}: says of its run what cannot be read: export the run again",))
    return run_id, identity
