"""Messy answers of models: each is the patch that was meant, or refused."""

import json
import re
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from burnish.domain.edits import BOUNDED_OPS, Edit, EditOp, Patch, apply_patch
from burnish.infrastructure.optimizer.json_finding import (
    MAX_ANSWER_CHARACTERS,
    MAX_REPAIR_CHARACTERS,
    UnreadableAnswerError,
)
from burnish.infrastructure.optimizer.patch_reading import read_patch
from burnish.infrastructure.optimizer.patch_schema import PATCH_SCHEMA, EditAnswer, PatchAnswer

RULE = Edit(EditOp.APPEND, content="- Answer in French.")
EDIT = '{"op": "append", "target": "", "content": "- Answer in French."}'
ANSWER = f'{{"reasoning": "r", "edits": [{EDIT}]}}'
EMPTY = '{"reasoning": "nothing new", "edits": []}'
OTHER = '{"reasoning": "r", "edits": [{"op": "delete", "target": "old", "content": ""}]}'


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"\ufeff  {ANSWER}\n",
        f"```json\n{ANSWER}\n```",
        f"```\n{ANSWER}\n```",
        f"```JSON\r\n{ANSWER}\r\n```\r\n",
        f"Here is the patch:\n\n  ```json\n{ANSWER}\n  ```\nHope this helps {{and good luck}}!",
        f"```json {ANSWER} ```",
        f"```json\n{ANSWER}",
        f"Sure! {ANSWER} Let me know [if it fits].",
        f"The rule {{lacks}} a word, see [1] and {{ \n{ANSWER}",
        f'He wrote "{{" once. {ANSWER}',
        f"Draft: {OTHER}\nBetter: {ANSWER}",
        f"```json\n{OTHER}\n```\nNo, rather:\n```json\n{ANSWER}\n```",
        f"```json\n{ANSWER}\n```\nIt changes this:\n```markdown\n- old {{rule}}\n```",
        f"<think>\nMaybe ```json\n{OTHER}\n``` or not.\n</think>\n{ANSWER}",
        f"Perhaps {OTHER}\n</think>\n\n{ANSWER}",
        f"<think>{ANSWER}</think>",
        f"[{EDIT}]",
        f"```json\n[{EDIT}]\n```",
        f"The edits are [{EDIT}].",
        f'{{"patch": {ANSWER}}}',
        f'{{"patch": [{EDIT}], "batch_size": "8 trajectories"}}',
        f'{{"batch_size": 2, "failure_summary": [{{"count": 2}}], "patch": {ANSWER}, "appendix_notes": []}}',
        f'{{"answer": {ANSWER}}}',
        f'{{"edits": [{EDIT}]}}',
        f'{{"reasoning": null, "edits": [{EDIT}]}}',
        f'{{"reasoning": ["a", "list"], "edits": [{EDIT}]}}',
    ],
)
def test_a_patch_is_found_wherever_it_stands(text: str) -> None:
    assert read_patch(text).edits == (RULE,)


@pytest.mark.parametrize(
    "text",
    [
        '{"reasoning": "r", "edits": [' + EDIT + ",]}",
        '{"reasoning": "r" "edits": [' + EDIT + "]}",
        '{"reasoning": "expected "X", got "Y"", "edits": [' + EDIT + "]}",
        '{"reasoning": "r", "edits": [' + EDIT,
        '{"reasoning": "r", // why\n"edits": [' + EDIT + ",]}",
        "{'reasoning': 'r', 'edits': [{'op': 'append', 'target': None, 'content': '- Answer in French.'}]}",
        '{reasoning: "r", edits: [{op: "append", target: "", content: "- Answer in French.",}]}',
        "{“reasoning”: “r”, “edits”: [{“op”: “append”, “target”: “”, “content”: “- Answer in French.”}]}",
        "Here:\n```json\n{'edits': [{'op': 'append', 'content': '- Answer in French.'}],}\n```\nDone {so far}.",
        "[" + EDIT.replace(",", "") + "]",
    ],
)
def test_broken_json_is_repaired_where_the_meaning_is_plain(text: str) -> None:
    assert read_patch(text).edits == (RULE,)


