"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def write_whole(path: Path, text: str, *, by_way_of: Path) -> None:
    """Put the text in the file's place, newlines as they are; a reader or a crash never meets half of it.

    It is first written into the folder `by_way_of`, so that a killed process leaves nothing beside the file; where that
    is on another disk, beside it. A file that is there keeps its permissions. Raises OSError.
    """
    content = text.encode()
    if path.is_file() and path.read_bytes() == content:
        return
    temporary = by_way_of / f".{path.name}.part"
    try:
        _write(temporary, content, like=path)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno != errno.EXDEV or by_way_of == path.parent:
            raise
        write_whole(path, text, by_way_of=path.parent)
        return
    _sync_folder(path.parent)


def _write(path: Path, content: bytes, *, like: Path) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(stat.S_IMODE(like.stat().st_mode) if like.exists() else 0o644)


def _sync_folder(folder: Path) -> None:
    """Let the new name survive a power loss, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
