"""Reading items: what is accepted, what is refused in which words, and that nothing else can happen."""

from __future__ import annotations

import codecs
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.infrastructure.tasks import item_files
from burnish.infrastructure.tasks.item_files import parse_items, read_items
from burnish.infrastructure.tasks.items import DataError, Item, ItemRules, item_json
from burnish.infrastructure.tasks.refusals import shown
from burnish.infrastructure.tasks.strict_json import MAX_ITEM_BYTES

LINES = Path("items.jsonl")
DOCUMENT = Path("items.json")
ANSWERS_OPTIONAL = ItemRules(needs_answers=False)
RECORD = '{"id": "a", "question": "Q?", "answer": "A"}'
ITEM = Item("a", "Q?", ("A",))
DOCUMENT_REMEDY = "write an array of objects, or name the file .jsonl when it holds one object a line"


def _line(**fields: object) -> bytes:
    """A line for a good item, with some fields changed; None takes one out."""
    record = {"id": "a", "question": "Q?", "answer": "A"} | fields
    return json.dumps({name: value for name, value in record.items() if value is not None}).encode()


def _refusal(data: bytes, path: Path = LINES) -> str:
    with pytest.raises(DataError) as caught:
        parse_items(data, path)
    assert str(caught.value) == caught.value.line
    return caught.value.line


@pytest.mark.parametrize(
    ("data", "path"),
    [
        pytest.param(RECORD, LINES, id="a line without an end"),
        pytest.param(f"{RECORD}\n", LINES, id="a line"),
        pytest.param(f"\n  \n{RECORD}\n\n", LINES, id="blank lines"),
        pytest.param(f"{RECORD}\r\n\r\n", LINES, id="CRLF"),
        pytest.param(f"\ufeff{RECORD}\n", LINES, id="BOM"),
        pytest.param(RECORD, Path("items.JSONL"), id="capital ending"),
        pytest.param(f"[{RECORD}]", DOCUMENT, id="an array"),
        pytest.param(f'\ufeff{{\r\n"data": [\r\n{RECORD}]}}\r\n', DOCUMENT, id="a data object with BOM and CRLF"),
    ],
)
def test_each_layout_gives_the_same_item(data: str, path: Path) -> None:
    assert parse_items(data.encode(), path) == (ITEM,)


@pytest.mark.parametrize(
    ("data", "path"), [(b"", LINES), (b"\n\n", LINES), (b"[]", DOCUMENT), (b'{"data":[]}', DOCUMENT)]
)
def test_a_file_may_hold_no_items(data: bytes, path: Path) -> None:
    assert parse_items(data, path) == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": 7}, Item("7", "Q?", ("A",))),
        ({"id": "Zürich 1/2"}, Item("Zürich 1/2", "Q?", ("A",))),
        ({"id": "x" * 256}, Item("x" * 256, "Q?", ("A",))),
        ({"answer": 42}, Item("a", "Q?", ("42",))),
        ({"answer": 0.5}, Item("a", "Q?", ("0.5",))),
        ({"answer": ""}, Item("a", "Q?", ("",))),
        ({"answer": None, "answers": ["A", 2, 2.5]}, Item("a", "Q?", ("A", "2", "2.5"))),
        ({"task_type": "sums"}, Item("a", "Q?", ("A",), task_type="sums")),
        ({"context": "C", "tolerance": 0.1}, Item("a", "Q?", ("A",), extra={"context": "C", "tolerance": 0.1})),
        ({"nested": {"a": [1, None, True]}}, Item("a", "Q?", ("A",), extra={"nested": {"a": [1, None, True]}})),
    ],
)
def test_fields_are_read(fields: dict[str, object], expected: Item) -> None:
    assert parse_items(_line(**fields), LINES) == (expected,)


def test_a_null_counts_as_missing() -> None:
    data = b'{"id": "a", "question": "Q?", "answer": null, "answers": ["A"], "task_type": null}'
    assert parse_items(data, LINES) == (ITEM,)


