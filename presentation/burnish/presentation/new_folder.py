"""Making a folder that is there whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from burnish.infrastructure.tasks.refusals import shown_path
from burnish.presentation.settings.errors import SettingsError


@contextmanager
def new_folder(path: Path, where: str) -> Generator[Path]:
    """A temporary folder beside `path` that takes its place when the block ends well, and is gone when it does not.

    `where` is the option that names the path. Raises SettingsError when there is something already (an empty folder is
    nothing), and when the system refuses.
    """
    subject = f"{where}: {shown_path(path)}"
    if path == Path():
        raise SettingsError((f"{where}: names the current folder: name one that is to be made",))
    target = path.resolve()
    made = [parent for parent in target.parents if not parent.exists()]
    temporary: Path | None = None
    is_there = False
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            what = "holds files already" if target.is_dir() else "is no folder"
            raise SettingsError((f"{subject}: {what}: name a new or an empty folder",))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name[:32]}."))
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(target)  # refused when somebody has put something there meanwhile
        is_there = True
    except OSError as error:
        reason = (error.strerror or "cannot be written to").lower()
        raise SettingsError((f"{subject}: {reason}: name another folder",)) from error
    finally:
        if not is_there:
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)
            for parent in made:
                with suppress(OSError):
                    parent.rmdir()
