"""`model.backend`, the shortcut for both roles."""

from __future__ import annotations

from pathlib import Path

import pytest

from burnish.presentation.settings.loading import LoadedTask, load_task


def loaded(folder: Path, text: str, *options: str) -> LoadedTask:
    file = folder / "task.yaml"
    file.write_text(text, encoding="utf-8")
    return load_task(file, options)


def roles(task: LoadedTask) -> tuple[str, str]:
    return task.settings.model.target_backend, task.settings.model.optimizer_backend


@pytest.mark.parametrize(
    ("backend", "target", "optimizer"),
    [
        ("openai_chat", "openai_chat", "openai_chat"),
        ("azure_openai", "openai_chat", "openai_chat"),
        ("openai_compatible", "openai_compatible", "openai_compatible"),
        ("claude_chat", "claude_chat", "claude_chat"),
        ("Claude", "claude_chat", "claude_chat"),
        ("qwen_chat", "qwen_chat", "openai_chat"),
        ("qwen", "qwen_chat", "openai_chat"),
        ("codex", "codex_exec", "openai_chat"),
        ("codex_exec", "codex_exec", "openai_chat"),
        ("claude_code_exec", "claude_code_exec", "openai_chat"),
        ("simulated", "simulated", "simulated"),
    ],
)
def test_the_shortcut_sets_both_roles(tmp_path: Path, backend: str, target: str, optimizer: str) -> None:
    task = loaded(tmp_path, f"model: {{backend: {backend}}}\n")
    assert roles(task) == (target, optimizer)
    assert task.sources["model.target_backend"] == str(tmp_path / "task.yaml")


def test_a_role_s_own_key_wins_in_the_same_file(tmp_path: Path) -> None:
    task = loaded(tmp_path, "model: {backend: claude_chat, optimizer_backend: openai_chat}\n")
    assert roles(task) == ("claude_chat", "openai_chat")


def test_the_shortcut_wins_over_what_the_file_builds_on(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("model: {target_backend: openai_chat, optimizer_backend: simulated}\n")
    task = loaded(tmp_path, "_base_: base.yaml\nmodel: {backend: claude_chat}\n")
    assert roles(task) == ("claude_chat", "claude_chat")
    task = loaded(tmp_path, "_base_: base.yaml\n", "model.backend=qwen_chat", "model.optimizer_backend=claude_chat")
    assert roles(task) == ("qwen_chat", "claude_chat")
    assert task.sources["model.target_backend"] == "--cfg-options"


@pytest.mark.parametrize("text", ["model: {backend: null}\n", "model: {}\n"])
def test_without_it_nothing_changes(tmp_path: Path, text: str) -> None:
    assert roles(loaded(tmp_path, text)) == ("openai_chat", "openai_chat")