def test_quotation_marks_nobody_escaped_stay_in_the_rule() -> None:
    text = '{"reasoning": "r", "edits": [{"op": "append", "target": "", "content": "- Say "yes" or "no"."}]}'
    assert read_patch(text).edits == (Edit(EditOp.APPEND, content='- Say "yes" or "no".'),)


def test_raw_line_breaks_inside_a_string_are_read() -> None:
    text = '{"reasoning": "r", "edits": [{"op": "append", "target": "", "content": "- One.\n- Two."}]}'
    assert read_patch(text).edits == (Edit(EditOp.APPEND, content="- One.\n- Two."),)


@pytest.mark.parametrize("text", [EMPTY, '{"edits": []}', "[]", "```json\n[]\n```", f"Nothing to learn. {EMPTY}"])
def test_an_explicit_empty_list_is_an_empty_patch(text: str) -> None:
    assert read_patch(text).edits == ()


def test_a_broken_answer_with_an_explicit_empty_list_is_an_empty_patch() -> None:
    assert read_patch("{'reasoning': 'nothing new', 'edits': [ ],}") == Patch((), "nothing new")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON object"),
        ("   \n", "no JSON object"),
        ("I could not find anything to change.", "no JSON object"),
        ("The list [] is empty, see {}.", "no JSON object"),
        ("{}", "no JSON object"),
        ("null", "no JSON object"),
        ("42", "no JSON object"),
        ('"append"', "no JSON object"),
        ('{"reasoning": "r"}', "no JSON object"),
        ('{"reasoning": "r", "edits": null}', "no JSON object"),
        ('{"reasoning": "r", "edits": "none"}', "no JSON object"),
        ('["append", "delete"]', "no JSON object"),
        ('{"reasoning": "r", "edits": [', "no JSON object"),
        ('{"reasoning": "r", "edits": [...]}', "no JSON object"),
        ('{"edits": [{"op": "append", "content": "- Never sa', "no JSON object"),
        ('{"edits": [{"op": "append", "content": "- A {b} or [c] and', "ends inside a string"),
        ('{"edits": [' + EDIT + ', {"op": "append", "content": "- Use {x} and', "ends inside a string"),
        ('{"edits": [{"op": "append", "content": """- One."""}]}', "is not clear"),
        ('{"edits": [{"op": "append", "content" "x", "because": "y"}],}', "is not clear"),
        ('{"edits": [{"op": "append", "content": "x"}, "and so on",]}', "is not clear"),
        ('{"edits": ["say less", 3, null]}', "known"),
        ('{"edits": [{"op": "rewrite", "content": "x"}, {"content": "y"}, {"op": null}]}', "known"),
        ('{"edits": [{"op": "append", "content": {"text": "x"}}]}', "known"),
        ('{"reasoning": "…", "edits": [{"op": "…", "target": "…", "content": "…"}]}', "known"),
        ("x" * (MAX_ANSWER_CHARACTERS + 1), "longer than"),
    ],
)
def test_what_holds_no_patch_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(UnreadableAnswerError, match=problem):
        read_patch(text)


@pytest.mark.parametrize(
    "op", ["insert_after", "Insert_After", "insert-after", "InsertAfter", "INSERT AFTER", "insertAfter"]
)
def test_an_op_is_recognized_in_any_spelling(op: str) -> None:
    answer = {"edits": [{"op": op, "target": "a", "content": "\nb"}]}
    assert read_patch(json.dumps(answer)).edits == (Edit(EditOp.INSERT_AFTER, content="\nb", target="a"),)


def test_edits_that_cannot_be_read_are_dropped_beside_one_that_can() -> None:
    answer = {"edits": ["no", {"op": "shorten"}, {"op": "append", "content": "- Answer in French."}, None, 7]}
    assert read_patch(json.dumps(answer)).edits == (RULE,)


@pytest.mark.parametrize(
    ("written", "read"),
    [("null", ""), ("12", "12"), ("1.50", "1.50"), ("9" * 5_000, "9" * 5_000), ("true", "true"), ("NaN", "NaN")],
)
def test_null_is_no_text_and_a_number_is_the_text_it_is_written_as(written: str, read: str) -> None:
    text = f'{{"edits": [{{"op": "replace", "target": {written}, "content": {written}}}]}}'
    assert read_patch(text).edits == (Edit(EditOp.REPLACE, content=read, target=read),)


