"""Runs that note lapses, as people and machines are shown them: a simulated one, its export and its re-decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from ticket_server import EXAMPLE

from burnish.domain.appendix import notes_of
from burnish.presentation.cli import run

TASK = str(EXAMPLE / "task.yaml")
OPTIONS = (
    *("train.num_epochs=2", "train.steps_per_epoch=2", "evaluation.sel_env_num=12", "evaluation.test_env_num=5"),
    *("optimizer.use_skill_aware_reflection=true", "optimizer.skill_aware_consolidate_threshold=2"),
    *("env.skill_init=house_rules.md", "model.simulated.noise=0.3"),
)


def train(folder: Path, *options: str) -> int:
    return run(["train", TASK, "--out-root", str(folder), "--cfg-options", *OPTIONS, *options])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in `run`, and its export in `skillopt`."""
    folder = tmp_path_factory.mktemp("made")
    assert train(folder / "run") == 0
    assert run(["runs", "export", str(folder / "run"), "--layout", "skillopt", "-o", str(folder / "skillopt")]) == 0
    return folder


def read(path: Path) -> Any:  # noqa: ANN401 - JSON of any form
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def history(folder: Path) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", read(folder / "history.jsonl"))


def test_a_simulated_run_notes_consolidates_and_is_the_same_again(made: Path, tmp_path: Path) -> None:
    noted = [record for record in history(made / "run") if record["reason"] == "notes"]
    assert noted
    assert any(record["notes_consolidated"] for record in noted)
    assert all(record["candidate_score"] is not None for record in noted)
    assert notes_of((made / "run" / "final_skill.md").read_text(encoding="utf-8"))
    assert read(made / "run" / "summary.json")["reasons"]["notes"] == len(noted)
    assert train(tmp_path / "again", "env.workers=1") == 0
    for name in ("history.jsonl", "final_skill.md", "best_skill.md"):
        assert (tmp_path / "again" / name).read_bytes() == (made / "run" / name).read_bytes()


def test_the_steps_of_a_run_are_shown_with_their_notes(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noted = sum(record["notes_added"] > 0 for record in history(made / "run"))
    assert run(["runs", "show", str(made / "run")]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " noted " in line]
    assert len(lines) == noted > 0
    assert all(" notes " in line for line in lines)


def test_a_run_with_notes_is_decided_again_as_it_was(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = len(history(made / "run"))
    assert run(["replay", str(made / "run")]) == 0
    assert f"the same decisions, {records} records" in capsys.readouterr().out


def test_another_threshold_parts_where_the_notes_do(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    option = "optimizer.skill_aware_consolidate_threshold=0"
    assert run(["replay", str(made / "run"), "--json", "--cfg-options", option]) == 0
    told = json.loads(capsys.readouterr().out)
    first = next(record for record in history(made / "run") if record["notes_consolidated"])
    assert (told["unknown"]["place"]["step"], told["unknown"]["place"]["stage"]) == (first["step"], "notes")


def test_the_export_tells_the_notes_of_each_step(made: Path) -> None:
    out, records = made / "skillopt", history(made / "run")
    steps = read(out / "history.json")
    for step in steps:
        own, *others = [record for record in records if record["step"] == step["step"]]
        noted = next((record for record in others if record["notes_added"]), None)
        assert step["n_execution_lapse_notes"] == own["lapses"]
        assert ("n_appendix_notes_total" in step) is (noted is not None)
        folder = out / "steps" / f"step_{step['step']:04d}"
        assert (folder / "appendix_notes.json").exists() is (own["lapses"] > 0)
        if noted is None:
            continue
        skill = (out / "skills" / f"skill_v{step['step']:04d}.md").read_text(encoding="utf-8")
        appendix = read(folder / "appendix_notes.json")
        assert len(appendix["step_notes"]) == own["lapses"]
        assert notes_of(f"<!-- APPENDIX_START -->{appendix['appendix_after']}<!-- APPENDIX_END -->") == notes_of(skill)
        assert step["n_appendix_notes_added"] == noted["notes_added"]
        assert step["n_appendix_notes_total"] == noted["notes_total"] == len(notes_of(skill))
        assert step["n_appendix_notes_consolidated"] == noted["notes_consolidated"]
        assert step["skill_len"] == noted["skill_characters"]
        assert step["action"] == "skip_no_patches" if own["reason"] == "no_patches" else own["action"]
        scored = read(folder / "appendix_eval" / "results.jsonl")
        assert sum(row["hard"] for row in scored) / len(scored) == noted["candidate_hard"]
    assert (out / "skills" / "skill_v0004.md").read_bytes() == (made / "run" / "final_skill.md").read_bytes()
    flat = read(out / "config.json")
    assert flat["use_skill_aware_reflection"] is True
    assert (flat["skill_aware_appendix_source"], flat["skill_aware_consolidate_threshold"]) == ("both", 2)


def test_a_threshold_below_0_and_an_unknown_source_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    bad = ("optimizer.skill_aware_consolidate_threshold=-1", "optimizer.skill_aware_appendix_source=success")
    for option in bad:
        assert run(["config", "check", TASK, "--cfg-options", option]) == 2
        assert option.partition("=")[0] in capsys.readouterr().err
