"""The run folder: what a run leaves on disk, each file whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from burnish.domain.ranges import Range
from burnish.domain.runs import LostCalls, StepRecord, TrainingRun
from burnish.infrastructure.persistence.audit import AuditAnchor
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.skill_folders import write_skill_folder
from burnish.presentation.summary import range_json, summary_of
from burnish.presentation.task import Task

DATABASE = "burnish.db"
TIMING = "timing.json"
LOG = "log.jsonl"
SUMMARY = "summary.json"
HISTORY = "history.jsonl"
CONFIG = "config.yaml"
WRITTEN = ("best_skill.md", "final_skill.md", HISTORY, SUMMARY, TIMING, CONFIG)
"""Files that are written whole, through a temporary file."""
SKILL_FOLDER = "best_skill"
"""Where the best skill is an Agent Skill, if the initial one was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What is kept apart from the results, because it differs between runs of the same results.

    `database` is the dialect of the database the run is kept in: `sqlite` (the folder's own file) or `postgresql`.
    `ended_at` is None while the run is being trained, and stays so when its process is killed. `audit` is the anchor of the
    audit log at the end of the last attempt that had one. `lost` are calls of a run with a budget whose answers never came;
    `forecast_seconds` is what was expected of the run. `task_file` is the
    task file's absolute path: relative paths in the configuration start in its folder.
    """

    run_id: str
    task: str
    database: str
    started_at: datetime
    ended_at: datetime | None = None
    audit: AuditAnchor | None = None
    lost: LostCalls | None = None
    task_file: str | None = None
    forecast_seconds: Range[float] | None = None


class RunFolder:
    """One folder, one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / DATABASE

    @property
    def holds_run(self) -> bool:
        """Whether there is a run in it, however far it has come."""
        return self.database.exists() or (self.path / TIMING).exists()

    def prepare(self) -> None:
        """Make the folder; raises SettingsError when it cannot be one that is written to, or holds files of others.

        A folder is burnish's own when it holds the database or the timing of a run: in any other, files that have our
        names are somebody's, and stay.
        """
        try:
            taken = [name for name in (*WRITTEN, SKILL_FOLDER) if (self.path / name).exists()]
            if taken and not self.holds_run:
                whose = f"holds {taken[0]}, which is no run's: choose another folder"
                raise SettingsError((f"--out-root: {self.path}: {whose}",))
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            reason = (error.strerror or "cannot be written to").lower()
            raise SettingsError((f"--out-root: {self.path}: {reason}: choose another folder",)) from error

    def write_config(self, effective: str, *, replace: bool = True) -> None:
        """Keep the effective configuration, which holds no secrets; without `replace` only where there is none yet."""
        if replace or not (self.path / CONFIG).exists():
            self._write(CONFIG, effective)

    def config(self) -> str | None:
        """The text of the effective configuration; None when there is none that can be read."""
        try:
            return (self.path / CONFIG).read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return None

    def write_run(self, run: TrainingRun, task: Task) -> None:
        """Keep the skills, the history and the summary of a run, ended well or not; nothing in them tells the time."""
        self._write("best_skill.md", run.best_skill)
        if task.skill_folder is not None:
            write_skill_folder(self.path / SKILL_FOLDER, run.best_skill, task.skill_folder)
        self._write("final_skill.md", run.final_skill)
        self._write(HISTORY, "".join(f"{record_json(record)}\n" for record in run.steps))
        self._write(SUMMARY, json.dumps(summary_of(run, task), indent=2, ensure_ascii=False) + "\n")

    def write_timing(self, timing: Timing) -> None:
        """Keep it; an anchor that was kept stays where there is no new one."""
        ended, audit, forecast = timing.ended_at, timing.audit, timing.forecast_seconds
        if audit is None and (before := self.timing()) is not None:
            audit = before.audit
        written = {
            "run_id": timing.run_id,
            "task": timing.task,
            "task_file": timing.task_file,
            "database": timing.database,
            "started_at": timing.started_at.isoformat(),
            "ended_at": None if ended is None else ended.isoformat(),
            "seconds": None if ended is None else round((ended - timing.started_at).total_seconds(), 3),
            "forecast_seconds": None if forecast is None else range_json(forecast, digits=3),
            "audit": None if audit is None else {"count": audit.count, "head": audit.head},
            "lost": None if timing.lost is None else asdict(timing.lost),
        }
        self._write(TIMING, json.dumps(written, indent=2) + "\n")

    def timing(self) -> Timing | None:
        """What was last kept of it; None when there is nothing, or nothing that can be read."""
        try:
            read = json.loads((self.path / TIMING).read_text(encoding="utf-8"))
            ended, audit = read["ended_at"], read["audit"]
            task_file, forecast = read.get("task_file"), read.get("forecast_seconds")
            return Timing(
                run_id=str(read["run_id"]),
                task=str(read["task"]),
                database=str(read["database"]),
                started_at=datetime.fromisoformat(read["started_at"]),
                ended_at=None if ended is None else datetime.fromisoformat(ended),
                audit=None if audit is None else AuditAnchor(int(audit["count"]), str(audit["head"])),
                task_file=None if task_file is None else str(task_file),
                forecast_seconds=None if forecast is None else Range(float(forecast["low"]), float(forecast["high"])),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def audit_anchor(self) -> AuditAnchor:
        """The anchor of the audit log as it was last kept. Raises SettingsError when there is none."""
        timing = self.timing()
        if timing is None or timing.audit is None:
            raise SettingsError((f"{self.path / TIMING}: holds no anchor of an audit log: is this a run folder?",))
        return timing.audit

    def _write(self, name: str, text: str) -> None:
        """Through a temporary file, so that a reader or a crash never meets half of it; newlines stay as they are."""
        descriptor, temporary = tempfile.mkstemp(dir=self.path, prefix=f".{name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(self.path / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def record_json(record: StepRecord) -> str:
    """A record in one line of JSON."""
    return json.dumps(asdict(record), ensure_ascii=False)
