"""Runs that are killed at a chosen place: what children do, and what a test reads from the run folder afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import wraps
from inspect import isawaitable
from pathlib import Path
from typing import Any

from dependency_injector import providers
from sqlalchemy import Engine, event
from ticket_server import EXAMPLE
from unsteady_models import make_unsteady

from burnish.application import passes
from burnish.application.journal_keys import ACTIVE, RESERVATION, TEXT, kind_of
from burnish.application.journaling import digest_of
from burnish.domain.rollouts import SPLITS, Rollout, RolloutBatch
from burnish.domain.runs import skill_hash
from burnish.infrastructure.optimizer.chat_merger import ChatPatchMerger
from burnish.infrastructure.optimizer.chat_proposer import ChatPatchProposer
from burnish.infrastructure.optimizer.chat_ranker import ChatEditRanker
from burnish.infrastructure.optimizer.chat_rate import ChatRateChooser
from burnish.infrastructure.optimizer.chat_rewriter import ChatSkillRewriter
from burnish.infrastructure.optimizer.chat_writers import ChatGuidanceWriter, ChatMemoryWriter
from burnish.infrastructure.persistence.journal import SqlJournal
from burnish.infrastructure.persistence.sql import SqlAuditLog, SqlCheckpointStore, SqlKnowledgeMemory, SqlRunStore
from burnish.infrastructure.tasks.chat_runner import ChatTaskRunner
from burnish.presentation.cli import run
from burnish.presentation.container import Container
from burnish.presentation.run_folder import RunFolder

RESULTS = ("best_skill.md", "final_skill.md", "history.jsonl", "summary.json")
"""The files that must not tell whether a run was interrupted."""

JOURNAL = "journal"
RECORDS = "records"
BEFORE = "before"
AFTER = "after"

_PLACES: dict[str, tuple[tuple[type, str], ...]] = {
    JOURNAL: ((SqlJournal, "_commit"),),
    RECORDS: (
        (SqlRunStore, "claim"),
        (SqlRunStore, "append"),
        (SqlRunStore, "save"),
        (SqlRunStore, "release"),
        (SqlCheckpointStore, "save"),
        (SqlAuditLog, "append"),
        (SqlKnowledgeMemory, "remember"),
        (RunFolder, "_write"),
    ),
}
"""Where a run may be killed: at the commits of its journal, or at everything else it keeps."""

_ROLES: Mapping[str, tuple[type, str]] = {
    "reflect": (ChatPatchProposer, "propose"),
    "merge": (ChatPatchMerger, "merge"),
    "rate": (ChatRateChooser, "choose"),
    "rank": (ChatEditRanker, "rank"),
    "rewrite": (ChatSkillRewriter, "rewrite"),
    "guidance": (ChatGuidanceWriter, "write"),
    "memory": (ChatMemoryWriter, "write"),
}
"""The optimizer's roles, by the kind of their answers in the journal, and how they are asked."""

_ITEMS = {"train": 6, "val": 4, "test": 2}
_STEPS = 2
SMALL = (
    "train.num_epochs=2",
    f"train.steps_per_epoch={_STEPS}",
    "train.batch_size=3",
    "evaluation.block_size=2",
    "optimizer.slow_update_samples=2",
)
"""Two epochs of two steps: baseline, steps, slow update, memory, promotion and test are all in it."""


