"""`burnish replay`: a run's answers again under other settings, and where the decisions part."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ticket_server import EXAMPLE

from burnish.domain.runs import StopReason
from burnish.infrastructure.persistence.recording import Recording, read_recording, write_recording
from burnish.infrastructure.persistence.stores import open_stores
from burnish.presentation.cli import run

SMALL = (
    "train.seed=1",
    "train.num_epochs=2",
    "train.steps_per_epoch=2",
    "evaluation.sel_env_num=12",
    "evaluation.test_env_num=5",
)
SCORER = """def score(prediction, item):
    return float(prediction.strip() == item["answer"]), 0.5
"""

Json = dict[str, Any]
Again = Callable[..., Json]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ticket example with a soft score that is always the same, and a run of it in `run`."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(EXAMPLE, folder / "task")
    (folder / "task" / "scoring.py").write_text(SCORER)
    file = folder / "task" / "task.yaml"
    file.write_text(file.read_text().replace("scorer: exact_match", "scorer: python\n  scorer_function: scoring:score"))
    command = ["train", str(file), "--out-root", str(folder / "run"), "--cfg-options", *SMALL]
    assert run(command) == 0
    return folder


@pytest.fixture
def again(made: Path, capsys: pytest.CaptureFixture[str]) -> Again:
    """What the command tells machines about the run under these options."""

    def ask(*options: str, folder: Path = made / "run", task: Path | None = None) -> Json:
        capsys.readouterr()
        named = [] if task is None else ["--task", str(task)]
        over = ["--cfg-options", *options] if options else []
        assert run(["replay", str(folder), "--json", *named, *over]) == 0
        told: Json = json.loads(capsys.readouterr().out)
        return told

    return ask


def contents(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_a_run_repeats_itself(made: Path, again: Again, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(made / "run")
    told = again()
    summary = json.loads((made / "run" / "summary.json").read_text())
    assert told["changes"] == []
    assert told["parts_at"] is None
    assert told["unknown"] is None
    assert told["recorded"] == told["redecided"]
    assert told["redecided"]["ended"] == summary["stop_reason"]
    assert told["redecided"]["selected_score"] == summary["selected_score"]
    assert told["redecided"]["skill_hash"] == summary["best_skill_hash"]
    history = [json.loads(line) for line in (made / "run" / "history.jsonl").read_text().splitlines()]
    assert [step["redecided"] for step in told["steps"]] == history
    assert contents(made / "run") == before
    assert run(["replay", str(made / "run")]) == 0
    assert f"the same decisions, {len(history)} records" in capsys.readouterr().out


def test_under_another_metric_the_decisions_part_and_the_answers_end(
    again: Again, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = again("evaluation.gate_metric=soft")
    assert told["changes"] == [{"key": "evaluation.gate_metric", "recorded": "hard", "now": "soft"}]
    assert told["parts_at"] == 1
    first, second = told["steps"][:2]
    assert first["recorded"]["action"] == "accept_new_best"
    assert first["redecided"]["action"] == "reject"
    assert first["parts"]
    assert second["redecided"] is None
    assert told["unknown"]["place"] == {"step": 2, "epoch": 1, "stage": "rollout"}
    assert not told["unknown"]["is_first"]
    assert told["redecided"]["selected_score"] == 0.5
    assert told["redecided"]["best_step"] == 0
    assert run(["replay", str(made / "run"), "--cfg-options", "evaluation.gate_metric=soft"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(" again, with evaluation.gate_metric hard -> soft")
    assert [line.split()[1:3] for line in lines if line.startswith(">")] == [["1", "1"]]
    assert "the decisions part at step 1 (marked >)" in lines
    assert any("step 2 (epoch 1), stage rollout" in line for line in lines)
    assert lines[-1].startswith("re-decided: not ended, selected 0.5000 (soft) of the initial skill, skill ")


def test_a_run_that_would_have_stopped_earlier_parts_there(again: Again) -> None:
    told = again("evaluation.gate_metric=soft", "train.patience=1", "evaluation.eval_test=false")
    assert told["redecided"]["ended"] == "patience"
    assert told["unknown"] is None
    assert [step["parts"] for step in told["steps"]] == [True] * len(told["steps"])


def test_other_edits_end_it_at_the_optimizer(again: Again) -> None:
    told = again("optimizer.learning_rate=5")
    assert told["unknown"]["place"] == {"step": 1, "epoch": 1, "stage": "reflect"}
    assert told["parts_at"] is None
    assert told["steps"][0]["redecided"] is None


def test_train_items_nobody_tried_with_the_candidate_end_it_at_the_gate(
    again: Again, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = again("evaluation.gate_mode=two_split")
    assert told["unknown"]["place"] == {"step": 1, "epoch": 1, "stage": "gate"}
    assert told["unknown"]["about"][2].startswith("differs in: skill")
    assert run(["replay", str(made / "run"), "--cfg-options", "evaluation.gate_mode=two_split"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "skill, recorded (-) and asked (+):" in lines


def test_a_setting_that_changes_the_first_call_is_named_and_others_are_not(
    again: Again, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = again("evaluation.gate_metric=soft", "env.prompt='{question}!'")
    assert told["unknown"]["is_first"]
    assert told["unknown"]["place"]["stage"] == "baseline"
    assert told["unknown"]["settings"] == ["env.prompt"]
    assert run(["replay", str(made / "run"), "--cfg-options", "model.simulated.noise=0.5"]) == 0
    assert "it is another one because of model.simulated.noise" in capsys.readouterr().out


def test_a_real_model_in_place_of_another_needs_neither_key_nor_address(again: Again) -> None:
    told = again("model.target_backend=openai_compatible", "model.target=other")
    assert told["unknown"]["is_first"]
    assert told["unknown"]["settings"] == ["model.target_backend"]  # the model of a simulation has no name to change


def test_changed_files_are_told_from_changed_settings(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made / "task", tmp_path / "task")
    (tmp_path / "task" / "skill.md").write_text("# Another skill\n")
    assert run(["replay", str(made / "run"), "--task", str(tmp_path / "task" / "task.yaml")]) == 0
    assert "the task's files have changed since" in capsys.readouterr().out


def test_an_unfinished_run_is_decided_as_far_as_its_answers_go(
    made: Path, tmp_path: Path, again: Again, capsys: pytest.CaptureFixture[str]
) -> None:
    file, task = tmp_path / "half.recording", made / "task" / "task.yaml"
    assert run(["runs", "export", str(made / "run"), "-o", str(file)]) == 0
    whole = read_recording(file)
    early = tuple(entry for entry in whole.entries if entry.step <= 2)
    write_recording(file, Recording(about=whole.about, entries=early))
    assert run(["runs", "import", str(file), "--out-root", str(tmp_path / "half")]) == 0
    told = again(folder=tmp_path / "half", task=task)
    assert [step["redecided"]["step"] for step in told["steps"]] == [1, 2]
    assert told["recorded"] is None
    assert told["redecided"]["ended"] is None
    assert told["unknown"]["place"] == {
        "step": 2,
        "epoch": 1,
        "stage": "meta_skill",
    }  # the epoch's end counts to step 3
    told = again("evaluation.gate_metric=soft", folder=tmp_path / "half", task=task)  # compared with its own settings
    assert told["parts_at"] == 1
    assert run(["replay", str(tmp_path / "half"), "--task", str(task)]) == 0
    assert "2 records decided; there are no recorded decisions" in capsys.readouterr().out


async def _cut(folder: Path, *, after: int) -> None:
    """Make a run's database what it was when the run was stopped after a step."""
    async with open_stores(folder / "burnish.db") as stores:
        (run_id,) = await stores.runs.ids()
        kept, entries = await stores.runs.get(run_id), await stores.journal.entries(run_id)
        assert kept is not None
        await stores.runs.save(replace(kept, steps=kept.steps[:after], stop_reason=StopReason.CANCELLED))
        await stores.journal.delete(run_id)
        for entry in entries:
            if entry.step <= after + 1:  # of the next step there are answers, but no decision
                await stores.journal.append(run_id, entry)


