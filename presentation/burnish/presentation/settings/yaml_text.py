"""The YAML that task files are written in: a strict subset, and only YAML 1.2's core types.

Text between `null`, `true`, `false` and numbers is text: `yes`, `no`, `on`, `2:1:7` and dates are no special values.
Anchors, aliases, tags, repeated keys, several documents and keys that are no text are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

import yaml

from burnish.presentation.settings.errors import shown

Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | list[Value] | dict[str, Value]"

MAX_DEPTH = 16
MAX_DIGITS = 400
"""Of a whole number; Python itself refuses to convert many more."""

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NOT_A_NUMBER = re.compile(r"\.(nan|NaN|NAN)")

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS_OF_YAML_1_1 = frozenset({"y", "n", "yes", "no", "on", "off"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


class YamlError(Exception):
    """Text that is not YAML, or YAML we do not read; `line` counts from 1."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem, line)
        self.problem = problem
        self.line = line


def read_document(text: str) -> Value:
    """The value of a text of one document (None when it holds none); raises YamlError."""
    events = _events(text)
    value: Value = None
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise YamlError("a second document begins (---): a file holds one", _line(event))
            value = _value(next(events), events, 1)
    return value


def read_value(text: str) -> Value:
    """The value of a command-line option: one scalar or list; raises YamlError.

    Text that YAML would shorten or rearrange without a word (comments, line breaks) is refused unless it is quoted.
    """
    bare = text.strip(" \t\r\n")
    if not bare:
        raise YamlError("no value: write null, or '\"\"' for an empty text", 1)
    try:
        nodes = [event for event in _events(text) if isinstance(event, yaml.NodeEvent)]
    except YamlError as error:
        raise YamlError(f"{error.problem}: put a text in double quotes", error.line) from None
    value = read_document(text)
    if isinstance(value, dict):
        raise YamlError("a text with ': ' or in braces is no single value: put it in double quotes", 1)
    root = nodes[0] if nodes else None
    if root is None or (isinstance(root, yaml.ScalarEvent) and not root.style and root.value != bare):
        raise YamlError("a text with a comment or line break: put it in double quotes", 1)
    return value


def read_scalar(text: str) -> Scalar:
    """What a scalar without quotes means; raises ValueError for a whole number of more than MAX_DIGITS digits."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    base = next((base for pattern, base in _WHOLE_NUMBERS if pattern.fullmatch(text)), None)
    if base is not None:
        if len(text) > MAX_DIGITS:
            raise ValueError("a number of too many digits")
        return int(text, base)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text) or _NOT_A_NUMBER.fullmatch(text):
        return float(text.replace(".", ""))
    return text


_WHOLE_NUMBERS = ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16))


def write_scalar(value: Scalar) -> str:
    """The value on one line, such that `read_scalar`, and YAML 1.1 as well, reads the same value back."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            mantissa, exponent, power = repr(value).partition("e")
            return repr(value) if not exponent or "." in mantissa else f"{mantissa}.0e{power}"
        case int():
            return str(value)
        case str():
            is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML_1_1
            return value if is_plain and read_scalar(value) == value else f'"{"".join(map(_escaped, value))}"'


def write_value(value: Value) -> str:
    """The value on one line, a list or mapping in brackets or braces, such that `read_document` reads it back."""
    match value:
        case dict():
            return f"{{{', '.join(f'{write_scalar(name)}: {write_value(inner)}' for name, inner in value.items())}}}"
        case list():
            return f"[{', '.join(map(write_value, value))}]"
        case _:
            return write_scalar(value)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _line(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1


def _events(text: str) -> Iterator[yaml.Event]:
    """PyYAML's events, which nest nothing and resolve nothing; its errors become ours, without quoting the text."""
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = shown(error.problem or error.context or "not readable")
        raise YamlError(f"not YAML: {problem}", 1 if mark is None else mark.line + 1) from None
    except yaml.reader.ReaderError as error:
        before = text[: int(error.position)]
        raise YamlError("a control character, which YAML does not allow", before.count("\n") + 1) from None


def _value(event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Value:
    line = _line(event)
    if depth > MAX_DEPTH:
        raise YamlError(f"nested more than {MAX_DEPTH} levels deep", line)
    if isinstance(event, yaml.AliasEvent) or (isinstance(event, yaml.NodeEvent) and event.anchor is not None):
        raise YamlError("anchors (&) and aliases (*) are not read: quote a text that begins like one", line)
    if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag is not None:
        raise YamlError("tags (!) are not read: quote a text that begins like one", line)
    if isinstance(event, yaml.SequenceStartEvent):
        return list(_items(events, depth))
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(events, depth)
    assert isinstance(event, yaml.ScalarEvent), "a document holds nodes only"
    if event.style is not None:
        return event.value
    try:
        return read_scalar(event.value)
    except ValueError as error:
        raise YamlError(str(error), line) from None


def _items(events: Iterator[yaml.Event], depth: int) -> Iterator[Value]:
    for event in events:
        if isinstance(event, yaml.SequenceEndEvent):
            return
        yield _value(event, events, depth + 1)


def _mapping(events: Iterator[yaml.Event], depth: int) -> dict[str, Value]:
    mapping: dict[str, Value] = {}
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        key = _value(event, events, depth + 1)
        if not isinstance(key, str):
            raise YamlError("a key that is no text: put it in quotes", _line(event))
        if key in mapping:
            raise YamlError(f"the key {shown(key, 40)} appears twice", _line(event))
        mapping[key] = _value(next(events), events, depth + 1)
    return mapping
