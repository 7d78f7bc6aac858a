"""The reference of all settings, written from their declarations."""

from __future__ import annotations

from burnish.presentation.settings.keys import KEYS, SECTIONS
from burnish.presentation.settings.mapping import SETTING_OF, canonical
from burnish.presentation.settings.yaml_text import write_value

_HEAD = """\
# Configuration

A task is one YAML file. `burnish config show TASK.yaml` prints every setting with the place its value came from, `burnish config
check TASK.yaml` only says whether they are right. `_base_: other.yaml` builds on another file (relative, as deep as you like);
`--cfg-options section.key=value …` goes over both. Unknown keys, wrong types and values out of range are refused, with the nearest
right name.

*Identity* settings decide what a run computes: they must stay the same for a run to go on. *Operation* settings only decide how it is
carried out, and may change.

Keys and addresses come from the environment or a `.env` file beside the task, never from the task file: [models.md](models.md) has the
variables of each backend.

This page is printed by `burnish config reference`.
"""


def reference() -> str:
    """The page, in Markdown."""
    in_code = {key: field for field, key in SETTING_OF.items()}
    lines = [_HEAD]
    for section in SECTIONS:
        rows = [key for path, key in KEYS.items() if path.rpartition(".")[0] == section]
        lines += [
            f"## {section}",
            "",
            "| key | default | kind | meaning | `TrainSkillConfig` |",
            "|---|---|---|---|---|",
        ]
        for key in rows:
            default = write_value(canonical(key.default)).replace("|", "\\|")
            field = f"`{in_code[key.path]}`" if key.path in in_code else ""
            name = key.path.rpartition(".")[2]
            meaning = key.description.replace("|", "\\|")
            lines.append(f"| `{name}` | `{default}` | {key.kind.value} | {meaning} | {field} |")
        lines.append("")
    return "\n".join(lines)
