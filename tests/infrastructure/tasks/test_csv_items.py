"""Items from CSV: quoting, delimiters, encodings, mapped columns, and what is refused in which words."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burnish.infrastructure.tasks.item_files import parse_items
from burnish.infrastructure.tasks.items import DataError, Item, ItemRules

CSV = Path("items.csv")
ITEM = Item("a", "Q?", ("A",))
NO_MAPPING = ItemRules()
MAPPED = ItemRules(fields={"id": "uid", "question": "Prompt", "answer": "Label"})


def _refusal(data: bytes, rules: ItemRules = NO_MAPPING) -> str:
    with pytest.raises(DataError) as caught:
        parse_items(data, CSV, rules)
    return caught.value.line


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ("id,question,answer\na,Q?,A\n", CSV),
        ("\ufeffid,question,answer\r\na,Q?,A\r\n", CSV),
        ("id;question;answer\na;Q?;A", CSV),
        ("id\tquestion\tanswer\na\tQ?\tA", CSV),
        ("id\tquestion\tanswer\na\tQ?\tA", Path("items.tsv")),
        ('"id","question","answer"\n"a","Q?","A"\n', CSV),
        ("\n\nid,question,answer\n\n\na,Q?,A\n\n", CSV),
        (" id , question,answer \na,Q?,A", CSV),
        (",id,question,answer\n0,a,Q?,A", CSV),
        ("id,question,answer,task_type\na,Q?,A,", CSV),
        ('id,question,answers\na,Q?,"[""A""]"', CSV),
        ("id,question,answer,answers\na,Q?,A,", CSV),
    ],
)
def test_each_layout_gives_the_same_item(data: str, path: Path) -> None:
    assert parse_items(data.encode(), path) == (ITEM,)


@pytest.mark.parametrize("data", [b"", b"\n", b"id,question,answer\n", b"\xef\xbb\xbf"])
def test_a_file_may_hold_no_rows(data: bytes) -> None:
    assert parse_items(data, CSV) == ()


def test_a_quoted_cell_may_hold_anything() -> None:
    data = b'id,question,answer\na,"First line,\r\nsecond ""line""\n",A;B\nb,Q?,\'A\'\n'
    first, second = parse_items(data, CSV)
    assert first.question == 'First line,\r\nsecond "line"\n'
    assert first.answers == ("A;B",)
    assert second.answers == ("'A'",)


def test_columns_are_mapped_by_name_and_others_are_kept() -> None:
    data = b"uid,Prompt,Label,context,question\na,Q?,A,,not this\n"
    assert parse_items(data, CSV, MAPPED) == (Item("a", "Q?", ("A",), extra={"context": ""}),)


def test_an_item_without_an_id_gets_one_from_its_contents() -> None:
    one = parse_items(b"question,answer\nQ?,A\nR?,A\n", CSV)
    moved = parse_items(b"answer,question\nA,R?\nA,Q?\n", CSV)
    assert {item.item_id for item in one} == {item.item_id for item in moved}
    assert len({item.item_id for item in one}) == 2
    (known, _) = one
    assert known.item_id == "item-7b44ec7d3e805632"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("id,question,answer\na,Q?", "line 2: has 2 cells, and the header 3; put cells that hold the delimiter in"),
        ("id,question,answer\na,Q?,A,B", "line 2: has 4 cells, and the header 3; put cells that hold the delimiter in"),
        ('id,question,answer\na,"Q\n\n?",A\nb,"Q', "line 5: a quotation mark opens a cell that never ends; close it"),
        ('id,question,answer\na,"Q" is,A', "line 2: a quotation mark stands inside a quoted cell; double it"),
        ("id,id,question\na,b,Q", "line 1: the column 'id' stands twice in the header; rename one"),
        ("name,text\na,b", "line 1: the header has no column 'question', it has 'name', 'text'; name the right one in"),
        (
            "id,question,answer\n\na,,A",
            'line 3: "question" is missing; write what the agent is asked, or name its field',
        ),
        ("id,question,answer\na,Q?,", 'line 2: "answer" is missing; write the right answer'),
        (
            "id,question,answer\na,Q?,A\na,R?,A",
            "line 3: the id 'a' stands in line 2 already; give every item its own id",
        ),
        ("question,answer\nQ?,A\nQ?,A", "line 3: the same item without an id stands in line 2 already; remove it"),
        ("id,question,answer\n../a,Q?,A", "line 2: \"id\" '../a' reads like a path out of a folder; write it without"),
        ("id,question,answers\na,Q?,A", "line 2: not valid JSON at column 1; write 'answers' as a list: ["),
        ("id,question,answers\na,Q?,{}", 'line 2: "answers" is not a list; write one'),
        ("id,question,answers\na,Q?,[[]]", 'line 2: "answers" holds something that is neither a text nor a number'),
        (f"id,question,answer\na,{'q' * 131_073},A", "line 2: a cell is longer than 131072 characters; shorten it, or"),
        ("id,question\na,\0", "line 2: holds a NUL character; save the file as UTF-8 (in a spreadsheet: CSV UTF-8)"),
    ],
)
def test_a_table_is_refused_in_one_line(data: str, line: str) -> None:
    assert _refusal(data.encode()).startswith(f"items.csv {line}")


def test_a_row_may_be_one_mebibyte_long() -> None:
    names = [f"c{number}" for number in range(9)]
    data = f"question,answer,{','.join(names)}\nQ?,A,{','.join(['x' * 120_000] * 9)}"
    assert _refusal(data.encode()) == "items.csv line 2: longer than 1 MiB; shorten the item"


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1", "cp1252", "utf-32"])
def test_another_encoding_is_refused(encoding: str) -> None:
    line = _refusal("id,question,answer\na,Qué?,A\n".encode(encoding))
    assert line.endswith("save the file as UTF-8 (in a spreadsheet: CSV UTF-8)")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("uid,Prompt\na,Q?", "items.csv line 1: the header has no column 'Label', it has 'uid', 'Prompt'; name the"),
        (
            "uid,Prompt,Label\na,Q?,",
            "items.csv line 2: 'Label' (env.fields: answer) is missing; write the right answer",
        ),
        ("uid,Prompt,Label\n,,A", "items.csv line 2: 'Prompt' (env.fields: question) is missing; write what the agent"),
    ],
)
def test_a_refusal_names_the_mapped_column(data: str, line: str) -> None:
    assert _refusal(data.encode(), MAPPED).startswith(line)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
            st.text(st.characters(codec="utf-8", exclude_characters="\0")),
        ),
        unique=True,
        max_size=4,
    ),
    st.sampled_from([",", ";", "\t"]),
)
def test_what_was_written_is_read(rows: list[tuple[str, str, str]], delimiter: str) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter).writerows([("question", "answer", "more"), *rows])
    found = parse_items(written.getvalue().encode(), CSV)
    assert [(item.question, *item.answers, item.extra["more"]) for item in found] == rows
    assert len({item.item_id for item in found}) == len(rows)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.binary() | st.text(st.sampled_from('id,question;answer"\n\r\t[]a\0é')).map(str.encode))
def test_any_bytes_give_items_or_one_line(data: bytes) -> None:
    for rows in (data, b"question,answer\n" + data, b"id,question,answer\na,Q?,A\n" + data):
        line = _line(rows)
        assert line.isprintable()
        assert not line or line.startswith("items.csv")


def _line(data: bytes) -> str:
    """The refusal; empty when there are items."""
    try:
        parse_items(data, CSV)
    except DataError as error:
        return error.line
    return ""