def test_an_item_may_go_without_answers_when_its_scorer_needs_none() -> None:
    assert parse_items(_line(answer=None), LINES, ANSWERS_OPTIONAL) == (Item("a", "Q?", ()),)
    assert parse_items(_line(answer=None, answers=[]), LINES, ANSWERS_OPTIONAL) == (Item("a", "Q?", ()),)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"nope", "items.jsonl line 1: not valid JSON at column 1; write one JSON object a line"),
        (b'{"id": 1', "items.jsonl line 1: not valid JSON at column 9; write one JSON object a line"),
        (
            _line() + b"\n\n" + _line() + b" {}",
            "items.jsonl line 3: not valid JSON at column 46; write one JSON object a line",
        ),
        (b'"text"', 'items.jsonl line 1: not a JSON object; write {"id": …, "question": …, "answer": …}'),
        (b"[1]", 'items.jsonl line 1: not a JSON object; write {"id": …, "question": …, "answer": …}'),
        (b"null", 'items.jsonl line 1: not a JSON object; write {"id": …, "question": …, "answer": …}'),
        (_line(id=True), 'items.jsonl line 1: "id" is neither a text nor an integer; write it as a text'),
        (_line(id=1.5), 'items.jsonl line 1: "id" is neither a text nor an integer; write it as a text'),
        (_line(id=["a"]), 'items.jsonl line 1: "id" is neither a text nor an integer; write it as a text'),
        (_line(id=" "), 'items.jsonl line 1: "id" is blank; give every item its own, or none at all'),
        (_line(id="x" * 257), 'items.jsonl line 1: "id" is longer than 256 characters; shorten it'),
        (_line(id="a\nb"), "items.jsonl line 1: \"id\" 'a\\nb' holds a control character; remove it"),
        (_line(id="a\x7f"), "items.jsonl line 1: \"id\" 'a\\x7f' holds a control character; remove it"),
        *(
            (
                _line(id=each),
                f'items.jsonl line 1: "id" {shown(each)} reads like a path out of a folder; write it without / and . there',
            )
            for each in ("../a", "a/../b", "/etc/passwd", "..", "a\\..\\b", "~/a", "\\a", "./a", "a/.")
        ),
        (
            _line(id="x" * 200 + "\0"),
            f'items.jsonl line 1: "id" \'{"x" * 78}… holds a control character; remove it',
        ),
        (
            _line(question=None),
            'items.jsonl line 1: "question" is missing; write what the agent is asked, or name its field in env.fields',
        ),
        (_line(question=" \n"), 'items.jsonl line 1: "question" is blank; write what the agent is asked'),
        (_line(question=5), 'items.jsonl line 1: "question" is not a text; put it in quotation marks'),
        (
            _line(answer=None),
            'items.jsonl line 1: "answer" is missing; write the right answer, or a list of them as "answers"',
        ),
        (
            _line(answer=True),
            'items.jsonl line 1: "answer" is something that is neither a text nor a number; write it as a text',
        ),
        (
            _line(answer=["A"]),
            'items.jsonl line 1: "answer" is something that is neither a text nor a number; write it as a text',
        ),
        (_line(answers=["A"]), 'items.jsonl line 1: both "answer" and "answers" are given; keep one of them'),
        (
            _line(answer=None, answers="A"),
            'items.jsonl line 1: "answers" is not a list; write one, or a single answer as "answer"',
        ),
        (_line(answer=None, answers=[]), 'items.jsonl line 1: "answers" is empty; write at least one right answer'),
        (
            _line(answer=None, answers=["A", None]),
            'items.jsonl line 1: "answers" holds something that is neither a text nor a number; write it as a text',
        ),
        (
            _line(task_type=3),
            'items.jsonl line 1: "task_type" is not a text; put it in quotation marks, or leave it out',
        ),
        (
            _line() + b"\r\n" + _line(),
            "items.jsonl line 2: the id 'a' stands in line 1 already; give every item its own id",
        ),
        (
            _line(id=1) + b"\n" + _line(id="1"),
            "items.jsonl line 2: the id '1' stands in line 1 already; give every item its own id",
        ),
        (b"\n\xff\xfe", "items.jsonl line 2: not valid UTF-8 at byte 1; save the file as UTF-8"),
        (b'"\xed\xa0\x80"', "items.jsonl line 1: not valid UTF-8 at byte 2; save the file as UTF-8"),
        (
            b'{"id": "a", "id": "b"}',
            "items.jsonl line 1: the key 'id' stands twice in an object; keep one",
        ),
        (
            b'{"id": "a", "question": "Q?", "answer": "A", "more": [{"x": 1, "x": 1}]}',
            "items.jsonl line 1: the key 'x' stands twice in an object; keep one",
        ),
        (_line(x=math.nan), "items.jsonl line 1: NaN is not a JSON number; write a finite one, or null"),
        (_line(x=[-math.inf]), "items.jsonl line 1: -Infinity is not a JSON number; write a finite one, or null"),
        (b'{"id": 1e999}', "items.jsonl line 1: a number is too large; write it as a text"),
        (b'{"id": ' + b"9" * 5000 + b"}", "items.jsonl line 1: a number is too large; write it as a text"),
        (
            b'{"id": "\\ud83d"}',
            "items.jsonl line 1: a text holds half of a surrogate pair; write the character itself",
        ),
        (
            b'{"\\udc00": 1}',
            "items.jsonl line 1: a text holds half of a surrogate pair; write the character itself",
        ),
    ],
)
def test_a_line_is_refused_in_one_line(data: bytes, line: str) -> None:
    assert _refusal(data) == line


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (
            b"",
            f"items.json line 1: not valid JSON at column 1; {DOCUMENT_REMEDY}",
        ),
        (
            b'{"id": 1}\n{"id": 2}\n',
            f"items.json line 2: not valid JSON at column 1; {DOCUMENT_REMEDY}",
        ),
        (
            b'{"id": 1}',
            f'items.json: neither an array nor an object with an array "data"; {DOCUMENT_REMEDY}',
        ),
        (
            b'{"data": {"a": 1}}',
            f'items.json: neither an array nor an object with an array "data"; {DOCUMENT_REMEDY}',
        ),
        (b'{"data": [], "data": []}', "items.json: the key 'data' stands twice in an object; keep one"),
        (b"NaN", "items.json: NaN is not a JSON number; write a finite one, or null"),
        (b"[" + _line() + b",1]", 'items.json item 2: not a JSON object; write {"id": …, "question": …, "answer": …}'),
        (
            b"[" + _line() + b",\n" + _line() + b"]",
            "items.json item 2: the id 'a' stands in item 1 already; give every item its own id",
        ),
        (
            b"[" + _line() + b',\n{"id": NaN}]',
            "items.json item 2: NaN is not a JSON number; write a finite one, or null",
        ),
        (b"[\xff]", "items.json: not valid UTF-8 at byte 2; save the file as UTF-8"),
    ],
)
def test_a_document_is_refused_in_one_line(data: bytes, line: str) -> None:
    assert _refusal(data, DOCUMENT) == line


