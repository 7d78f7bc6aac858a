"""Put a candidate skill to the gate with scores measured elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from burnish.application.mediator import Command
from burnish.application.result import Result
from burnish.domain.gate import GateEvaluation, GateResult, evaluate_gate


@dataclass(frozen=True, slots=True)
class GateCandidateSkill(Command[GateResult]):
    """Decide on a candidate; a reject is a successful answer."""

    evaluation: GateEvaluation

    def violations(self) -> tuple[str, ...]:
        """The best step cannot lie in the future (system A)."""
        return ("evaluation.best_step",) if self.evaluation.best_step > self.evaluation.global_step else ()


class GateCandidateSkillHandler:
    """Asks the pure gate."""

    async def handle(self, message: GateCandidateSkill, /) -> Result[GateResult]:
        """The decision."""
        return Result.ok(evaluate_gate(message.evaluation))
