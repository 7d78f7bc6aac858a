"""Tasks as hosts hand them over: JSON objects with an id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from burnish.domain.rollouts import MAX_ITEM_ID_CHARACTERS, is_item_id
from burnish.infrastructure.tasks.refusals import RefusalError, shown
from burnish.infrastructure.tasks.strict_json import check

Json: TypeAlias = Mapping[str, object]

_ASKED = ("question", "prompt", "instruction", "input", "query")
"""Fields of which the first that holds a text says what the agent is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTask:
    """A task: its id, and the object as the host wrote it, in canonical JSON."""

    task_id: str
    text: str

    @property
    def given(self) -> dict[str, object]:
        """The object, as it is handed back to the host."""
        return cast("dict[str, object]", json.loads(self.text))

    @property
    def digest(self) -> str:
        """Changes with anything in the task."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def task_type(self) -> str:
        """What kind of task it is, where it says so."""
        told = self.given.get("task_type")
        return told if isinstance(told, str) else ""

    @property
    def asked(self) -> str:
        """What the agent is asked, as far as the task tells: a text field that is made for it, or the whole object."""
        given = self.given
        texts = [text for name in _ASKED if isinstance(text := given.get(name), str) and text.strip()]
        return texts[0] if texts else self.text


def read_task(value: object) -> HostTask:
    """The task. Raises RefusalError when it is no JSON object with an id."""
    if not isinstance(value, Mapping):
        raise RefusalError('the task is not a JSON object; write {"id": …, …}')
    record = dict(cast("Json", value))
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        check(json.loads(text))
    except (TypeError, ValueError, RecursionError):
        raise RefusalError("the task holds something that JSON cannot; keep texts, finite numbers and lists") from None
    return HostTask(task_id=_id(record.get("id")), text=text)


def read_tasks(values: object) -> tuple[HostTask, ...]:
    """A sequence of tasks, each id once. Raises RefusalError, which counts tasks from 1."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise RefusalError("not a sequence of tasks; hand over a list of JSON objects")
    tasks: dict[str, HostTask] = {}
    for number, value in enumerate(cast("Sequence[object]", values), start=1):
        try:
            task = read_task(value)
        except RefusalError as refusal:
            raise RefusalError(refusal.what, f"task {number}") from None
        if task.task_id in tasks:
            raise RefusalError(f"the id {shown(task.task_id)} stands twice; give every task its own", f"task {number}")
        tasks[task.task_id] = task
    return tuple(tasks.values())


def digest_of_tasks(tasks: Sequence[HostTask]) -> str:
    """Changes with the tasks and their order."""
    return hashlib.sha256("\n".join(task.digest for task in tasks).encode()).hexdigest()


def _id(value: object) -> str:
    if value is None:
        raise RefusalError('the task has no "id"; give every task its own')
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RefusalError('the task\'s "id" is neither a text nor an integer; write it as a text')
    text = str(value)
    if not is_item_id(text):
        most = f"of at most {MAX_ITEM_ID_CHARACTERS} characters"
        raise RefusalError(f'the task\'s "id" is no name; write a text {most} without line breaks')
    return text
