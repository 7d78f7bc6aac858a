"""The shipped `configs/_base_/default.yaml`: every key, with its default and its description."""

from pathlib import Path

import pytest

from burnish.presentation.settings.fields import Kind
from burnish.presentation.settings.keys import KEYS, SECTIONS
from burnish.presentation.settings.loading import load_task
from burnish.presentation.settings.sections import TaskSettings

FILE = Path(__file__).resolve().parents[3] / "configs" / "_base_" / "default.yaml"


def test_it_equals_the_defaults() -> None:
    loaded = load_task(FILE)
    assert loaded.settings == TaskSettings()
    # split_mode is null there, so that a task built on the file needs to set split_dir only.
    assert set(loaded.sources.values()) == {str(FILE)}


def test_a_task_built_on_it_needs_to_name_its_folder_only(tmp_path: Path) -> None:
    (tmp_path / "default.yaml").write_bytes(FILE.read_bytes())
    (tmp_path / "task.yaml").write_text("_base_: default.yaml\nenv: {split_dir: items}\n")
    assert load_task(tmp_path / "task.yaml").settings.env.split_mode == "split_dir"


def test_it_describes_every_key_as_its_field_does() -> None:
    described: list[tuple[str, str]] = []
    path: list[str] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        text, _, comment = line.partition("  # ")
        if not text.strip() or text.startswith("#"):
            continue
        path[(len(text) - len(text.lstrip())) // 2 :] = [text.strip().partition(":")[0]]
        described.append((".".join(path), comment))
    expected = {key: entry.description + " (operation)" * (entry.kind is Kind.OPERATION) for key, entry in KEYS.items()}
    assert dict(described) == expected | dict.fromkeys(SECTIONS, "")
    assert len(described) == len(KEYS) + len(SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_it_has_every_section(section: str) -> None:
    assert f"{section.rpartition('.')[2]}:\n" in FILE.read_text(encoding="utf-8")
