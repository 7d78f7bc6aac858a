"""One process trains a run; disks that fail end it with a clear code, and nothing that was committed is lost."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections import Counter
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
STORE_UNAVAILABLE = "burnish: skill_training.store.unavailable: "


def command(task: str, folder: Path, *options: str) -> list[str]:
    return ["train", task, "--out-root", str(folder), "--cfg-options", *SMALL, "train.seed=5", *options]


@pytest.fixture(scope="session")
def whole(parent: Parent, task: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The results of a run without trouble."""
    folder = tmp_path_factory.mktemp("whole")
    assert parent.call(run, command(task, folder)).status == 0
    return results_of(folder)


@pytest.fixture
def killed(parent: Parent, task: str, tmp_path: Path) -> Path:
    """The folder of a run that was killed half way; what it had asked is in the file `first` beside it."""
    folder = tmp_path / "killed"
    assert parent.call(train, command(task, folder), str(tmp_path / "first"), JOURNAL, 12, AFTER).was_killed
    return folder


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


@pytest.mark.parametrize("kilobytes", [0, 1, 8, 32, 40, 80, 120, 200, 300])
def test_a_small_disk_ends_a_run_with_a_clear_code_and_loses_nothing(
    kilobytes: int, parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    ended = parent.call(train_on_a_small_disk, command(task, folder), str(tmp_path / "first"), kilobytes * 1024)
    print(kilobytes, ended.status, ended.text[-300:])
    assert ended.status in {2, 69}
    resumed_well(parent, task, folder, tmp_path / "first", whole)


def resumed_well(parent: Parent, task: str, folder: Path, first: Path, whole: dict[str, bytes]) -> None:
    """The same command ends the run as if nothing had happened, and asks nothing that was committed."""
    committed = kept_in(folder).asked if (folder / "burnish.db").exists() else set[tuple[str, ...]]()
    second = first.with_name("second")
    ended = parent.call(train, command(task, folder), str(second))
    assert ended.status == 0, ended.text
    assert results_of(folder) == whole
    assert not committed & set(asked_in(second))
    assert Counter(asked_in(second)).most_common(1)[0][1] == 1


@pytest.mark.parametrize("number", [1, 2, 5, 11, 19])
def test_a_disk_that_fills_up_ends_a_run_with_a_clear_code_and_loses_nothing(
    number: int, parent: Parent, task: str, whole: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    arguments = [str(tmp_path / "first"), number, str(folder / "burnish.db-wal")]
    ended = parent.call(train_until_the_disk_is_full, command(task, folder), *arguments)
    assert ended.status == 69, ended.text
    assert is_clear(ended, STORE_UNAVAILABLE), ended.text
    resumed_well(parent, task, folder, tmp_path / "first", whole)
