"""Training by the command with its run on PostgreSQL: the same results, kills, locks, several runs, no password."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest
from console_training import ONE_ANALYST, RESULTS, SMALL, TASK, HeldModels, arguments, finish, start, variables
from postgres_server import execute, wait_for_no_lock
from scripted_server import Body, Reply, ScriptedServer, failure
from sqlalchemy import make_url
from ticket_server import OPTIMIZER, ticket_models

from burnish.infrastructure.persistence import tables
from burnish.presentation.cli import run
from burnish.presentation.run_database import VARIABLE

pytestmark = pytest.mark.services


@pytest.fixture
def on_postgres(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address, which the commands of this process find too."""
    monkeypatch.setenv(VARIABLE, database_url)
    return database_url


def train(folder: Path, *options: str) -> int:
    return run(["train", TASK, "--out-root", str(folder), *options])


def small(folder: Path, *options: str) -> int:
    return train(folder, *options, "--cfg-options", *SMALL)


def rows(address: str, query: str) -> list[tuple[object, ...]]:
    return list(asyncio.run(execute(address, query)))


def same_results(one: Path, other: Path) -> None:
    for name in RESULTS:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


def test_a_run_gives_the_same_bytes_as_on_sqlite(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path / "sqlite") == 0
    monkeypatch.setenv(VARIABLE, database_url)
    assert train(tmp_path / "postgres") == 0
    same_results(tmp_path / "sqlite", tmp_path / "postgres")
    assert not list((tmp_path / "postgres").glob("burnish.db*"))
    assert json.loads((tmp_path / "postgres" / "timing.json").read_text())["database"] == "postgresql"


