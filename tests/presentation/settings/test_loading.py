"""From files and options to settings: every problem in one line, every value with its source."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from burnish.presentation.settings.errors import SettingsError, listed
from burnish.presentation.settings.keys import KEYS
from burnish.presentation.settings.loading import load_task
from burnish.presentation.settings.scorer_names import SCORERS
from burnish.presentation.settings.sections import TaskSettings

PROPERTY = settings(
    derandomize=True, deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def lines_of(text: str, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_task(write("task.yaml", text), overrides)
    return caught.value.lines


def test_a_task_without_settings_has_every_default() -> None:
    loaded = load_task(write("task.yaml", "train:\n"))
    assert loaded.settings == TaskSettings()
    assert loaded.sources == dict.fromkeys(KEYS, "default")


def test_every_value_has_a_source() -> None:
    write("configs/low.yaml", "train: {seed: 1, batch_size: 10}\nevaluation: {repeats: 2}\n")
    write("configs/base.yaml", "_base_: low.yaml\ntrain: {batch_size: 20}\nmodel: {simulated: {noise: 0.5}}\n")
    write("task.yaml", "_base_: configs/base.yaml\ntrain: {num_epochs: 2}\n")
    loaded = load_task("task.yaml", ["train.num_epochs=3", "model.target=small"])
    own = {key: source for key, source in loaded.sources.items() if source != "default"}
    assert own == {
        "model.target": "--cfg-options",
        "model.simulated.noise": "configs/base.yaml",
        "train.num_epochs": "--cfg-options",
        "train.batch_size": "configs/base.yaml",
        "train.seed": "configs/low.yaml",
        "evaluation.repeats": "configs/low.yaml",
    }
    train = loaded.settings.train
    assert (train.num_epochs, train.batch_size, train.seed) == (3, 20, 1)


def test_a_value_that_equals_its_default_still_has_its_file_as_source() -> None:
    assert load_task(write("task.yaml", "train: {seed: 42}\n")).sources["train.seed"] == "task.yaml"


def test_base_dir_is_the_folder_of_the_task_file_itself(tmp_path: Path) -> None:
    write("configs/base.yaml", "train: {}\n")
    write("tasks/task.yaml", "_base_: ../configs/base.yaml\n")
    assert load_task("tasks/task.yaml").base_dir == tmp_path / "tasks"
    assert load_task(tmp_path / "tasks" / "task.yaml").base_dir == tmp_path / "tasks"


@pytest.mark.parametrize(
    ("option", "key", "value"),
    [
        ("train.seed=0x10", "seed", 16),
        ("train.patience=3", "patience", 3),
        ("train.patience=null", "patience", None),
        ("train.steps_per_epoch=~", "steps_per_epoch", None),
    ],
)
def test_options_are_typed(option: str, key: str, value: object) -> None:
    text = "train: {patience: 5, steps_per_epoch: 5}\n"
    assert getattr(load_task(write("task.yaml", text), [option]).settings.train, key) == value


def test_texts_and_numbers_of_options_keep_their_types() -> None:
    options = [
        "model.target='2024'",
        "model.optimizer=no",
        "env.split_ratio=2:1:7",
        'env.prompt="Question: {question}\\nAnswer:"',
        "model.target_temperature=1",
        "evaluation.max_error_rate=1e-3",
        "env.split_dir=items/of mine",
        'env.skill_init=""',
    ]
    loaded = load_task(write("task.yaml", "train:\n"), options).settings
    assert (loaded.model.target, loaded.model.optimizer) == ("2024", "no")
    assert (loaded.env.split_ratio, loaded.env.prompt) == ("2:1:7", "Question: {question}\nAnswer:")
    assert (loaded.model.target_temperature, loaded.evaluation.max_error_rate) == (1.0, 0.001)
    assert (loaded.env.split_dir, loaded.env.split_mode, loaded.env.skill_init) == ("items/of mine", "split_dir", "")


BACKENDS = "openai_chat, openai_compatible, claude_chat, qwen_chat, codex_exec, claude_code_exec or simulated"


@pytest.mark.parametrize(
    ("section", "line"),
    [
        # unknown keys and sections
        ("train: {batchsize: 4}", "train.batchsize: unknown key: did you mean train.batch_size?"),
        ("train: {learning_rate: 4}", "train.learning_rate: unknown key: did you mean optimizer.learning_rate?"),
        ("learning_rate: 4", "learning_rate: unknown key: did you mean optimizer.learning_rate?"),
        ("optimiser: {learning_rate: 4}", "optimiser: unknown section: did you mean optimizer?"),
        (
            "zzz: 1",
            "zzz: unknown section: there are model, train, gradient, optimizer, evaluation, env and budget",
        ),
        (
            "gradient: {zzz: 1}",
            (
                "gradient.zzz: unknown key: there are "
                "minibatch_size, merge_batch_size, analyst_workers, failure_only, trajectory_view and obs_chars"
            ),
        ),
        ("model: {simulated: {nose: 1}}", "model.simulated.nose: unknown key: did you mean model.simulated.noise?"),
        ("train: {edit_budget: 4}", "train.edit_budget: unknown key: set optimizer.learning_rate"),
        ("optimizer: {min_edit_budget: 4}", "optimizer.min_edit_budget: unknown key: set optimizer.min_learning_rate"),
        ("model: {backend: x}", f"model.backend: must be {BACKENDS[:-13]}, simulated or null, not x"),
        ("train: {backend: x}", "train.backend: unknown key: did you mean model.backend?"),
        (
            "model: {reasoning_effort: low}",
            (
                "model.reasoning_effort: unknown key: "
                "set model.target_reasoning_effort and model.optimizer_reasoning_effort"
            ),
        ),
        ("env: {out_root: x}", "env.out_root: unknown key: name the run folder on the command line (--out-root)"),
        (
            '"a\\nb": 1',
            "a\\nb: unknown section: there are model, train, gradient, optimizer, evaluation, env and budget",
        ),
        ('"train\\n.seed": 1', "train\\n.seed: unknown key: did you mean train.seed?"),
        ("env: {_base_: x}", "env._base_: unknown key: it belongs at the top of a task file"),
        # secrets and addresses
        (
            "model: {api_key: sk-abcdefgh}",
            "model.api_key: a secret has no place here: set the environment variable OPENAI_API_KEY",
        ),
        (
            "model: {target_openai_compatible_api_key: [sk-abcdefgh]}",
            (
                "model.target_openai_compatible_api_key: a secret has no place here: "
                "set the environment variable TARGET_OPENAI_COMPATIBLE_API_KEY"
            ),
        ),
        (
            "env: {optimizer_access_token: sk-abcdefgh}",
            (
                "env.optimizer_access_token: a secret has no place here: "
                "set the environment variable OPTIMIZER_OPENAI_API_KEY"
            ),
        ),
        ("api_key: sk-abcdefgh", "api_key: a secret has no place here: set the environment variable OPENAI_API_KEY"),
        (
            "model: {openai_base_url: http://user:sk-abcdefgh@host}",
            (
                "model.openai_base_url: what depends on the machine has no place here: "
                "set the environment variable OPENAI_BASE_URL"
            ),
        ),
        (
            "model: {optimizer_azure_openai_api_key: sk-abcdefgh}",
            (
                "model.optimizer_azure_openai_api_key: a secret has no place here: "
                "set the environment variable OPTIMIZER_AZURE_OPENAI_API_KEY"
            ),
        ),
        (
            "model: {azure_openai_api_version: 2024-10-21}",
            (
                "model.azure_openai_api_version: what depends on the machine has no place here: "
                "set the environment variable AZURE_OPENAI_API_VERSION"
            ),
        ),
        # sections
        ("train: 3", "train: must be a section of keys, not 3"),
        ("train: [seed]", "train: must be a section of keys, not a list"),
        ("env: text", "env: must be a section of keys, not text"),
        ("model: {simulated: true}", "model.simulated: must be a section of keys, not true"),
        # types
        ("train: {seed: 1.0}", "train.seed: must be a whole number, not 1.0: write 1"),
        ("train: {seed: 1.5}", "train.seed: must be a whole number, not 1.5"),
        ("train: {seed: 1e300}", "train.seed: must be a whole number, not 1.0e+300: write 10000000000000000525047…"),
        ("train: {seed: '1'}", "train.seed: must be a whole number, not text: write it without quotes"),
        ("train: {seed: one}", "train.seed: must be a whole number, not text"),
        ("train: {seed: true}", "train.seed: must be a whole number, not true"),
        ("train: {seed: null}", "train.seed: must be a whole number, not null: remove it to get the default, 42"),
        ("train: {seed: [1]}", "train.seed: must be a whole number, not a list"),
        ("train: {seed: {a: 1}}", "train.seed: must be a whole number, not a section"),
        ("train: {patience: x}", "train.patience: must be a whole number or null, not text"),
        (
            "model: {target_temperature: '1e-1'}",
            "model.target_temperature: must be a number or null, not text: write it without quotes",
        ),
        ("model: {target_max_token: 5}", "model.target_max_token: unknown key: did you mean model.target_max_tokens?"),
        ("token: 5", "token: a secret has no place here: set the environment variable OPENAI_API_KEY"),
        (
            "evaluation: {gate_mixed_weight: '.5'}",
            "evaluation.gate_mixed_weight: must be a number, not text: write it without quotes",
        ),
        ("evaluation: {gate_mixed_weight: .nan}", "evaluation.gate_mixed_weight: must be a finite number, not nan"),
        ("evaluation: {gate_mixed_weight: .inf}", "evaluation.gate_mixed_weight: must be a finite number, not inf"),
        ("evaluation: {gate_mixed_weight: 1e999}", "evaluation.gate_mixed_weight: must be a finite number, not inf"),
        ("evaluation: {eval_test: yes}", "evaluation.eval_test: must be true or false, not text: write true"),
        ("evaluation: {eval_test: Off}", "evaluation.eval_test: must be true or false, not text: write false"),
        ("evaluation: {eval_test: 1}", "evaluation.eval_test: must be true or false, not 1"),
        ("env: {data_path: 5}", "env.data_path: must be text, not 5: put it in quotes"),
        ("env: {data_path: null}", 'env.data_path: must be text, not null: remove it to get the default, ""'),
        ("env: {answer_instruction: [x]}", "env.answer_instruction: must be text or null, not a list"),
        (
            'env: {data_path: "a\\0"}',
            "env.data_path: holds a character that no file can hold (NUL, or half of a surrogate pair)",
        ),
        # ranges
        ("train: {batch_size: 0}", "train.batch_size: must be at least 1, not 0"),
        ("train: {batch_size: 2000000000}", "train.batch_size: must be at most 1000000000, not 2000000000"),
        (f"train: {{seed: {10**50}}}", "train.seed: must be at most 9223372036854775807, not 10000000000000000000000…"),
        ("model: {target_timeout_seconds: 0}", "model.target_timeout_seconds: must be above 0.0, not 0"),
        ("model: {target_temperature: 2.5}", "model.target_temperature: must be at most 2.0, not 2.5"),
        # choices
        (
            "evaluation: {gate_metric: hrad}",
            "evaluation.gate_metric: must be hard, soft or mixed, not hrad: did you mean hard?",
        ),
        ("evaluation: {gate_metric: 1}", "evaluation.gate_metric: must be hard, soft or mixed, not 1"),
        (
            "evaluation: {gate_metric: sk-0123456789012345678901234}",
            "evaluation.gate_metric: must be hard, soft or mixed, not another text",
        ),
        (
            "model: {target_reasoning_effort: hihg}",
            (
                "model.target_reasoning_effort: must be none, minimal, low, medium, high, xhigh, max or null, not hihg: "
                "did you mean high?"
            ),
        ),
        ("model: {target_backend: azure}", f"model.target_backend: must be {BACKENDS}, not azure"),
        (
            "optimizer: {skill_update_mode: pach}",
            (
                "optimizer.skill_update_mode: must be patch, rewrite_from_suggestions or full_rewrite_minibatch, not pach: "
                "did you mean patch?"
            ),
        ),
        (
            "optimizer: {lr_control_mode: nothing}",
            "optimizer.lr_control_mode: must be fixed, autonomous or none, not nothing",
        ),
        # not supported yet
        (
            "model: {target_backend: cursor_exec}",
            f"model.target_backend: cursor_exec is not supported yet: use {BACKENDS}",
        ),
        (
            "optimizer: {lr_scheduler: Autonomous}",
            "optimizer.lr_scheduler: autonomous is no schedule: set optimizer.lr_control_mode to autonomous",
        ),
        (
            "env: {scorer: exactmatch}",
            f"env.scorer: must be {listed(SCORERS)}, not exactmatch: did you mean exact_match?",
        ),
        (
            "env: {scorer: f1, field_weights: {a: 1}}",
            "env.field_weights: has no effect with env.scorer f1: set env.scorer to json_match, or remove it",
        ),
        (
            "env: {scorer: json_match, field_weights: {a: -1}}",
            "env.field_weights.a: must be at least 0.0, not -1",
        ),
        # prices
        ("budget: {prices: 3}", "budget.prices: must be a section of keys, not 3"),
        ("budget: {prices: [1]}", "budget.prices: must be a section of keys, not a list"),
        ("budget: {prices: {m: 3}}", "budget.prices.m: must be a section of keys, not 3"),
        ("budget: {prices: {org/m:7.5b: {prompt: 1}}}", "budget.prices.org/m:7.5b: needs completion as well"),
        ("budget: {prices: {m: {prompt: -1, completion: 0}}}", "budget.prices.m.prompt: must be at least 0.0, not -1"),
        (
            "budget: {prices: {m: {prompt: '1', completion: 0}}}",
            "budget.prices.m.prompt: must be a number, not text: write it without quotes",
        ),
        (
            "budget: {prices: {m: {prompt: .nan, completion: 0}}}",
            "budget.prices.m.prompt: must be a finite number, not nan",
        ),
        (
            "budget: {prices: {m: {prompt: null, completion: 0}}}",
            "budget.prices.m.prompt: must be a number, not null",
        ),
        (
            "budget: {prices: {m: {prompt: 1, completion: 0, input: 1}}}",
            "budget.prices.m.input: unknown key: each entry of budget.prices has prompt and completion",
        ),
        (
            'budget: {prices: {"a\\nb": {prompt: 1, completion: 0}}}',
            "budget.prices.a\\nb: must be a model's name: 1 to 256 printable characters, no white space at its ends",
        ),
        ("budget: {price: {}}", "budget.price: unknown key: did you mean budget.prices?"),
        ("a.b: 1", "a.b: unknown section: there are model, train, gradient, optimizer, evaluation, env and budget"),
        # rules
        (
            "evaluation: {use_gate: false}",
            (
                "evaluation.use_gate: false is refused: "
                "without the gate every candidate is kept, also one that makes the skill worse"
            ),
        ),
        (
            "optimizer: {learning_rate: 1}",
            "optimizer.min_learning_rate: must be at most optimizer.learning_rate, which is 1, not 2",
        ),
        (
            "model: {simulated: {useful: 0.9}}",
            "model.simulated.harmful: useful, useless and harmful must add up to 1",
        ),
        (
            "env: {split_mode: split_dir}",
            "env.split_mode: split_dir needs env.split_dir, the folder with train/, val/ and test/",
        ),
        (
            "env: {split_ratio: 2:0:7}",
            "env.split_ratio: must be three whole numbers above 0, for train, val and test, such as 2:1:7",
        ),
        ("env: {scorer: python}", "env.scorer_function: scorer python needs a function: name it as module:callable"),
        (
            "env: {scorer_function: 'a:b'}",
            "env.scorer_function: has no effect with env.scorer exact_match: set env.scorer to python, or remove it",
        ),
        (
            "env: {scorer: python, scorer_function: a.b}",
            "env.scorer_function: must name a Python function as module:callable",
        ),
        (
            "env: {name: ../up}",
            "env.name: must be at most 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit",
        ),
        (
            "model: {target: ' a'}",
            "model.target: must be a model's name: 1 to 256 printable characters, no white space at its ends",
        ),
    ],
)
def test_refused_setting(section: str, line: str) -> None:
    lines = lines_of(section)
    assert lines[0].isprintable()
    assert "sk-" not in lines[0]
    assert lines == (f"task.yaml: {line}",)


def test_all_problems_are_told_at_once_each_with_its_source() -> None:
    write("base.yaml", "train: {seed: -1}\nenv: {workers: 0}\n")
    text = "_base_: base.yaml\ntrain: {batch_size: 0}\n"
    assert lines_of(text, "train.num_epochs=0", "nonsense", "env.wrokers=2") == (
        "--cfg-options: argument 2 has no '=': write section.key=value",
        "--cfg-options: train.num_epochs: must be at least 1, not 0",
        "task.yaml: train.batch_size: must be at least 1, not 0",
        "base.yaml: train.seed: must be at least 0, not -1",
        "base.yaml: env.workers: must be at least 1, not 0",
        "--cfg-options: env.wrokers: unknown key: did you mean env.workers?",
    )


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("train=3", "train: must be a section of keys, not 3"),
        ("train=null", "train: must be a section of keys, not null"),
        ("train.seed.deep=3", "train.seed: must be a whole number, not a section"),
        ("trian.seed=3", "trian: unknown section: did you mean train?"),
        ("seed=3", "seed: unknown key: did you mean train.seed?"),
        ("train.patience=[1, 2]", "train.patience: must be a whole number or null, not a list"),
        ("train.seed=yes", "train.seed: must be a whole number, not text"),
        (
            "model.api_key=sk-abcdefgh",
            "model.api_key: a secret has no place here: set the environment variable OPENAI_API_KEY",
        ),
        ("budget.prices=3", "budget.prices: is a mapping: write it into the task file"),
        ("budget.prices.gpt-4.1.prompt=3", "budget.prices: is a mapping: write it into the task file"),
        ("_base_=other.yaml", "_base_: unknown key: it belongs at the top of a task file"),
    ],
)
def test_refused_option(option: str, line: str) -> None:
    lines = lines_of("train: {seed: 1}\n", option)
    assert "sk-" not in lines[0]
    assert lines == (f"--cfg-options: {line}",)


def test_very_many_problems_are_counted() -> None:
    lines = lines_of("".join(f"key{number}: 1\n" for number in range(60)))
    assert len(lines) == 51
    assert lines[-1] == "task.yaml: and 10 more of this kind"
