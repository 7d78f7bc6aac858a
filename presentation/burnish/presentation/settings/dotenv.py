"""Reads the `.env` file beside a task: `NAME=value` lines, of which only the asked-for names matter."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from burnish.presentation.settings.errors import SettingsError, shown_path

MAX_BYTES = 1 << 20

_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>\w+)\s*=\s*(?P<value>.*?)\s*")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*?)(?P=quote)(?:\s+#.*)?")
_COMMENT = re.compile(r"(?:^|\s+)#.*")


def read_dotenv(file: Path, names: Collection[str]) -> dict[str, str]:
    """The file's values of these names, nothing without a file; the last line of a name wins.

    `export` before a name, quotes around a value and comments behind it are understood; nothing is expanded. Other lines
    are somebody else's and are skipped. Raises SettingsError for a file that cannot be read or a quote that does not
    close, never with a value in it.
    """
    if not file.is_file():
        return {}
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError((f"{shown_path(str(file))}: cannot be read: {error.strerror}",)) from None
    if len(content) > MAX_BYTES:
        raise SettingsError((f"{shown_path(str(file))}: is larger than {MAX_BYTES // 1024} KiB",))
    values: dict[str, str] = {}
    # What is not UTF-8 is replaced: it can only matter in a value, which is then found unusable under its name.
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        match = _LINE.fullmatch(line)
        if match is None or match["name"] not in names:
            continue
        value = match["value"]
        if value.startswith(("'", '"')):
            quoted = _QUOTED.fullmatch(value)
            if quoted is None:
                where = f"{shown_path(str(file))}:{number}"
                raise SettingsError(
                    (f"{where}: {match['name']}: a quote that does not close: close it on the same line",)
                )
            values[match["name"]] = quoted["text"]
        else:
            values[match["name"]] = _COMMENT.sub("", value, count=1)
    return values
