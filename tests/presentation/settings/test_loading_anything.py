"""Whatever a file or an option holds, it is settings or a refusal; and hosts pay nothing for it."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.keys import KEYS
from burnish.presentation.settings.loading import LoadedTask, load_task

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


def outcome(path: Path, *overrides: str) -> LoadedTask | SettingsError:
    try:
        return load_task(path, overrides)
    except SettingsError as error:
        return error


@PROPERTY
@given(
    st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.text("ab_se:,-[]{}&*!|>'\"# \n?~0.1", max_size=80).map(str.encode)
    | st.lists(
        st.sampled_from(
            [
                *(f"{key.replace('.', ': {')}: " for key in KEYS),
                "1",
                "-1",
                "x",
                "{",
                "}",
                "[",
                "]",
                ", ",
                "\n",
                "_base_: ",
                "task.yaml",
                ".nan",
                "null",
                "\\0",
                '"',
            ]
        ),
        max_size=12,
    ).map(lambda parts: "".join(parts).encode())
)
def test_any_bytes_are_settings_or_a_refusal(content: bytes) -> None:
    file = Path("task.yaml")
    file.write_bytes(content)
    result = outcome(file)
    if isinstance(result, SettingsError):
        assert result.lines
        assert all(line.isprintable() for line in result.lines)


@PROPERTY
@given(
    st.lists(
        st.text(max_size=40) | st.builds("{}={}".format, st.sampled_from(sorted(KEYS)), st.text(max_size=20)),
        max_size=4,
    )
)
def test_any_options_are_settings_or_a_refusal(options: list[str]) -> None:
    result = outcome(write("task.yaml", "train:\n"), *options)
    if isinstance(result, SettingsError):
        assert all(line.isprintable() for line in result.lines)


@pytest.mark.parametrize("module", ["burnish.presentation", "burnish.api"])
def test_hosts_do_not_pay_for_settings(module: str) -> None:
    code = f"""
import importlib.util, sys
if importlib.util.find_spec({module!r}) is not None:
    import {module}
print([name for name in sys.modules if name.startswith("burnish.presentation.settings")])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
