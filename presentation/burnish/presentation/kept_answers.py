"""What a run folder's database holds of its run: the answers, and how far the run came with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from burnish.application.journal_keys import BOOKKEEPING, kind_of
from burnish.application.ports import JournalEntry
from burnish.domain.runs import TrainingRun
from burnish.infrastructure.persistence.stores import open_stores
from burnish.infrastructure.tasks.refusals import shown_path
from burnish.presentation.run_database import place_of
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.settings.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswers:
    """The answers of a folder's run, by key, with the texts behind them; not what its attempts noted for themselves.

    `identity` tells what the run was started with, and `run` how far it came; both are None where nothing is known, as in
    a folder that was made from a recording and not trained since.
    """

    run_id: str
    entries: tuple[JournalEntry, ...]
    identity: Mapping[str, str] | None
    run: TrainingRun | None


async def kept_answers(path: Path, environ: Mapping[str, str]) -> KeptAnswers:
    """Read them. Raises SettingsError when the folder has no database, or none of its answers is kept."""
    folder = RunFolder(path)
    place, timing = place_of(folder, environ), folder.timing()
    if isinstance(place, Path) and not place.exists():
        raise SettingsError((f"{shown_path(place)}: does not exist: is this a run folder?",))
    async with open_stores(place) as stores:
        known = await stores.runs.ids()
        run_id = timing.run_id if timing is not None else known[-1] if known else ""
        noted = await stores.journal.entries(run_id)
        entries = tuple(entry for entry in noted if kind_of(entry.key) not in BOOKKEEPING)
        if not entries:
            none = "holds no answers of a run (one of train --replay keeps none): name the folder it was recorded in"
            raise SettingsError((f"{shown_path(path)}: {none}",))
        return KeptAnswers(
            run_id=run_id,
            entries=entries,
            identity=await stores.runs.identity(run_id),
            run=await stores.runs.get(run_id),
        )
