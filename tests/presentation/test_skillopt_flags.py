"""SkillOpt's keys and flags: each is supported or refused with a reason, on the command line and in a task file."""

from __future__ import annotations

from pathlib import Path

import pytest
from ticket_server import EXAMPLE

from burnish.presentation.cli import run
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.keys import KEYS
from burnish.presentation.settings.loading import load_task
from burnish.presentation.settings.skillopt_names import SKILLOPT_NAMES, by_flag, by_path

TASK = str(EXAMPLE / "task.yaml")

_AZURE = "endpoint api_version api_key auth_mode ad_scope managed_identity_client_id"
_QWEN = "base_url api_key temperature timeout_seconds max_tokens enable_thinking thinking_mode"
_COMPATIBLE = "base_url api_key model temperature timeout_seconds max_tokens"

KEYS_OF_SKILLOPT = {
    "model": (
        "backend optimizer target optimizer_backend target_backend reasoning_effort rewrite_reasoning_effort "
        "rewrite_max_completion_tokens "
        "codex_exec_path codex_exec_sandbox codex_exec_profile codex_exec_reasoning_effort codex_exec_approval_policy "
        "codex_exec_use_sdk codex_exec_network_access codex_exec_web_search codex_exec_full_auto "
        "codex_path codex_cli_bin codex_bin sandbox codex_sandbox codex_trace_to_optimizer "
        "claude_code_exec_path claude_code_exec_profile claude_code_exec_use_sdk claude_code_exec_effort "
        "claude_code_exec_max_thinking_tokens "
        "cursor_exec_path cursor_exec_sandbox copilot_exec_path copilot_exec_home copilot_exec_allow_all_tools "
        "copilot_chat_optimizer_model copilot_chat_target_model copilot_chat_timeout "
        "azure_endpoint azure_api_version azure_api_key "
        "minimax_region minimax_base_url minimax_api_key minimax_model minimax_temperature minimax_max_tokens "
        "minimax_enable_thinking optimizer_minimax_base_url optimizer_minimax_api_key target_minimax_base_url "
        "target_minimax_api_key "
    )
    + " ".join(f"{role}azure_openai_{name}" for role in ("", "optimizer_", "target_") for name in _AZURE.split())
    + " "
    + " ".join(f"{role}qwen_chat_{name}" for role in ("", "optimizer_", "target_") for name in _QWEN.split())
    + " "
    + " ".join(
        f"{role}openai_compatible_{name}" for role in ("", "optimizer_", "target_") for name in _COMPATIBLE.split()
    ),
    "train": "num_epochs train_size batch_size accumulation seed steps_per_epoch",
    "gradient": "minibatch_size merge_batch_size analyst_workers failure_only max_analyst_rounds",
    "optimizer": (
        "learning_rate min_learning_rate lr_scheduler lr_control_mode skill_update_mode use_slow_update "
        "slow_update_samples slow_update_gate_with_selection longitudinal_pair_policy use_meta_skill "
        "use_skill_aware_reflection skill_aware_appendix_source skill_aware_consolidate_threshold meta_learning_rate"
    ),
    "evaluation": (
        "use_gate sel_env_num test_env_num eval_test gate_metric gate_mixed_weight use_semantic_density "
        "semantic_density_weight leading_words"
    ),
    "env": (
        "name skill_init split_mode split_ratio split_seed split_dir data_path split_output_dir exec_timeout out_root "
        "max_turns workers max_completion_tokens limit mode data_root image_detail max_tool_turns search_mode data_dirs "
        "search_api_url shuffle_choices use_theorem use_sketch max_steps max_api_workers judge_model "
        "judge_max_completion_tokens judge_retries"
    ),
}
"""Spec B, sections 1.2 and 1.3: the keys of default.yaml, of the code, and of the benchmarks' files."""

FLAGS_OF_SKILLOPT = (
    "config cfg-options env backend optimizer_model target_model optimizer_backend target_backend reasoning_effort "
    "rewrite_reasoning_effort rewrite_max_completion_tokens codex_trace_to_optimizer skill_init num_epochs train_size "
    "steps_per_epoch batch_size accumulation seed edit_budget min_edit_budget lr_scheduler lr_control_mode "
    "merge_batch_size sel_env_num test_env_num eval_test use_gate max_steps max_api_workers analyst_workers failure_only "
    "minibatch_size skill_update_mode use_slow_update slow_update_samples longitudinal_pair_policy use_meta_skill "
    "use_skill_aware_reflection skill_aware_appendix_source skill_aware_consolidate_threshold data_path split_mode "
    "split_ratio split_seed split_dir split_output_dir data_root max_turns workers limit shuffle_choices use_theorem "
    "use_sketch image_detail judge_model judge_max_completion_tokens judge_retries out_root mode max_analyst_rounds "
    "skill split meta_edit_budget exec_timeout max_completion_tokens gate_metric gate_mixed_weight "
    "slow_update_gate_with_selection use_semantic_density semantic_density_weight leading_words"
)
"""Spec B, sections 1.4 and 1.5, and the flat names of section 1.2."""

