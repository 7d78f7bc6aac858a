"""Prompt templates: plain fields only, and never the answer."""

from __future__ import annotations

import pytest

from burnish.infrastructure.tasks.items import DataError, Item
from burnish.infrastructure.tasks.prompt_template import PromptTemplate

ITEM = Item("a-1", "Who?", ("A",), "people", {"context": "C {question}", "year": 1999, "tags": ["é", None]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{question}", "Who?"),
        ("[{id}] {task_type}: {question}\n", "[a-1] people: Who?\n"),
        ("{context}", "C {question}"),
        ("{year} {tags}", '1999 ["é", null]'),
        ('{{"q": "{question}"}} {{{id}}}', '{"q": "Who?"} {a-1}'),
        ("{question}{question}", "Who?Who?"),
    ],
)
def test_fields_are_filled_in(text: str, expected: str) -> None:
    assert PromptTemplate(text).render(ITEM) == expected


def test_a_field_the_item_lacks_is_named() -> None:
    template = PromptTemplate("{context} {month} {day}")
    assert template.missing_field(ITEM) == "month"
    assert PromptTemplate("{context}").missing_field(ITEM) is None
    with pytest.raises(KeyError):
        template.render(ITEM)


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("question.__class__", "'question.__class__'"),
        ("question[0]", "'question[0]'"),
        ("question!r", "'question'"),
        ("question:>10", "'question'"),
        ("question:{year}", "'question'"),
        ("", "''"),
        ("0", "'0'"),
        (" question", "' question'"),
    ],
)
def test_more_than_a_plain_name_is_refused(field: str, shown: str) -> None:
    with pytest.raises(DataError) as caught:
        PromptTemplate(f"{{{field}}}")
    assert caught.value.line == (
        f"the prompt template's field {shown} is no plain name; "
        "write {question}, and {{ and }} for braces around no field"
    )


@pytest.mark.parametrize("text", ["{", "}", "{question", 'reply {"a": 1} to {question'])
def test_a_single_brace_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        PromptTemplate(text)
    assert caught.value.line == ("the prompt template has a single brace; write {{ and }} for braces around no field")


@pytest.mark.parametrize("text", ["", "Answer!", "{{question}}"])
def test_a_template_without_a_field_is_refused(text: str) -> None:
    with pytest.raises(DataError) as caught:
        PromptTemplate(text)
    assert caught.value.line == "the prompt template names no field; write {question} where the question goes"


@pytest.mark.parametrize("field", ["answer", "answers"])
def test_the_right_answer_is_never_shown(field: str) -> None:
    with pytest.raises(DataError) as caught:
        PromptTemplate(f"{{question}} {{{field}}}")
    assert caught.value.line == f"the prompt template's field '{field}' would show the right answer; leave it out"
