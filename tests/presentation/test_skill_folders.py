"""Agent Skills: what is one, that a trained one still is, and that what goes along stays untouched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.presentation.cli import run
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.skill_folders import read_initial_skill, skill_problems, write_skill_folder

FRONT_MATTER = "---\nname: ticket-routing\ndescription: Routes support tickets. Use it for every ticket.\n---\n"
SMALL = ("train.num_epochs=2", "train.steps_per_epoch=2", "evaluation.sel_env_num=16", "evaluation.test_env_num=8")


def _skill(**fields: object) -> str:
    known: dict[str, object] = {"name": "ticket-routing", "description": "Routes tickets."}
    lines = [f"{name}: {value}" for name, value in {**known, **fields}.items() if value is not None]
    return "\n".join(["---", *lines, "---", "# Body"])


@pytest.mark.parametrize(
    "text",
    [
        _skill(),
        _skill(name="a"),
        _skill(name="a1-b2-c3"),
        _skill(name="x" * 64),
        _skill(description="d" * 1024),
        _skill(description='"quoted: yes"'),
        _skill(description=">\n  folded\n  text"),
        _skill(license="MIT", compatibility="Needs git", metadata='{author: me, version: "1.0"}'),
        _skill(**{"allowed-tools": "Bash(git:*) Read"}),
        _skill(color="blue"),
        _skill().replace("\n", "\r\n"),
        "\ufeff" + _skill(),
        _skill() + "\n---\nnot front matter\n---\n",
    ],
)
def test_this_is_an_agent_skill(text: str) -> None:
    assert skill_problems(text) == ()


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("# Body", ("has no front matter: begin it with a line ---, name: …, description: …, and a line ---",)),
        ("---\n---\n", ("has no front matter: begin it with a line ---, name: …, description: …, and a line ---",)),
        (
            "---\nname: a\ndescription: b\n",
            ("has no front matter: begin it with a line ---, name: …, description: …, and",),
        ),
        ("---\n- a\n---\n", ("line 2: its front matter is not readable: it holds no fields",)),
        ("---\nname: [a\n---\n", ("line 3: its front matter is not readable: not YAML: ",)),
        ("---\nname: &x a\ndescription: *x\n---\n", ("line 2: its front matter is not readable: anchors (&) and",)),
        (_skill(name=None), ("has no name: write name: and lower-case words with hyphens between them",)),
        (_skill(name=3), ("name is no text: put it in quotation marks",)),
        (_skill(name="x" * 65), ("name has 65 characters, and may have 64: shorten it",)),
        *(
            (_skill(name=name), (f"name '{name}' must be lower-case letters and digits with single hyphens between",))
            for name in ("Tickets", "ticket_routing", "-a", "a-", "a--b", "a b", "a/b", "../a")
        ),
        (_skill(description=None), ("has no description: write what the skill does and when to use it",)),
        (_skill(description='" "'), ("has no description: write what the skill does and when to use it",)),
        (_skill(description="d" * 1025), ("description has 1025 characters, and may have 1024: shorten it",)),
        (_skill(description="[a]"), ("description is no text: put it in quotation marks",)),
        (_skill(compatibility="c" * 501), ("compatibility has 501 characters, and may have 500: shorten it",)),
        (_skill(metadata="{version: 1.0}"), ("metadata must hold texts by name: put its values in quotation marks",)),
        (_skill(name="A", description=None), ("name 'A' must be", "has no description")),
    ],
)
def test_this_is_none_and_each_problem_is_a_line(text: str, problems: tuple[str, ...]) -> None:
    found = skill_problems(text)
    assert len(found) == len(problems)
    assert all(line.startswith(start) and line.isprintable() for line, start in zip(found, problems, strict=True))


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The example, with its skill as a folder that carries files along."""
    shutil.copytree(EXAMPLE, tmp_path / "task")
    skill = tmp_path / "task" / "ticket-routing"
    for folder in ("references", "scripts/inner", "data"):
        (skill / folder).mkdir(parents=True)
    (skill / "SKILL.md").write_bytes((FRONT_MATTER + (EXAMPLE / "skill.md").read_text(encoding="utf-8")).encode())
    (skill / "references" / "codes.md").write_bytes(b"# Codes\r\n\xff")
    (skill / "scripts" / "inner" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (skill / "scripts" / "inner" / "run.sh").chmod(0o755)
    (skill / "LICENSE.txt").write_bytes(b"MIT")
    (skill / "data" / "private.csv").write_bytes(b"not a skill's")
    return tmp_path / "task" / "task.yaml"


def _train(task: Path, folder: Path, *options: str) -> int:
    chosen = ("env.skill_init=ticket-routing", *SMALL, *options)
    return run(["train", str(task), "--out-root", str(folder), "--cfg-options", *chosen])


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_the_trained_skill_is_still_one_with_all_that_goes_along(task: Path, tmp_path: Path, mode: str) -> None:
    assert _train(task, tmp_path / "run", f"optimizer.skill_update_mode={mode}") == 0
    source, trained = task.parent / "ticket-routing", tmp_path / "run" / "best_skill"
    text = (trained / "SKILL.md").read_bytes().decode()
    assert text.startswith(FRONT_MATTER)
    assert text != (source / "SKILL.md").read_bytes().decode()
    assert skill_problems(text) == ()
    assert (trained / "SKILL.md").read_bytes() == (tmp_path / "run" / "best_skill.md").read_bytes()
    carried = {"references/codes.md", "scripts/inner/run.sh", "LICENSE.txt"}
    assert _files(trained) == {"SKILL.md", *carried}
    assert all((trained / name).read_bytes() == (source / name).read_bytes() for name in carried)
    assert (trained / "scripts" / "inner" / "run.sh").stat().st_mode & 0o111
    assert read_initial_skill(trained, "--skill").text == text


def test_a_trained_skill_folder_is_scored_and_trained_further(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _train(task, tmp_path / "run") == 0
    trained = tmp_path / "run" / "best_skill"
    assert run(["eval", str(task), "--skill", str(trained), "--split", "val"]) == 0
    capsys.readouterr()
    assert _train(task, tmp_path / "more", f"env.skill_init={trained}", "train.num_epochs=1") == 0
    assert capsys.readouterr().err == (
        "burnish: warning: env.skill_init: the skill is called ticket-routing and its folder best_skill: "
        "Agent Skills need one name\n"
    )


def test_the_same_command_writes_the_same_folder(task: Path, tmp_path: Path) -> None:
    assert _train(task, tmp_path / "run") == 0
    before = _files(tmp_path / "run" / "best_skill")
    (task.parent / "ticket-routing" / "references" / "more.md").write_text("new", encoding="utf-8")
    assert _train(task, tmp_path / "run") == 0
    assert _files(tmp_path / "run" / "best_skill") == {*before, "references/more.md"}


def test_a_run_is_deleted_with_its_skill_folder_but_not_with_what_others_put_there(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _train(task, tmp_path / "run") == 0
    assert run(["runs", "delete", str(tmp_path / "run"), "--yes"]) == 0
    assert not (tmp_path / "run").exists()
    assert _train(task, tmp_path / "run") == 0
    (tmp_path / "run" / "best_skill" / "mine.md").write_text("mine", encoding="utf-8")
    capsys.readouterr()
    assert run(["runs", "delete", str(tmp_path / "run"), "--yes"]) == 0
    assert _files(tmp_path / "run") == {"best_skill/mine.md"}


def test_a_skill_folder_of_somebody_else_is_left_alone(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run" / "best_skill").mkdir(parents=True)
    assert _train(task, tmp_path / "run") == 2
    assert "holds best_skill, which is no run's" in capsys.readouterr().err


def test_a_skill_that_is_a_file_makes_no_folder(task: Path, tmp_path: Path) -> None:
    assert _train(task, tmp_path / "run", "env.skill_init=ticket-routing/SKILL.md") == 0
    assert not (tmp_path / "run" / "best_skill").exists()
    assert (tmp_path / "run" / "best_skill.md").read_bytes().startswith(FRONT_MATTER.encode())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "SKILL.md: there is no such file"),
        (b"# Body", "SKILL.md: has no front matter"),
        (b"\xff", "SKILL.md: is not UTF-8 text"),
        (FRONT_MATTER.replace("routing", "Routing").encode(), "SKILL.md: name 'ticket-Routing' must be lower-case"),
        (FRONT_MATTER.encode() + b"<!-- LOCKED_START -->", "SKILL.md: has region markers that do not pair up"),
    ],
)
def test_a_folder_that_is_no_skill_is_refused_in_one_line(
    task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, told: str
) -> None:
    file = task.parent / "ticket-routing" / "SKILL.md"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    assert _train(task, tmp_path / "run") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("burnish: env.skill_init: ")
    assert told in line
    assert not (tmp_path / "run").exists()


def test_too_much_luggage_is_refused(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burnish.presentation.skill_folders.MAX_CARRIED_BYTES", 10)
    with pytest.raises(SettingsError, match="take out what is no skill's"):
        read_initial_skill(task.parent / "ticket-routing", "env.skill_init")


def test_links_go_along_as_links_and_linked_folders_stay(task: Path, tmp_path: Path) -> None:
    source = task.parent / "ticket-routing"
    (source / "references" / "link.md").symlink_to("codes.md")
    (source / "assets").symlink_to(tmp_path)
    write_skill_folder(tmp_path / "copy", "text", source)
    assert (tmp_path / "copy" / "references" / "link.md").is_symlink()
    assert not (tmp_path / "copy" / "assets").exists()


def test_a_folder_that_cannot_be_finished_is_left_as_it_was(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = task.parent / "ticket-routing"
    write_skill_folder(tmp_path / "copy", "old", source)
    (source / "references" / "bad.md").symlink_to("bad.md")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(OSError, match="No space"):
        write_skill_folder(tmp_path / "copy", "new", source)
    assert (tmp_path / "copy" / "SKILL.md").read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".copy")] == []
