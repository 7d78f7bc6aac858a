"""`burnish runs export --layout skillopt`: a kept run as system B's run folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from fakes import START, STEPS, CatalogRunner, RecordingSink, ScriptedProposer, append, training
from ticket_server import EXAMPLE

from burnish.application.events import Applied, Selected
from burnish.domain.edits import Edit, EditOp, EditSource, FailedEdit, Patch
from burnish.domain.rollouts import Rollout
from burnish.domain.runs import skill_hash
from burnish.infrastructure.persistence.recording import Recording, read_recording, write_recording
from burnish.presentation.app import open_app
from burnish.presentation.cli import run
from burnish.presentation.run_story import story_of
from burnish.presentation.skillopt_layout import skillopt_files
from burnish.presentation.skillopt_rows import apply_report, rollout_row, source_of

TASK = EXAMPLE / "task.yaml"
SMALL = ("train.num_epochs=2", "train.steps_per_epoch=2", "evaluation.sel_env_num=12", "evaluation.test_env_num=5")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in `run`, and its export in `skillopt`."""
    folder = tmp_path_factory.mktemp("made")
    assert run(["train", str(TASK), "--out-root", str(folder / "run"), "--cfg-options", *SMALL]) == 0
    assert export(folder / "run", folder / "skillopt") == 0
    return folder


def export(folder: Path, out: Path, *options: str) -> int:
    return run(["runs", "export", str(folder), "--layout", "skillopt", "-o", str(out), *options])


