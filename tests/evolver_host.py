"""A miniature host, written from the description of the evolver alone: tasks, an agent, a judge, folders and a loop.

Its documents are lists of rules. A task is solved when the document holds the task's rule; the judge says which one is
missing. The host notes every call it answers, and its own progress, in files, so that it can be killed at any place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burnish.presentation.evolver import BlockingEvolver, LlmRequest, StepResult

Json = dict[str, Any]

START = "# Rules\n\n- use r0"
RULES = 12
SMALL: Mapping[str, object] = {
    "steps_per_epoch": 3,
    "minibatch_size": 2,
    "learning_rate": 2,
    "min_learning_rate": 1,
    "total_steps": 6,
    "slow_update_samples": 4,
}
"""Two or three analysts a step, so that merging and ranking are in it, and a slow update at the end of the second epoch."""


def tasks(prefix: str, count: int) -> list[Json]:
    return [
        {"id": f"{prefix}-{number}", "question": f"Task {number}", "rule": f"r{number % RULES}"}
        for number in range(count)
    ]


@dataclass
class Host:
    """Folders below `folder`; `before` and `after` are called around each answer, with its name.

    What it does is in attributes, so that a test can put something else in their place: `llm` and `run_agent` are what the
    evolver sees; they answer with `answer` (which puts `thought` into JSON) and, for each task, `attempt`.
    """

    folder: Path
    before: Callable[[str], None] = lambda _: None
    after: Callable[[str], None] = lambda _: None
    batch: int = 5
    train: list[Json] = field(default_factory=lambda: tasks("train", 15))
    validation_data: list[Json] = field(default_factory=lambda: tasks("val", 24))

    def __post_init__(self) -> None:
        self.llm: Callable[[LlmRequest], object] = self._llm
        self.run_agent: Callable[[str, list[Json]], object] = self._run_agent
        self.answer: Callable[[LlmRequest], object] = self._answer
        self.thought: Callable[[LlmRequest], Json] = self.think
        self.attempt: Callable[[str, Mapping[str, Any]], Json] = self.try_out
        for name in ("learning_material/current/tasks", "adapter", "state", "output", "host"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if not self.document.exists():
            self.document.write_text(START, encoding="utf-8")

    # --- what the evolver sees ---

    @property
    def workspace(self) -> Path:
        return self.folder

    def _llm(self, request: LlmRequest) -> object:
        return self._noted(request.purpose, lambda: self.answer(request))

    def _run_agent(self, document: str, asked: Sequence[Mapping[str, Any]]) -> object:
        return self._noted("run_agent", lambda: [self.attempt(document, task) for task in asked])

    def _answer(self, request: LlmRequest) -> object:
        text = json.dumps(self.thought(request))
        return {"text": text, "usage": {"prompt_tokens": 100, "completion_tokens": 10}}

    def think(self, request: LlmRequest) -> Json:
        """What the model says: edits for the rules that the prompt says are missing."""
        if request.purpose in {"reflect", "merge"}:
            found = sorted(set(re.findall(r"missing (r\d+)|use (r\d+)", _read_part(request))))
            rules = sorted({one or other for one, other in found} - set(_rules(_skill_in(request.user))))
            edits = [{"op": "append", "target": "", "content": f"- use {rule}", "support": 1} for rule in rules]
            return {"reasoning": "rules are missing", "edits": edits}
        if request.purpose == "rank":
            return {"reasoning": "as they come", "order": list(range(9))}
        if request.purpose == "guidance":
            return {"verdict": "good", "reasoning": "rules help", "guidance": "Keep to the rules."}
        return {"reasoning": "so far", "memory": "Rules that are missing should be added."}

    def try_out(self, document: str, task: Mapping[str, Any]) -> Json:
        solved = task["rule"] in _rules(document)
        feedback = "well done" if solved else f"missing {task['rule']}"
        return {
            "task": dict(task),
            "output": "solved" if solved else "no idea",
            "trajectory": [{"role": "user", "content": task["question"]}, {"role": "assistant", "content": feedback}],
            "judge": {"score": float(solved), "feedback": feedback, "extra": {"f1": 1.0 if solved else 0.25}},
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }

    def notes_requests(self) -> list[LlmRequest]:
        """The requests to the model from now on."""
        requests: list[LlmRequest] = []
        answer = self.answer

        def noted(request: LlmRequest) -> object:
            requests.append(request)
            return answer(request)

        self.answer = noted
        return requests

    # --- the host's own loop ---

    @property
    def document(self) -> Path:
        return self.folder / "adapter" / "ADAPTER.md"

    @property
    def report(self) -> str:
        return (self.folder / "output" / "report.md").read_text(encoding="utf-8")

    def write_material(self, step: int, document: str | None = None) -> None:
        """The batch of a step: each one the next tasks, run with the document as it is."""
        text = self.document.read_bytes().decode() if document is None else document
        current = self.folder / "learning_material" / "current"
        for old in (current / "tasks").iterdir():
            old.unlink()
        chosen = [self.train[(step * self.batch + place) % len(self.train)] for place in range(self.batch)]
        scores: list[float] = []
        for task in chosen:
            attempt = self.attempt(text, task)
            scores.append(attempt["judge"]["score"])
            (current / "tasks" / f"{task['id']}.json").write_text(json.dumps(attempt), encoding="utf-8")
        summary = {"step": step, "mean_score": sum(scores) / len(scores)}
        (current / "summary.json").write_text(json.dumps(summary), encoding="utf-8")

    def asked(self) -> list[str]:
        """The names of all calls that were answered, in order."""
        file = self.folder / "host" / "calls.txt"
        return file.read_text(encoding="utf-8").split() if file.exists() else []

    def loop(self, evolver: BlockingEvolver, steps: int) -> None:
        """Setup, so many steps, finalize; goes on where it was killed."""
        done = self.progress()
        if not done:
            evolver.setup(self)
        for step in range(len(done), steps):
            prepared = self.folder / "host" / f"material-{step}"
            if not prepared.exists():
                self.write_material(step)
                prepared.touch()
            self._keep(evolver.step(self), self.report)
        if len(done) <= steps:
            self._keep(evolver.finalize(self), self.report)

    def progress(self) -> list[Json]:
        """What the host has been told so far, call by call."""
        file = self.folder / "host" / "progress.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    def progress_count(self) -> int:
        """How many calls have returned."""
        return len(self.progress())

    def _keep(self, result: StepResult, report: str) -> None:
        kept = {"result": result, "report": report, "document": self.document.read_bytes().decode()}
        _append(self.folder / "host" / "progress.jsonl", json.dumps(kept))

    def _noted(self, name: str, answer: Callable[[], object]) -> object:
        self.before(name)
        answered = answer()
        _append(self.folder / "host" / "calls.txt", name)
        self.after(name)
        return answered


def _rules(document: str) -> list[str]:
    return re.findall(r"- use (r\d+)", document)


def _skill_in(prompt: str) -> str:
    """The document in a prompt: what stands before the attempts or patches."""
    return re.split(r"# Rollouts|# Proposals", prompt, maxsplit=1)[0]


def _read_part(request: LlmRequest) -> str:
    return request.user[len(_skill_in(request.user)) :]


def _append(file: Path, line: str) -> None:
    """One whole line, also when the process is killed right afterwards."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (line + "\n").encode())
    os.close(descriptor)
