"""What is wrong with a workspace is said in one line, and nothing is changed or asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from evolver_host import SMALL, START, Host, Json

from burnish.presentation.evolver import BlockingEvolver, EvolverError
from burnish.presentation.evolver import workspace as workspaces


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    host.write_material(1)
    return host


def current(host: Host) -> Path:
    return host.folder / "learning_material" / "current"


def some_task(host: Host) -> Path:
    return min((current(host) / "tasks").glob("*.json"))


def change(host: Host, changed: Callable[[Json], object]) -> None:
    path = some_task(host)
    attempt = json.loads(path.read_text())
    changed(attempt)
    path.write_text(json.dumps(attempt))


def refusal(host: Host, **parameters: object) -> str:
    with pytest.raises(EvolverError) as caught:
        BlockingEvolver({**SMALL, **parameters}).step(host)
    assert "\n" not in caught.value.line
    assert host.asked() == []
    assert not (host.folder / "output" / "report.md").exists()
    return caught.value.line


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def make_folder_of(file: Path) -> None:
    file.unlink()
    file.mkdir()


BROKEN: dict[str, tuple[Callable[[Host], object], str]] = {
    "no material": (lambda host: (current(host) / "summary.json").unlink(), "summary.json: no such file"),
    "broken summary": (
        lambda host: (current(host) / "summary.json").write_text("{"),
        "summary.json line 1: not valid JSON",
    ),
    "no step": (lambda host: (current(host) / "summary.json").write_text("{}"), '"step" is not a whole number'),
    "step as text": (lambda host: (current(host) / "summary.json").write_text('{"step": "1"}'), '"step" is not'),
    "step below 0": (lambda host: (current(host) / "summary.json").write_text('{"step": -1}'), '"step" is not'),
    "summary is a list": (lambda host: (current(host) / "summary.json").write_text("[1]"), '"step" is not'),
    "no attempts": (
        lambda host: empty(current(host) / "tasks"),
        "holds no .json file",
    ),
    "broken attempt": (lambda host: some_task(host).write_text('{"task": '), ".json line 1: not valid JSON"),
    "attempt is a list": (lambda host: some_task(host).write_text("[]"), "not a JSON object"),
    "not UTF-8": (lambda host: some_task(host).write_bytes(b"\xff"), "not valid UTF-8"),
    "key twice": (lambda host: some_task(host).write_text('{"task": {}, "task": {}}'), "stands twice"),
    "half a character": (lambda host: change(host, lambda a: a.update(output="\ud800")), "surrogate"),
    "nesting": (lambda host: some_task(host).write_text("[" * 100_000), "inside each other"),
    "no task": (lambda host: change(host, lambda a: a.pop("task")), '"task" is missing'),
    "task is a text": (lambda host: change(host, lambda a: a.update(task="train-1")), "the task is not a JSON object"),
    "no id": (lambda host: change(host, lambda a: a["task"].pop("id")), 'the task has no "id"'),
    "odd id": (lambda host: change(host, lambda a: a["task"].update(id="a\nb")), '"id" is no name'),
    "id is a list": (lambda host: change(host, lambda a: a["task"].update(id=[])), '"id" is neither'),
    "id twice": (lambda host: change(host, lambda a: a["task"].update(id="train-9")), "is attempted in"),
    "no judge": (lambda host: change(host, lambda a: a.pop("judge")), '"judge" is not an object'),
    "no score": (lambda host: change(host, lambda a: a["judge"].pop("score")), '"judge.score" is missing'),
    "NaN": (lambda host: change(host, lambda a: a["judge"].update(score=float("nan"))), "NaN is not a JSON number"),
    "score above 1": (
        lambda host: change(host, lambda a: a["judge"].update(score=1.5)),
        '"judge.score" is 1.5; scores lie',
    ),
    "score below 0": (lambda host: change(host, lambda a: a["judge"].update(score=-0.1)), '"judge.score" is -0.1'),
    "score as text": (
        lambda host: change(host, lambda a: a["judge"].update(score="1")),
        '"judge.score" is not a number',
    ),
    "score as flag": (
        lambda host: change(host, lambda a: a["judge"].update(score=True)),
        '"judge.score" is not a number',
    ),
    "f1 above 1": (lambda host: change(host, lambda a: a["judge"]["extra"].update(f1=2)), '"judge.extra.f1" is 2'),
    "no document": (lambda host: host.document.unlink(), "ADAPTER.md: there is no such file"),
    "document is a folder": (lambda host: make_folder_of(host.document), "is a folder"),
    "document is not UTF-8": (lambda host: host.document.write_bytes(b"\xff\xfe"), "is not UTF-8 text"),
    "document too long": (lambda host: host.document.write_text("x" * 262_145), "262145 characters"),
    "lone marker": (lambda host: host.document.write_text("<!-- LOCKED_START -->"), "do not pair up"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_workspace(host: Host, name: str) -> None:
    breaks, told = BROKEN[name]
    breaks(host)
    line = refusal(host)
    assert told in line
    assert len(line) < 400


def test_attempt_that_is_too_long(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "MAX_ATTEMPT_BYTES", 1_000)
    change(host, lambda attempt: attempt.update(output="x" * 1_000))
    assert "shorten the trajectory" in refusal(host)


@pytest.mark.parametrize("folder", ["learning_material/current/tasks", "adapter"])
def test_missing_folder(host: Host, folder: str) -> None:
    for path in (host.folder / folder).iterdir():
        path.unlink()
    (host.folder / folder).rmdir()
    assert f"{folder}: there is no such folder" in refusal(host)


def test_missing_workspace(host: Host, tmp_path: Path) -> None:
    host.folder = tmp_path / "nowhere"
    with pytest.raises(EvolverError, match=r"ctx\.workspace: must be the path of a folder that is there"):
        BlockingEvolver().setup(host)


def test_state_and_output_are_made(host: Host) -> None:
    for name in ("state", "output"):
        (host.folder / name).rmdir()
    assert BlockingEvolver(SMALL).step(host)["status"] == "done"
    assert host.report.startswith("# Step 1: ")


def test_folder_that_cannot_be_made_is_refused_before_anybody_is_asked(host: Host) -> None:
    (host.folder / "output").rmdir()
    (host.folder / "output").write_text("a file")
    assert "output: file exists" in refusal(host)


def test_state_that_is_no_database_is_refused(host: Host) -> None:
    (host.folder / "state" / "evolver.db").write_bytes(b"nonsense" * 1_000)
    assert refusal(host).startswith("state: the store of runs could not be read or written")


def test_file_that_leads_out_of_the_adapter_is_refused(host: Host, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "ADAPTER.md"
    outside.write_text(START)
    host.document.unlink()
    host.document.symlink_to(outside)
    assert "leads out of adapter/" in refusal(host)
    assert outside.read_text() == START


def test_link_inside_the_adapter_stays_a_link(host: Host) -> None:
    target = host.document.with_name("real.md")
    host.document.rename(target)
    host.document.symlink_to("real.md")
    BlockingEvolver(SMALL).step(host)
    assert host.document.is_symlink()
    assert target.read_text() != START


def test_file_in_a_folder_of_the_adapter(host: Host) -> None:
    (host.folder / "adapter" / "skills").mkdir()
    host.document.rename(host.folder / "adapter" / "skills" / "mine.md")
    BlockingEvolver({**SMALL, "file": "skills/mine.md"}).step(host)
    assert (host.folder / "adapter" / "skills" / "mine.md").read_text() != START


def test_newlines_byte_order_mark_and_permissions_stay(host: Host) -> None:
    host.document.write_bytes("\ufeff# Rules\r\n\r\n- use r0\r\n".encode())
    host.document.chmod(0o640)
    BlockingEvolver(SMALL).step(host)
    assert host.document.read_bytes().startswith("\ufeff# Rules\r\n\r\n- use r0\r\n".encode())
    assert host.document.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in host.document.parent.iterdir()] == ["ADAPTER.md"]


def test_other_files_are_left_alone(host: Host) -> None:
    (current(host) / "tasks" / ".hidden.json").write_text("{")
    (current(host) / "tasks" / "notes.txt").write_text("{")
    (host.folder / "adapter" / "OTHER.md").write_text("other")
    BlockingEvolver(SMALL).step(host)
    assert (host.folder / "adapter" / "OTHER.md").read_text() == "other"


@pytest.mark.parametrize(
    ("validation", "told"),
    [
        ([], "validation_data: there is none"),
        (None, "validation_data: there is none"),
        ("tasks", "validation_data: not a sequence of tasks"),
        ([{"id": "a"}, "b"], "validation_data task 2: the task is not a JSON object"),
        ([{"id": "a"}, {"id": "a"}], "validation_data task 2: the id 'a' stands twice"),
        ([{"id": "a", "x": {1, 2}}], "validation_data task 1: the task holds something that JSON cannot"),
        ([{"id": "a", "x": float("inf")}], "validation_data task 1: the task holds something that JSON cannot"),
    ],
)
def test_validation_data_is_needed_from_setup_on(host: Host, validation: object, told: str) -> None:
    host.validation_data = validation  # type: ignore[assignment]
    for call in (BlockingEvolver().setup, BlockingEvolver().step, BlockingEvolver().finalize):
        with pytest.raises(EvolverError) as caught:
            call(host)
        assert told in caught.value.line


def test_setup_looks_at_the_document_and_asks_nobody(host: Host) -> None:
    BlockingEvolver(SMALL).setup(host)
    assert host.asked() == []
    host.document.unlink()
    with pytest.raises(EvolverError, match="there is no such file"):
        BlockingEvolver(SMALL).setup(host)