@pytest.mark.parametrize("name", ["items.xlsx", "items", ".jsonl"])
def test_another_ending_is_refused(name: str) -> None:
    line = f"{name}: no data file (.json, .jsonl, .csv, .tsv, .parquet); convert it, or correct its ending"
    assert _refusal(b"", Path(name)) == line


def _nested(depth: int) -> bytes:
    """An item of that depth: the item itself is the first object."""
    return b'{"id":"a","question":"Q?","answer":"A","x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_nesting_is_bounded() -> None:
    too_deep = "more than 64 objects and arrays stand inside each other; make the item flatter"
    assert len(parse_items(_nested(64), LINES)) == 1
    assert _refusal(_nested(65)) == f"items.jsonl line 1: {too_deep}"
    assert _refusal(_nested(900)) == f"items.jsonl line 1: {too_deep}"
    assert _refusal(_nested(200_000)) == f"items.jsonl line 1: {too_deep}"
    assert _refusal(b"[" * 200_000, DOCUMENT) == f"items.json: {too_deep}"
    assert _refusal(b"[" + _nested(65) + b"]", DOCUMENT) == f"items.json item 1: {too_deep}"


def test_a_line_may_be_one_mebibyte_long() -> None:
    line = _line()
    longest = line.replace(b"Q?", b"q" * (MAX_ITEM_BYTES - len(line) + 2))
    assert len(parse_items(longest, LINES)) == 1
    assert _refusal(b"\n" + longest + b" ") == "items.jsonl line 2: longer than 1 MiB; shorten the item"
    assert len(parse_items(b"[" + longest + b"]", DOCUMENT)) == 1
    too_long = b"[" + longest.replace(b"qq", b"qqq", 1) + b"]"
    assert _refusal(too_long, DOCUMENT) == "items.json item 1: longer than 1 MiB; shorten the item"


