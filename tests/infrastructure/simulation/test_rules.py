from __future__ import annotations

import pytest

from burnish.infrastructure.simulation.rules import UNROUTED, RuleKind, Rules, answer, parse_rules, rule_lines

HOUSE = """
- Answer with the queue, a hyphen, the desk and the suffix, and nothing else.
- Ignore lines that start with ">".
- Ignore everything after "Original Message" or "Confidentiality notice".
- When a ticket mentions "refund" or "money back", the queue is TSO.
- When a ticket mentions "GDPR", the queue is QHX.
- When a ticket has fewer than 3 words, the queue is ZIB.
- Otherwise the queue is MOX.
- When several queues fit, the first in this list wins: ZIB, QHX, TSO.
- When a ticket mentions "school", the desk is 3D.
- Otherwise the desk is 5B.
- When a ticket is written all in capitals, the suffix is /3.
- Otherwise the suffix is /5.
"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("I would like a refund, please", "TSO-5B/5"),
        ("I want my Money\n  Back, please", "TSO-5B/5"),
        ("The refunds were never mentioned", "MOX-5B/5"),
        ("A refund under GDPR for our school", "QHX-3D/5"),
        ("Hello -- there", "ZIB-5B/5"),
        ("WHERE IS MY REFUND", "TSO-5B/3"),
        ("Thanks, that did it\n  > about your refund", "MOX-5B/5"),
        ("Thanks, that did it\nORIGINAL MESSAGE\nabout GDPR", "MOX-5B/5"),
        ("", "ZIB-5B/5"),
    ],
)
def test_a_question_is_answered_by_the_rules(question: str, expected: str) -> None:
    assert answer(parse_rules(HOUSE), question) == expected


@pytest.mark.parametrize(
    ("skill", "question", "expected"),
    [
        ("", "refund", UNROUTED),
        ("Be polite, and think about the refund.", "refund", UNROUTED),
        ('- When a ticket mentions "refund", the queue is TSO.', "no match", UNROUTED),
        ('- When a ticket mentions "refund", the queue is TSO.', "a refund", "TSO"),
        ("- Otherwise the queue is MOX.\n- Otherwise the desk is 5B.", "a refund", "MOX 5B"),
        ("- Otherwise the queue is A.\n- Otherwise the queue is B.", "x", "B"),
        ('- When a ticket mentions "x", the queue is A.\n- When a ticket mentions "X", the queue is B.', "x", "B"),
        ('- When a ticket mentions "x", the queue is A.\n- When a ticket mentions "y", the queue is B.', "y x", "A"),
        ("- When several queues fit, the first in this list wins: A, B.", "x", UNROUTED),
    ],
)
def test_what_is_missing_twice_or_contradicted(skill: str, question: str, expected: str) -> None:
    assert answer(parse_rules(skill), question) == expected


def test_another_task_is_written_in_the_same_grammar() -> None:
    rules = parse_rules(
        """# Invoices
- Answer with the currency, a slash and the category, and nothing else.
- When an invoice mentions "taxi" or "train", the category is travel.
- When an invoice mentions "hotel", the category is lodging
- Otherwise the category is other.
- When several categories fit, the first in this list wins: lodging, travel.
- Otherwise the currency is EUR.
- When an invoice mentions "dollars", the currency is USD.
"""
    )
    assert answer(rules, "Taxi to the hotel, 12 dollars") == "USD/lodging"
    assert answer(rules, "a train, 30") == "EUR/travel"
    assert answer(rules, "pens") == "EUR/other"


def test_values_that_no_order_lists_come_last_in_the_order_of_their_rules() -> None:
    lines = [f'- When a ticket mentions "{code}", the queue is {code.upper()}.' for code in ("a", "b", "c")]
    order = "- When several queues fit, the first in this list wins: C."
    assert answer(parse_rules("\n".join([*lines, order])), "c b a") == "C"
    assert answer(parse_rules("\n".join(lines)), "c b a") == "A"


@pytest.mark.parametrize(
    "line",
    [
        "* Otherwise the queue is MOX.",
        "Otherwise the queue is MOX.",
        "- Otherwise the queue is MOX or TSO.",
        "- When a ticket mentions refund, the queue is TSO.",
        '- When a ticket mentions " ", the queue is TSO.',
        "- When a ticket has fewer than 99999999999 words, the queue is TSO.",
        "- Answer with the queue and a flourish, and nothing else.",
        "- When several queues fit, the first in this list wins: " + ",".join("A" * 60) + " and so on.",
    ],
)
def test_every_other_line_is_prose(line: str) -> None:
    assert rule_lines(line) == ()
    assert parse_rules(line) == Rules()


def test_a_line_states_a_rule_for_each_of_its_phrases() -> None:
    (line,) = rule_lines('  - When a ticket mentions "Refund" or "money  back", the queue is TSO.  \r\n')
    assert line.text == '- When a ticket mentions "Refund" or "money  back", the queue is TSO.'
    assert [(rule.kind, rule.slot, rule.condition, rule.value) for rule in line.rules] == [
        (RuleKind.MENTIONS, "queue", "refund", "TSO"),
        (RuleKind.MENTIONS, "queue", "money back", "TSO"),
    ]
