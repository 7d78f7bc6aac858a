"""`burnish show`, `diff` and `adopt`: the skills a run had, what is between them, and putting the best one in its place."""

from __future__ import annotations

import json
import re
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticket_server import EXAMPLE

from burnish.presentation.cli import run
from burnish.presentation.skill_diff import unified

SMALL = ("train.num_epochs=1", "train.steps_per_epoch=3", "evaluation.eval_test=false")


def trained_in(place: Path, *options: str) -> Path:
    """A place with a copy of the task, trained into `run`."""
    shutil.copytree(EXAMPLE, place / "task")
    task = str(place / "task" / "task.yaml")
    assert run(["train", task, "--out-root", str(place / "run"), "--cfg-options", *SMALL, *options]) == 0
    return place


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_in(tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def useless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which nothing was accepted."""
    shares = ("model.simulated.useful=0", "model.simulated.useless=1", "model.simulated.harmful=0")
    return trained_in(tmp_path_factory.mktemp("useless"), *shares)


@pytest.fixture
def place(kept: Path, tmp_path: Path) -> Path:
    """The trained run and its task, to be changed; the run is told where the task is now."""
    shutil.copytree(kept, tmp_path / "place")
    return moved(tmp_path / "place")


def moved(place: Path) -> Path:
    timing = place / "run" / "timing.json"
    task_file = str(place / "task" / "task.yaml")
    timing.write_text(json.dumps({**json.loads(timing.read_text()), "task_file": task_file}))
    return place


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.err.startswith("burnish: ")
    assert len(captured.err.splitlines()) == 1, captured.err
    return captured.err


def test_without_a_step_the_best_skill_is_shown(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(kept / "run")]) == 0
    out = told(capsys)
    best = (kept / "run" / "best_skill.md").read_text(encoding="utf-8")
    assert out.endswith(f"\n\n{best}\n")
    assert "the best skill, of step " in out.splitlines()[0]
    assert "accepted, new best" in out


def test_every_step_has_its_skill_alone_or_as_json(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [json.loads(line) for line in (kept / "run" / "history.jsonl").read_text().splitlines()]
    for record in records:
        assert run(["show", f"{kept / 'run'}@{record['step']}", "--json"]) == 0
        shown = json.loads(told(capsys))
        assert shown["skill_hash"] == record["skill_hash"]
        assert shown["records"] == [record]
        assert run(["show", str(kept / "run"), "--step", str(record["step"]), "--text"]) == 0
        assert told(capsys) == shown["skill"]
    assert run(["show", str(kept / "run"), "--step", "0", "--text"]) == 0
    assert told(capsys) == (EXAMPLE / "skill.md").read_text(encoding="utf-8")


def test_the_edits_of_a_step_are_told_with_their_fate(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(place / "run"), "--step", "1", "--edits"]) == 0
    record = json.loads((place / "run" / "history.jsonl").read_text().splitlines()[0])
    lines = [line.strip() for line in told(capsys).splitlines()]
    assert len([line for line in lines if line.startswith("+ ")]) == record["applied"]
    assert len([line for line in lines if line.startswith("! ")]) == record["failed"]


def test_edits_need_the_task_and_say_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "task").rename(place / "elsewhere")
    assert run(["show", str(place / "run"), "--step", "1", "--edits"]) == 2
    assert "name it with --task TASK.yaml" in refused(capsys)
    task = str(place / "elsewhere" / "task.yaml")
    assert run(["show", str(place / "run"), "--step", "1", "--edits", "--task", task]) == 0
    told(capsys)
    assert run(["show", str(place / "run"), "--step", "1"]) == 0, "the text needs no task"


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["show", "RUN@9"], 2, "the run has no step 9: its last step is 3"),
        (["show", "RUN@first"], 2, "after @ stands a step's number, initial, best or final"),
        (["show", "RUN@1", "--step", "2"], 2, "the step is given twice"),
        (["show", "RUN", "--text", "--json"], 2, "leave --json out"),
        (["show", "RUN@0", "--edits"], 2, "--edits are those of a step, and 0 is none"),
        (["show", "nowhere"], 66, "does not exist: see burnish runs list"),
        (["show", "RUN/.."], 66, "is not a run folder"),
        (["diff", "RUN@9"], 2, "the run has no step 9"),
        (["diff", "nowhere@1", "RUN"], 2, "neither such a run folder nor such a file"),
        (["diff", "nowhere.md", "RUN"], 2, "there is no such file"),
        (["diff", "RUN/best_skill.md"], 2, "nothing to compare it with"),
        (["diff", "RUN/..", "RUN"], 66, "is not a run folder"),
        (["adopt", "nowhere"], 66, "does not exist"),
    ],
)
def test_what_is_not_there_is_one_line(
    arguments: list[str], code: int, line: str, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([argument.replace("RUN", str(kept / "run")) for argument in arguments]) == code
    assert line in refused(capsys)


def test_a_run_alone_is_compared_with_its_start(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(kept / "run")
    assert run(["diff", folder]) == 0
    alone = told(capsys)
    assert alone.startswith(f"--- {folder}@initial\n+++ {folder}@best\n@@ ")
    assert run(["diff", f"{folder}@initial", f"{folder}@best"]) == 0
    assert told(capsys) == alone
    assert run(["diff", str(EXAMPLE / "skill.md"), str(kept / "run" / "best_skill.md")]) == 0
    assert told(capsys).splitlines()[2:] == alone.splitlines()[2:], "files and runs are the same to it"


def test_the_same_text_is_told_in_a_line(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(kept / "run")
    assert run(["diff", f"{folder}@2", f"{folder}@2"]) == 0
    assert told(capsys) == f"{folder}@2 and {folder}@2 are the same text\n"


def test_off_a_terminal_there_are_no_colours(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", str(kept / "run")]) == 0
    assert "\x1b" not in told(capsys)


_TEXT = st.text(alphabet=st.sampled_from("ab\n\r\x0b\u2028"), max_size=12)


@given(_TEXT, _TEXT)
def test_a_diff_turns_one_text_into_the_other(old: str, new: str) -> None:
    assert patched(old, list(unified(old, new, "a", "b"))) == new


def patched(old: str, lines: list[str]) -> str:
    """The new text, read from a diff that keeps three lines around each change."""
    if not lines:
        return old
    rest, made, at = re.findall(r"[^\n]*\n|[^\n]+", old), list[str](), 0
    for index, line in enumerate(lines[2:], start=2):
        ends = "" if lines[index + 1 : index + 2] == ["\\ No newline at end of file"] else "\n"
        if line.startswith("@@"):
            match = re.match(r"@@ -(\d+)(?:,(\d+))?", line)
            assert match is not None
            start = int(match[1]) - (match[2] != "0")
            made += rest[at:start]
            at = start
        elif line[:1] in {" ", "+"}:
            made.append(line[1:] + ends)
        at += line[:1] in {" ", "-"}
    return "".join([*made, *rest[at:]])


def test_adopting_replaces_the_file_and_keeps_what_was_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = place / "task" / "skill.md"
    before = original.read_bytes()
    original.chmod(0o640)
    assert run(["adopt", str(place / "run"), "--yes"]) == 0
    assert "skill.md.bak" in told(capsys)
    assert original.read_bytes() == (place / "run" / "best_skill.md").read_bytes()
    assert stat.S_IMODE(original.stat().st_mode) == 0o640
    assert (place / "task" / "skill.md.bak").read_bytes() == before
    assert run(["adopt", str(place / "run"), "--yes"]) == 0
    assert told(capsys).endswith("is the best skill already\n")
    assert not (place / "task" / "skill.md.bak2").exists()


def test_a_changed_file_is_left_alone_unless_forced_and_no_backup_is_overwritten(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = place / "task" / "skill.md"
    original.write_text("mine\n")
    (place / "task" / "skill.md.bak").write_text("an older one\n")
    assert run(["adopt", str(place / "run"), "--yes"]) == 75
    assert "was changed since the run began" in refused(capsys)
    assert original.read_text() == "mine\n"
    assert run(["adopt", str(place / "run"), "--yes", "--force"]) == 0
    assert (place / "task" / "skill.md.bak").read_text() == "an older one\n"
    assert (place / "task" / "skill.md.bak2").read_text() == "mine\n"


def test_a_file_that_is_gone_is_written_when_forced(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = place / "task" / "skill.md"
    original.unlink()
    assert run(["adopt", str(place / "run"), "--yes"]) == 66
    assert "is not there any more" in refused(capsys)
    assert run(["adopt", str(place / "run"), "--yes", "--force"]) == 0
    assert original.read_bytes() == (place / "run" / "best_skill.md").read_bytes()


def test_nobody_to_ask_means_yes_has_to_be_said(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    before = (place / "task" / "skill.md").read_bytes()
    assert run(["adopt", str(place / "run")]) == 2
    assert "say --yes" in refused(capsys)
    assert (place / "task" / "skill.md").read_bytes() == before


def test_a_run_in_which_nothing_was_accepted_has_nothing_to_adopt(
    useless: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["adopt", str(useless / "run"), "--yes", "--force"]) == 66
    assert "nothing was accepted in it" in refused(capsys)
    assert run(["show", str(useless / "run")]) == 0
    assert "nothing was accepted: it is the initial skill" in told(capsys)
    assert run(["diff", str(useless / "run")]) == 0
    assert told(capsys).endswith("are the same text\n")


def test_a_task_without_a_skill_has_no_file_to_replace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = trained_in(tmp_path, 'env.skill_init=""')
    capsys.readouterr()
    assert run(["adopt", str(place / "run"), "--yes"]) == 2
    assert "its task began without a skill" in refused(capsys)


def test_a_folder_that_cannot_be_written_leaves_the_file_as_it_was(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = place / "task" / "skill.md"
    before = original.read_bytes()

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    assert run(["adopt", str(place / "run"), "--yes"]) == 2
    assert "no space left on device: nothing was replaced" in refused(capsys)
    assert original.read_bytes() == before