def test_half_characters_and_nul_do_not_reach_the_skill() -> None:
    text = r'{"edits": [{"op": "append", "content": "a\ud800b\u0000c \ud83d\ude00"}]}'
    assert read_patch(text).edits == (Edit(EditOp.APPEND, content="a\ufffdb\ufffdc 😀"),)


def _content(op: EditOp, content: str, target: str = "", skill: str | None = None) -> str:
    answer = {"edits": [{"op": op.value, "target": target, "content": content}]}
    (edit,) = read_patch(json.dumps(answer), skill).edits
    return edit.content


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        (r"- One.\n- Two.", "- One.\n- Two."),
        (r"## Form\n\nAnswer with\nthe code.", "## Form\n\nAnswer with\nthe code."),
        (r"\n- One.", "\n- One."),
        (r"First this.\nThen that.", "First this.\nThen that."),
        (r"- One.\n", "- One.\n"),
        (r"- One.\r\n- Two.", "- One.\n- Two."),
        (r'- Say "a".\n- Split at "\n".\n- Join with `\n`.', '- Say "a".\n- Split at "\\n".\n- Join with `\\n`.'),
        (r"- Split at \n here.", r"- Split at \n here."),
        (r"- Look in C:\new for it.", r"- Look in C:\new for it."),
        (r'- Split at "\n\n" into parts.', r'- Split at "\n\n" into parts.'),
        (r"- Match \d+\\n- only.", r"- Match \d+\\n- only."),
        ("- Split at \\n- like this.\n- Two.", "- Split at \\n- like this.\n- Two."),
    ],
)
def test_written_line_breaks_become_real_ones_only_where_that_is_clearly_meant(written: str, literal: str) -> None:
    assert _content(EditOp.REPLACE, written, "x") == literal


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("\n\n- One.\n\n", "- One."),
        ("  \n\t\n  - One.\n    two  \n ", "  - One.\n    two"),
        ("\r\n- One.\r\n", "- One."),
        (" \n ", ""),
    ],
)
def test_blank_lines_around_appended_content_are_taken_off(written: str, literal: str) -> None:
    assert _content(EditOp.APPEND, written) == literal


SKILL = """---
name: x
---
- One.
- Two, and three.

<!-- LOCKED_START -->
and
<!-- LOCKED_END -->
"""


@pytest.mark.parametrize(
    ("target", "content", "literal"),
    [
        ("- One.", "- New.", "\n- New."),
        ("- One.", "\n- New.", "\n- New."),
        ("- One.\n", "- New.", "- New.\n"),
        ("- One.\n", "- New.\n", "- New.\n"),
        ("Two", " or more", " or more"),
        ("and", " perhaps", " perhaps"),
        ("three.", "- New.", "\n- New."),
        ("- Added by an earlier edit.", "- New.", "\n- New."),
        ("- One.", "", ""),
    ],
)
def test_inserted_content_does_not_run_on_from_the_end_of_a_line(target: str, content: str, literal: str) -> None:
    assert _content(EditOp.INSERT_AFTER, content, target, SKILL) == literal


def test_without_the_skill_a_target_is_taken_to_end_a_line() -> None:
    assert _content(EditOp.INSERT_AFTER, "- New.", "- One.") == "\n- New."


def test_targets_and_content_take_the_line_breaks_of_the_skill() -> None:
    skill = "- One.\r\n- Two.\r\n- Three.\r\n"
    edits = [
        {"op": "replace", "target": "- One.\n- Two.", "content": "- Both.\n- And more."},
        {"op": "insert_after", "target": "- Three.", "content": "- Four."},
    ]
    report = apply_patch(skill, read_patch(json.dumps({"edits": edits}), skill))
    assert report.content == "- Both.\r\n- And more.\r\n- Three.\r\n- Four.\r\n"


def test_mixed_line_breaks_are_left_as_they_are() -> None:
    assert _content(EditOp.REPLACE, "a\nb\r\nc", "One", "One\r\nTwo\n") == "a\nb\r\nc"


