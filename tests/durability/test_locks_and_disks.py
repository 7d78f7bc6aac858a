"""One process trains a run; disks that fail end it with a clear code, and nothing that was committed is lost."""

from __future__ import annotations

import errno
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from child_processes import Child, Ended, Parent
from killed_runs import AFTER, JOURNAL, SMALL, asked_in, kept_in, results_of, train
from troubled_runs import (
    train_impatiently,
    train_on_a_small_disk,
    train_until_the_disk_is_full,
    train_when_told,
    train_without_rights,
)

from burnish.presentation.cli import run
from burnish.presentation.run_folder import RunFolder

ALREADY_ACTIVE = "burnish: skill_training.run.already_active: "
PAGE = 4_096
SAVE_FAILED = "burnish: skill_training.checkpoint.save_failed: "
STORE_UNAVAILABLE = "burnish: skill_training.store.unavailable: "


def command(task: str, folder: Path, *options: str) -> list[str]:
    return ["train", task, "--out-root", str(folder), "--cfg-options", *SMALL, "train.seed=5", *options]


@pytest.fixture(scope="session")
def whole(parent: Parent, task: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The results of a run without trouble."""
    folder = tmp_path_factory.mktemp("whole")
    assert parent.call(run, command(task, folder)).status == 0
    return results_of(folder)


@pytest.fixture(scope="session")
def half_done(parent: Parent, task: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the folder of a run that was killed half way, and the file `first` with what it had asked."""
    folder = tmp_path_factory.mktemp("half")
    again = command(task, folder / "killed")
    assert parent.call(train, again, str(folder / "first"), JOURNAL, 12, AFTER).was_killed
    return folder


@pytest.fixture
def killed(half_done: Path, tmp_path: Path) -> Path:
    """A copy of that run's folder; `first` lies beside it."""
    shutil.copytree(half_done, tmp_path, dirs_exist_ok=True)
    return tmp_path / "killed"


def is_clear(ended: Ended, line: str) -> bool:
    """Whether a command ended with one line on what is wrong."""
    told = [one for one in ended.text.splitlines() if one.startswith("burnish: ")]
    return len(told) == 1 and told[0].startswith(line) and "Traceback" not in ended.text


def eventually(is_so: Iterator[bool]) -> None:
    """Wait for it."""
    until = time.monotonic() + 60
    while not next(is_so):
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.005)


def files_of(folder: Path) -> dict[str, bytes]:
    """All files but the database and the log, which every process writes to."""
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name != "log.jsonl" and not path.name.startswith("burnish.db")
    }


# --- two processes ---------------------------------------------------------------------------------------------------


