"""Train from a plain script: an agent, an optimizer, a checkpoint store and an event sink of one's own.

Run it with `python examples/hosts/desk_script.py FOLDER`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from desk import PAGE, DeskAnalyst, DeskRunner

from burnish.api import TrainSkill, TrainSkillConfig, open_app
from burnish.application.events import Event, StepFinished
from burnish.domain.runs import Checkpoint


class FolderCheckpoints:
    """Keeps each step's page as a file of its own, for people to look at."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[tuple[str, int], Checkpoint] = {}
        folder.mkdir(parents=True, exist_ok=True)

    async def save(self, checkpoint: Checkpoint) -> None:
        """Write the page, and beside it what is known of it."""
        self._kept[checkpoint.run_id, checkpoint.step] = checkpoint
        path = self._folder / f"{checkpoint.run_id}-{checkpoint.step:03}"
        path.with_suffix(".md").write_text(checkpoint.skill, encoding="utf-8")
        path.with_suffix(".json").write_text(json.dumps(asdict(checkpoint), default=str), encoding="utf-8")

    async def get(self, run_id: str, step: int) -> Checkpoint | None:
        """The page after a step."""
        return self._kept.get((run_id, step))

    async def best(self, run_id: str) -> Checkpoint | None:
        """The one with the highest score, the earliest among equals."""
        return max(await self.list(run_id), key=lambda kept: (kept.score, -kept.step), default=None)

    async def list(self, run_id: str) -> Sequence[Checkpoint]:
        """All of a run, by step."""
        return [kept for (run, _), kept in sorted(self._kept.items()) if run == run_id]


class Printer:
    """Prints a line a step."""

    async def emit(self, event: Event) -> None:
        """Take note."""
        if isinstance(event, StepFinished):
            score = "-" if event.current_score is None else f"{event.current_score:.2f}"
            print(f"step {event.step}: {event.record.reason}, score {score}")


async def main(folder: Path) -> int:
    """Train the page; returns the exit code of the failure's kind, or 0."""
    config = TrainSkillConfig(epochs=3, steps_per_epoch=2, train_batch_size=3, lr_start=1, seed=1)
    async with open_app(
        rollouts=DeskRunner(),
        proposer=DeskAnalyst(),
        checkpoints=FolderCheckpoints(folder),
        sinks=(Printer(),),
    ) as app:
        result = await app.send(TrainSkill("desk-1", "desk", PAGE, config))
    if result.failure is not None:
        print(f"failed: {result.failure.code} {', '.join(result.failure.fields)}", file=sys.stderr)
        return result.failure.code.kind.exit_code
    run = result.value
    print(f"from {run.baseline_score:.2f} to {run.selected_score:.2f}\n\n{run.best_skill}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/host-script"))))
