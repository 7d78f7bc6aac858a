"""Which database a run is kept in: its folder's SQLite file, or PostgreSQL when the environment names one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from burnish.application.redaction import SHORTEST_SECRET
from burnish.infrastructure.persistence.postgres import check_address, secrets_of
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.settings.errors import SettingsError

VARIABLE = "BURNISH_DATABASE_URL"
"""Names a PostgreSQL database (`postgresql+asyncpg://…`) that takes the place of the run folder's SQLite file."""

SQLITE = "sqlite"
POSTGRESQL = "postgresql"

_PASSWORD = "PGPASSWORD"  # noqa: S105 - the name of the variable, which asyncpg reads when the address has no password


def place_of(folder: RunFolder, environ: Mapping[str, str]) -> Path | str:
    """Where a run in this folder is kept: the path of a file, or an address.

    Raises SettingsError when the address is none, and when the folder's run is kept in the other kind of database: there
    everything it knows would be asked again.
    """
    address = environ.get(VARIABLE, "").strip()
    kept_in = _kept_in(folder)
    if not address:
        if kept_in == POSTGRESQL:
            raise _refusal(f"is not set, and the run in {folder.path} is kept on PostgreSQL: set it")
        return folder.database
    if kept_in == SQLITE:
        raise _refusal(f"is set, but the run in {folder.path} is kept in its {folder.database.name}: unset it")
    try:
        check_address(address)
    except ValueError as error:
        raise _refusal(str(error)) from None
    return address


def database_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The texts about the database that must not be seen anywhere."""
    address = environ.get(VARIABLE, "").strip()
    found = {*secrets_of(address), environ.get(_PASSWORD, "")} if address else set[str]()
    return tuple(sorted(secret for secret in found if len(secret) >= SHORTEST_SECRET))


def _kept_in(folder: RunFolder) -> str | None:
    """The dialect; None for a folder without a run."""
    timing = folder.timing()
    if timing is not None:
        return timing.database
    return SQLITE if folder.database.exists() else None


def _refusal(reason: str) -> SettingsError:
    return SettingsError((f"environment: {VARIABLE}: {reason}",))
