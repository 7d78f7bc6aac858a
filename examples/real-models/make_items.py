"""Writes the items of the three tasks beside it: `python make_items.py`; `--check` only says whether they are up to date.

Everything is drawn with one seed, so the same items come out again. No question stands in two splits, and none holds its
answer. The stations are asked for in other words in every split; orders and messages share their sentences across splits.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

Item: TypeAlias = dict[str, str]
Splits: TypeAlias = dict[str, list[Item]]

HERE = Path(__file__).parent
SEED = 7
SIZES = {"train": 24, "val": 16, "test": 20}

NAMES = ("Hill", "Moor", "Stone", "Brook", "Field", "Lake", "Wood", "Marsh", "Dale", "Ford", "Reed", "Frost")
GOODS = ("lamp", "chair", "kettle", "mirror", "carpet", "clock", "shelf", "vase", "pillow", "basket", "ladder", "stool")
ORDERS = (
    "{name} orders {count} of the item {good}.",
    "{count} x {good} for {name}.",
    "We need {count} of the item {good}, and the customer is {name}.",
)

RULES = {
    "teal": (
        "The {thing} arrived broken.",
        "I opened the box and the {thing} was broken.",
        "One leg of my {thing} is broken, what now?",
        "My new {thing} came broken into pieces.",
        "A broken {thing} was delivered to me on {day}.",
        "Since {day} I have a broken {thing} standing here.",
    ),
    "ochre": (
        "My {thing} is late.",
        "The delivery of the {thing} is late again.",
        "It is {day} and the {thing} I bought is late.",
        "Why is my parcel with the {thing} so late?",
        "You are late with the {thing}, I expected it on {day}.",
        "Late, late, late: where is my {thing}?",
    ),
    "mauve": (
        "Please send me the invoice for the {thing}.",
        "There is no invoice in the parcel with the {thing}.",
        "I need an invoice for my {thing} by {day}.",
        "The invoice for the {thing} shows the wrong street.",
        "Could you print the invoice of the {thing} again?",
        "On {day} I asked for the invoice of a {thing}.",
    ),
    "umber": (
        "I want to return the {thing}.",
        "How do I return a {thing}?",
        "Can I return the {thing} on {day}?",
        "The {thing} is too big, I would like to return it.",
        "Is there a label to return my {thing}?",
        "My neighbour says one may return a {thing} until {day}.",
    ),
}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

STATIONS = {
    "Tarnwick": "Q41",
    "Oldmere": "Z07",
    "Brackley Fen": "H93",
    "Sundhaven": "K28",
    "Pellworth": "D65",
    "Grimsey": "X12",
    "Narrowdale": "V50",
    "Ashcombe": "J84",
}
STATION_QUESTIONS = (
    "What is the code of {station} station?",
    "A parcel goes to {station}. Which station code belongs on it?",
    "Which code does {station} have?",
    "I am sending a letter to {station}. Tell me the station's code.",
    "The label for {station} lacks its code. What is it?",
    "The train ends in {station}. What is that station's code?",
    "{station}: which code is it?",
    "Give me the code for a crate that must reach {station}.",
)


def formatting(draw: random.Random) -> Splits:
    """Orders, and the house's own way to write them: `lamp*4@Hill`."""
    questions: dict[str, str] = {}
    while len(questions) < sum(SIZES.values()):
        name, good = draw.choice(NAMES), draw.choice(GOODS)
        count, order = draw.randint(2, 60), draw.choice(ORDERS)
        questions[order.format(name=name, good=good, count=count)] = f"{good}*{count}@{name}"
    pairs = iter(questions.items())
    return {split: [item(split, number, *next(pairs)) for number in range(size)] for split, size in SIZES.items()}


def house_rules(draw: random.Random) -> Splits:
    """Messages, and the desk that answers them by the company's own rules; each desk is drawn equally often."""
    drawn = {desk: questions_of(desk, draw) for desk in RULES}
    splits: Splits = {}
    for split, size in SIZES.items():
        desks = [desk for desk in RULES for _ in range(size // len(RULES))]
        draw.shuffle(desks)
        splits[split] = [item(split, number, next(drawn[desk]), desk) for number, desk in enumerate(desks)]
    return splits


def questions_of(desk: str, draw: random.Random) -> Iterator[str]:
    """Questions for a desk, none twice."""
    every = [
        message.format(thing=good, day=day)
        for message in RULES[desk]
        for good in GOODS
        for day in (DAYS if "{day}" in message else DAYS[:1])
    ]
    draw.shuffle(every)
    return iter(every)


def facts(draw: random.Random) -> Splits:
    """Invented stations and their codes; each split asks for every station, in wordings of its own."""
    wordings = list(STATION_QUESTIONS)
    draw.shuffle(wordings)
    splits: Splits = {}
    shares = {"train": wordings[:3], "val": wordings[3:5], "test": wordings[5:]}
    for split, size in SIZES.items():
        every = [(wording, station) for wording in shares[split] for station in STATIONS]
        chosen = every[:size]
        draw.shuffle(chosen)
        splits[split] = [
            item(split, number, wording.format(station=station), STATIONS[station])
            for number, (wording, station) in enumerate(chosen)
        ]
    return splits


def item(split: str, number: int, question: str, answer: str) -> Item:
    """One line of a split's file."""
    if answer.lower() in question.lower():
        raise ValueError(f"the question gives its answer away: {question}")
    return {"id": f"{split}-{number + 1:02}", "question": question, "answer": answer}


TASKS: dict[str, Callable[[random.Random], Splits]] = {
    "formatting": formatting,
    "house-rules": house_rules,
    "facts": facts,
}


def main(arguments: list[str]) -> int:
    """Write the files, or compare them; the exit status is 1 when one differs."""
    differing = 0
    for task, make in TASKS.items():
        for split, items in make(random.Random(SEED)).items():
            path = HERE / task / "items" / split / "items.jsonl"
            text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in items)
            if "--check" not in arguments:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif not path.is_file() or path.read_text(encoding="utf-8") != text:
                print(f"{path.relative_to(HERE)} is not what make_items.py writes; run it")
                differing += 1
    return int(differing > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
