"""The `burnish` command: answers `--version` at once, and loads the console for everything else."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the console; returns its exit status."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from importlib.metadata import version  # noqa: PLC0415 - the answer must not wait for the console's imports

        sys.stdout.write(f"burnish {version('burnish')}\n")
        return 0
    from burnish.presentation.cli import run  # noqa: PLC0415 - see above

    return run(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
