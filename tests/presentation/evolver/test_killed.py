"""A host that is killed anywhere ends as one that is not, and nobody is asked twice what was kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import killed_hosts
import pytest
from child_processes import Parent
from evolver_host import Host

_MOST_PROCESSES = 400


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    with Parent("killed_hosts") as process:
        yield process


@pytest.fixture(scope="module")
def unbroken(parent: Parent, tmp_path_factory: pytest.TempPathFactory) -> Host:
    folder = tmp_path_factory.mktemp("unbroken")
    assert parent.call(killed_hosts.whole, str(folder)).status == 0
    return Host(folder)


def _until_it_ends(parent: Parent, loop: Callable[[str], int], folder: Path) -> int:
    """How many processes were killed before one came to the end."""
    for killed in range(_MOST_PROCESSES):
        ended = parent.call(loop, str(folder))
        if not ended.was_killed:
            assert ended.status == 0, ended.text
            return killed
    raise AssertionError("it never ends")


def test_unbroken_loop_learns(unbroken: Host) -> None:
    titles = [kept["report"].splitlines()[0] for kept in unbroken.progress()]
    assert titles == [
        "# Step 0: Accepted, new best",
        "# Step 1: Accepted, new best",
        "# Step 2: Accepted, new best",
        "# Step 3: Accepted, new best",
        "# Step 4: Accepted, new best",
        "# Step 5: No patches",
        "# End: Kept best",
    ]
    assert {"run_agent", "reflect", "merge", "rank", "guidance", "memory"} == set(unbroken.asked())


def test_killed_at_every_call_it_ends_the_same_with_the_same_calls(
    parent: Parent, unbroken: Host, tmp_path: Path
) -> None:
    killed = _until_it_ends(parent, killed_hosts.killed_at_calls, tmp_path)
    assert killed == len(unbroken.asked()) - 1
    assert Host(tmp_path).asked() == unbroken.asked()
    assert Host(tmp_path).progress() == unbroken.progress()


def test_an_answer_that_was_lost_with_its_process_is_asked_for_once_more(
    parent: Parent, unbroken: Host, tmp_path: Path
) -> None:
    killed = _until_it_ends(parent, killed_hosts.killed_with_answers, tmp_path)
    lost = Counter(line.split(".")[1] for line in (tmp_path / "host" / "lost.txt").read_text().split())
    assert killed == lost.total() > 20
    assert Counter(Host(tmp_path).asked()) == Counter(unbroken.asked()) + lost
    assert Host(tmp_path).progress() == unbroken.progress()


def test_killed_at_every_write_it_ends_the_same_with_the_same_calls(
    parent: Parent, unbroken: Host, tmp_path: Path
) -> None:
    killed = _until_it_ends(parent, killed_hosts.killed_at_writes, tmp_path)
    places = {line.partition(".")[2] for line in (tmp_path / "host" / "kills.txt").read_text().split()}
    assert killed >= len(places) == 2 * len(killed_hosts.WRITES)
    assert Host(tmp_path).progress() == unbroken.progress()
    repeated = Counter(Host(tmp_path).asked()) - Counter(unbroken.asked())
    assert repeated.total() <= sum(  # killed after an answer came and before it was kept
        "SqlJournal.append.before" in line for line in (tmp_path / "host" / "kills.txt").read_text().split()
    )
