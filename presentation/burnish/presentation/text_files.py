"""Reading a text a person has named: a skill, or what a simulation knows; and writing one in its place."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from burnish.domain.regions import MAX_SKILL_CHARACTERS
from burnish.presentation.settings.errors import SettingsError, shown_path

_MOST_BYTES = 4 * MAX_SKILL_CHARACTERS + 3
"""A longer file cannot be a skill: UTF-8 takes at most four bytes a character, and three for a byte-order mark."""


def read_text_file(path: Path, where: str) -> str:
    """The text, with its newlines and byte-order mark as they are.

    Raises SettingsError, which begins with `where` it was named, for anything but a readable file of UTF-8 text that is
    no longer than a skill may be.
    """
    subject = f"{where}: {shown_path(str(path))}"
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise SettingsError((f"{subject}: is a folder: name a file",))
        if not stat.S_ISREG(status.st_mode):
            raise SettingsError((f"{subject}: is no regular file: name one",))
        content = path.read_bytes() if status.st_size <= _MOST_BYTES else None
    except FileNotFoundError as error:
        raise SettingsError((f"{subject}: there is no such file",)) from error
    except (OSError, ValueError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "is no file name"
        raise SettingsError((f"{subject}: cannot be read: {reason}",)) from error
    if content is None:
        raise SettingsError((f"{subject}: is longer than the {MAX_SKILL_CHARACTERS} characters a skill may have",))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError((f"{subject}: is not UTF-8 text: save it as UTF-8",)) from error
    if len(text) > MAX_SKILL_CHARACTERS:
        too_long = f"has {len(text)} characters, a skill has at most {MAX_SKILL_CHARACTERS}: shorten it"
        raise SettingsError((f"{subject}: {too_long}",))
    return text


def replace_text_file(path: Path, text: str) -> None:
    """Write the text through a temporary file beside it, so that nobody ever meets half of it; newlines stay as they are.

    The permissions of a file that is there stay. Raises OSError.
    """
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
