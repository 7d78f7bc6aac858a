"""A simulated judge: grades by the words that an answer shares with its reference."""

from __future__ import annotations

import json
import re
from collections import Counter

from burnish.infrastructure.models.chat import ChatAnswer, ChatRequest
from burnish.infrastructure.simulation.usage import answered

_SECTION = re.compile(
    r"^# (?P<title>[^\n]+)\n\n<(?P<mark>\w+)>\n(?P<text>.*?)\n</(?P=mark)>$", re.MULTILINE | re.DOTALL
)


class SimulatedJudge:
    """A ChatModel without a model: a tenth of the best grade for each tenth of shared words (F1), all without reference."""

    @property
    def fingerprint(self) -> str:
        """The name under which it is known as simulated."""
        return "simulated-judge"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The grade. Raises ChatError (TRUNCATED) when it may not be so long."""
        texts = {match["title"]: match["text"] for match in _SECTION.finditer(request.user)}
        given = Counter(texts.get("Answer to be graded", "").lower().split())
        right = Counter(texts.get("Reference answer", "").lower().split())
        total = given.total() + right.total()
        shared = 2 * (given & right).total() / total if right and total else float(bool(given))
        reason = f"{(given & right).total()} of {right.total()} words of the reference are there"
        return answered(request, json.dumps({"reason": reason, "grade": int(10 * shared)}))

    async def aclose(self) -> None:
        """Nothing is open."""
