"""The address of a PostgreSQL database is checked before anything is done, and its password is shown to nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.infrastructure.persistence.postgres import secrets_of
from burnish.infrastructure.persistence.stores import open_stores
from burnish.presentation.cli import run
from burnish.presentation.run_database import VARIABLE


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "postgresql://ada:planted-pw-9f8e7d6c@127.0.0.1/db",
        "mysql+aiomysql://ada:planted-pw-9f8e7d6c@127.0.0.1/db",
        "postgresql+asyncpg://ada:planted@pw:9f8e/7d6c@127.0.0.1:5432/db",
        "postgresql+asyncpg://ada:planted-pw-9f8e7d6c@127.0.0.1:port/db",
        "postgresql+asyncpg://ada:planted-pw-9f8e7d6c@127.0.0.1/db?sslmode=require",
    ],
)
def test_an_address_that_is_none_is_refused_in_one_line_without_the_password(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, address)
    task = str(EXAMPLE / "task.yaml")
    assert run(["train", task, "--out-root", str(tmp_path / "run")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"burnish: environment: {VARIABLE}: ")
    assert len(told.err.splitlines()) == 1
    assert not any(part in told.err for part in ("planted", "9f8e", "7d6c"))
    assert not (tmp_path / "run").exists()


async def test_stores_are_not_opened_by_such_an_address() -> None:
    with pytest.raises(ValueError, match="is not an address of the form") as refused:
        async with open_stores("postgresql://ada:planted-pw@127.0.0.1/db"):
            pass
    assert "planted" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_password_is_secret_in_both_spellings() -> None:
    address = "postgresql+asyncpg://ada:a%40b%3Ac@127.0.0.1/db"
    assert secrets_of(address) == (address, "a@b:c", "a%40b%3Ac")
    assert secrets_of("postgresql+asyncpg://127.0.0.1/db") == ("postgresql+asyncpg://127.0.0.1/db",)
