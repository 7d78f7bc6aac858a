"""Files that build on one another, and command-line options over them."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.layers import MAX_BYTES, Layer, merge, read_chain, read_options
from burnish.presentation.settings.yaml_text import Value

PROPERTY = settings(derandomize=True, deadline=None)
SCALARS = st.none() | st.integers(0, 9) | st.text("ab", max_size=2)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3)
)
TREES = st.dictionaries(st.text("abc", max_size=1), VALUES, max_size=3)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str | bytes) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def lines_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        read_chain(path)
    assert str(caught.value) == "\n".join(caught.value.lines)
    return caught.value.lines


def test_mappings_merge_and_everything_else_is_replaced() -> None:
    below: dict[str, Value] = {"a": {"x": 1, "y": [1, 2], "z": {"q": 1}}, "b": 1, "c": {"x": 1}}
    above: dict[str, Value] = {"a": {"y": [3], "z": None}, "b": {"x": 2}, "c": [1], "d": "new"}
    assert merge(below, above) == {"a": {"x": 1, "y": [3], "z": None}, "b": {"x": 2}, "c": [1], "d": "new"}


@PROPERTY
@given(TREES, TREES)
def test_merging_has_a_unit_loses_no_key_and_changes_no_argument(
    below: dict[str, Value], above: dict[str, Value]
) -> None:
    before = repr((below, above))
    assert merge(below, {}) == merge({}, below) == merge(below, below) == below
    merged = merge(below, above)
    assert set(merged) == set(below) | set(above)
    assert merge(merged, above) == merged
    assert repr((below, above)) == before


def test_a_file_alone_is_one_layer() -> None:
    assert read_chain(write("task.yaml", "train: {seed: 1}")) == (Layer("task.yaml", {"train": {"seed": 1}}),)


def test_a_chain_is_read_from_the_bottom_and_names_files_from_where_we_stand() -> None:
    write("configs/deep/task.yaml", "_base_: ../mid.yaml\ntrain: {seed: 3}\n")
    write("configs/mid.yaml", "_base_: ./common/low.yaml\n")
    write("configs/common/low.yaml", "train: {batch_size: 2}\n")
    layers = read_chain(Path("configs/deep/task.yaml"))
    assert [layer.name for layer in layers] == ["configs/common/low.yaml", "configs/mid.yaml", "configs/deep/task.yaml"]
    assert [layer.tree for layer in layers] == [{"train": {"batch_size": 2}}, {}, {"train": {"seed": 3}}]


def test_one_base_may_be_reached_by_many_tasks() -> None:
    write("base.yaml", "train: {}\n")
    for name in ("a.yaml", "b.yaml"):
        assert len(read_chain(write(name, "_base_: base.yaml\n"))) == 2


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({"a.yaml": "a.yaml"}, "a.yaml: _base_: leads in a circle: a.yaml -> a.yaml"),
        (
            {"a.yaml": "b.yaml", "b.yaml": "c.yaml", "c.yaml": "./a.yaml"},
            "c.yaml: _base_: leads in a circle: a.yaml -> b.yaml -> c.yaml -> a.yaml",
        ),
        (
            {"a.yaml": "sub/b.yaml", "sub/b.yaml": "c.yaml", "sub/c.yaml": "b.yaml"},
            "sub/c.yaml: _base_: leads in a circle: a.yaml -> sub/b.yaml -> sub/c.yaml -> sub/b.yaml",
        ),
    ],
)
def test_a_circle_is_refused_with_its_chain(files: dict[str, str], line: str) -> None:
    for name, base in files.items():
        write(name, f"_base_: {base}\n")
    assert lines_of(Path("a.yaml")) == (line,)


def test_a_circle_through_a_link_is_found() -> None:
    write("a.yaml", "_base_: link.yaml\n")
    Path("link.yaml").symlink_to("a.yaml")
    assert lines_of(Path("a.yaml")) == ("a.yaml: _base_: leads in a circle: a.yaml -> link.yaml",)


def test_an_endless_chain_is_refused() -> None:
    for number in range(40):
        write(f"{number}.yaml", f"_base_: {number + 1}.yaml\n")
    assert lines_of(Path("0.yaml")) == ("32.yaml: _base_: more than 32 files build on one another",)


@pytest.mark.parametrize("base", ["[a.yaml]", "null", "''", "1", "{}", "/a.yaml"])
def test_a_base_is_one_relative_path(base: str) -> None:
    line = "task.yaml: _base_: must be one path, relative to this file"
    assert lines_of(write("task.yaml", f"_base_: {base}\n")) == (line,)


HINT = "write, for example, 'train:' and below it '  batch_size: 40'"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", f"task.yaml: holds no sections: {HINT}"),
        (b"# nothing yet\n", f"task.yaml: holds no sections: {HINT}"),
        (b"[1, 2]\n", f"task.yaml: holds no sections: {HINT}"),
        (b"just text\n", f"task.yaml: holds no sections: {HINT}"),
        (b"train:\n  seed: \xff\n", "task.yaml:2: is not UTF-8: save the file as UTF-8"),
        ("train: {}".encode("utf-16"), "task.yaml:1: is not UTF-8: save the file as UTF-8"),
        (b"train:\n\n  seed: 1\0\n", "task.yaml:3: holds a NUL byte: is it a text file?"),
        (b"train: {seed: 1}\ntrain: {seed: 2}\n", "task.yaml:2: the key train appears twice"),
        pytest.param(
            b"#" * (MAX_BYTES + 1),
            "task.yaml: is larger than 1024 KiB: a task file holds settings only",
            id="too large",
        ),
    ],
)
def test_refused_file(content: bytes, line: str) -> None:
    assert lines_of(write("task.yaml", content)) == (line,)


def test_the_largest_file_is_read() -> None:
    content = b"train: {}\n#"
    assert len(read_chain(write("task.yaml", content + b"." * (MAX_BYTES - len(content))))) == 1


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbftrain:\n  seed: 1\n", b"train:\r\n  seed: 1\r\n", b"\xef\xbb\xbftrain:\r\n  seed: 1"]
)
def test_byte_order_marks_and_windows_newlines_are_fine(content: bytes) -> None:
    assert read_chain(write("task.yaml", content))[0].tree == {"train": {"seed": 1}}


def test_a_section_with_every_key_commented_out_says_nothing() -> None:
    text = "train:\n#  seed: 1\nmodel:\n  simulated:\nenv:\n  prompt: null\nbudget:\n  prices:\nmisspelt:\n"
    tree = {"model": {}, "env": {"prompt": None}, "budget": {}, "misspelt": None}
    assert read_chain(write("task.yaml", text))[0].tree == tree


def test_files_that_cannot_be_read_are_told_with_who_named_them() -> None:
    write("task.yaml", "_base_: absent.yaml\n")
    Path("folder.yaml").mkdir()
    assert lines_of(Path("task.yaml")) == ("absent.yaml: there is no such file (_base_ of task.yaml)",)
    assert lines_of(Path("nowhere/task.yaml")) == ("nowhere/task.yaml: there is no such file",)
    assert lines_of(Path("folder.yaml")) == ("folder.yaml: is a folder: name a YAML file",)
    assert lines_of(Path("task.yaml/x")) == ("task.yaml/x: cannot be read: Not a directory",)
    assert lines_of(Path("a\0b")) == ("a\\x00b: is no file name",)
    write("long.yaml", f"_base_: {'n' * 300}\n")
    assert lines_of(Path("long.yaml")) == (f"…{'n' * 79}: cannot be read (_base_ of long.yaml): File name too long",)


def test_a_pipe_is_not_waited_for() -> None:
    os.mkfifo("pipe.yaml")
    assert lines_of(Path("pipe.yaml")) == ("pipe.yaml: is no regular file: name a YAML file",)


def test_a_link_to_itself_is_told() -> None:
    Path("loop.yaml").symlink_to("loop.yaml")
    assert lines_of(Path("loop.yaml")) == ("loop.yaml: cannot be read: Too many levels of symbolic links",)


def test_a_file_name_cannot_break_the_line() -> None:
    assert lines_of(write("a\nb\x1b[1m.yaml", "[]")) == (f"a\\nb\\x1b[1m.yaml: holds no sections: {HINT}",)


def test_options_make_one_layer_in_which_the_last_wins() -> None:
    options = [
        "train.seed=1",
        "model.simulated.noise=0.1",
        " train.batch_size = 5",
        "train.seed=2",
        "env.prompt='=\"='",
    ]
    layer, problems = read_options(options)
    assert layer == Layer(
        "--cfg-options",
        {"train": {"seed": 2, "batch_size": 5}, "model": {"simulated": {"noise": 0.1}}, "env": {"prompt": '="='}},
    )
    assert problems == ()


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("train.seed", "argument 2 has no '=': write section.key=value"),
        ("sk-live-0123456789", "argument 2 has no '=': write section.key=value"),
        ("=5", "argument 2 begins with no key: write section.key=value"),
        (".seed=5", "argument 2 begins with no key: write section.key=value"),
        ("train..seed=5", "argument 2 begins with no key: write section.key=value"),
        pytest.param("a." * 50_000 + "b=1", "argument 2 begins with no key: write section.key=value", id="too deep"),
        ("train.seed=", "train.seed: no value: write null, or '\"\"' for an empty text"),
        ("env.prompt=a: b", "env.prompt: a text with ': ' or in braces is no single value: put it in double quotes"),
    ],
)
def test_refused_option(option: str, line: str) -> None:
    layer, problems = read_options(["train.seed=7", option])
    assert layer.tree == {"train": {"seed": 7}}
    assert problems == (f"--cfg-options: {line}",)