def small_task(folder: Path, items: Mapping[str, int] = _ITEMS) -> str:
    """The ticket-routing example with so many items of each split; the path of its task file."""
    for name in ("task.yaml", "skill.md", "house_rules.md"):
        shutil.copy(EXAMPLE / name, folder / name)
    for split in SPLITS:
        (folder / "items" / split).mkdir(parents=True)
        lines = (EXAMPLE / "items" / split / "items.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / "items" / split / "items.jsonl").write_text("".join(lines[: items[split]]), encoding="utf-8")
    return str(folder / "task.yaml")


# --- in a child ------------------------------------------------------------------------------------------------------


def train(
    arguments: list[str], asked: str, place: str = "", number: int = 0, when: str = AFTER, failing: float = 0.0
) -> int:
    """Run a command, noting in a file what is asked; be killed at the place's call of that number.

    `failing` is the share of the questions to the models that stay without an answer, always the same ones.
    """
    _note_what_is_asked(Path(asked))
    _one_answer_a_commit(arguments)
    if place:
        _kill_at(place, number, when)
    if failing:
        make_unsteady(seed=1, failing=failing)
    return run(arguments)


def count(arguments: list[str], asked: str, place: str, counted: str) -> int:
    """Run a command, noting what is asked and, as a line a call, how often a run comes past a place."""
    _note_what_is_asked(Path(asked))
    _one_answer_a_commit(arguments)
    for owner, name in _PLACES[place]:
        _wrap(owner, name, before=lambda: _append(Path(counted), ["passed"]))
    return run(arguments)


def _note_what_is_asked(file: Path) -> None:
    """Let runner, the optimizer's roles and the draw of a seed write into the file before they answer."""
    ask_agent = ChatTaskRunner.run

    async def noted_run(self: ChatTaskRunner, skill: str, batch: RolloutBatch) -> Sequence[Rollout]:
        (item,) = batch.item_ids
        _append(file, ["rollout", batch.split, item, batch.repeat, skill_hash(skill)])
        return await ask_agent(self, skill, batch)

    def noted_seed() -> int:
        _append(file, ["seed"])
        return 3

    ChatTaskRunner.run = noted_run  # type: ignore[method-assign]  # in a child: it ends with the patch
    for kind, (role, name) in _ROLES.items():
        _note_request(role, name, lambda request, kind=kind: _append(file, [kind, digest_of(request)]))  # type: ignore[misc]
    Container.draw_seed.override(providers.Object(noted_seed))  # pyright: ignore[reportUnknownMemberType]  its stub


def _note_request(role: type, name: str, note: Callable[[object], None]) -> None:
    ask: Callable[[object, object], Any] = getattr(role, name)

    def noted(self: object, request: object) -> Any:  # noqa: ANN401 - it passes on what it is given
        note(request)
        return ask(self, request)

    setattr(role, name, noted)


def _one_answer_a_commit(arguments: Sequence[str]) -> None:
    """With one worker, let none ask before the answer of the one before is written."""
    if "env.workers=1" in arguments:
        passes._TASKS_A_SLOT = 1  # pyright: ignore[reportPrivateUsage]  no setting for users


def _append(file: Path, parts: Sequence[str]) -> None:
    """One whole line, also when the process is killed right afterwards."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (json.dumps(parts) + "\n").encode())
    os.close(descriptor)


def _kill_at(place: str, number: int, when: str) -> None:
    """Before: when everything of it is written but not yet committed. After: when its caller does not know of it yet."""
    calls = 0

    def arrive() -> None:
        nonlocal calls
        calls += 1

    def kill(*_: object) -> None:
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, name in _PLACES[place]:
        _wrap(owner, name, before=arrive, after=kill if when == AFTER else lambda: None)
    if when == BEFORE:
        event.listen(Engine, "commit", kill)


def _wrap(
    owner: type, name: str, *, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None
) -> None:
    wrapped: Callable[..., Any] = getattr(owner, name)

    @wraps(wrapped)
    def plain(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - it passes on what it is given
        before()
        answer = wrapped(*arguments, **named)
        if isawaitable(answer):
            return _then(answer, after)
        after()
        return answer

    setattr(owner, name, plain)


async def _then(answer: Awaitable[Any], after: Callable[[], None]) -> Any:  # noqa: ANN401 - as above
    found = await answer
    after()
    return found


# --- in a test -------------------------------------------------------------------------------------------------------


def results_of(folder: Path) -> dict[str, bytes]:
    """The result files a run has left."""
    return {name: (folder / name).read_bytes() for name in RESULTS if (folder / name).exists()}


def asked_in(file: Path) -> list[tuple[str, ...]]:
    """What was asked, in order."""
    return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a run folder's database holds; `paid` are keys of answers that used tokens; checkpoints without their times."""

    answers: dict[str, str]
    paid: frozenset[str]
    records: list[str]
    audit: list[tuple[str, str]]
    checkpoints: list[tuple[object, ...]]

    @property
    def asked(self) -> set[tuple[str, ...]]:
        """The questions behind the answers, as `asked_in` gives them."""
        return {_question(json.loads(key)) for key in self.answers}


def kept_in(folder: Path) -> Kept:
    """Read a copy, so that the folder stays as a killed process left it."""
    with tempfile.TemporaryDirectory() as copy:
        for file in folder.glob("burnish.db*"):
            shutil.copy(file, copy)
        with closing(sqlite3.connect(Path(copy) / "burnish.db")) as connection:

            def rows(query: str) -> list[tuple[Any, ...]]:
                tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
                return list(connection.execute(query)) if "journal" in tables else []

            return Kept(
                answers={
                    key: answer
                    for key, answer in rows("SELECT key, answer FROM journal")
                    if kind_of(key) not in {TEXT, RESERVATION, ACTIVE}
                },
                paid=frozenset(key for key, usage in rows("SELECT key, usage FROM journal") if usage != "[]"),
                records=[record for (record,) in rows("SELECT record FROM steps ORDER BY position")],
                audit=[(action, position) for action, position in rows("SELECT action, position FROM audit")],
                checkpoints=rows("SELECT step, epoch, skill, score, action, memory FROM checkpoints ORDER BY step"),
            )


def _question(key: list[str]) -> tuple[str, ...]:
    if key[0] == "rollout":
        return tuple(key[:5])
    return (key[0], key[-1]) if key[0] in _ROLES else (key[0],)
