"""The YAML of task files: what a scalar means, what is refused, and that nothing else can happen."""

import math
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.presentation.settings.yaml_text import (
    Scalar,
    Value,
    YamlError,
    read_document,
    read_scalar,
    read_value,
    write_scalar,
)

PROPERTY = settings(derandomize=True, deadline=None)
STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("~", None),
        ("NULL", None),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("tRue", "tRue"),
        ("0", 0),
        ("-12", -12),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("-.inf", -math.inf),
        (".INF", math.inf),
        ("nan", "nan"),
        ("inf", "inf"),
        ("2:1:7", "2:1:7"),
        ("2024-01-31", "2024-01-31"),
        ("<<", "<<"),
        ("=", "="),
        ("1.2.3", "1.2.3"),
        ("e5", "e5"),
    ],
)
def test_scalar_of_the_core_schema(text: str, value: Scalar) -> None:
    read = read_scalar(text)
    assert (read, type(read)) == (value, type(value))
    assert read_document(text) == value


def test_not_a_number_is_a_number() -> None:
    read = read_scalar(".nan")
    assert isinstance(read, float)
    assert math.isnan(read)


@pytest.mark.parametrize("text", ["'40'", '"40"', "|-\n  40", ">-\n  40"])
def test_quoted_and_block_scalars_are_texts(text: str) -> None:
    assert read_document(text) == "40"


def test_a_document_is_mappings_lists_and_scalars() -> None:
    text = "---\na: {b: [1, two, null], c: {}}\nd:\n- - x\n- e: f\n..."
    assert read_document(text) == {"a": {"b": [1, "two", None], "c": {}}, "d": [["x"], {"e": "f"}]}


@pytest.mark.parametrize("text", ["", "   ", "# nothing\n", "---\n"])
def test_an_empty_document_is_null(text: str) -> None:
    assert read_document(text) is None


ANCHORS = "anchors (&) and aliases (*) are not read: quote a text that begins like one"
TAGS = "tags (!) are not read: quote a text that begins like one"
NO_TEXT_KEY = "a key that is no text: put it in quotes"
DEEP = "nested more than 16 levels deep"


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key a appears twice", 3),
        ("a:\n  b: 1\n  'b': 2\n", "the key b appears twice", 3),
        ("a: &x 1\n", ANCHORS, 1),
        ("a: 1\nb: *a\n", ANCHORS, 2),
        ("a: &x [1]\n", ANCHORS, 1),
        ("&x a: 1\n", ANCHORS, 1),
        ("a: &a [*a]\n", ANCHORS, 1),
        ("a: !!python/object/apply:os.system [true]\n", TAGS, 1),
        ("a: !!str 1\n", TAGS, 1),
        ("a: ! 1\n", TAGS, 1),
        ("!!map {a: 1}\n", TAGS, 1),
        ("1: a\n", NO_TEXT_KEY, 1),
        ("a: 1\ntrue: b\n", NO_TEXT_KEY, 2),
        ("~: a\n", NO_TEXT_KEY, 1),
        ("? [a]\n: b\n", NO_TEXT_KEY, 1),
        ("a: 1\n---\nb: 2\n", "a second document begins (---): a file holds one", 2),
        ("[" * 17 + "]" * 17, DEEP, 1),
        pytest.param("- " * 100_000, DEEP, 1, id="very deep"),
        pytest.param("a: " + "9" * 401, "a number of too many digits", 1, id="many digits"),
        pytest.param("a: 0x" + "f" * 400, "a number of too many digits", 1, id="many hexadecimal digits"),
        ("a: \x07", "a control character, which YAML does not allow", 1),
        ("a: 1\nb: \x1b[31m", "a control character, which YAML does not allow", 2),
        ("a: [1", "not YAML: expected ',' or ']', but got '<stream end>'", 1),
        ("a: 'b", "not YAML: found unexpected end of stream", 1),
        ("a: 1\n\tb: 2\n", "not YAML: found character '\\t' that cannot start any token", 2),
        ("a: b: c\n", "not YAML: mapping values are not allowed here", 1),
        ("%YAML 2.0\n---\na: 1\n", "not YAML: found incompatible YAML document (version 1.* is required)", 1),
    ],
)
def test_refused_text(text: str, problem: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        read_document(text)
    assert (caught.value.problem, caught.value.line) == (problem, line)


def test_an_alias_bomb_does_not_go_off() -> None:
    rows = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    with pytest.raises(YamlError, match="anchors"):
        read_document("\n".join(rows))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        (" 4 ", 4),
        ("1e-3", 0.001),
        ("null", None),
        ("true", True),
        ("yes", "yes"),
        ("'4'", "4"),
        ('""', ""),
        ('"a: b  # c"', "a: b  # c"),
        ("[1, two, null]", [1, "two", None]),
        ("[]", []),
        ("two words", "two words"),
        ("it's", "it's"),
        ("a=b", "a=b"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ('"line\\nbreak"', "line\nbreak"),
    ],
)
def test_value_of_an_option(text: str, value: object) -> None:
    read = read_value(text)
    assert (read, type(read)) == (value, type(value))


NO_VALUE = "no value: write null, or '\"\"' for an empty text"
COMMENT = "a text with a comment or line break: put it in double quotes"
MAPPING = "a text with ': ' or in braces is no single value: put it in double quotes"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", NO_VALUE),
        ("  ", NO_VALUE),
        ("a # b", COMMENT),
        ("# b", COMMENT),
        ("a\nb", COMMENT),
        ("--- a", COMMENT),
        ("a: b", MAPPING),
        ("{question}", MAPPING),
        ("{a: 1}", MAPPING),
        ("*json", ANCHORS),
        ("*.json", "not YAML: expected alphabetic or numeric character, but found '.': put a text in double quotes"),
        ("&a", ANCHORS),
        ("!a", TAGS),
        ("[1", "not YAML: expected ',' or ']', but got '<stream end>': put a text in double quotes"),
        ("@a", "not YAML: found character '@' that cannot start any token: put a text in double quotes"),
    ],
)
def test_refused_value_of_an_option(text: str, problem: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_value(text)
    assert caught.value.problem == problem


@PROPERTY
@given(st.none() | st.booleans() | st.integers(-(10**300), 10**300) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_is_read_as_the_same_number_here_and_by_yaml_1_1(value: Scalar) -> None:
    text = write_scalar(value)
    for read in (read_scalar(text), read_document(text), yaml.safe_load(text)):
        assert (read, type(read)) == (value, type(value))


@PROPERTY
@given(
    STORABLE
    | st.sampled_from(["null", "yes", "1e5", "0x1f", "~", " a", "a ", "2:1:7", "#", "a\u2028b", "\ufeff", "\x85", "😀"])
)
def test_a_written_text_is_read_as_the_same_text_here_and_by_yaml_1_1(value: str) -> None:
    text = write_scalar(value)
    assert "\n" not in text
    assert read_document(text) == yaml.safe_load(text) == value
    assert read_document(f"a: {text}  # c") == {"a": value}
    assert read_value(text) == value


def refused(read: Callable[[str], Value], text: str) -> YamlError | None:
    try:
        read(text)
    except YamlError as error:
        return error
    return None


@settings(PROPERTY, max_examples=500)
@given(st.text() | st.text("ab:,-[]{}&*!|>'\"#%@` \n\t?~0.", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_document, read_value):
        refusal = refused(read, text)
        assert refusal is None or refusal.problem.isprintable()
        assert refusal is None or 1 <= refusal.line <= 1 + sum(map(text.count, "\n\r\x85\u2028\u2029"))
