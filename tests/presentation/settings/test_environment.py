"""What the environment and a `.env` file say about models, and which of it is secret."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burnish.infrastructure.models.openai_settings import AzureAccess
from burnish.presentation.settings.dotenv import read_dotenv
from burnish.presentation.settings.environment import (
    VARIABLES,
    ApiBackend,
    Endpoint,
    Environment,
    Role,
    read_environment,
)
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.loading import load_task
from burnish.presentation.settings.models import fill_models

PROPERTY = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KEY = "sk-0123456789abcdef"


def environment(**process: str) -> Environment:
    return Environment(process=process, dotenv={})


def refusal(found: Environment, role: Role, backend: ApiBackend, model: str | None = "small") -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        found.endpoint(role, backend, model)
    return caught.value.lines


def facts(endpoint: Endpoint) -> tuple[str | None, str, str]:
    return endpoint.base_url, endpoint.api_key.get_secret_value(), endpoint.model


def test_the_variables_are_these() -> None:
    plain = {
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_COMPATIBLE_API_KEY",
        "OPENAI_COMPATIBLE_BASE_URL",
        "OPENAI_COMPATIBLE_MODEL",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CODEX_API_KEY",
        "QWEN_CHAT_API_KEY",
        "QWEN_CHAT_BASE_URL",
        "QWEN_CHAT_MODEL",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
        "AZURE_OPENAI_API_VERSION",
        "AZURE_OPENAI_AUTH_MODE",
        "AZURE_OPENAI_AD_SCOPE",
        "AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID",
    }
    assert {f"{prefix}{name}" for prefix in ("", "TARGET_", "OPTIMIZER_", "JUDGE_") for name in plain} == VARIABLES


def test_openai_needs_a_key_only() -> None:
    endpoint = environment(OPENAI_API_KEY=KEY).endpoint(Role.TARGET, "openai_chat", None)
    assert facts(endpoint) == (None, KEY, "gpt-5.5")


def test_a_compatible_server_needs_an_address_and_a_model_only() -> None:
    found = environment(OPENAI_COMPATIBLE_BASE_URL="http://localhost:8000/v1", OPENAI_COMPATIBLE_MODEL="small")
    endpoint = found.endpoint(Role.TARGET, "openai_compatible", None)
    assert facts(endpoint) == ("http://localhost:8000/v1", "sk-no-key-required", "small")


def test_claude_needs_a_key_or_a_gateway_s_token() -> None:
    by_key = environment(ANTHROPIC_API_KEY=KEY, ANTHROPIC_AUTH_TOKEN="token").endpoint(Role.TARGET, "claude_chat", None)
    assert (*facts(by_key), by_key.is_token) == (None, KEY, "claude-sonnet-4-6", False)
    by_token = environment(ANTHROPIC_AUTH_TOKEN="token", ANTHROPIC_BASE_URL="http://gateway")
    endpoint = by_token.endpoint(Role.OPTIMIZER, "claude_chat", "mine")
    assert (*facts(endpoint), endpoint.is_token) == ("http://gateway", "token", "mine", True)
    assert refusal(environment(), Role.TARGET, "claude_chat") == (
        "environment: ANTHROPIC_API_KEY: is not set, nor is TARGET_ANTHROPIC_API_KEY: set it to the key of the API",
    )


def test_qwen_needs_nothing_where_its_server_usually_is() -> None:
    endpoint = environment(QWEN_CHAT_MODEL="small").endpoint(Role.TARGET, "qwen_chat", None)
    assert facts(endpoint) == (None, "sk-no-key-required", "small")
    assert environment().endpoint(Role.TARGET, "qwen_chat", None).model == "Qwen/Qwen3.5-4B"


def test_an_address_at_azure_makes_it_azure() -> None:
    found = environment(
        OPENAI_API_KEY="for-openai-itself",
        AZURE_OPENAI_ENDPOINT="https://mine.example",
        AZURE_OPENAI_API_KEY=KEY,
        AZURE_OPENAI_API_VERSION="2024-10-21",
    )
    endpoint = found.endpoint(Role.TARGET, "openai_chat", "deployed")
    assert facts(endpoint) == ("https://mine.example", KEY, "deployed")
    assert endpoint.azure == AzureAccess(auth="api_key", api_version="2024-10-21")


@pytest.mark.parametrize(
    ("mode", "auth"),
    [
        ("", "azure_cli"),
        ("azure_cli", "azure_cli"),
        ("managed_identity", "managed_identity"),
        ("AAD", "managed_identity"),
        ("azure_ad", "managed_identity"),
    ],
)
def test_azure_without_a_key_asks_for_tokens(mode: str, auth: str) -> None:
    found = environment(
        AZURE_OPENAI_ENDPOINT="https://mine.example",
        AZURE_OPENAI_AUTH_MODE=mode,
        AZURE_OPENAI_AD_SCOPE="https://scope/.default",
        TARGET_AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID="me",
    )
    azure = found.endpoint(Role.TARGET, "openai_chat", "deployed").azure
    assert azure is not None
    assert (azure.auth, azure.scope, azure.client_id) == (auth, "https://scope/.default", "me")


def test_each_role_may_have_its_own_place() -> None:
    found = environment(
        OPENAI_API_KEY=KEY,
        OPTIMIZER_AZURE_OPENAI_ENDPOINT="https://mine.example",
        OPTIMIZER_AZURE_OPENAI_API_KEY="key-at-azure",
    )
    assert found.endpoint(Role.TARGET, "openai_chat", "m").azure is None
    assert facts(found.endpoint(Role.OPTIMIZER, "openai_chat", "m")) == ("https://mine.example", "key-at-azure", "m")


@pytest.mark.parametrize("mode", ["openai", "compat", "openai_compatible"])
def test_azure_can_be_switched_off_for_a_role(mode: str) -> None:
    found = environment(
        OPENAI_API_KEY=KEY, AZURE_OPENAI_ENDPOINT="https://mine.example", TARGET_AZURE_OPENAI_AUTH_MODE=mode
    )
    assert facts(found.endpoint(Role.TARGET, "openai_chat", "m")) == (None, KEY, "m")
    assert found.endpoint(Role.OPTIMIZER, "openai_chat", "m").azure is not None


def test_what_azure_lacks_is_named() -> None:
    found = environment(AZURE_OPENAI_ENDPOINT="mine.example", AZURE_OPENAI_AUTH_MODE="key")
    assert refusal(found, Role.TARGET, "openai_chat") == (
        "environment: AZURE_OPENAI_ENDPOINT: must be a server's address that begins with http:// or https://",
        "environment: AZURE_OPENAI_AUTH_MODE: must be api_key, azure_cli, managed_identity, or openai for no Azure at all",
    )
    found = environment(AZURE_OPENAI_ENDPOINT="https://mine.example", AZURE_OPENAI_AUTH_MODE="api_key")
    assert refusal(found, Role.TARGET, "openai_chat") == (
        (
            "environment: AZURE_OPENAI_API_KEY: is not set, nor is TARGET_AZURE_OPENAI_API_KEY: "
            "set it to the key of the resource"
        ),
    )


def test_the_two_backends_share_no_variable() -> None:
    found = environment(OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://a", OPENAI_COMPATIBLE_BASE_URL="http://b")
    assert facts(found.endpoint(Role.TARGET, "openai_chat", "m")) == ("http://a", KEY, "m")
    assert facts(found.endpoint(Role.TARGET, "openai_compatible", "m")) == ("http://b", "sk-no-key-required", "m")


@pytest.mark.parametrize("role", list(Role))
def test_a_role_s_own_variables_win(role: Role) -> None:
    found = environment(
        OPENAI_COMPATIBLE_BASE_URL="http://both",
        OPENAI_COMPATIBLE_API_KEY="key-of-both",
        OPENAI_COMPATIBLE_MODEL="both",
        TARGET_OPENAI_COMPATIBLE_BASE_URL="http://target",
        TARGET_OPENAI_COMPATIBLE_MODEL="target",
        OPTIMIZER_OPENAI_COMPATIBLE_API_KEY="key-of-optimizer",
        JUDGE_OPENAI_COMPATIBLE_MODEL="judge",
    )
    expected = {
        Role.TARGET: ("http://target", "key-of-both", "target"),
        Role.OPTIMIZER: ("http://both", "key-of-optimizer", "both"),
        Role.JUDGE: ("http://both", "key-of-both", "judge"),
    }
    assert facts(found.endpoint(role, "openai_compatible", None)) == expected[role]


def test_the_settings_model_wins_over_the_environment_s() -> None:
    found = environment(OPENAI_COMPATIBLE_BASE_URL="http://a", OPENAI_COMPATIBLE_MODEL="other")
    assert found.endpoint(Role.TARGET, "openai_compatible", "mine").model == "mine"


def test_the_process_wins_over_the_file_and_a_role_s_variable_in_the_file_over_both_roles_in_the_process() -> None:
    found = Environment(
        process={"OPENAI_API_KEY": "from-process"},
        dotenv={"OPENAI_API_KEY": "from-file", "OPTIMIZER_OPENAI_API_KEY": "optimizer-from-file"},
    )
    assert found.find(Role.TARGET, "OPENAI_API_KEY").value == "from-process"
    assert found.find(Role.OPTIMIZER, "OPENAI_API_KEY").value == "optimizer-from-file"


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_blank_counts_as_not_set(blank: str) -> None:
    found = Environment(
        process={"TARGET_OPENAI_API_KEY": blank, "OPENAI_API_KEY": blank}, dotenv={"OPENAI_API_KEY": f" {KEY}\n"}
    )
    assert found.endpoint(Role.TARGET, "openai_chat", None).api_key.get_secret_value() == KEY


def test_what_is_missing_is_named() -> None:
    assert refusal(environment(), Role.TARGET, "openai_chat") == (
        "environment: OPENAI_API_KEY: is not set, nor is TARGET_OPENAI_API_KEY: set it to the key of the API",
    )
    assert refusal(environment(), Role.OPTIMIZER, "openai_compatible", None) == (
        (
            "environment: OPENAI_COMPATIBLE_BASE_URL: is not set, nor is OPTIMIZER_OPENAI_COMPATIBLE_BASE_URL: "
            "set it to the server's address, such as http://localhost:8000/v1"
        ),
        (
            "environment: OPENAI_COMPATIBLE_MODEL: is not set, nor is OPTIMIZER_OPENAI_COMPATIBLE_MODEL: "
            "set it to the model's name, or name it in the task file as model.optimizer"
        ),
    )


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host", "http://", "http://host:99999", "http://[::1", "http://a b", "http://h\x1b"]
)
def test_an_address_is_an_address(url: str) -> None:
    lines = refusal(environment(OPENAI_COMPATIBLE_BASE_URL=url), Role.TARGET, "openai_compatible")
    problem = "must be a server's address that begins with http:// or https://"
    assert lines == (f"environment: OPENAI_COMPATIBLE_BASE_URL: {problem}",)


@pytest.mark.parametrize("url", [f"http://user:{KEY}@host/v1", f"http://host/v1?key={KEY}", f"http://host/#{KEY}"])
def test_an_address_carries_no_secret(url: str) -> None:
    lines = refusal(environment(OPENAI_API_KEY=KEY, TARGET_OPENAI_BASE_URL=url), Role.TARGET, "openai_chat")
    problem = "must be a plain address: no user, password, query or fragment (keys go into the API_KEY variable)"
    assert lines == (f"environment: TARGET_OPENAI_BASE_URL: {problem}",)


@pytest.mark.parametrize("key", ["sk-\u2026abcdef", "sk-abc def", "sk-abc\ndef", "sk-ключ-ключ"])
def test_a_key_fits_into_a_header(key: str) -> None:
    lines = refusal(environment(OPENAI_API_KEY=key), Role.TARGET, "openai_chat")
    problem = "holds a character that no HTTP header can carry: copy the key again"
    assert lines == (f"environment: OPENAI_API_KEY: {problem}",)


def test_no_representation_shows_a_key() -> None:
    found = Environment(process={"OPENAI_API_KEY": KEY}, dotenv={"OPENAI_API_KEY": KEY})
    endpoint = found.endpoint(Role.TARGET, "openai_chat", None)
    assert KEY not in f"{found!r} {found} {found.find(Role.TARGET, 'OPENAI_API_KEY')!r} {endpoint!r} {endpoint}"


def test_known_secrets_are_keys_of_all_roles_and_places_the_longest_first() -> None:
    found = Environment(
        process={
            "OPENAI_API_KEY": KEY,
            "TARGET_OPENAI_API_KEY": f"{KEY}-longer",
            "OPTIMIZER_OPENAI_COMPATIBLE_API_KEY": " spaced-secret ",
            "OPENAI_COMPATIBLE_API_KEY": "sk-no-key-required",
            "OPENAI_BASE_URL": "http://not-a-secret",
        },
        dotenv={"OPENAI_API_KEY": "masked-but-still-secret", "TARGET_OPENAI_COMPATIBLE_API_KEY": "7 chars"},
    )
    assert found.known_secrets() == (f"{KEY}-longer", "masked-but-still-secret", KEY, "spaced-secret")


@pytest.mark.parametrize("placeholder", ["sk-no-key-required", "SK-NO-KEY-REQUIRED", "not-needed", "changeme", ""])
def test_placeholders_are_no_secrets(placeholder: str) -> None:
    assert environment(OPENAI_API_KEY=placeholder).known_secrets() == ()


def test_only_known_variables_are_kept(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=http://file\nUNRELATED_TOKEN=abc\n")
    found = read_environment(tmp_path, {"OPENAI_API_KEY": KEY, "HOME": "/somewhere"})
    assert found == Environment(
        process={"OPENAI_API_KEY": KEY}, dotenv={"OPENAI_BASE_URL": "http://file"}, machine={"HOME": "/somewhere"}
    )


def test_an_agent_sees_its_own_keys_and_what_tells_where_it_is() -> None:
    found = Environment(
        process={"OPENAI_API_KEY": KEY, "TARGET_ANTHROPIC_API_KEY": "for-claude", "AZURE_OPENAI_API_KEY": "for-azure"},
        dotenv={"CODEX_API_KEY": "for-codex"},
        machine={"PATH": "/bin"},
    )
    assert found.for_agent(Role.TARGET, "codex_exec") == {
        "PATH": "/bin",
        "CODEX_API_KEY": "for-codex",
        "OPENAI_API_KEY": KEY,
    }
    assert found.for_agent(Role.TARGET, "claude_code_exec") == {"PATH": "/bin", "ANTHROPIC_API_KEY": "for-claude"}


# --- the .env file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("NAME=value", "value"),
        ("  NAME = value  ", "value"),
        ("export NAME=value", "value"),
        ("export\tNAME=value", "value"),
        ("NAME=two words", "two words"),
        ("NAME=a=b", "a=b"),
        ("NAME=a#b", "a#b"),
        ("NAME=a # comment", "a"),
        ("NAME=# comment", ""),
        ("NAME=", ""),
        ("NAME='a # b'", "a # b"),
        ('NAME="a # b"  # comment', "a # b"),
        ('NAME="it\'s"', "it's"),
        ("NAME='say \"hi\"'", 'say "hi"'),
        ("NAME=''", ""),
        ("NAME=$OTHER", "$OTHER"),
        ("NAME='a\\n'", "a\\n"),
    ],
)
def test_line_of_a_dotenv_file(tmp_path: Path, line: str, value: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"# head\n\n{line}\nnot for us\n= nothing\n'quote\nOTHER='open\n")
    assert read_dotenv(file, {"NAME"}) == {"NAME": value}


@pytest.mark.parametrize("line", ["#NAME=a", "NAME", "NAMES=a", "MY_NAME=a", "NA ME=a", "name=a", "NAME: a"])
def test_other_lines_are_skipped(tmp_path: Path, line: str) -> None:
    file = tmp_path / ".env"
    file.write_text(line)
    assert read_dotenv(file, {"NAME"}) == {}


@pytest.mark.parametrize("value", ["'open", '"open', "'a'b", "\"a' # b"])
def test_an_open_quote_is_refused_without_its_value(tmp_path: Path, value: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"\nNAME={value}\n")
    with pytest.raises(SettingsError) as caught:
        read_dotenv(file, {"NAME"})
    assert caught.value.lines == (f"{file}:2: NAME: a quote that does not close: close it on the same line",)


def test_the_last_line_of_a_name_wins(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"\xef\xbb\xbfNAME=first\r\nNAME=second\r\n")
    assert read_dotenv(file, {"NAME"}) == {"NAME": "second"}


def test_no_file_says_nothing(tmp_path: Path) -> None:
    assert read_dotenv(tmp_path / ".env", {"NAME"}) == {}
    (tmp_path / ".env").mkdir()
    assert read_dotenv(tmp_path / ".env", {"NAME"}) == {}


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(SettingsError) as caught:
        read_dotenv(file, {"NAME"})
    assert caught.value.lines == (f"{file}: is larger than 1024 KiB",)


@PROPERTY
@given(st.binary(max_size=60) | st.text("NAME= '\"#ab\n\\", max_size=40).map(str.encode))
def test_any_bytes_are_values_or_a_refusal(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / ".env"
    file.write_bytes(content)
    try:
        values = read_dotenv(file, {"NAME"})
    except SettingsError as error:
        assert "NAME: a quote that does not close" in str(error)  # noqa: PT017  either outcome is right
    else:
        assert set(values) <= {"NAME"}


# --- models ------------------------------------------------------------------------------------------------------------


def test_models_the_task_leaves_open_come_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("model: {target_backend: openai_compatible}\n")
    loaded = fill_models(load_task(file), environment(TARGET_OPENAI_COMPATIBLE_MODEL="small"))
    assert (loaded.settings.model.target, loaded.settings.model.optimizer) == ("small", "gpt-5.5")
    assert loaded.sources["model.target"] == "TARGET_OPENAI_COMPATIBLE_MODEL"
    assert loaded.sources["model.optimizer"] == "default"
    assert loaded.base_dir == tmp_path


def test_models_the_task_names_stay(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("model: {target_backend: openai_compatible, target: mine, optimizer: yours}\n")
    loaded = load_task(file)
    assert fill_models(loaded, environment(OPENAI_COMPATIBLE_MODEL="other")) == loaded


def test_simulated_roles_and_names_that_are_nowhere_stay_open(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("model: {target_backend: simulated, optimizer_backend: openai_compatible}\n")
    loaded = load_task(file)
    assert fill_models(loaded, environment()) == loaded


def test_an_unusable_model_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("model: {target_backend: openai_compatible}\n")
    problem = "must be a model's name: 1 to 256 printable characters, no white space at its ends"
    with pytest.raises(SettingsError) as caught:
        fill_models(load_task(file), environment(OPENAI_COMPATIBLE_MODEL="a\nb"))
    assert caught.value.lines == (f"environment: OPENAI_COMPATIBLE_MODEL: {problem}",)
