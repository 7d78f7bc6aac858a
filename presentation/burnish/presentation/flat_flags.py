"""SkillOpt's flat flags (`--num_epochs 4`) on burnish's command line, and the page that lists them."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.presentation.settings.errors import SettingsError, listed
from burnish.presentation.settings.keys import KEYS
from burnish.presentation.settings.layers import OPTIONS
from burnish.presentation.settings.skillopt_names import SKILLOPT_NAMES, SkillOptName, by_flag
from burnish.presentation.settings.yaml_text import write_scalar

COMMANDS = (("train",), ("eval",), ("estimate",), ("doctor",), ("config", "show"), ("config", "check"))
"""The commands that read a task, and so take them."""

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_PAGE = """\
# SkillOpt's keys and flags

Each key of SkillOpt's YAML files, and each flag of its `train.py` and `eval_only.py`, with what does the same here, or the reason why
nothing does. `burnish train TASK.yaml --num_epochs 4` is the same as `--cfg-options train.num_epochs=4`, and beats it where both are
given, as there; `burnish eval`, `estimate`, `doctor`, `config show` and `config check` take the flags too. Truth values are `true`, `1`,
`yes`, `false`, `0` and `no`; anything else is refused. A name that is refused, in a file or on the command line, is told with its reason.

This page is printed by `burnish config flags`.
"""


def without_flat_flags(arguments: Sequence[str]) -> list[str]:
    """The arguments with SkillOpt's flat flags made settings over all others.

    Raises SettingsError with a line for each flag that is refused, or has no value.
    """
    if not any(tuple(arguments[: len(command)]) == command for command in COMMANDS):
        return list(arguments)
    left: list[str] = []
    settings: list[str] = []
    lines: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        flag, equals, value = argument.removeprefix("--").partition("=")
        known = by_flag(flag) if argument.startswith("--") else None
        if known is None or known.option == f"--{flag}":  # an option of our own of the same spelling
            left.append(argument)
            continue
        given = value if equals else rest.pop(0) if rest and not rest[0].startswith("--") else None
        if not known.is_supported:
            lines.append(f"--{flag}: is not supported: {known.reason}")
        elif given is None:
            lines.append(f"--{flag}: needs a value")
        elif known.option:
            left += [known.option, given]
        else:
            settings += [f"{key}={_value(key, given)}" for key in known.keys]
    if lines:
        raise SettingsError(tuple(lines))
    return [*left, OPTIONS, *settings] if settings else left


def flags_page() -> str:
    """The page, in Markdown."""
    lines = [_PAGE]
    for section in dict.fromkeys(_section(name) for name in SKILLOPT_NAMES):
        lines += [
            f"## {section}",
            "",
            "| flag | key | here | |",
            "|---|---|---|---|",
            *(_row(name) for name in SKILLOPT_NAMES if _section(name) == section),
            "",
        ]
    return "\n".join(lines)


def _section(name: SkillOptName) -> str:
    return name.path.partition(".")[0] if "." in name.path else "command line"


def _row(name: SkillOptName) -> str:
    key = f"`{name.path}`" if "." in name.path else ""
    here = listed(tuple(f"`{each}`" for each in name.keys or (name.option,)), "and") if name.is_supported else "refused"
    return f"| `--{name.flag}` | {key} | {here} | {name.remark if name.is_supported else name.reason} |"


def _value(key: str, text: str) -> str:
    """What stands behind the equals sign of a setting; truth values and the empty text as SkillOpt writes them."""
    default = KEYS[key].default
    if isinstance(default, bool) and text.lower() in _TRUE | _FALSE:
        return "true" if text.lower() in _TRUE else "false"
    if not text.strip():
        return "null" if KEYS[key].is_nullable else write_scalar("")
    return text
