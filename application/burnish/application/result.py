"""The answer to every message: a value, or a failure with a stable code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Never, TypeVar, final

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class ErrorKind(StrEnum):
    """What a caller should do about a failure; consoles and hosts map kinds, not codes."""

    INVALID = "invalid"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    BUG = "bug"

    @property
    def exit_code(self) -> int:
        """The console's exit status for failures of this kind."""
        return _EXIT_CODES[self]

    @property
    def http_status(self) -> int:
        """The HTTP status a host should answer with."""
        return _HTTP_STATUSES[self]


_EXIT_CODES = {
    ErrorKind.INVALID: 2,
    ErrorKind.NOT_FOUND: 66,
    ErrorKind.CONFLICT: 75,
    ErrorKind.UNAVAILABLE: 69,
    ErrorKind.BUG: 70,
}
_HTTP_STATUSES = {
    ErrorKind.INVALID: 422,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.BUG: 500,
}


class ErrorCode(StrEnum):
    """Every way a message can fail. Codes are stable API."""

    INVALID_REQUEST = "request.invalid"
    RUN_NOT_FOUND = "skill_training.run.not_found"
    RUN_ALREADY_ACTIVE = "skill_training.run.already_active"
    RUN_IDENTITY_MISMATCH = "skill_training.run.identity_mismatch"
    RUN_OPTIMIZER_FAILED = "skill_training.run.optimizer_failed"
    RUN_INCONCLUSIVE = "skill_training.run.inconclusive"
    RUN_NOTHING_WORKED = "skill_training.run.nothing_worked"
    STORE_UNAVAILABLE = "skill_training.store.unavailable"
    ROLLOUT_NOT_CONFIGURED = "skill_training.rollout.not_configured"
    ROLLOUT_EMPTY_BATCH = "skill_training.rollout.empty_batch"
    ROLLOUT_CALL_FAILED = "skill_training.rollout.call_failed"
    ROLLOUT_WRONG_ITEMS = "skill_training.rollout.wrong_items"
    ROLLOUT_INVALID_SCORE = "skill_training.rollout.invalid_score"
    PROPOSER_NOT_CONFIGURED = "skill_training.reflect.not_configured"
    PROPOSER_CALL_FAILED = "skill_training.reflect.proposer_call_failed"
    PROPOSER_RETURNED_NULL = "skill_training.reflect.proposer_returned_null"
    UNREADABLE_PATCH = "skill_training.reflect.unreadable_patch"
    OPTIMIZER_ROLE_NOT_CONFIGURED = "skill_training.optimizer.role_not_configured"
    CHECKPOINT_SAVE_FAILED = "skill_training.checkpoint.save_failed"
    MEMORY_PERSIST_FAILED = "skill_training.meta.persist_failed"
    REPLAY_UNKNOWN_CALL = "skill_training.replay.unknown_call"
    BUDGET_REACHED = "skill_training.budget.reached"
    BUDGET_UNBOUNDED = "skill_training.budget.unbounded"
    UNEXPECTED = "internal.unexpected"

    @property
    def kind(self) -> ErrorKind:
        """What kind of failure this is."""
        return _CATALOGUE[self].kind

    @property
    def meaning(self) -> str:
        """What happened, in one line for people."""
        return _CATALOGUE[self].meaning

    @property
    def remedy(self) -> str:
        """What to do about it, in one line for people."""
        return _CATALOGUE[self].remedy


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: ErrorKind
    meaning: str
    remedy: str