def test_the_decisions_of_a_run_that_was_stopped_come_from_its_database(
    made: Path, tmp_path: Path, again: Again, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stopped"
    shutil.copytree(made / "run", folder)
    (folder / "history.jsonl").unlink()
    asyncio.run(_cut(folder, after=1))
    told = again(folder=folder)
    assert told["parts_at"] is None
    assert [(step["recorded"] is None, step["redecided"] is None) for step in told["steps"]] == [
        (False, False),
        (True, False),
    ]
    assert told["unknown"]["place"]["stage"] == "meta_skill"
    assert run(["replay", str(folder)]) == 0
    assert "the same decisions, 1 record, and 1 record more" in capsys.readouterr().out
    assert again("evaluation.gate_metric=soft", folder=folder)["parts_at"] == 1


def test_a_folder_that_is_none_is_not_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(tmp_path / "nowhere")]) == 66
    assert "does not exist" in refused(capsys)
    assert run(["replay", str(tmp_path)]) == 66
    assert "is not a run folder" in refused(capsys)


def test_a_task_that_is_nowhere_is_asked_for(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(made / "run", folder)
    timing = json.loads((folder / "timing.json").read_text())
    capsys.readouterr()
    assert timing["task_file"] == str(made / "task" / "task.yaml")
    (folder / "timing.json").write_text(json.dumps({**timing, "task_file": str(tmp_path / "gone.yaml")}))
    assert run(["replay", str(folder)]) == 2
    assert "gone.yaml is not there any more: name it with --task TASK.yaml" in refused(capsys)
    (folder / "timing.json").write_text(json.dumps({key: timing[key] for key in timing if key != "task_file"}))
    assert run(["replay", str(folder)]) == 2
    assert "does not tell where its task file is: name it with --task TASK.yaml" in refused(capsys)
    assert run(["replay", str(folder), "--task", str(tmp_path / "gone.yaml")]) == 2
    assert "there is no such file" in refused(capsys)
    assert run(["replay", str(folder), "--task", str(made / "task" / "task.yaml")]) == 0


def test_odd_options_are_refused(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(made / "run"), "--cfg-options", "evaluation.gate_metrik=soft"]) == 2
    assert "gate_metric" in refused(capsys)
    assert run(["replay", str(made / "run"), "--cfg-options", "optimizer.min_learning_rate=9"]) == 2
    assert "min_learning_rate" in refused(capsys)


def test_a_folder_without_answers_is_refused(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(made / "run", folder)
    (folder / "burnish.db").unlink()
    capsys.readouterr()
    assert run(["replay", str(folder)]) == 2
    assert "does not exist" in refused(capsys)