def test_a_file_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_files, "MAX_FILE_BYTES", 10)
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\n" * 10)
    assert read_items(path) == ()
    path.write_bytes(b"\n" * 11)
    with pytest.raises(DataError) as caught:
        read_items(path)
    assert caught.value.line == f"{path}: larger than 256 MiB; split it into several files"


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + _line(question="Straße?"))
    assert read_items(path) == (Item("a", "Straße?", ("A",)),)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines.jsonl"
    with pytest.raises(DataError) as caught:
        read_items(path)
    expected = (
        f"{tmp_path}/two\\nlines.jsonl: cannot be read (No such file or directory); check its name and permissions"
    )
    assert caught.value.line == expected


def test_a_path_that_is_none_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        read_items(Path("a\0.jsonl"))
    assert caught.value.line == "a\\x00.jsonl: cannot be read (no such path); check its name and permissions"


def test_items_are_hashable_and_equal_by_value() -> None:
    data = _line(context="C")
    assert len({*parse_items(data, LINES), *parse_items(data, LINES)}) == 1


def test_canonical_json_does_not_depend_on_the_layout() -> None:
    one = parse_items('{"id": 1, "question": "Où?", "answer": "A", "b": 2, "a": {"d": 1, "c": 2}}'.encode(), LINES)
    two = parse_items(
        b'[{"a":{"c":2,"d":1},"b":2,"answers":["A"],"question":"O\\u00f9?","id":"1","task_type":""}]', DOCUMENT
    )
    expected = '{"a":{"c":2,"d":1},"answers":["A"],"b":2,"id":"1","question":"Où?","task_type":""}'
    assert [item_json(item) for item in (*one, *two)] == [expected, expected]


@pytest.mark.parametrize(
    "value", ["x", "x" * 78, "x" * 79, "x" * 100_000, "\n" * 100, "it's", "a\"b'c", "ü" * 90, "\ud800"]
)
def test_a_shown_value_is_one_line_of_at_most_80_characters(value: str) -> None:
    text = shown(value)
    assert len(text) <= 80
    assert text.isprintable()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=100),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=100), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = st.fixed_dictionaries(
    {"id": _JSON | st.text(), "question": _JSON | st.text(min_size=1), "answer": _JSON | st.text()},
    optional={"answers": _JSON, "task_type": _JSON, "more": _JSON},
)
_LINE = st.one_of(
    st.binary(max_size=40),
    _JSON.map(lambda value: json.dumps(value).encode()),
    _FIELDS.map(lambda record: json.dumps(record, ensure_ascii=False).encode(errors="surrogatepass")),
)
_FILE = st.one_of(
    st.binary(),
    st.lists(_LINE, max_size=5).map(b"\n".join),
    st.lists(_LINE, max_size=5).map(lambda lines: b"[" + b",".join(lines) + b"]"),
    st.lists(_LINE, max_size=5).map(lambda lines: b'\xef\xbb\xbf{"data":[' + b",\r\n".join(lines) + b"]}"),
)


def _items_or_line(data: bytes, path: Path, *, needs_answers: bool) -> tuple[Item, ...] | str:
    try:
        return parse_items(data, path, ItemRules(needs_answers=needs_answers))
    except DataError as error:
        return error.line


@settings(derandomize=True, deadline=None, max_examples=400)
@given(data=_FILE, path=st.sampled_from([LINES, DOCUMENT]), needs_answers=st.booleans())
def test_any_bytes_give_items_or_one_line(data: bytes, path: Path, needs_answers: bool) -> None:  # noqa: FBT001
    found = _items_or_line(data, path, needs_answers=needs_answers)
    if isinstance(found, str):
        assert found.isprintable()
        assert len(found) < 220
        assert found.startswith(str(path))
        return
    assert len({item.item_id for item in found}) == len(found)
    for item in found:
        item_json(item).encode()
        assert item.question.strip()
        assert item.answers or not needs_answers


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "id": st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1),
                "question": st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip),
                "answers": st.lists(st.text(st.characters(codec="utf-8")), min_size=1),
            }
        ).filter(lambda record: bool(str(record["id"]).strip()) and not set(str(record["id"])) & set("/\\~.")),
        unique_by=lambda record: str(record["id"]),
        max_size=5,
    )
)
def test_what_was_written_is_read(records: list[dict[str, object]]) -> None:
    lines = "\r\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()
    found = parse_items(lines, LINES)
    assert found == parse_items(json.dumps(records).encode(), DOCUMENT)
    written = [{"id": str(r["id"]), "question": r["question"], "answers": r["answers"]} for r in records]
    assert [{"id": i.item_id, "question": i.question, "answers": list(i.answers)} for i in found] == written