def test_marker_strings_are_taken_out_of_content() -> None:
    content = "<!-- LOCKED_START -->- One.<!-- SLOW_<!-- LOCKED_END -->UPDATE_END -->"
    assert _content(EditOp.APPEND, content) == "- One."


def test_what_an_op_ignores_is_left_out() -> None:
    edits = [{"op": "append", "target": "x", "content": "y"}, {"op": "delete", "target": "x", "content": "y"}]
    assert read_patch(json.dumps({"edits": edits})).edits == (
        Edit(EditOp.APPEND, content="y"),
        Edit(EditOp.DELETE, target="x"),
    )


def test_reasoning_is_kept() -> None:
    assert read_patch(f'{{"reasoning": " both lack a rule ", "edits": [{EDIT}]}}').reasoning == "both lack a rule"


@pytest.mark.parametrize(
    "unit", ["{", "[", '{"a":', '{"patch":', "[[],", '{"', '"', "```\n", "```  ", "\\n", "</think>", " "]
)
def test_a_megabyte_of_anything_is_refused(unit: str) -> None:
    text = (unit * MAX_ANSWER_CHARACTERS)[:MAX_ANSWER_CHARACTERS]
    with pytest.raises(UnreadableAnswerError):
        read_patch(text)


def test_a_patch_behind_endless_brackets_is_refused() -> None:
    with pytest.raises(UnreadableAnswerError, match="too many brackets"):
        read_patch("[]" * 300_000 + ANSWER)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(UnreadableAnswerError):
        read_patch('{"edits": ' * 5_000 + "[]" + "}" * 5_000)


def test_long_broken_json_is_not_repaired() -> None:
    text = '{"edits": [{"op": "append", "content": "' + "x" * MAX_REPAIR_CHARACTERS + '"},,]}'
    with pytest.raises(UnreadableAnswerError):
        read_patch(text)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text() | st.text(alphabet="{}[]\",:\\'n `-aop\n", max_size=200))
def test_any_text_is_a_patch_or_refused(text: str) -> None:
    _read_or_refuse(text)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["Append", "x\\n- y"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["reasoning", "edits", "patch", "op", "target", "content", "x"]), inner)
    ),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(_JSON, st.sampled_from(["", SKILL, None]))
def test_any_json_is_a_patch_or_refused(value: object, skill: str | None) -> None:
    _read_or_refuse(json.dumps({"edits": value}), skill)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 12), st.text("{}[]\",:\\ '`\n", max_size=3)), max_size=4))
def test_a_damaged_answer_is_a_patch_or_refused(damages: list[tuple[int, int, str]]) -> None:
    text = f"Here:\n```json\n{ANSWER}\n```\n{OTHER}"
    for at, removed, put_in in damages:
        text = text[:at] + put_in + text[at + removed :]
    _read_or_refuse(text)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.integers(0, len(ANSWER) - 1))
def test_an_answer_that_was_cut_off_gives_whole_edits_or_none(length: int) -> None:
    try:
        patch = read_patch(ANSWER[:length])
    except UnreadableAnswerError:
        return
    assert patch.edits == (RULE,)


def _read_or_refuse(text: str, skill: str | None = None) -> None:
    try:
        patch = read_patch(text, skill)
    except UnreadableAnswerError:
        return
    assert isinstance(patch, Patch)
    apply_patch(skill or "", patch).content.encode()


def _properties(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


def test_schema_is_strict_and_agrees_with_the_models() -> None:
    properties = cast("dict[str, dict[str, object]]", PATCH_SCHEMA["properties"])
    edit = cast("dict[str, object]", properties["edits"]["items"])
    edit_properties = cast("dict[str, dict[str, object]]", edit["properties"])
    assert set(properties) == set(cast("list[str]", PATCH_SCHEMA["required"])) == _properties(PatchAnswer) - {"notes"}
    assert set(edit_properties) == set(cast("list[str]", edit["required"])) == _properties(EditAnswer)
    assert PATCH_SCHEMA["additionalProperties"] is False
    assert edit["additionalProperties"] is False
    assert edit_properties["op"]["enum"] == [op.value for op in BOUNDED_OPS]
    assert not re.search(r"\$ref|\$defs|default", json.dumps(PATCH_SCHEMA))
