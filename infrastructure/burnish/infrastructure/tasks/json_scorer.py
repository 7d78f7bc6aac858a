"""The scorer `json_match`: an item's answer is a JSON object, compared field by field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from burnish.infrastructure.tasks.answer_scorer import AnswerScorer, folded, got, quoted
from burnish.infrastructure.tasks.items import Item
from burnish.infrastructure.tasks.scoring import Score, answer_or_whole

MAX_OPENERS = 1_000
"""Braces at which an object is looked for in a prediction."""

_MAX_NAMED = 5
_MISSING = object()
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class JsonMatch(AnswerScorer):
    """Soft: the weighted share of the expected fields that are right. Hard: 1 when all of them are.

    The prediction is the last JSON object in the last `<answer>…</answer>`, else in the whole text. Objects inside objects
    are compared field by field (`address.city`), lists as a whole. Texts are equal up to letter case and white space,
    numbers up to 1e-9 of the right one; a text is never a number. A field that should be null may be left out; further
    fields do not count. `weights` are by field; a field without one weighs 1, one with 0 does not count.
    """

    weights: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)

    @property
    def fingerprint(self) -> str:
        """Changes with the weights."""
        return f"json_match/1/{json.dumps(sorted(self.weights.items()))}" if self.weights else "json_match/1"

    def problem(self, item: Item, /) -> str:
        """An answer that is no JSON object, or none of whose fields counts."""
        for answer in item.answers:
            expected = _expected(answer)
            if expected is None:
                return 'an answer is no JSON object; write it as "answer": {"field": …}'
            if not any(self._weight(name) for name in expected):
                return "no field of its answer has a weight; add one, or correct env.field_weights"
        return AnswerScorer.problem(self, item)

    def unused_weights(self, items: Iterable[Item]) -> tuple[str, ...]:
        """Names of weights that no answer of these items has as a field."""
        unused = set(self.weights)
        for item in items:
            for answer in item.answers:
                unused.difference_update(_expected(answer) or ())
            if not unused:
                break
        return tuple(sorted(unused))

    def extract(self, answer: str, /) -> str:
        """The last tagged answer, else the whole text."""
        return answer_or_whole(answer)

    def __call__(self, prediction: str, item: Item, /) -> Score:
        """The share of right fields, and whether all are. Raises ValueError for an item with a `problem`."""
        if problem := self.problem(item):
            raise ValueError(problem)
        given = _last_object(prediction)
        if given is None:
            fields = ", ".join(_flat(json.loads(item.answers[0])))
            reason = f"expected a JSON object with {quoted(fields)}, got {got(prediction)}, which holds none"
            return Score(0.0, 0.0, reason)
        return max(
            (self._compared(given, answer) for answer in item.answers), key=lambda score: (score.hard, score.soft)
        )

    def _compared(self, given: Mapping[str, object], answer: str) -> Score:
        expected, actual = _expected(answer) or {}, _flat(given)
        weights = {name: self._weight(name) for name in expected}
        wrong = {
            name: actual.get(name, _MISSING)
            for name, value in expected.items()
            if weights[name] and not _is_equal(actual.get(name, _MISSING), value)
        }
        total = math.fsum(weights.values())
        soft = math.fsum(weight for name, weight in weights.items() if name not in wrong) / total
        if not wrong:
            return Score(1.0, 1.0)
        told = [_told(name, value, _shown(expected[name])) for name, value in wrong.items()]
        kept_back = [_told(name, value) for name, value in wrong.items()]
        return Score(0.0, soft, _listed(told), _listed(kept_back))

    def _weight(self, name: str) -> float:
        return self.weights.get(name, 1.0)


def _expected(answer: str) -> Mapping[str, object] | None:
    """The fields of the answer; None when it is no object, or has none."""
    try:
        value = cast("object", json.loads(answer))
    except (ValueError, RecursionError):
        return None
    return _flat(cast("dict[str, object]", value)) or None if isinstance(value, dict) else None


def _flat(record: Mapping[str, object]) -> dict[str, object]:
    """The fields by name, those of inner objects with the outer's name and a dot before it; an empty object is a value."""
    fields: dict[str, object] = {}
    pending: list[tuple[str, Mapping[str, object]]] = [("", record)]
    while pending:
        prefix, current = pending.pop()
        for name, value in current.items():
            if isinstance(value, dict) and value:
                pending.append((f"{prefix}{name}.", cast("dict[str, object]", value)))
            else:
                fields[f"{prefix}{name}"] = value
    return fields


def _last_object(text: str) -> Mapping[str, object] | None:
    """The last JSON object in the text that is not inside another one; None without any."""
    found: Mapping[str, object] | None = None
    at = 0
    for _ in range(MAX_OPENERS):
        at = text.find("{", at)
        if at < 0:
            break
        try:
            value, at = cast("tuple[object, int]", _DECODER.raw_decode(text, at))
        except (ValueError, RecursionError):
            at += 1
            continue
        if isinstance(value, dict):
            found = cast("dict[str, object]", value)
    return found


def _is_equal(given: object, right: object) -> bool:
    if right is None:
        return given is None or given is _MISSING
    if isinstance(right, bool) or isinstance(given, bool):
        return given is right
    if isinstance(right, str):
        return isinstance(given, str) and folded(given) == folded(right)
    if isinstance(right, int | float):
        return isinstance(given, int | float) and (given == right or _is_near(given, right))
    if isinstance(right, list) and isinstance(given, list):
        pairs = list(_pairs(cast("list[object]", given), cast("list[object]", right)))
        return len(given) == len(right) and all(_is_equal(one, other) for one, other in pairs)  # pyright: ignore[reportUnknownArgumentType]
    return given == right


def _is_near(given: float, right: float) -> bool:
    try:
        return math.isclose(given, right, rel_tol=1e-9)
    except OverflowError:  # whole numbers beyond any float
        return False


def _pairs(given: Sequence[object], right: Sequence[object]) -> Iterator[tuple[object, object]]:
    return zip(given, right, strict=False)


def _told(name: str, value: object, expected: str = "") -> str:
    instead = f", expected {expected}" if expected else ""
    if value is _MISSING:
        return f"{name} is missing{instead}"
    return f"{name} is {_shown(value)}{instead or ', which is wrong'}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _listed(told: Sequence[str]) -> str:
    more = [f"and {len(told) - _MAX_NAMED} fields more"] if len(told) > _MAX_NAMED else []
    return "; ".join([*told[:_MAX_NAMED], *more])
