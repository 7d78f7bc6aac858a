"""A decision in words: how reports and summaries call the ways a call can end."""

from __future__ import annotations

from burnish.application.run_rules import UNDECIDED
from burnish.domain.gate import GateAction
from burnish.domain.runs import StepReason, StepRecord

NO_PATCHES = "No patches"
INVALID_EDITS = "Invalid edits"
NO_CHANGE = "No change"
TOO_LONG = "Too long"
REJECTED = "Rejected by the gate"
ACCEPTED = "Accepted"
NEW_BEST = "Accepted, new best"
TAKEN = "Taken without a gate"
TAKEN_NEW_BEST = "Taken without a gate, new best"
OPTIMIZER_FAILED = "Optimizer failed"
INCONCLUSIVE = "Inconclusive"
FINAL_PROMOTION = "Final promotion"
KEPT_BEST = "Kept best"


def title_of(record: StepRecord) -> str:
    """How a step ended, in two or three words."""
    is_best = record.action is GateAction.ACCEPT_NEW_BEST
    match record.reason:
        case StepReason.NO_PATCHES | StepReason.NO_EDITS:
            return NO_PATCHES
        case StepReason.NO_CHANGE:
            return INVALID_EDITS if record.failed and not record.applied else NO_CHANGE
        case StepReason.TOO_LONG:
            return TOO_LONG
        case StepReason.GATE:
            return REJECTED
        case StepReason.ACCEPTED:
            return NEW_BEST if is_best else ACCEPTED
        case StepReason.FORCED:
            return TAKEN_NEW_BEST if is_best else TAKEN
        case StepReason.NOTES:
            return "Notes"
        case StepReason.OPTIMIZER_FAILED:
            return OPTIMIZER_FAILED
        case StepReason.INCONCLUSIVE:
            return INCONCLUSIVE


def explained(record: StepRecord) -> str:
    """The decision in one sentence."""
    match record.reason:
        case StepReason.NO_PATCHES:
            return "Every analyst answered, and none proposed an edit."
        case StepReason.NO_EDITS:
            return "Selection left no edit."
        case StepReason.NO_CHANGE if record.failed and not record.applied:
            return f"None of the {record.failed} selected edits could be applied, so there was nothing to score."
        case StepReason.NO_CHANGE:
            return "The edits that could be applied left the text as it was."
        case StepReason.TOO_LONG:
            return "The candidate would be longer than a document may be."
        case StepReason.OPTIMIZER_FAILED:
            return f"Every call to the model failed ({record.code})."
        case StepReason.INCONCLUSIVE:
            return f"Too many tasks stayed without an answer to decide anything ({record.code})."
        case StepReason.GATE | StepReason.ACCEPTED | StepReason.FORCED | StepReason.NOTES:
            return f"{compared(record)}."


def shortcomings(record: StepRecord) -> str:
    """What did not work in a step that was decided all the same; empty when nothing is to be told."""
    failed = f"{record.analysts_failed} of {record.analysts} analysts failed" if record.analysts_failed else ""
    rules = f"a rule was followed where a model failed to {' and '.join(record.fallbacks)}" if record.fallbacks else ""
    told = ", and ".join(filter(None, (failed, rules)))
    return f"{told[0].upper()}{told[1:]}." if told and record.reason not in UNDECIDED else ""


def compared(record: StepRecord) -> str:
    """The candidate's score beside the one it had to beat."""
    against = "nothing measured" if record.compared_with is None else f"{record.compared_with:.4f}"
    if record.candidate_score is None:
        ceiling = "unknown" if record.ceiling is None else f"{record.ceiling:.4f}"
        return f"The candidate could reach {ceiling} at most against {against}, so the pass was stopped early"
    who = "the best one's " if record.reason in {StepReason.FORCED, StepReason.NOTES} else ""
    return f"The candidate scored {record.candidate_score:.4f} against {who}{against}"
