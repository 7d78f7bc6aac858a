"""Agent Skills: folders with a SKILL.md, read as initial skills and written as trained ones."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from burnish.domain.regions import front_matter_span, markers_are_balanced
from burnish.presentation.settings.errors import SettingsError, shown, shown_path
from burnish.presentation.settings.yaml_text import Value, YamlError, read_document
from burnish.presentation.text_files import read_text_file

SKILL_FILE: Final = "SKILL.md"
CARRIED: Final = ("references", "scripts", "assets")
"""Folders of a skill that go along with it untouched; so does a LICENSE file. Others are none of a skill's."""

MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500
MAX_CARRIED_BYTES: Final = 64 * 1024 * 1024

_FENCE: Final = "---"


@dataclass(frozen=True, slots=True)
class InitialSkill:
    """The text training starts from; `folder` is the skill's own when it is an Agent Skill, and `warnings` are about it."""

    text: str = ""
    folder: Path | None = None
    warnings: tuple[str, ...] = ()


def read_initial_skill(path: Path, where: str) -> InitialSkill:
    """The skill in a file, or in a folder with a SKILL.md, which must be a valid Agent Skill.

    Its newlines and byte-order mark stay as they are. Raises SettingsError, which begins with `where` it was named, for
    anything else, and for markers of regions that do not pair up.
    """
    folder = path if path.is_dir() else None
    file = path if folder is None else folder / SKILL_FILE
    text = read_text_file(file, where)
    subject = f"{where}: {shown_path(str(file))}"
    if not markers_are_balanced(text):
        unpaired = "has region markers that do not pair up or lie inside each other: repair or remove them"
        raise SettingsError((f"{subject}: {unpaired}",))
    if folder is None:
        return InitialSkill(text)
    problems = skill_problems(text)
    if problems:
        raise SettingsError(tuple(f"{subject}: {problem}" for problem in problems))
    _refuse_large(folder, where)
    name = _front_matter(text)["name"]
    folder_name = folder.resolve().name
    called = f"{where}: the skill is called {name} and its folder {shown(folder_name, 64)}: Agent Skills need one name"
    return InitialSkill(text, folder, () if name == folder_name else (called,))


def skill_problems(text: str) -> tuple[str, ...]:
    """What keeps a document from being an Agent Skill's SKILL.md, a line each; nothing when it is one.

    Looked at is what the format demands of the front matter: `name`, `description`, and the form of its optional fields.
    """
    try:
        fields = _front_matter(text)
    except YamlError as error:
        return (f"line {error.line}: its front matter is not readable: {error.problem}",)
    if not fields:
        return ("has no front matter: begin it with a line ---, name: …, description: …, and a line ---",)
    problems = (
        _name_problem(fields.get("name")),
        _text_problem("description", fields.get("description"), MAX_DESCRIPTION, is_needed=True),
        _text_problem("compatibility", fields.get("compatibility"), MAX_COMPATIBILITY),
        _text_problem("license", fields.get("license"), None),
        _metadata_problem(fields.get("metadata")),
    )
    return tuple(problem for problem in problems if problem)


def write_skill_folder(target: Path, text: str, source: Path) -> None:
    """Make `target` a skill folder of the text with what `source` carries along: whole, or as it was before.

    Raises OSError when that cannot be done.
    """
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        with (temporary / SKILL_FILE).open("w", encoding="utf-8", newline="") as file:
            file.write(text)
        for entry in _carried(source):
            if entry.is_dir():
                shutil.copytree(entry, temporary / entry.name, symlinks=True)
            else:
                shutil.copy2(entry, temporary / entry.name)
        temporary.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def skill_files(folder: Path) -> Iterator[Path]:
    """The files of a written skill folder, those of nobody else; none of a link to one."""
    if folder.is_symlink():
        return
    yield from (file for file in (folder / SKILL_FILE,) if file.is_file())
    for entry in _carried(folder):
        inner = sorted(entry.rglob("*")) if entry.is_dir() else [entry]
        yield from (path for path in inner if path.is_symlink() or path.is_file())


def _carried(folder: Path) -> list[Path]:
    """What goes along with the skill. A link to a folder elsewhere does not."""
    entries = [folder / name for name in CARRIED]
    licences = sorted(folder.glob("LICENSE*"))
    return [each for each in (*entries, *licences) if not each.is_symlink() and (each.is_dir() or each.is_file())]


def _refuse_large(folder: Path, where: str) -> None:
    try:
        size = sum(file.lstat().st_size for file in skill_files(folder))
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise SettingsError((f"{where}: {shown_path(str(folder))}: {reason}: check its files",)) from error
    if size > MAX_CARRIED_BYTES:
        too_large = (
            f"its {', '.join(CARRIED)} have more than {MAX_CARRIED_BYTES >> 20} MiB: take out what is no skill's"
        )
        raise SettingsError((f"{where}: {shown_path(str(folder))}: {too_large}",))


def _front_matter(text: str) -> dict[str, Value]:
    """Its fields; empty when there is none. Raises YamlError when they cannot be read."""
    span = front_matter_span(text)
    inner = text[span.start : span.end].lstrip("\ufeff").strip().removeprefix(_FENCE).removesuffix(_FENCE)
    if not inner.strip():
        return {}
    value = read_document(inner)
    if not isinstance(value, dict):
        raise YamlError("it holds no fields", 2)
    return value


def _name_problem(name: Value) -> str:
    if name is None or name == "":
        return "has no name: write name: and lower-case words with hyphens between them"
    if not isinstance(name, str):
        return "name is no text: put it in quotation marks"
    if len(name) > MAX_NAME:
        return f"name has {len(name)} characters, and may have {MAX_NAME}: shorten it"
    if not re.fullmatch(r"[^\W_]+(-[^\W_]+)*", name) or name != name.lower():
        return f"name {shown(name)!r} must be lower-case letters and digits with single hyphens between them: rename it"
    return ""


def _text_problem(key: str, value: Value, most: int | None, *, is_needed: bool = False) -> str:
    if value is None and not is_needed:
        return ""
    if value is None or (isinstance(value, str) and not value.strip()):
        return (
            f"has no {key}: write what the skill does and when to use it" if is_needed else f"{key} is empty: remove it"
        )
    if not isinstance(value, str):
        return f"{key} is no text: put it in quotation marks"
    if most is not None and len(value) > most:
        return f"{key} has {len(value)} characters, and may have {most}: shorten it"
    return ""


def _metadata_problem(value: Value) -> str:
    if value is None:
        return ""
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        return "metadata must hold texts by name: put its values in quotation marks"
    return ""