_CATALOGUE = {
    ErrorCode.INVALID_REQUEST: _Entry(
        ErrorKind.INVALID, "a field of the request breaks its rule", "correct the fields named with the failure"
    ),
    ErrorCode.RUN_NOT_FOUND: _Entry(
        ErrorKind.NOT_FOUND, "there is no run with this id", "list the runs to see which ids exist"
    ),
    ErrorCode.RUN_ALREADY_ACTIVE: _Entry(
        ErrorKind.CONFLICT, "a run with this id is being trained", "wait until it ends, or choose another run id"
    ),
    ErrorCode.RUN_IDENTITY_MISMATCH: _Entry(
        ErrorKind.CONFLICT,
        "a run with this id exists and was started with other settings, named with the failure",
        "use the settings it was started with, or choose another run id",
    ),
    ErrorCode.RUN_OPTIMIZER_FAILED: _Entry(
        ErrorKind.UNAVAILABLE,
        "the optimizer failed at every step until patience ran out",
        "see the codes of the steps, repair the optimizer's endpoint or prompt, and start again",
    ),
    ErrorCode.RUN_INCONCLUSIVE: _Entry(
        ErrorKind.UNAVAILABLE,
        "too many items stayed without an answer to decide anything",
        "repair the agent's endpoint, and start again",
    ),
    ErrorCode.RUN_NOTHING_WORKED: _Entry(
        ErrorKind.UNAVAILABLE,
        "not one rollout or not one optimizer call gave a usable answer",
        "check endpoint, key and model name, and start again",
    ),
    ErrorCode.STORE_UNAVAILABLE: _Entry(
        ErrorKind.UNAVAILABLE, "the store of runs could not be read or written", "check its disk or server"
    ),
    ErrorCode.ROLLOUT_NOT_CONFIGURED: _Entry(
        ErrorKind.INVALID,
        "no rollout runner is configured, so no skill can be tried",
        "pass rollouts=... to open_app: an object with `async run(skill, batch)` that scores items with your agent",
    ),
    ErrorCode.ROLLOUT_EMPTY_BATCH: _Entry(
        ErrorKind.INVALID, "a split that is needed has no items", "add items to the split named with the failure"
    ),
    ErrorCode.ROLLOUT_CALL_FAILED: _Entry(
        ErrorKind.UNAVAILABLE, "the rollout runner raised an error", "see the log for the cause"
    ),
    ErrorCode.ROLLOUT_WRONG_ITEMS: _Entry(
        ErrorKind.INVALID,
        "the rollout runner returned other items than it was asked for, too many, or one twice",
        "return one rollout for each item id of the batch",
    ),
    ErrorCode.ROLLOUT_INVALID_SCORE: _Entry(
        ErrorKind.INVALID,
        "a scorer raised, or gave a score that is not a number in [0, 1]",
        "correct the scorer for the item named with the failure; the log tells what it raised",
    ),
    ErrorCode.PROPOSER_NOT_CONFIGURED: _Entry(
        ErrorKind.INVALID,
        "no patch proposer is configured, so no edit can be suggested",
        "pass proposer=... to open_app: an object with `async propose(reflection)` that returns a Patch",
    ),
    ErrorCode.PROPOSER_CALL_FAILED: _Entry(
        ErrorKind.UNAVAILABLE, "the patch proposer raised an error", "see the log for the cause"
    ),
    ErrorCode.PROPOSER_RETURNED_NULL: _Entry(
        ErrorKind.UNAVAILABLE,
        "the patch proposer returned nothing",
        "return a Patch, empty if there is nothing to edit",
    ),
    ErrorCode.UNREADABLE_PATCH: _Entry(
        ErrorKind.UNAVAILABLE,
        "the optimizer's answer was not a patch",
        "use a model that follows the schema, or allow it longer answers",
    ),
    ErrorCode.OPTIMIZER_ROLE_NOT_CONFIGURED: _Entry(
        ErrorKind.INVALID,
        "a setting needs a role of the optimizer that nobody plays",
        "pass the role named with the failure to open_app, or choose another update mode or learning rate control",
    ),
    ErrorCode.CHECKPOINT_SAVE_FAILED: _Entry(
        ErrorKind.UNAVAILABLE, "progress could not be kept", "check the store's disk or server, and start again"
    ),
    ErrorCode.MEMORY_PERSIST_FAILED: _Entry(
        ErrorKind.UNAVAILABLE, "the cross-epoch memory could not be kept", "check the store's disk or server"
    ),
    ErrorCode.REPLAY_UNKNOWN_CALL: _Entry(
        ErrorKind.NOT_FOUND,
        "the recording holds no answer to a call this run makes",
        "replay with the task, items and settings it was recorded with, or record anew",
    ),
    ErrorCode.BUDGET_REACHED: _Entry(
        ErrorKind.UNAVAILABLE, "a call was not made, because it could pass a cap", "raise the cap, and start again"
    ),
    ErrorCode.BUDGET_UNBOUNDED: _Entry(
        ErrorKind.INVALID,
        "tokens or dollars are capped, and a call does not say what it uses at most",
        "set the longest answers and the prices of both models, or cap rollouts; a host's port says it by usage_at_most",
    ),
    ErrorCode.UNEXPECTED: _Entry(
        ErrorKind.BUG, "something failed that nobody foresaw", "report it with the traceback from the log"
    ),
}


ENDING_CODES = frozenset(
    {
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.REPLAY_UNKNOWN_CALL,
        ErrorCode.BUDGET_REACHED,
        ErrorCode.BUDGET_UNBOUNDED,
    }
)
"""Codes of a call that was not made or not kept: they end a run wherever they come up, no step makes up for them."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A scrubbed failure: a code, and the field paths or item ids it is about. Never a value or an exception's text."""

    code: ErrorCode
    fields: tuple[str, ...] = ()


class ResultAccessError(RuntimeError):
    """The value of a failed result was asked for."""


@final
@dataclass(frozen=True, slots=True)
class Result(Generic[T_co]):
    """Either a value or a `Failure`."""

    _value: T_co | None
    failure: Failure | None

    @staticmethod
    def ok(value: T) -> Result[T]:
        """A success."""
        return Result(value, None)

    @staticmethod
    def fail(code: ErrorCode | str, *fields: str) -> Result[Never]:
        """A failure, assignable to any `Result[...]`; ValueError when `code` is not in the catalogue."""
        return Result(None, Failure(ErrorCode(code), fields))

    @property
    def is_ok(self) -> bool:
        """Whether there is a value."""
        return self.failure is None

    @property
    def value(self) -> T_co:
        """The value; raises ResultAccessError on a failure."""
        if self.failure is not None:
            raise ResultAccessError(f"the message failed with {self.failure.code.value}: check is_ok first")
        return self._value  # type: ignore[return-value]  # a success holds a T_co, which may itself include None
