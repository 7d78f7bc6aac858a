"""A simulated agent: follows the rule lines it finds in its system prompt, and nothing else."""

from __future__ import annotations

from burnish.infrastructure.models.chat import ChatAnswer, ChatRequest
from burnish.infrastructure.simulation.draws import draw
from burnish.infrastructure.simulation.rules import (
    UNROUTED,
    VALUED,
    Rules,
    answer,
    parse_rules,
    slot_values,
    write_answer,
)
from burnish.infrastructure.simulation.usage import answered


class SimulatedApprentice:
    """A ChatModel without a model: it answers the user message by the rules in the system prompt.

    `noise` is the share of answers, in [0, 1], in which it slips; a slip gives one slot another value the rules know.
    Which answers slip depends on `seed` and the request's seed and texts only, never on the order of calls.
    """

    def __init__(self, noise: float = 0.0, seed: int = 0) -> None:
        if not 0.0 <= noise <= 1.0:
            raise ValueError(f"noise must lie in [0, 1], not {noise}")
        self._noise = noise
        self._seed = seed

    @property
    def fingerprint(self) -> str:
        """The name under which it is known as simulated, and its parameters."""
        return f"simulated-apprentice(noise={self._noise!r}, seed={self._seed})"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The code that follows from the rules, UNROUTED without a rule that fits.

        Raises ChatError (TRUNCATED) when it may not be so long.
        """
        rules = parse_rules(request.system)
        text = answer(rules, request.user)
        identity = (self._seed, request.seed, request.user, request.system)
        if self._noise and draw("slip", *identity) < self._noise:
            text = _slip(rules, request.user, draw("which slip", *identity))
        return answered(request, text)

    async def aclose(self) -> None:
        """Nothing is open."""


def _slip(rules: Rules, question: str, chance: float) -> str:
    """A plausible wrong answer: one slot gets another of the values the rules know for it; UNROUTED without any."""
    values = slot_values(rules, question)
    valued = rules.of_kind(*VALUED)
    others = sorted({(rule.slot, rule.value) for rule in valued if values.get(rule.slot, rule.value) != rule.value})
    if not others:
        return UNROUTED
    slot, value = others[int(chance * len(others))]
    return write_answer(rules, values | {slot: value})
