"""`burnish init`: a task folder that can be trained, from somebody's data and three questions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from burnish.infrastructure.tasks.refusals import DataError, shown_path
from burnish.presentation.asking import answered
from burnish.presentation.data_preview import DataPreview, no_field, preview
from burnish.presentation.exits import checked, refuse, without_log
from burnish.presentation.interruption import run_until_told_to_stop
from burnish.presentation.new_folder import new_folder
from burnish.presentation.new_task import (
    CONVERTED,
    ENVIRONMENT,
    NewTask,
    converted,
    field_names,
    needs_conversion,
    refuse_too_few,
    task_name,
)
from burnish.presentation.settings.environment import USUAL_OPENAI_MODEL, bad_address, read_environment
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import load_task
from burnish.presentation.settings.model_section import bad_model_name
from burnish.presentation.settings.models import fill_models
from burnish.presentation.task import open_task
from burnish.presentation.task_package import package_files
from burnish.presentation.terminal import can_ask


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What the command line says; None or empty is what is to be asked, or guessed when nobody can be."""

    data: str | None
    question: str | None
    answer: str | None
    scorer: str | None
    endpoint: str | None
    model: str | None
    asks: bool


def init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder to make.", show_default="named after the data"),
    ] = None,
    *,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="The items: .jsonl, .json or .csv, or a folder of splits."),
    ] = None,
    question: Annotated[str | None, typer.Option("--question", metavar="FIELD", help="Which field is asked.")] = None,
    answer_field: Annotated[
        str | None, typer.Option("--answer", metavar="FIELD", help="Which field holds what is right.")
    ] = None,
    scorer: Annotated[str | None, typer.Option("--scorer", metavar="NAME", help="How answers are judged.")] = None,
    endpoint: Annotated[
        str | None, typer.Option("--endpoint", metavar="URL", help="The server of the models; left out: OpenAI.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="The model, for both roles.")] = None,
    no_copy: Annotated[
        bool, typer.Option("--no-copy", help="Refer to the data where it is, instead of copying it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: take what is likely.")] = False,
    task_package: Annotated[
        str | None,
        typer.Option("--task-package", metavar="NAME", help="Make a Python package with a task and a scorer instead."),
    ] = None,
) -> None:
    """Make a task folder: task.yaml, SKILL.md and the data. Asks for what is not said, when there is somebody to ask.

    Nothing is overwritten, and no model is asked. Keys never go into it: they come from the environment or a .env file.

    Example: burnish init --data tickets.csv --question ticket --answer code --endpoint http://127.0.0.1:8000/v1 --model m
    """
    if task_package is not None:
        if data is not None:
            refuse("--task-package: brings items of its own: leave --data out")
        _init_package(folder, task_package)
        return
    given = _Given(
        data=data,
        question=question,
        answer=answer_field,
        scorer=scorer,
        endpoint=endpoint,
        model=model,
        asks=can_ask() and not yes,
    )
    source = Path(_data(given))
    found = checked(lambda: preview(source))
    task = checked(lambda: _task(given, source, found, folder))
    place = folder or Path(task.name)
    with without_log():
        checked(lambda: _write(place, task, source, found, copies=not no_copy))
    _tell_next(place, task)


def _data(given: _Given) -> str:
    if given.data is not None:
        return given.data
    if not given.asks:
        refuse("--data: is not given, and nobody can be asked here: name the file with the task's items")
    return answered("1/3  Which file holds the questions and answers?", fits=_no_data)


def _no_data(text: str) -> str | None:
    if not text:
        return "name a .jsonl, .json or .csv file"
    try:
        preview(Path(text))
    except DataError as error:
        return str(error)
    return None


def _task(given: _Given, source: Path, found: DataPreview, folder: Path | None) -> NewTask:
    """What is wanted: as said, else as answered, else as is likely. Raises DataError or SettingsError."""
    question = _field(given, given.question, "--question", "2/3  Which field is the question?", found, is_question=True)
    right = _field(given, given.answer, "--answer", "     Which field is the answer?", found, is_question=False)
    scorer = given.scorer or found.likely_scorer(right)
    if given.asks and given.scorer is None:
        scorer = answered("     Which scorer judges it?", default=scorer)
    endpoint = given.endpoint
    if endpoint is None and given.asks:
        told = os.environ.get("OPENAI_COMPATIBLE_BASE_URL", "")
        asked = "3/3  Where is the server of the models? (empty: OpenAI)"
        endpoint = answered(asked, default=told, fits=lambda text: bad_address(text) if text else None)
    elif endpoint and (complaint := bad_address(endpoint)) is not None:
        raise SettingsError((f"--endpoint: {complaint}",))
    is_compatible = bool(os.environ.get("OPENAI_COMPATIBLE_BASE_URL")) and given.endpoint is None and not given.asks
    model = given.model or ""
    if given.model is None and given.asks:
        model = answered("     Which model?", default="" if endpoint else USUAL_OPENAI_MODEL, fits=bad_model_name)
    elif model and (complaint := bad_model_name(model)) is not None:
        raise SettingsError((f"--model: {complaint}",))
    elif not model and endpoint and not os.environ.get("OPENAI_COMPATIBLE_MODEL"):
        raise SettingsError(("--model: is not given: name the model that --endpoint is to be asked for",))
    if not source.is_dir():
        refuse_too_few(len(found.records))
    return NewTask(
        name=task_name(source.resolve().stem if folder is None else folder.resolve().name),
        data=source.name,
        is_folder=source.is_dir(),
        items=len(found.records),
        scorer=scorer,
        fields=field_names(found, question, right),
        endpoint=endpoint or "",
        is_compatible=is_compatible,
        model=model,
    )


def _field(given: _Given, name: str | None, option: str, asked: str, found: DataPreview, *, is_question: bool) -> str:
    if name is not None:
        complaint = no_field(name, found)
        if complaint is not None:
            raise DataError(f"{option}: {complaint}")
        return name
    likely = found.likely_question if is_question else found.likely_answer
    if given.asks:
        return answered(asked, default=likely, fits=lambda text: no_field(text, found))
    return likely


def _write(place: Path, task: NewTask, source: Path, found: DataPreview, *, copies: bool) -> None:
    """Make the folder, whole or not at all, and see that it can be trained. Raises SettingsError or DataError."""
    is_converted = not source.is_dir() and needs_conversion(task.fields, found, source.suffix.lower())
    if is_converted and not copies:
        raise SettingsError(("--no-copy: the data has to be written anew to be read: leave it out",))
    with new_folder(place, "DIR") as temporary:
        new = task
        if is_converted:
            (temporary / CONVERTED).write_text(converted(found, task.fields), encoding="utf-8", newline="")
            new = replace(task, data=CONVERTED, fields={})
        elif not copies:
            new = replace(task, data=os.path.relpath(source.resolve(), place.resolve()))
        elif source.is_dir():
            shutil.copytree(source, temporary / source.name)
        else:
            shutil.copyfile(source, temporary / source.name)
        for name, text in new.files.items():
            (temporary / name).write_text(text, encoding="utf-8", newline="")
            if name == ENVIRONMENT:
                (temporary / name).chmod(0o600)  # a key may be added to it
        try:
            run_until_told_to_stop(_prove(temporary / "task.yaml"))
        except SettingsError as error:
            raise SettingsError(tuple(_as_option(line) for line in error.lines)) from error
        except DataError as error:
            raise DataError(str(error).replace(str(temporary / new.data), shown_path(source))) from error


def _as_option(line: str) -> str:
    """A problem of the task file that was made, as one of the option it came from: nobody has seen the file."""
    _, is_scorer, told = line.partition(": env.scorer: ")
    return f"--scorer: {told}" if is_scorer else line


async def _prove(file: Path) -> None:
    """Open the task as training would, asking nobody."""
    loaded = load_task(file)
    environment = read_environment(loaded.base_dir, os.environ)
    async with open_task(fill_models(loaded, environment), environment, offline=True):
        pass


def _init_package(folder: Path | None, name: str) -> None:
    place = folder or Path(name)
    files = checked(lambda: package_files(name))
    checked(lambda: _write_files(place, files))
    typer.echo(f"{shown_path(place)}: {len(files)} files of a package with a task and a scorer")
    typer.echo(f"next: pip install -e {place} && python -m pytest {place}")


def _write_files(place: Path, files: Mapping[str, str]) -> None:
    with new_folder(place, "DIR") as temporary:
        for name, text in files.items():
            file = temporary / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")


def _tell_next(place: Path, task: NewTask) -> None:
    named = " ".join(f"{ours} is {theirs}" for ours, theirs in task.fields.items())
    typer.echo(f"{shown_path(place)}: {task.items} items, scorer {task.scorer}" + f", {named}" * bool(named))
    file = place / "task.yaml"
    typer.echo(f"next: burnish doctor {file}")
    typer.echo(f"      burnish train {file}")
