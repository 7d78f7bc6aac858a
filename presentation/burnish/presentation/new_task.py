"""The files of a new task folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from burnish.infrastructure.tasks.refusals import DataError
from burnish.infrastructure.tasks.splits import parse_ratio, split_counts
from burnish.presentation.data_preview import DataPreview
from burnish.presentation.settings.keys import KEYS
from burnish.presentation.settings.yaml_text import write_scalar, write_value

RATIO = "2:1:1"
"""Of train, val and test: a beginner's data is small, and most of it should teach."""

ON_LAST_LINE = frozenset({"exact_match", "f1", "anls"})
"""Scorers that judge the last line."""

CONVERTED = "items.jsonl"
ENVIRONMENT = ".env"
_FEWEST_ITEMS = 4
_STEPS_AN_EPOCH = 4
_SMALLEST_BATCH = 4
_LARGEST_BATCH = 40
_INSTRUCTION = "Write the answer, and nothing else, on the last line."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """What somebody wants to train on.

    `data` is the path of the data as the task file will have it; `is_folder` tells that it holds train/ and val/. `fields`
    are the data's names of what burnish calls question, answer, answers and id. Without an `endpoint` OpenAI itself is
    asked, or the server the environment names (`is_compatible`).
    """

    name: str
    data: str
    is_folder: bool
    items: int
    scorer: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    endpoint: str = ""
    is_compatible: bool = False
    model: str = ""

    @property
    def files(self) -> Mapping[str, str]:
        """The text of each file, by its name in the folder; not the data."""
        made = {
            "task.yaml": self._task(),
            "SKILL.md": _skill(self.name),
            "README.md": self._readme(),
            ".gitignore": f"{ENVIRONMENT}\nruns/\n",
        }
        if self.endpoint:
            made[ENVIRONMENT] = f"OPENAI_COMPATIBLE_BASE_URL={self.endpoint}\n# OPENAI_COMPATIBLE_API_KEY=\n"
        return made

    def _task(self) -> str:
        backend = "openai_compatible" if self.endpoint or self.is_compatible else "openai_chat"
        model = write_scalar(self.model) if self.model else "null"
        where = f"split_dir: {write_scalar(self.data)}" if self.is_folder else f"data_path: {write_scalar(self.data)}"
        lines = [
            f"# {self.name}: train SKILL.md until a frozen agent answers the task's questions.",
            "# Relative paths start from this file's folder; burnish config reference tells every key.",
            "",
            "env:",
            f"  name: {write_scalar(self.name)}",
            "  skill_init: SKILL.md",
            f"  {where}",
        ]
        if not self.is_folder:
            lines.append(f'  split_ratio: "{RATIO}"           # train, val, test')
        if self.fields:
            lines.append(f"  fields: {write_value(dict(self.fields))}")
        lines.append(f"  scorer: {self.scorer}")
        if self.scorer in ON_LAST_LINE:
            lines.append(f"  answer_instruction: {write_scalar(_INSTRUCTION)}")
        lines += [
            "  workers: 8                     # questions asked at once",
            "",
            "model:",
            f"  target_backend: {backend}",
            f"  target: {model}",
            f"  optimizer_backend: {backend}",
            f"  optimizer: {model}",
            "  # target_max_tokens: 2048      # longest answer; caps on tokens and dollars need it",
            "",
            "train:",
            "  num_epochs: 4",
            f"  batch_size: {batch_size(self.items, is_train=self.is_folder)}",
        ]
        return "\n".join(lines) + "\n"

    def _readme(self) -> str:
        train = f"burnish train {self.name}/task.yaml"
        looks = f"`burnish doctor {self.name}/task.yaml` looks whether all is there"
        return f"# {self.name}\n\n`{train}` trains SKILL.md on {self.data}; {looks}.\n"


def batch_size(items: int, *, is_train: bool = False) -> int:
    """Train items a step, so that an epoch has about four; of all items, or of the train items."""
    train = items if is_train else split_counts(items, parse_ratio(RATIO)).train
    return max(_SMALLEST_BATCH, min(_LARGEST_BATCH, train // _STEPS_AN_EPOCH))


def refuse_too_few(items: int) -> None:
    """Raises DataError when a split would have no items."""
    if items < _FEWEST_ITEMS:
        raise DataError(f"--data: has {items} items, and train, val and test need {_FEWEST_ITEMS}: write some more")


def field_names(found: DataPreview, question: str, answer: str) -> Mapping[str, str]:
    """The data's names of burnish's fields, where they are others."""
    several = "answers" if found.is_list(answer) else "answer"
    return {ours: theirs for ours, theirs in (("question", question), (several, answer)) if ours != theirs}


def needs_conversion(fields: Mapping[str, str], found: DataPreview, ending: str) -> bool:
    """Whether burnish cannot read the data as it is, so that it is written anew."""
    if "env.fields" in KEYS:
        return False
    return bool(fields) or ending not in {".jsonl", ".json"} or "id" not in found.fields


def converted(found: DataPreview, fields: Mapping[str, str]) -> str:
    """The records as burnish reads them, one a line, with an id each."""
    theirs = set(fields.values())
    lines: list[str] = []
    for number, record in enumerate(found.records, start=1):
        named = {ours: record.get(name) for ours, name in fields.items()}
        rest = {name: value for name, value in record.items() if name not in theirs and name not in named}
        lines.append(json.dumps({"id": str(number), **rest, **named}, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def task_name(text: str) -> str:
    """A name for task, skill and package: small letters, digits and single hyphens; "task" when nothing is left."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-") or "task"


def _skill(name: str) -> str:
    title = name.replace("-", " ").capitalize()
    head = f"---\nname: {name}\ndescription: How to answer the questions of {name}.\n---\n"
    return f"{head}\n# {title}\n\nAnswer the question.\n"
