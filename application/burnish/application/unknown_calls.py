"""What to say of a call that a recording does not hold: the nearest recorded one, and a readable difference."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from burnish.application.journal_keys import parts_of
from burnish.application.ports import UnknownCallError

_MOST_LINES = 12
_LONGEST_LINE = 160

_PARTS = {
    "rollout": ("split", "item", "repeat", "skill", "contents of the item", "model, parameters, prompt or scorer"),
    "batch": ("split", "size", "seed", "repeat", "skill", "items"),
    "judge": ("answer", "judge (model, parameters or rubric)", "order", "repeat"),
    "reflect": ("epoch", "step", "optimizer (model, parameters or instructions)", "request (skill, rollouts, memory)"),
}
"""What the parts of a key are, behind its kind."""


def nearest_call(key: str, known: Iterable[str]) -> str | None:
    """The recorded key of the same kind that agrees in most parts; None when there is none of its kind."""
    asked = parts_of(key)
    same_kind = {candidate: parts for candidate in known if (parts := parts_of(candidate))[:1] == asked[:1]}
    equal = {candidate: _equal_parts(asked, parts) for candidate, parts in same_kind.items()}
    most = max(equal.values(), default=0)
    nearest = [candidate for candidate, count in equal.items() if count == most]
    if len(nearest) < 2:
        return next(iter(nearest), None)
    return max(nearest, key=lambda candidate: _likeness(asked, same_kind[candidate]))


async def explained(
    error: UnknownCallError,
    key: str,
    texts: Mapping[str, str],
    kept_text: Callable[[str], Awaitable[str | None]],
) -> UnknownCallError:
    """The error with the missing call, the nearest recorded one, and what differs, as short texts.

    `texts` are those behind digests of the call, `kept_text` reads those behind digests of recorded ones.
    """
    asked = parts_of(key)
    if error.nearest is None:
        return UnknownCallError(None, _shown(asked), "no call of this kind was recorded")
    found = parts_of(error.nearest)
    fields = [_shown(asked), f"nearest recorded: {_shown(found)}"]
    differing = list(_differing(asked, found))
    fields.append(f"differs in: {', '.join(name for name, _, _ in differing) or 'length'}")
    for name, new, old in differing:
        text, kept = texts.get(new), await kept_text(old)
        if text is not None and kept is not None:
            fields.append("\n".join((f"{name}, recorded (-) and asked (+):", *_difference(kept, text))))
    return UnknownCallError(error.nearest, *fields)


def _differing(asked: list[object], found: list[object]) -> Iterator[tuple[str, str, str]]:
    """Name, asked and recorded value of each part that differs."""
    names = _PARTS.get(str(asked[0]), ())
    for place, (one, other) in enumerate(zip(asked[1:], found[1:], strict=False)):
        if one != other:
            yield names[place] if place < len(names) else f"part {place + 1}", str(one), str(other)


def _difference(old: str, new: str) -> Iterator[str]:
    """The changed lines, with a line around them, long ones cut around the first difference."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm=""))[2:]
    for line in lines[:_MOST_LINES]:
        yield f"  {line}" if len(line) <= _LONGEST_LINE else f"  {line[: _LONGEST_LINE - 1]}…"
    if len(lines) > _MOST_LINES:
        yield f"  … and {len(lines) - _MOST_LINES} lines more"


def _equal_parts(one: list[object], other: list[object]) -> int:
    return sum(1 for left, right in zip(one, other, strict=False) if left == right)


def _likeness(one: list[object], other: list[object]) -> float:
    """Of the parts in which they differ: equal ones tell keys of equally many equal parts not apart."""
    differing = [(str(left), str(right)) for left, right in zip(one, other, strict=False) if left != right]
    return sum(difflib.SequenceMatcher(None, left, right).ratio() for left, right in differing)


def _shown(parts: list[object]) -> str:
    """A key for people: long digests cut."""
    return " ".join(f"{text[:8]}…" if len(text := str(part)) > 40 else text for part in parts)
