"""What the loop relies on in a journal, on every driver of the port; then what only a database must promise."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import Pool
from store_drivers import Driver, drivers

from burnish.application.ports import Journal, JournalEntry, PortError
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote
from burnish.infrastructure.persistence import database
from burnish.infrastructure.persistence.journal import SqlJournal
from burnish.infrastructure.persistence.stores import open_stores

DURABLE = [driver for driver in drivers() if driver.is_durable]

WEIRD = {
    "empty": "",
    "line ends": "a\r\nb\rc\nd\x85e\u2028f",
    "nul": "a\x00b\x00",
    "controls": "".join(map(chr, range(1, 32))) + "\x7f",
    "substitute": "\x1a0\x1a1\x1a\x1a",
    "quotes": "'; DROP TABLE journal; --\"\\ :name %(name)s $1 ?",
    "json of nul": '"a\\u0000b"',
    "emoji and marks": "👩‍👩‍👧 e\u0301 \ufeff \ufffd \U0010ffff",
    "right to left": "\u202eabc\u202c שלום",
}


@pytest.fixture
def run() -> str:
    """A run nobody else writes to, also on a server that is shared."""
    return f"run-{uuid4().hex}"


@pytest.fixture(params=drivers(), ids=lambda driver: driver.name)
async def journal(request: pytest.FixtureRequest, tmp_path: Path, run: str) -> AsyncIterator[Journal]:
    driver: Driver = request.param
    async with driver.open(tmp_path) as stores:
        yield stores.journal
        await stores.journal.delete(run)


def entry(key: str, answer: str = '"an answer"', *, is_error: bool = False, step: int = 1) -> JournalEntry:
    return JournalEntry(key=key, answer=answer, is_error=is_error, step=step)


async def test_what_was_appended_is_found_and_nothing_else(journal: Journal, run: str) -> None:
    noted = JournalEntry(key='["a"]', answer='"x"', is_error=True, step=7, usage=(UsageNote("target", 12, 3),))
    await journal.append(run, noted)
    assert await journal.find(run, '["a"]') == noted
    assert await journal.find(run, '["b"]') is None
    assert await journal.find(f"{run}-other", '["a"]') is None


async def test_an_answer_is_found_any_number_of_times(journal: Journal, run: str) -> None:
    await journal.append(run, entry("a"))
    assert [await journal.find(run, "a") for _ in range(3)] == [entry("a")] * 3


async def test_the_first_answer_stays(journal: Journal, run: str) -> None:
    await journal.append(run, entry("a", "1"))
    await journal.append(run, entry("a", "2"))
    assert await journal.find(run, "a") == entry("a", "1")
    assert await journal.count(run) == 1


async def test_appends_of_one_key_at_once_keep_the_first(journal: Journal, run: str) -> None:
    await asyncio.gather(*(journal.append(run, entry("a", str(number))) for number in range(20)))
    assert await journal.find(run, "a") == entry("a", "0")
    assert await journal.count(run) == 1


async def test_answers_are_counted_by_run(journal: Journal, run: str) -> None:
    assert await journal.count(run) == 0
    await asyncio.gather(*(journal.append(run, entry(str(number))) for number in range(30)))
    assert await journal.count(run) == 30
    assert await journal.count(f"{run}-other") == 0


async def test_errors_of_a_step_and_later_ones_are_forgotten(journal: Journal, run: str) -> None:
    for step in (1, 2, 3):
        await journal.append(run, entry(f"answer {step}", step=step))
        await journal.append(run, entry(f"error {step}", is_error=True, step=step))
    assert await journal.forget_errors(run, from_step=2) == 2
    assert await journal.count(run) == 4
    assert await journal.find(run, "error 1") is not None
    assert await journal.find(run, "error 2") is None
    assert await journal.find(run, "error 3") is None
    assert await journal.find(run, "answer 3") is not None
    assert await journal.forget_errors(run, from_step=2) == 0


async def test_what_was_forgotten_may_be_answered_anew(journal: Journal, run: str) -> None:
    await journal.append(run, entry("a", "null", is_error=True))
    assert await journal.find(run, "a") is not None
    await journal.forget_errors(run, from_step=0)
    await journal.append(run, entry("a", "2"))
    assert await journal.find(run, "a") == entry("a", "2")


async def test_forgetting_leaves_other_runs_alone(journal: Journal, run: str) -> None:
    await journal.append(run, entry("a", is_error=True))
    assert await journal.forget_errors(f"{run}-other", from_step=0) == 0
    assert await journal.find(run, "a") is not None


async def test_a_deleted_run_has_no_answers(journal: Journal, run: str) -> None:
    await journal.append(run, entry("a"))
    await journal.delete(run)
    assert await journal.find(run, "a") is None
    assert await journal.count(run) == 0
    await journal.append(run, entry("a", "2"))
    assert await journal.find(run, "a") == entry("a", "2")


@pytest.mark.parametrize("text", WEIRD.values(), ids=WEIRD.keys())
async def test_any_text_comes_back_as_it_was(text: str, journal: Journal, run: str) -> None:
    await journal.append(run, entry(f"key {text}", text))
    await journal.append(run, entry(text, "other"))
    assert await journal.find(run, f"key {text}") == entry(f"key {text}", text)
    assert await journal.find(run, text) == entry(text, "other")


async def test_keys_that_differ_in_one_sign_are_different(journal: Journal, run: str) -> None:
    keys = ["a", "A", "a ", " a", "a\u0301", "á", "a\x00", "", "a" * 5_000, "a" * 4_999 + "b"]
    for key in keys:
        await journal.append(run, entry(key, f'"{len(key)}{key[-1:]}"'))
    assert await journal.count(run) == len(keys)
    for key in keys:
        assert await journal.find(run, key) == entry(key, f'"{len(key)}{key[-1:]}"')


async def test_big_answers_come_back_whole(journal: Journal, run: str) -> None:
    big = "x" * 5_000_000 + "é👩"
    await asyncio.gather(journal.append(run, entry("big", big)), journal.append(run, entry("small")))
    found = await journal.find(run, "big")
    assert found is not None
    assert found.answer == big


# --- databases -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=DURABLE, ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    return found


@pytest.fixture
def commits() -> Iterator[list[str]]:
    """A mark for every commit of any database."""
    seen: list[str] = []

    def note(_connection: object) -> None:
        seen.append("commit")

    event.listen(Engine, "commit", note)
    yield seen
    event.remove(Engine, "commit", note)


async def test_answers_are_there_when_the_stores_are_opened_again(driver: Driver, run: str, tmp_path: Path) -> None:
    written = [
        entry(f"{name} {text}", text, is_error=place % 2 == 0, step=place)
        for place, (name, text) in enumerate(WEIRD.items())
    ]
    async with driver.open(tmp_path) as stores:
        for one in written:
            await stores.journal.append(run, one)
    async with driver.open(tmp_path) as stores:
        assert await stores.journal.count(run) == len(written)
        for one in written:
            assert await stores.journal.find(run, one.key) == one
        await stores.journal.append(run, entry(written[0].key, "later"))
        assert await stores.journal.find(run, written[0].key) == written[0]
        await stores.journal.delete(run)


async def test_an_answer_is_durable_when_append_returns(driver: Driver, run: str, tmp_path: Path) -> None:
    async with driver.open(tmp_path) as stores, driver.open(tmp_path) as others:
        for number in range(5):
            await stores.journal.append(run, entry(str(number)))
            async with driver.open(tmp_path) as witness:
                assert await witness.journal.count(run) == number + 1
        await others.journal.delete(run)


async def test_appends_that_wait_are_committed_together(
    driver: Driver, run: str, tmp_path: Path, commits: list[str]
) -> None:
    async with driver.open(tmp_path) as stores:
        await stores.journal.count(run)
        commits.clear()
        await asyncio.gather(*(stores.journal.append(run, entry(str(number))) for number in range(500)))
        assert len(commits) <= 3
        assert await stores.journal.count(run) == 500
        await stores.journal.delete(run)
        assert await stores.journal.count(run) == 0


async def test_a_second_append_of_a_key_returns_when_the_first_is_durable(
    driver: Driver, run: str, tmp_path: Path
) -> None:
    async with driver.open(tmp_path) as stores, driver.open(tmp_path) as witness:
        first = asyncio.create_task(stores.journal.append(run, entry("a", "1")))
        await asyncio.sleep(0)
        await stores.journal.append(run, entry("a", "2"))
        assert await witness.journal.find(run, "a") == entry("a", "1")
        await first
        await stores.journal.delete(run)


async def test_an_answer_is_not_found_before_it_is_durable(driver: Driver, run: str, tmp_path: Path) -> None:
    async with driver.open(tmp_path) as stores, driver.open(tmp_path) as witness:
        await stores.journal.count(run)
        first = asyncio.create_task(stores.journal.append(run, entry("a", "1")))
        await asyncio.sleep(0)
        assert await stores.journal.find(run, "a") == entry("a", "1")
        assert await witness.journal.find(run, "a") == entry("a", "1")
        await first
        await stores.journal.delete(run)


async def test_an_append_that_is_cancelled_harms_no_other(driver: Driver, run: str, tmp_path: Path) -> None:
    async with driver.open(tmp_path) as stores:
        await stores.journal.count(run)
        tasks = [asyncio.create_task(stores.journal.append(run, entry(str(number)))) for number in range(10)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ended if end is not None] == [asyncio.CancelledError]
        for number in {*range(10)} - {3}:
            assert await stores.journal.find(run, str(number)) == entry(str(number))
        await stores.journal.append(run, entry("3"))
        assert await stores.journal.count(run) == 10
        await stores.journal.delete(run)


async def test_closing_waits_for_what_is_on_its_way(driver: Driver, run: str, tmp_path: Path) -> None:
    async with driver.open(tmp_path) as stores:
        await stores.journal.count(run)
        task = asyncio.create_task(stores.journal.append(run, entry("a")))
        await asyncio.sleep(0)
        task.cancel()
    async with driver.open(tmp_path) as stores:
        assert await stores.journal.find(run, "a") == entry("a")
        await stores.journal.delete(run)


# --- a failing disk --------------------------------------------------------------------------------------------------


@pytest.fixture
async def failing(tmp_path: Path) -> AsyncIterator[tuple[SqlJournal, list[BaseException]]]:
    """A journal whose commits raise what the list holds, as long as it holds something."""
    errors: list[BaseException] = []

    def fail(_connection: object) -> None:
        if errors:
            raise errors[0]

    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(open_stores(tmp_path / "burnish.db"))
        await stores.journal.count("run")
        event.listen(Engine, "commit", fail)
        stack.callback(event.remove, Engine, "commit", fail)
        yield stores.journal, errors


FAILURES = {
    "disk full": OperationalError("COMMIT", None, sqlite3.OperationalError("database or disk is full")),
    "no such device": OSError(5, "Input/output error"),
    "a bug": RuntimeError("nobody foresaw this"),
}


@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES.keys())
async def test_a_group_that_cannot_be_written_fails_for_all_in_it_and_is_not_kept(
    error: Exception, failing: tuple[SqlJournal, list[BaseException]]
) -> None:
    journal, errors = failing
    errors.append(error)
    appends = [journal.append("run", entry(str(number % 5))) for number in range(10)]
    async with asyncio.timeout(10):
        ended = await asyncio.gather(*appends, return_exceptions=True)
    assert [end.code if isinstance(end, PortError) else end for end in ended] == [ErrorCode.STORE_UNAVAILABLE] * 10
    errors.clear()
    assert await journal.count("run") == 0
    assert await journal.find("run", "0") is None
    await journal.append("run", entry("0"))
    assert await journal.find("run", "0") == entry("0")
    assert await journal.count("run") == 1


async def test_an_answer_that_could_not_be_written_is_not_found_by_one_who_waits(
    failing: tuple[SqlJournal, list[BaseException]],
) -> None:
    journal, errors = failing
    errors.append(OSError(28, "No space left on device"))
    append = asyncio.create_task(journal.append("run", entry("a")))
    await asyncio.sleep(0)
    assert await journal.find("run", "a") is None
    with pytest.raises(PortError):
        await append


async def test_a_database_that_is_full_keeps_what_it_has_and_works_again_when_there_is_room(tmp_path: Path) -> None:
    room = 8

    def limit(connection: DBAPIConnection, _entry: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA max_page_count={pages + room}")
        cursor.close()

    async with open_stores(tmp_path / "burnish.db") as stores:
        await stores.journal.append("run", entry("small"))
    with closing(sqlite3.connect(tmp_path / "burnish.db")) as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
    event.listen(Pool, "connect", limit)
    try:
        async with open_stores(tmp_path / "burnish.db") as stores:
            with pytest.raises(PortError) as raised:
                await stores.journal.append("run", entry("big", "x" * 100_000))
            assert raised.value.code is ErrorCode.STORE_UNAVAILABLE
            assert await stores.journal.find("run", "big") is None
            assert await stores.journal.find("run", "small") == entry("small")
            await stores.journal.append("run", entry("small too"))
    finally:
        event.remove(Pool, "connect", limit)
    async with open_stores(tmp_path / "burnish.db") as stores:
        await stores.journal.append("run", entry("big", "x" * 100_000))
        assert await stores.journal.count("run") == 3


async def test_a_database_that_another_process_holds_is_store_unavailable_and_then_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_MILLISECONDS", 20)
    async with open_stores(tmp_path / "burnish.db") as stores:
        await stores.journal.append("run", entry("a"))
        with closing(sqlite3.connect(tmp_path / "burnish.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(PortError) as raised:
                await stores.journal.append("run", entry("b"))
            assert raised.value.code is ErrorCode.STORE_UNAVAILABLE
            other.execute("ROLLBACK")
        await stores.journal.append("run", entry("b"))
        assert await stores.journal.count("run") == 2


async def test_an_entry_that_somebody_has_damaged_is_store_unavailable(tmp_path: Path) -> None:
    async with open_stores(tmp_path / "burnish.db") as stores:
        await stores.journal.append("run", entry("a"))
    with closing(sqlite3.connect(tmp_path / "burnish.db", isolation_level=None)) as connection:
        connection.execute("UPDATE journal SET usage = 'none'")
    async with open_stores(tmp_path / "burnish.db") as stores:
        with pytest.raises(PortError) as raised:
            await stores.journal.find("run", "a")
    assert raised.value.code is ErrorCode.STORE_UNAVAILABLE
