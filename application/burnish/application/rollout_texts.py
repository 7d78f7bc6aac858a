"""The texts of a rollout as they may be kept and shown."""

from __future__ import annotations

from collections.abc import Sequence

from burnish.application.redaction import fit_to_keep
from burnish.domain.rollouts import Rollout


def fit_rollout(rollout: Rollout, secrets: Sequence[str] = ()) -> Rollout:
    """The rollout fit to be kept: no known secrets, nothing that UTF-8 cannot carry, no scores of a missing answer.

    What an untyped host hands over as a text becomes one, so that no remark beside the scores ends a run.
    """
    texts = (
        rollout.trajectory,
        rollout.task_type,
        rollout.prediction,
        rollout.fail_reason,
        "" if rollout.error is None else rollout.error,
    )
    fit = [fit_to_keep(_as_text(text), secrets) for text in texts]
    is_scored = rollout.error is None
    if is_scored and (*fit,) == texts and type(rollout.hard) is type(rollout.soft) is float:
        return rollout
    hard, soft = (float(rollout.hard), float(rollout.soft)) if is_scored else (0.0, 0.0)
    trajectory, task_type, prediction, fail_reason, error = fit
    return Rollout(
        rollout.item_id,
        hard,
        soft,
        trajectory=trajectory,
        task_type=task_type,
        prediction=prediction,
        fail_reason=fail_reason,
        error=None if is_scored else error,
    )


def _as_text(text: object) -> str:
    """A text as it is, nothing as the empty one, anything else as Python shows it."""
    return text if isinstance(text, str) else "" if text is None else str(text)
