"""The address of a PostgreSQL database: what it must look like, and what in it is a secret."""

from __future__ import annotations

from importlib.util import find_spec

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

DRIVER = "postgresql+asyncpg"
FORM = f"{DRIVER}://user:password@host:port/database"

_PARAMETERS = frozenset(
    {
        "direct_tls",
        "gsslib",
        "host",
        "krbsrvname",
        "passfile",
        "port",
        "prepared_statement_cache_size",
        "service",
        "servicefile",
        "ssl",
        "target_session_attrs",
    }
)
"""Parameters that SQLAlchemy or asyncpg takes as a text; any other would be an error from deep inside."""


def check_address(address: str) -> None:
    """Raise ValueError when no database can be opened by this address; its text never holds a part of the address."""
    url = _parsed(address)
    if url is None or url.drivername != DRIVER:
        raise ValueError(f"is not an address of the form {FORM}; signs such as @ : / % in a password are spelt %40 …")
    if not url.query.keys() <= _PARAMETERS:
        raise ValueError(f"has an unknown parameter: use {', '.join(sorted(_PARAMETERS))}, such as ssl=require")
    if find_spec("asyncpg") is None:
        raise ValueError("needs asyncpg, which is not installed: install burnish[postgres]")


def secrets_of(address: str) -> tuple[str, ...]:
    """The texts of an address that must not be seen: the whole, and its password in both spellings."""
    url = _parsed(address)
    password = None if url is None else url.password
    if password is None:
        return (address,)
    spelt = address.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return (address, password, spelt)


def _parsed(address: str) -> URL | None:
    try:
        return make_url(address)
    except (ArgumentError, ValueError):  # their texts may quote a part of it
        return None
