"""Looking at everything a run of a task needs, before it begins."""

from __future__ import annotations

import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from burnish.application.ports import ItemCatalog, PortError
from burnish.application.result import ErrorCode
from burnish.application.usage import UsageNote
from burnish.domain.rollouts import SPLITS
from burnish.infrastructure.tasks.refusals import DataError, shown, shown_path
from burnish.presentation.checks import Check, failed, ok, warning
from burnish.presentation.model_checks import check_models
from burnish.presentation.settings.environment import Environment, read_environment
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import LoadedTask, load_task
from burnish.presentation.settings.models import fill_models
from burnish.presentation.task import Task, open_task
from burnish.presentation.training import RUNS

_OLDEST_PYTHON = (3, 11)
_LEAST_BYTES = 50 * 1024 * 1024
_ENOUGH_BYTES = 1024 * 1024 * 1024
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:>=([0-9.]+))?\s*(;.*)?")
_PLAIN_RUNNER = (
    "its runner is no item catalog: a batch is one answer, kept for its run only; a stopped run asks the whole batch again, "
    "budgets count it afterwards, and validation never stops early"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found, and what asking the models used."""

    checks: tuple[Check, ...]
    usage: tuple[UsageNote, ...] = ()


async def examine(
    task_file: Path | None, overrides: Sequence[str], environ: Mapping[str, str], *, asks: bool = True
) -> Findings:
    """Look at the machine and, when one is named, at the task; unless `asks` is false, its models are asked a word each."""
    machine = (_python(), _libraries(), _disk(RUNS))
    if task_file is None:
        return Findings(checks=(*machine, _variables(environ)))
    try:
        loaded = load_task(task_file, overrides)
        environment = read_environment(loaded.base_dir, environ)
        loaded = fill_models(loaded, environment)
    except SettingsError as error:
        return Findings(checks=(*machine, *(failed("settings", line) for line in error.lines)))
    settings = ok("settings", shown_path(task_file))
    about_task = await _check_task(loaded, environment)
    models: tuple[Check, ...] = ()
    usage: tuple[UsageNote, ...] = ()
    if asks:
        models, usage = await check_models(loaded, environment)
    return Findings(checks=(*machine, settings, *about_task, *models), usage=usage)


def _python() -> Check:
    told = f"{platform.python_version()} on {platform.system()}"
    if sys.version_info[:2] < _OLDEST_PYTHON:
        return failed("python", f"{told}: burnish needs 3.11 or newer")
    return ok("python", told)


def _libraries() -> Check:
    """Whether every library is there, and new enough; extras are not looked at."""
    found: list[str] = []
    missing: list[str] = []
    for requirement in requires("burnish") or ():
        match = _REQUIREMENT.fullmatch(requirement.strip())
        if match is None or match[3]:
            continue
        try:
            there = version(match[1])
        except PackageNotFoundError:
            missing.append(f"{match[1]} is missing")
            continue
        if match[2] and _numbers(there) < _numbers(match[2]):
            missing.append(f"{match[1]} is {there}, older than {match[2]}")
        found.append(f"{match[1]} {there}")
    if missing:
        return failed("libraries", f"{', '.join(missing)}: install burnish again")
    return ok("libraries", f"burnish {version('burnish')}, {', '.join(found)}")


def _numbers(text: str) -> tuple[int, ...]:
    """The release in a version, without what comes before or after one: 2.1rc1 is 2.1."""
    release = re.match(r"[0-9]+(\.[0-9]+)*", text)
    return () if release is None else tuple(map(int, release[0].split(".")))


def _disk(folder: Path) -> Check:
    """Whether a run folder can be made below the folder, or below the nearest one above it that there is."""
    place = folder.absolute()
    place = next(path for path in (place, *place.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as error:
        reason = (error.strerror or "cannot be written to").lower()
        return failed("disk", f"{shown_path(place)}: {reason}: train with --out-root elsewhere", is_outside=True)
    told = f"{shown_path(place)} can be written to, {free / 1024**3:.1f} GiB free"
    if free < _LEAST_BYTES:
        return failed("disk", f"{told}: make room, or train with --out-root elsewhere", is_outside=True)
    return warning("disk", f"{told}: a long run may fill it") if free < _ENOUGH_BYTES else ok("disk", told)


def _variables(environ: Mapping[str, str]) -> Check:
    """Which models the environment knows, without a task that would say which are needed."""
    here = read_environment(Path(), environ)
    sources = (here.process, here.dotenv)
    known = sorted({name for source in sources for name, value in source.items() if value.strip()})
    if not known:
        remedy = "set OPENAI_COMPATIBLE_BASE_URL and OPENAI_COMPATIBLE_MODEL, or OPENAI_API_KEY"
        return warning("environment", f"tells of no model: {remedy}, and name a task to have them asked")
    return ok("environment", f"{', '.join(known)} are set: name a task to have its models asked")


async def _check_task(loaded: LoadedTask, environment: Environment) -> Sequence[Check]:
    try:
        async with open_task(loaded, environment, offline=True) as task:
            return [*_data(task), await _scorer(task), check_journal(task.runner)]
    except SettingsError as error:
        return [failed("task", line) for line in error.lines]
    except DataError as error:
        return [failed("data", str(error))]


def _data(task: Task) -> Iterator[Check]:
    counts = ", ".join(f"{task.items[split]} {split}" for split in SPLITS)
    yield ok("data", f"{counts} items, each id once")
    homes: dict[str, str] = {}
    for split in SPLITS:
        for item in task.runner.items(split):
            home = homes.setdefault(" ".join(item.question.split()).casefold(), split)
            if home != split:
                leak = f"item {shown(item.item_id)} of {split} asks what an item of {home} asks"
                yield warning("data", f"{leak}: scores on {split} look better than they are; keep one of them")
                return
    size = len(task.initial_skill)
    yield ok("skill", f"{size} characters" if size else "none: training starts from an empty one")


async def _scorer(task: Task) -> Check:
    """Whether the scorer takes an item's own answer for right."""
    item = next((item for split in SPLITS for item in task.runner.items(split) if item.answers), None)
    if item is None:
        return ok("scorer", "was not run: no item has an answer of its own")
    try:
        score = await task.runner.score(item.answers[0], item)
    except PortError as error:
        if error.code is not ErrorCode.ROLLOUT_INVALID_SCORE:
            raise
        cause = type(error.__cause__).__name__ if error.__cause__ is not None else "an exception"
        return failed("scorer", f"raised {cause} for item {shown(item.item_id)}: run it in Python to see where")
    if not (0 <= score.hard <= 1 and 0 <= score.soft <= 1):
        return failed("scorer", f"gave item {shown(item.item_id)} a score outside of 0 to 1: correct it")
    if score.hard < 1:
        right = f"takes the answer of item {shown(item.item_id)} for wrong (hard {score.hard:g}, soft {score.soft:g})"
        return warning("scorer", f"{right}: is it the scorer this task needs?")
    return ok("scorer", f"takes the answer of item {shown(item.item_id)} for right")


def check_journal(runner: object) -> Check:
    """Whether the runner knows its items, so that burnish can keep each one's answer."""
    if isinstance(runner, ItemCatalog):
        return ok(
            "journal", "each item's answer is kept; only a runner of your own that names no items has batches kept"
        )
    return warning("journal", _PLAIN_RUNNER)
