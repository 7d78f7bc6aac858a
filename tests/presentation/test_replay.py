"""Recording and replay: a run again, byte for byte, without a network and without a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_server import ScriptedServer
from ticket_server import EXAMPLE, OVER_HTTP, ticket_models

from burnish.presentation.cli import run

TASK = str(EXAMPLE / "task.yaml")
SMALL = ("train.num_epochs=2", "train.steps_per_epoch=2", "evaluation.sel_env_num=20", "evaluation.test_env_num=10")
RESULTS = ("best_skill.md", "final_skill.md", "history.jsonl", "summary.json")


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run recorded over HTTP in the folder `recorded`; the server is gone, and the environment forgotten, after it."""
    with ScriptedServer(ticket_models()) as server, monkeypatch.context() as environment:
        environment.setenv("OPENAI_COMPATIBLE_BASE_URL", server.base_url)
        environment.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-planted-9f8e7d6c5b4a3210")
        folder = tmp_path / "recorded"
        assert run(["train", TASK, "--out-root", str(folder), "--cfg-options", *OVER_HTTP, *SMALL]) == 0
    file = tmp_path / "run.recording"
    assert run(["runs", "export", str(folder), "-o", str(file)]) == 0
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY", raising=False)
    capsys.readouterr()
    return file


def replay(recording: Path, folder: Path, *options: str) -> int:
    command = ["train", TASK, "--out-root", str(folder), "--replay", str(recording)]
    return run([*command, "--cfg-options", *OVER_HTTP, *SMALL, *options])


def test_a_recorded_run_replays_byte_for_byte_without_network_or_key(recording: Path, tmp_path: Path) -> None:
    assert replay(recording, tmp_path / "again") == 0
    for name in RESULTS:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "recorded" / name).read_bytes(), name
    assert b"sk-planted" not in recording.read_bytes()


def test_one_changed_byte_of_the_prompt_is_a_miss_that_says_what_differs(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(recording, tmp_path / "again", "env.prompt='{question}.'") == 66
    line, *difference = capsys.readouterr().err.splitlines()
    assert line.startswith("burnish: skill_training.replay.unknown_call")
    assert "nearest recorded: rollout val" in line
    assert "differs in: model, parameters, prompt or scorer" in line
    assert difference[0] == "model, parameters, prompt or scorer, recorded (-) and asked (+):"
    assert '  - "template": "{question}"' in difference
    assert '  + "template": "{question}."' in difference


def test_one_changed_byte_of_the_skill_is_a_miss_that_shows_the_line(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = Path(EXAMPLE / "skill.md").read_text(encoding="utf-8")
    first = skill.splitlines()[0]
    (tmp_path / "changed.md").write_text(skill.replace(first, f"{first}!", 1), encoding="utf-8")
    assert replay(recording, tmp_path / "again", f"env.skill_init={tmp_path / 'changed.md'}") == 66
    told = capsys.readouterr().err
    assert "skill, recorded (-) and asked (+):" in told
    assert f"  -{first}\n  +{first}!\n" in told


def test_a_call_the_recording_does_not_hold_names_the_nearest_one(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(recording, tmp_path / "again", "evaluation.sel_env_num=21") == 66
    line, *difference = capsys.readouterr().err.splitlines()
    assert "differs in: item, contents of the item" in line
    assert difference[0] == "contents of the item, recorded (-) and asked (+):"
    assert any(shown.startswith('  + "question":') for shown in difference)


def test_the_same_run_is_the_same_file(recording: Path, tmp_path: Path) -> None:
    assert run(["runs", "export", str(tmp_path / "recorded"), "-o", str(tmp_path / "second.recording")]) == 0
    assert (tmp_path / "second.recording").read_bytes() == recording.read_bytes()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no such file"),
        (b"no gzip at all", "is no recording, or a damaged one"),
        (b"\x1f\x8b\x08\x00", "is no recording, or a damaged one"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(
    content: bytes | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.recording"
    if content is not None:
        file.write_bytes(content)
    assert replay(file, tmp_path / "again") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert not (tmp_path / "again").exists()


def test_a_cut_recording_is_refused(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording.write_bytes(recording.read_bytes()[:-200])
    assert replay(recording, tmp_path / "again") == 2
    assert "is no recording, or a damaged one" in capsys.readouterr().err


def test_a_folder_without_a_run_cannot_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "export", str(tmp_path), "-o", str(tmp_path / "x")]) == 2
    assert "is this a run folder?" in capsys.readouterr().err