ALL_KEYS = [f"{section}.{name}" for section, names in KEYS_OF_SKILLOPT.items() for name in names.split()]
ALL_FLAGS = [
    *FLAGS_OF_SKILLOPT.split(),
    *(name for name in KEYS_OF_SKILLOPT["model"].split() if name not in {"optimizer", "target"}),
]


@pytest.mark.parametrize("path", ALL_KEYS)
def test_every_key_is_supported_or_refused_with_a_reason(path: str) -> None:
    known = next((name for name in SKILLOPT_NAMES if name.path == path), None)
    assert known is not None
    assert by_path(path) is known
    assert known.is_supported or known.reason
    assert all(key in KEYS for key in known.keys)


@pytest.mark.parametrize("flag", ALL_FLAGS)
def test_every_flag_is_in_the_table(flag: str) -> None:
    known = by_flag(flag)
    assert known is not None
    assert known.is_supported or known.reason


def test_no_name_stands_in_the_table_twice_or_is_unknown_to_skillopt() -> None:
    assert len({name.path for name in SKILLOPT_NAMES}) == len({name.flag for name in SKILLOPT_NAMES})
    assert len({name.flag for name in SKILLOPT_NAMES}) == len(SKILLOPT_NAMES)
    in_sections = {name.path for name in SKILLOPT_NAMES if "." in name.path}
    assert in_sections == set(ALL_KEYS)


@pytest.mark.parametrize("path", ALL_KEYS)
def test_a_task_file_with_the_key_is_told_its_right_name_or_the_reason(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    section, _, name = path.partition(".")
    known = by_path(path)
    assert known is not None
    file = Path("task.yaml")
    file.write_text(f"{section}:\n  {name}: null\n")
    try:
        load_task(file)
    except SettingsError as error:
        (line,) = error.lines
        assert line.startswith(f"{file}: {path}: ")
        if known.keys == (path,):
            assert "unknown key" not in line
        else:
            assert known.remedy in line or "set the environment variable" in line
    else:
        assert known.keys == (path,)


def test_flat_flags_are_settings_and_beat_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--num_epochs", "3", "--batch_size=7", "--edit_budget", "5", "--target_model", "some-model"]
    flags += ["--use_slow_update", "0", "--reasoning_effort", "low", "--optimizer_qwen_chat_temperature", "0.5"]
    assert run(["config", "show", TASK, *flags, "--cfg-options", "train.num_epochs=9", "train.seed=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "train.num_epochs: 3",
        "train.seed: 1",
        "train.batch_size: 7",
        "optimizer.learning_rate: 5",
        "model.target: some-model",
        "optimizer.use_slow_update: false",
        "model.target_reasoning_effort: low",
        "model.optimizer_reasoning_effort: low",
        "model.optimizer_temperature: 0.5",
    ):
        assert f"{line}  # --cfg-options" in lines


def test_an_empty_text_is_no_value_as_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", TASK, "--reasoning_effort", "", "--data_path", ""]) == 0
    out = capsys.readouterr().out
    assert "model.target_reasoning_effort: null  # --cfg-options" in out
    assert 'env.data_path: ""  # --cfg-options' in out


def test_every_refused_flag_is_told_in_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--use_semantic_density", "true", "--max_analyst_rounds=2", "--num_epochs"]
    assert run(["train", TASK, *flags]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "burnish: --use_semantic_density: is not supported: a score here is what items measure, nothing else: remove it",
        "burnish: --max_analyst_rounds: is not supported: has no effect in SkillOpt either: remove it",
        "burnish: --num_epochs: needs a value",
    ]


def test_a_secret_on_the_command_line_is_refused_without_being_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", TASK, "--minimax_api_key", "sk-planted-secret", "--qwen_chat_api_key=sk-planted-secret"]) == 2
    assert "sk-planted-secret" not in capsys.readouterr().err


def test_bad_values_are_refused_like_those_of_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", TASK, "--use_gate", "false"]) == 2
    assert "evaluation.use_gate: false is refused" in capsys.readouterr().err
    assert run(["train", TASK, "--num_epochs", "many"]) == 2
    assert "train.num_epochs: must be a whole number" in capsys.readouterr().err


def test_out_root_is_the_run_folder(tmp_path: Path) -> None:
    small = ["--num_epochs", "1", "--steps_per_epoch", "1", "--sel_env_num", "4", "--eval_test", "false"]
    assert run(["train", "--config", TASK, "--out_root", str(tmp_path / "run"), *small]) == 0
    assert (tmp_path / "run" / "summary.json").exists()


def test_commands_without_a_task_take_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "list", "--num_epochs", "3"]) == 2
    assert "--num_epochs" in capsys.readouterr().err


def test_the_page_in_the_docs_is_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "flags"]) == 0
    page = EXAMPLE.parent.parent / "docs" / "skillopt-flags.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8"), "write it anew: burnish config flags"


@pytest.mark.parametrize("value", ["", "-1", "1e400", "[", "!!python/object:os.system x\n"])
def test_whatever_a_flag_is_given_is_taken_or_refused_in_lines(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in SKILLOPT_NAMES:
        if name.option:
            continue
        code = run(["config", "check", TASK, f"--{name.flag}={value}"])
        told = capsys.readouterr().err
        assert code in {0, 2}, name.flag
        assert bool(told) == (code == 2)
        assert all(line.startswith("burnish: ") for line in told.splitlines()), told
