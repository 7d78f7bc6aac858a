"""The folder an agent works in: one an item, with the skill where the agent looks for skills."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

SKILL_NAME: Final = "trained-skill"
"""Of a skill that does not name itself."""

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<body>.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"^name:[ \t]*[\"']?(?P<name>[a-z0-9][a-z0-9-]{0,63})[\"']?[ \t]*\r?$", re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*\S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """`work` is where the agent is, `scratch` what we exchange with it; `skill` names the skill, empty without one."""

    work: Path
    scratch: Path
    skill: str


@contextmanager
def work_folder(skill: str, skills: PurePath) -> Generator[WorkFolder]:
    """A new folder, gone at the end; the skill is below `skills` in it. Only its owner can read it."""
    root = Path(tempfile.mkdtemp(prefix="burnish-agent-"))
    try:
        work, scratch = root / "work", root / "scratch"
        work.mkdir()
        scratch.mkdir()
        name = ""
        if skill.strip():
            name, text = as_skill_file(skill)
            folder = work / skills / name
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        yield WorkFolder(work, scratch, name)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def as_skill_file(skill: str) -> tuple[str, str]:
    """A skill's name, and its text as an agent wants it: agents list skills by a name and a description in front.

    A text that has both stays as it is, so that what is tried is what is trained.
    """
    front = _FRONT_MATTER.match(skill)
    if front is not None:
        name, described = _NAME.search(front["body"]), _DESCRIPTION.search(front["body"])
        if name is not None and described is not None:
            return name["name"], skill
    head = f"---\nname: {SKILL_NAME}\ndescription: How to do the task at hand. Read it before anything else.\n---\n\n"
    return SKILL_NAME, head + skill