def test_a_second_process_on_a_run_is_refused_and_leaves_the_files_alone(
    parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder, ready, go = tmp_path / "run", tmp_path / "ready", tmp_path / "go"
    first = parent.start(train_when_told, command(task, folder), str(ready), str(go))
    eventually(iter(ready.exists, None))
    before = files_of(folder)
    second = parent.call(run, command(task, folder))
    other_settings = parent.call(run, command(task, folder, "optimizer.learning_rate=3"))
    assert files_of(folder) == before
    go.touch()
    assert first.wait().status == 0
    for ended in (second, other_settings):
        assert ended.status == 75
        assert is_clear(ended, ALREADY_ACTIVE), ended.text
    assert results_of(folder) == whole
    assert parent.call(run, ["audit", "verify", str(folder)]).status == 0


@pytest.mark.parametrize("attempt", range(4))
def test_of_many_processes_that_start_at_once_exactly_one_trains(
    attempt: int, parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder, ready, go = tmp_path / "run", tmp_path / "ready", tmp_path / "go"
    children = [parent.start(train_when_told, command(task, folder), str(ready), str(go)) for _ in range(4)]
    ended: dict[int, Ended] = {}

    def others_have_ended() -> Iterator[bool]:
        while True:
            ended.update({c.pid: e for c in children if c.pid not in ended and (e := c.poll()) is not None})
            yield len(ended) == len(children) - 1

    eventually(others_have_ended())
    go.touch()
    (winner,) = [child for child in children if child.pid not in ended]
    assert winner.wait().status == 0
    for loser in ended.values():
        assert loser.status == 75, loser.text
        assert is_clear(loser, ALREADY_ACTIVE), loser.text
    assert results_of(folder) == whole


def test_the_lock_goes_with_a_process_that_is_killed(
    parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder, ready = tmp_path / "run", tmp_path / "ready"
    first: Child = parent.start(train_when_told, command(task, folder), str(ready), str(tmp_path / "never"))
    eventually(iter(ready.exists, None))
    first.kill()
    assert first.wait().was_killed
    assert parent.call(run, command(task, folder)).status == 0
    assert results_of(folder) == whole


# --- folders that move -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["moved", "run #1 100% ?a=b&c é", "file:run", "a;b'c\"d"])
def test_a_run_folder_that_was_copied_or_moved_resumes(
    name: str, killed: Path, parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    committed = kept_in(killed).asked
    copied, moved = tmp_path / "copy" / name, tmp_path / "move" / name
    shutil.copytree(killed, copied)
    moved.parent.mkdir()
    killed.rename(moved)
    for folder in (copied, moved):
        asked = folder.parent / "asked"
        assert parent.call(train, command(task, folder), str(asked)).status == 0
        assert results_of(folder) == whole
        assert not committed & set(asked_in(asked))
        assert {path.name for path in folder.parent.iterdir()} == {name, "asked"}
        assert parent.call(train, command(task, folder), str(folder.parent / "again")).status == 0
        assert not asked_in(folder.parent / "again")


# --- disks -----------------------------------------------------------------------------------------------------------


def resumed_well(parent: Parent, task: str, folder: Path, whole: dict[str, bytes]) -> None:
    """The same command ends the run as if nothing had happened, and asks nothing that was committed."""
    committed = kept_in(folder).asked
    asked = folder.with_name("asked when resumed")
    ended = parent.call(train, command(task, folder), str(asked))
    assert ended.status == 0, ended.text
    assert results_of(folder) == whole
    assert not committed & set(asked_in(asked))
    assert len(set(asked_in(asked))) == len(asked_in(asked))


@pytest.mark.parametrize("kilobytes", [2, 8, 32, 40, 80, 120, 200, 300])
def test_a_small_disk_ends_a_run_with_a_clear_code_and_loses_nothing(
    kilobytes: int, parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    ended = parent.call(train_on_a_small_disk, command(task, folder), str(tmp_path / "asked"), kilobytes * 1024)
    assert ended.status == 69, ended.text
    assert is_clear(ended, STORE_UNAVAILABLE), ended.text
    resumed_well(parent, task, folder, whole)


@pytest.mark.parametrize("number", [1, 2, 5, 11, 19])
def test_a_disk_that_fills_up_ends_a_run_with_a_clear_code_and_loses_nothing(
    number: int, parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    asked, wal = str(tmp_path / "asked"), str(folder / "burnish.db-wal")
    ended = parent.call(train_until_the_disk_is_full, command(task, folder), asked, number, wal)
    assert ended.status == 69, ended.text
    assert is_clear(ended, STORE_UNAVAILABLE), ended.text
    resumed_well(parent, task, folder, whole)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_log_that_cannot_be_written_ends_no_run(
    parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    ended = parent.call(train, command(task, tmp_path, "evaluation.max_error_rate=0.1"), str(tmp_path / "asked"))
    assert ended.status == 0
    assert "Traceback" not in ended.text
    assert results_of(tmp_path) == whole


@pytest.mark.parametrize("name", ["best_skill.md", "summary.json", "config.yaml", "timing.json"])
def test_a_result_that_cannot_be_written_is_a_clear_failure_and_the_same_command_writes_it(
    name: str,
    task: str,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write = RunFolder._write  # pyright: ignore[reportPrivateUsage]  the one place all files are written

    def write_most(self: RunFolder, file: str, text: str) -> None:
        if file == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, file, text)

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "_write", write_most)
        assert run(command(task, tmp_path)) == 69
    told = capsys.readouterr().err
    assert told.startswith(STORE_UNAVAILABLE)
    assert "Traceback" not in told
    assert run(command(task, tmp_path)) == 0
    assert results_of(tmp_path) == whole
    assert (tmp_path / name).exists()


def test_a_log_that_cannot_be_opened_is_refused(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.jsonl").mkdir()
    assert run(command(task, tmp_path)) == 2
    assert capsys.readouterr().err.startswith("burnish: --out-root: ")


# --- rights ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def public(half_done: Path, task: str) -> Iterator[Path]:
    """A folder anybody may enter, with a run that was killed half way, and its task."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        shutil.copytree(Path(task).parent, place / "task")
        shutil.copytree(half_done / "killed", place / "run")
        for path in (place, *place.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o666)
        yield place


def test_a_read_only_folder_is_refused(public: Path, parent: Parent, whole: dict[str, bytes]) -> None:
    task, folder = str(public / "task" / "task.yaml"), public / "run"
    folder.chmod(0o555)
    before = files_of(folder)
    ended = parent.call(train_without_rights, command(task, folder))
    assert ended.status == 2
    assert is_clear(ended, f"burnish: --out-root: {folder}: permission denied"), ended.text
    assert files_of(folder) == before
    folder.chmod(0o777)
    resumed_well(parent, task, folder, whole)


@pytest.mark.parametrize("name", ["burnish.db", "burnish.db-wal"])
def test_a_read_only_database_is_a_clear_failure(
    name: str, public: Path, parent: Parent, whole: dict[str, bytes]
) -> None:
    task, folder = str(public / "task" / "task.yaml"), public / "run"
    (folder / name).chmod(0o444)
    ended = parent.call(train_without_rights, command(task, folder))
    assert ended.status == 69, ended.text
    assert is_clear(ended, STORE_UNAVAILABLE), ended.text
    (folder / name).chmod(0o666)
    resumed_well(parent, task, folder, whole)


# --- databases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["normal", "exclusive"])
def test_a_database_that_another_program_holds_is_a_clear_failure(
    mode: str, killed: Path, parent: Parent, task: str, whole: dict[str, bytes]
) -> None:
    with closing(sqlite3.connect(killed / "burnish.db", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA locking_mode={mode}")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("CREATE TABLE held (number INTEGER)")
        ended = parent.call(train_impatiently, command(task, killed))
        connection.execute("ROLLBACK")
    assert ended.status == 69, ended.text
    assert is_clear(ended, STORE_UNAVAILABLE), ended.text
    resumed_well(parent, task, killed, whole)


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_database_is_a_clear_failure_or_does_not_matter(
    seed: int, killed: Path, parent: Parent, task: str, whole: dict[str, bytes]
) -> None:
    with closing(sqlite3.connect(killed / "burnish.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray((killed / "burnish.db").read_bytes())
    page = random.Random(seed).randrange(len(content) // PAGE) if seed else 0
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    (killed / "burnish.db").write_bytes(content)
    ended = parent.call(run, command(task, killed))
    if ended.status == 0:
        assert results_of(killed) == whole
    else:
        assert ended.status == 69, ended.text
        assert is_clear(ended, STORE_UNAVAILABLE) or is_clear(ended, SAVE_FAILED), ended.text


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE journal SET answer = 'no answer' WHERE key LIKE '%_val_%'",
        "UPDATE journal SET answer = '{}' WHERE key LIKE '%_val_%'",
        "UPDATE journal SET answer = CAST(x'ff00ff' AS TEXT) WHERE key LIKE '%_val_%'",
        "UPDATE runs SET state = 'no state'",
        "UPDATE runs SET identity = 'no identity'",
        "DROP TABLE steps",
        "UPDATE burnish_schema SET version = 1000",
    ],
)
def test_damaged_rows_are_a_clear_failure(damage: str, killed: Path, parent: Parent, task: str) -> None:
    with closing(sqlite3.connect(killed / "burnish.db", isolation_level=None)) as connection:
        connection.execute(damage)
    ended = parent.call(run, command(task, killed))
    assert ended.status == 69, ended.text
    assert is_clear(ended, STORE_UNAVAILABLE), ended.text


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_last_write_costs_at_most_what_was_torn(
    seed: int, killed: Path, parent: Parent, task: str, whole: dict[str, bytes]
) -> None:
    chance = random.Random(seed)
    log = killed / "burnish.db-wal"
    content = log.read_bytes()
    end = chance.randrange(len(content))
    garbage = chance.randbytes(chance.choice([0, 100, 5_000]))
    log.write_bytes((content[:end] + garbage)[: len(content)])
    if chance.random() < 0.5:
        (killed / "burnish.db-shm").unlink()
    before = kept_in(killed).asked
    assert before <= set(asked_in(killed.with_name("first")))
    resumed_well(parent, task, killed, whole)