def test_a_finished_run_is_not_trained_again(
    on_postgres: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert small(tmp_path) == 0
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    capsys.readouterr()
    assert small(tmp_path) == 0
    assert "rollout" not in capsys.readouterr().out
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_killed_run_goes_on_and_no_kept_answer_is_asked_again(database_url: str, tmp_path: Path) -> None:
    with ScriptedServer(HeldModels()) as server:
        finish(arguments(tmp_path / "whole", *ONE_ANALYST), variables(server))
        asked_in_all = len(server.requests)
    models = HeldModels(held=2)
    with ScriptedServer(models) as server:
        environ = {**variables(server), VARIABLE: database_url}
        with start(arguments(tmp_path / "killed", *ONE_ANALYST), environ) as process:
            assert models.reached.wait(30)
            process.kill()
            process.communicate()
        models.go_on.set()
        assert process.returncode == -signal.SIGKILL
        assert json.loads((tmp_path / "killed" / "timing.json").read_text())["ended_at"] is None
        assert not (tmp_path / "killed" / "summary.json").exists()
        asyncio.run(wait_for_no_lock(database_url))
        kept = rows(database_url, "SELECT name, xmin FROM journal")
        finish(arguments(tmp_path / "killed", *ONE_ANALYST), environ)
        assert len(server.requests) == asked_in_all + 1, "only the call that was waiting is asked again"
    assert set(kept) < set(rows(database_url, "SELECT name, xmin FROM journal"))
    same_results(tmp_path / "whole", tmp_path / "killed")


def test_a_terminated_run_is_kept_as_cancelled_and_goes_on(database_url: str, tmp_path: Path) -> None:
    models = HeldModels(held=2)
    with ScriptedServer(models) as server:
        environ = {**variables(server), VARIABLE: database_url}
        with start(arguments(tmp_path, *ONE_ANALYST), environ) as process:
            assert models.reached.wait(30)
            process.terminate()
            _, error = process.communicate(timeout=30)
        models.go_on.set()
        assert (process.returncode, error) == (143, "burnish: terminated; run the same command to go on\n")
        assert json.loads((tmp_path / "summary.json").read_text())["stop_reason"] == "cancelled"
        finish(arguments(tmp_path, *ONE_ANALYST), environ)
    assert json.loads((tmp_path / "summary.json").read_text())["stop_reason"] == "completed"


def test_of_two_processes_one_trains_and_a_killed_ones_lock_is_free_again(
    on_postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = HeldModels(held=1)
    with ScriptedServer(models) as server:
        for name, value in variables(server).items():
            monkeypatch.setenv(name, value)
        with start(arguments(tmp_path, *ONE_ANALYST), {}) as process:
            assert models.reached.wait(30)
            for command in (arguments(tmp_path, *ONE_ANALYST), ["runs", "delete", str(tmp_path), "--yes"]):
                assert run(command) == 75
                assert "skill_training.run.already_active" in capsys.readouterr().err
            assert run(["runs", "show", str(tmp_path)]) == 0
            assert "unfinished" in capsys.readouterr().out
            process.kill()
            process.communicate()
        models.go_on.set()
        asyncio.run(wait_for_no_lock(on_postgres))
        assert run(arguments(tmp_path, *ONE_ANALYST)) == 0


def test_one_database_holds_many_runs_and_fresh_ones_have_ids_of_their_own(
    on_postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small_run = ["train", TASK, "--cfg-options", *SMALL]
    assert run(small_run) == 0
    assert run([*small_run, "--fresh"]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run([*small_run, "--fresh"]) == 0
    assert small(Path("other"), "--run-id", "another") == 0
    ids = [str(run_id) for (run_id,) in rows(on_postgres, "SELECT run_id FROM runs ORDER BY ordinal")]
    assert ids[1:] == [f"{ids[0]}-2", f"{ids[0]}-3", "another"]
    folders = [*(tmp_path / "runs").iterdir(), *(tmp_path / "elsewhere" / "runs").iterdir()]
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in folders]
    assert sorted(summary["run_id"] for summary in summaries) == ids[:3]
    capsys.readouterr()
    for folder in folders:
        assert run(["audit", "verify", str(folder)]) == 0
        told = capsys.readouterr().out
        assert told.endswith("audit records, unbroken\n")


def test_a_deleted_run_is_gone_from_the_database_and_the_others_are_not(
    on_postgres: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        assert small(tmp_path / name, "--run-id", name) == 0
    capsys.readouterr()
    assert run(["runs", "delete", str(tmp_path / "one"), "--yes"]) == 0
    assert not (tmp_path / "one").exists()
    for table in ("runs", "steps", "checkpoints", "journal"):
        assert rows(on_postgres, f"SELECT DISTINCT run_id FROM {table}") == [("two",)], table
    assert run(["audit", "verify", str(tmp_path / "two")]) == 0
    assert small(tmp_path / "one", "--run-id", "one") == 0


def test_an_altered_audit_record_is_found(on_postgres: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert small(tmp_path) == 0
    asyncio.run(execute(on_postgres, "UPDATE audit SET outcome = 'ok?' WHERE sequence = 0"))
    capsys.readouterr()
    assert run(["audit", "verify", str(tmp_path)]) == 70
    assert "record 0 was altered" in capsys.readouterr().err


def test_a_run_is_not_started_again_in_the_other_kind_of_database(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert small(tmp_path / "sqlite") == 0
    monkeypatch.setenv(VARIABLE, database_url)
    assert small(tmp_path / "postgres") == 0
    capsys.readouterr()
    assert small(tmp_path / "sqlite") == 2
    assert "is kept in its burnish.db: unset it" in capsys.readouterr().err
    monkeypatch.delenv(VARIABLE)
    for command in (
        ["runs", "delete", str(tmp_path / "postgres"), "--yes"],
        ["audit", "verify", str(tmp_path / "postgres")],
    ):
        assert run(command) == 2
        assert "is kept on PostgreSQL: set it" in capsys.readouterr().err
    assert small(tmp_path / "postgres") == 2


def test_the_password_is_in_no_file_no_output_and_no_table(
    on_postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    password = make_url(on_postgres).password
    assert password is not None
    spelt = on_postgres.partition("://")[2].rpartition("@")[0].partition(":")[2]
    assert spelt != password
    answer = ticket_models()

    def respond(body: Body) -> Reply:
        if body["model"] == OPTIMIZER:
            return failure(401, f"no entry for {password}, {spelt} or {on_postgres}")
        reply = answer(body)
        return Reply(
            body=json.loads(json.dumps(reply.body).replace('"content": "', f'"content": "{password} {spelt} '))
        )

    with ScriptedServer(respond) as server:
        for name, value in variables(server).items():
            monkeypatch.setenv(name, value)
        traces = ["--traces", str(tmp_path / "traces.jsonl")]
        quick = ("model.optimizer_max_retries=0",)
        assert run([*arguments(tmp_path / "run", *quick)[:2], *traces, *arguments(tmp_path / "run", *quick)[2:]]) == 69
    assert small(tmp_path / "well", "--run-id", "well") == 0
    wrong = make_url(on_postgres).set(database="no_such_database").render_as_string(hide_password=False)
    monkeypatch.setenv(VARIABLE, wrong)
    assert small(tmp_path / "refused") == 69
    monkeypatch.setenv(VARIABLE, f"{on_postgres}?sslmode=require")
    assert small(tmp_path / "unknown") == 2
    monkeypatch.setenv(VARIABLE, on_postgres.replace("%40", "@").replace("%3A", ":").replace("%2F", "/"))
    assert small(tmp_path / "misspelt") == 2

    told = capsys.readouterr()
    seen = {"output": told.out + told.err}
    seen |= {str(file): file.read_text(encoding="utf-8") for file in tmp_path.rglob("*") if file.is_file()}
    seen |= {table: str(rows(on_postgres, f"SELECT * FROM {table}")) for table in tables.metadata.tables}
    assert "[REDACTED]" in seen["journal"]
    for place, text in seen.items():
        for secret in (password, spelt, password[:-3]):
            assert secret not in text, place
