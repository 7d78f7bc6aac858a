"""Small runs over HTTP, in children: what is asked is counted at the server, and a child can be killed while it waits."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from child_processes import Child, Ended, Parent
from killed_runs import AFTER, JOURNAL, Kept, kept_in, results_of, train
from scripted_server import Body, Reply, ScriptedServer, completion
from ticket_server import OVER_HTTP, purpose_of, ticket_models

from burnish.domain.appendix import HEADING

THREE_MINIBATCHES = {"train": 12, "val": 4, "test": 2}
"""Items for `small_task`."""

Answer = Callable[[Body], Reply]

NOTED_ROLLOUT = "noted rollout"

_LONGEST_WAIT_SECONDS = 30.0
_BETWEEN_LOOKS_SECONDS = 0.02

STEP = (
    "train.num_epochs=1",
    "train.steps_per_epoch=2",
    "train.batch_size=12",
    "gradient.minibatch_size=4",
    "gradient.merge_batch_size=2",
    "optimizer.learning_rate=3",
    "optimizer.min_learning_rate=2",
    "optimizer.slow_update_samples=4",
    "evaluation.block_size=2",
)
"""Three minibatches a step, so that there are two levels of merges, and more edits than a step may keep."""

LIMITED = ("model.target_max_tokens=32", "model.optimizer_max_tokens=3000")
"""No answer of the example's models is longer than that."""


def with_workers(number: int) -> tuple[str, str]:
    """So many rollouts, and so many calls of the optimizer, at once."""
    return f"env.workers={number}", f"gradient.analyst_workers={number}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: what it was for, what tells it from others, and the tokens that were reported for it."""

    purpose: str
    body: str
    read: int
    written: int


class CountedModels:
    """The example's models, which report a token for each byte they read and write; they note all they are asked.

    `reached` is set with the first request of the purpose `held`, which then waits for `go_on`. A rollout with a skill that
    has notes is a purpose of its own.
    """

    def __init__(self, held: str = "", *, answer: Answer | None = None) -> None:
        self.asked: list[Asked] = []
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self._held = held
        self._answer = answer or ticket_models()
        self._lock = threading.Lock()

    def __call__(self, body: Body) -> Reply:
        """The answer, once it may be given."""
        messages = cast("list[dict[str, str]]", body["messages"])
        purpose = purpose_of(messages[0]["content"])
        if purpose == "rollout" and HEADING in messages[0]["content"]:
            purpose = NOTED_ROLLOUT
        text = answer_in(self._answer(body))
        read, written = sum(_size(message["content"]) for message in messages), _size(text)
        with self._lock:
            self.asked.append(Asked(purpose, json.dumps(body, sort_keys=True), read, written))
            is_held = purpose == self._held and not self.reached.is_set()
            if is_held:
                self.reached.set()
        if is_held:
            self.go_on.wait(_LONGEST_WAIT_SECONDS)
        return completion(text, usage=(read, written))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One child: how it ended, what it asked, and what the run folder held then."""

    ended: Ended
    asked: tuple[Asked, ...]
    kept: Kept
    results: dict[str, bytes]

    @property
    def purposes(self) -> Counter[str]:
        """How often it asked for what."""
        return Counter(asked.purpose for asked in self.asked)

    @property
    def bodies(self) -> Counter[str]:
        """The requests themselves."""
        return Counter(asked.body for asked in self.asked)

    @property
    def tokens(self) -> int:
        """All that were reported."""
        return sum(asked.read + asked.written for asked in self.asked)


class HttpRuns:
    """Trains one task with one set of options in children, each of which asks a server of its own.

    `answer` gives the answers of models other than the example's.
    """

    def __init__(self, parent: Parent, task: str, *options: str, answer: Answer | None = None) -> None:
        self._answer = answer
        self._parent = parent
        self._task = task
        self._options = (*OVER_HTTP, *options)

    def whole(self, folder: Path, *more: str) -> Attempt:
        """Trained until it ends by itself."""
        return self._attempt(folder, more, CountedModels(answer=self._answer), lambda child, _: child.wait())

    def killed_at_commit(self, folder: Path, number: int, *more: str, when: str = AFTER) -> Attempt:
        """Killed at the so-manieth commit of the journal, if it comes that far."""
        models = CountedModels(answer=self._answer)
        return self._attempt(folder, more, models, lambda child, _: child.wait(), JOURNAL, number, when)

    def killed_while_asking(self, folder: Path, purpose: str, *more: str) -> Attempt:
        """Killed while it waits for the answer to its first request of this purpose, if it makes one."""
        return self._attempt(folder, more, CountedModels(held=purpose, answer=self._answer), _killed_when_reached)

    def _attempt(
        self,
        folder: Path,
        more: tuple[str, ...],
        models: CountedModels,
        end: Callable[[Child, CountedModels], Ended],
        *point: str | int,
    ) -> Attempt:
        command = ["train", self._task, "--out-root", str(folder), "--cfg-options", *self._options, *more]
        with ScriptedServer(models) as server:
            environ = {"OPENAI_COMPATIBLE_BASE_URL": server.base_url, "OPENAI_COMPATIBLE_API_KEY": "sk-no-key-required"}
            child = self._parent.start(train, command, os.devnull, *point, environ=environ)
            ended = end(child, models)
            kept, results = kept_in(folder), results_of(folder)
        return Attempt(ended=ended, asked=tuple(models.asked), kept=kept, results=results)


def _killed_when_reached(child: Child, models: CountedModels) -> Ended:
    ended = None
    while ended is None and not models.reached.wait(_BETWEEN_LOOKS_SECONDS):
        ended = child.poll()
    if ended is None:
        child.kill()
        ended = child.wait()
    models.go_on.set()
    return ended


def _size(text: str) -> int:
    """In bytes."""
    return len(text.encode())


def answer_in(reply: Reply) -> str:
    """The text of a completion."""
    body = cast("dict[str, list[dict[str, dict[str, str]]]]", reply.body)
    return body["choices"][0]["message"]["content"]