def read(folder: Path, name: str) -> Any:  # noqa: ANN401 - JSON of any form
    text = (folder / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_every_step_has_a_record_with_its_stages(made: Path) -> None:
    out = made / "skillopt"
    history = [json.loads(line) for line in (made / "run" / "history.jsonl").read_text().splitlines()]
    own = [record for record in history if record["reason"] != "forced"]
    records = read(out, "history.json")
    assert [record["step"] for record in records] == [record["step"] for record in own] == [1, 2, 3, 4]
    assert [record["step_in_epoch"] for record in records] == [1, 2, 1, 2]
    for record, kept in zip(records, own, strict=True):
        step = out / "steps" / f"step_{record['step']:04d}"
        assert read(step, "step_record.json") == record
        assert record["edit_budget"] == kept["learning_rate"]
        assert record["skill_len"] == kept["skill_characters"]
        assert record["edit_apply_summary"]["applied"] == kept["applied"]
        rows = read(step / "rollout", "results.jsonl")
        assert len(rows) == record["rollout_n"] == 16
        assert sum(row["hard"] for row in rows) / 16 == record["rollout_hard"]
        if kept["candidate_score"] is not None:
            assert record["candidate_gate_score"] == record["selection_hard"] == kept["candidate_score"]
            assert len(read(step / "selection_eval", "results.jsonl")) == 12
            candidate = (step / "candidate_skill.md").read_text()
            assert skill_hash(candidate) == record["candidate_hash"]
            patches = sorted(path.name for path in (step / "patches").iterdir())
            assert len(patches) == record["n_patches"] == record["n_failure_patches"] + record["n_success_patches"]
            assert patches[0] == "minibatch_fail_000.json"
            assert len(read(step, "merged_patch.json")["edits"]) == record["n_edits_merged"]
            assert len(read(step, "ranked_edits.json")["edits"]) == record["n_edits_ranked"]
            report = read(step, "edit_apply_report.json")
            assert sum(row["status"].startswith("applied_") for row in report) == kept["applied"]


def test_skills_are_those_of_the_run_after_each_step(made: Path) -> None:
    out, folder = made / "skillopt", made / "run"
    texts = [path.read_text() for path in sorted((out / "skills").iterdir())]
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    latest = {record["step"]: record["skill_hash"] for record in history}
    assert texts[0] == (EXAMPLE / "skill.md").read_text()
    assert [skill_hash(text) for text in texts[1:]] == list(latest.values())
    assert (out / "best_skill.md").read_bytes() == (folder / "best_skill.md").read_bytes()
    assert texts[-1] == (folder / "final_skill.md").read_text()


def test_the_summary_counts_what_the_run_did(made: Path) -> None:
    out = made / "skillopt"
    kept, told = read(made / "run", "summary.json"), read(out, "summary.json")
    assert told["best_step"] == kept["best_step"]
    assert told["best_selection_hard"] == kept["best_score"]
    assert told["baseline_selection_hard"] == kept["baseline_score"]
    assert told["test_hard"] == kept["test"]["best"]["hard"]
    assert told["test_delta_hard"] == kept["test"]["best"]["hard"] - kept["test"]["initial"]["hard"]
    assert told["total_steps"] == 4 == told["total_accepts"] + told["total_rejects"] + told["total_skips"]
    assert [epoch["steps"] for epoch in told["epoch_stats"]] == [2, 2]
    assert told["config"] == read(out, "config.json")
    for place, number in (("selection_eval_baseline", 12), ("test_eval", 5), ("test_eval_final", 5)):
        assert len(read(out / place, "results.jsonl")) == number, place
    assert read(out / "test_eval", "summary.json")["overall"] == {"total": 5, "hard_acc": told["test_hard"]}
    state = read(out, "runtime_state.json")
    assert state["last_completed_step"] == 4
    assert Path(state["best_skill_path"]).read_bytes() == (out / "best_skill.md").read_bytes()
    assert Path(state["current_skill_path"]).read_bytes() == (made / "run" / "final_skill.md").read_bytes()


def test_settings_have_the_flat_names_of_system_b(made: Path) -> None:
    config = read(made / "skillopt", "config.json")
    assert (config["edit_budget"], config["min_edit_budget"], config["num_epochs"]) == (6, 3, 2)
    assert config["env"] == "ticket-routing"
    assert config["evaluation.gate_mode"] == "strict"  # burnish's own
    assert config["out_root"] == str((made / "skillopt").resolve())
    assert not any("key" in name or "secret" in name for name in config)


def test_the_end_of_an_epoch_has_its_comparison_and_its_memory(made: Path) -> None:
    out = made / "skillopt"
    slow = out / "slow_update" / "epoch_02"
    pairs = read(slow, "comparison_pairs.json")
    result = read(slow, "slow_result.json")
    assert not (out / "slow_update" / "epoch_01").exists()
    assert result["action"] == "force_accept"
    assert result["slow_update_content"].strip() in (slow / "candidate_skill.md").read_text()
    assert sum(pair["curr"]["hard"] for pair in pairs) / len(pairs) == result["curr_hard"]
    assert {pair["category"] for pair in pairs} <= {"improved", "regressed", "persistent_fail", "stable_success"}
    assert "prev_trajectory" not in read(slow, "comparison_pairs_all.json")[0]
    assert [row["id"] for row in read(slow / "rollout_prev", "results.jsonl")] == [pair["id"] for pair in pairs]
    assert skill_hash((slow / "candidate_skill.md").read_text()) == result["candidate_hash"]
    for epoch in (1, 2):
        memory = read(out / "meta_skill" / f"epoch_{epoch:02d}", "meta_skill_result.json")
        assert memory["meta_skill_content"].strip()
        assert memory["action"] == "write_meta_skill"


def test_the_learning_rates_are_told_line_by_line(made: Path) -> None:
    rates = read(made / "skillopt", "lr_history.jsonl")
    assert [(rate["step"], rate["epoch"]) for rate in rates] == [(1, 1), (2, 1), (3, 2), (4, 2)]
    assert rates[0]["learning_rate"] == 6


def test_an_unfinished_run_is_exported_without_an_end(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "half.recording"
    assert run(["runs", "export", str(made / "run"), "-o", str(file)]) == 0
    whole = read_recording(file)
    early = tuple(entry for entry in whole.entries if entry.step <= 2)
    write_recording(file, Recording(about=whole.about, entries=early))
    assert run(["runs", "import", str(file), "--out-root", str(tmp_path / "half")]) == 0
    capsys.readouterr()
    assert export(tmp_path / "half", tmp_path / "out", "--task", str(TASK)) == 0
    assert capsys.readouterr().out.endswith("2 steps of run " + whole.about["run_id"] + ", which has not ended\n")
    assert not (tmp_path / "out" / "summary.json").exists()
    assert [record["step"] for record in read(tmp_path / "out", "history.json")] == [1, 2]
    first = made / "skillopt" / "steps" / "step_0001"
    for path in first.rglob("*"):
        if path.is_file():
            name = path.relative_to(first)
            assert (tmp_path / "out" / "steps" / "step_0001" / name).read_bytes() == path.read_bytes(), name


def test_a_run_whose_task_has_changed_is_not_exported(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "task")
    (tmp_path / "task" / "skill.md").write_text("# Another skill\n")
    capsys.readouterr()
    assert export(made / "run", tmp_path / "new" / "out", "--task", str(tmp_path / "task" / "task.yaml")) == 66
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("burnish: skill_training.replay.unknown_call: ")
    assert not (tmp_path / "new").exists()


def test_what_is_there_stays_and_bad_names_are_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert export(made / "run", tmp_path / "mine") == 2
    assert "holds files already: name a new or an empty folder" in refused(capsys)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    assert export(tmp_path / "nowhere", tmp_path / "out") == 66
    assert "does not exist" in refused(capsys)
    monkeypatch.chdir(tmp_path)
    assert export(made / "run", Path()) == 2
    assert "names the current folder" in refused(capsys)
    assert run(["runs", "export", str(made / "run"), "-o", "x", "--task", str(TASK)]) == 2
    assert "--task: is for --layout skillopt only" in refused(capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


async def test_no_item_id_becomes_a_path() -> None:
    sink = RecordingSink()
    items = ("../up", "a/b", ".", "ü ü")
    runner = CatalogRunner()
    runner.items.update(train=items, val=items)
    async with open_app(rollouts=runner, proposer=ScriptedProposer(append("score=0.6")), sinks=(sink,)) as app:
        ended = (await app.send(training(STEPS))).value
    files = dict(
        skillopt_files(story_of(sink.events), ended, initial_skill=START, config=STEPS, flat={"out_root": "/somewhere"})
    )
    assert {json.loads(line)["id"] for line in files["selection_eval_baseline/results.jsonl"].splitlines()} == {*items}
    for name in files:
        assert not {"..", "up", "b"} & set(PurePosixPath(name).parts), name


def test_an_item_without_an_answer_has_no_scores() -> None:
    assert rollout_row(Rollout("a", 0.0, 0.0, error="some.code")) == {
        "id": "a",
        "agent_ok": False,
        "error": "some.code",
    }


def test_the_report_follows_the_order_of_the_edits() -> None:
    twice, missing, empty = Edit(EditOp.APPEND, "x"), Edit(EditOp.REPLACE, "y", target="z"), Edit(EditOp.APPEND)
    failed = (
        FailedEdit(missing, "target not found in current skill document"),
        FailedEdit(empty, "empty content; use delete to remove text"),
    )
    report = apply_report(
        Selected(run_id="r", learning_rate=4, edits=(twice, missing, twice, empty)),
        Applied(run_id="r", applied=(twice, twice), failed=failed),
    )
    assert [(row["index"], row["status"]) for row in report] == [
        (1, "applied_append"),
        (2, "skipped_replace_target_not_found"),
        (3, "applied_append"),
        (4, "skipped_empty_content"),
    ]


def test_a_patch_tells_what_it_was_proposed_from_only_when_its_edits_do() -> None:
    failure = Edit(EditOp.APPEND, "a", source=EditSource.FAILURE)
    success = Edit(EditOp.APPEND, "b", source=EditSource.SUCCESS)
    assert source_of(Patch((failure, success))) is EditSource.FAILURE
    assert source_of(Patch((success,))) is EditSource.SUCCESS
    assert source_of(Patch((success, Edit(EditOp.APPEND, "c")))) is None
