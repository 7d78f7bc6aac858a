"""Re-deciding a run: its answers again under other settings, and where the decisions part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from burnish.application.events import PassScored, Stage
from burnish.application.ports import PortError
from burnish.application.result import ErrorCode, Failure
from burnish.domain.gate import GateMetric
from burnish.domain.runs import StepRecord, StopReason, TrainingRun, skill_hash
from burnish.infrastructure.tasks.refusals import DataError
from burnish.presentation.kept_answers import KeptAnswers, kept_answers
from burnish.presentation.missed_call import Place, place_of
from burnish.presentation.offline_run import OfflineRun, load_kept_task, open_offline, run_again
from burnish.presentation.run_folder import RunFolder
from burnish.presentation.settings.errors import SettingsError
from burnish.presentation.settings.fields import Kind
from burnish.presentation.settings.keys import KEYS, value_at
from burnish.presentation.settings.loading import LoadedTask
from burnish.presentation.settings.mapping import canonical, named_as_settings
from burnish.presentation.settings.yaml_text import Value

_DECIDED = frozenset({ErrorCode.RUN_OPTIMIZER_FAILED, ErrorCode.RUN_INCONCLUSIVE, ErrorCode.RUN_NOTHING_WORKED})
"""Failures that a run ends with by its own rules; any other says that it could not be run again."""

_UNFINISHED = frozenset({None, StopReason.CANCELLED, StopReason.BUDGET, StopReason.FAILED})
"""How a run ended whose journal may hold more than its records."""

_AFTER_THE_LOOP = frozenset({Stage.PROMOTE_FINAL.value, Stage.TEST.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A setting with another value than the recorded run's."""

    key: str
    recorded: Value
    now: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """One record as it was and as it is now; None where there is none. `parts`: they are not the same decision."""

    recorded: StepRecord | None
    redecided: StepRecord | None
    parts: bool

    @property
    def known(self) -> StepRecord:
        """Either of them, for what they have in common: step and epoch."""
        record = self.recorded or self.redecided
        assert record is not None, "a pair has one record at least"
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCall:
    """The call that had no answer: its place in the run, what it asked and what is near it.

    `is_first`: nothing could be decided before it; `settings` are those that made it another call then, if any did.
    """

    place: Place
    about: tuple[str, ...]
    is_first: bool
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run selected (so far, when `ended` is None) by this metric; scores are None when not measured."""

    ended: str | None
    metric: GateMetric
    baseline_score: float | None
    selected_score: float | None
    best_step: int
    skill_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecision:
    """A run and what other settings make of its answers.

    `recorded` is None for a folder whose run has decided nothing, `redecided` when it could not begin; `code` is that of
    a re-decided run that failed by its own rules.
    """

    run_id: str
    changes: tuple[Change, ...]
    steps: tuple[StepPair, ...]
    unknown: UnknownCall | None
    code: str | None
    recorded: Outcome | None
    redecided: Outcome | None

    @property
    def first_parting(self) -> StepPair | None:
        """The first step that was decided in another way."""
        return next((pair for pair in self.steps if pair.parts), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """A run that was run again under some settings."""

    loaded: LoadedTask
    metric: GateMetric
    offline: OfflineRun

    @property
    def missed_first(self) -> bool:
        """Whether nothing was answered."""
        events = self.offline.events
        return self.offline.missed is not None and not any(isinstance(event, PassScored) for event in events)


class _Kept:
    """A folder's run, to be run again under one set of settings after another."""

    def __init__(self, path: Path, answers: KeptAnswers, environ: Mapping[str, str], task_file: Path | None) -> None:
        self._folder = RunFolder(path)
        self._answers = answers
        self._environ = environ
        self._task_file = task_file

    async def again(self, overrides: Sequence[str]) -> _Again:
        loaded = load_kept_task(self._folder, overrides, self._task_file)
        async with open_offline(loaded, self._environ) as task:
            offline = await run_again(task, self._answers.run_id, self._answers.entries)
            return _Again(loaded=loaded, metric=task.config.gate_metric, offline=offline)

    def loaded(self) -> LoadedTask:
        return load_kept_task(self._folder, (), self._task_file)


async def redecide(
    path: Path, overrides: Sequence[str], environ: Mapping[str, str], *, task_file: Path | None = None
) -> Redecision:
    """Run a folder's run again with `overrides` over its settings, until it ends or an answer is missing.

    Raises SettingsError or DataError when it cannot begin, PortError when it fails otherwise than by its own rules.
    """
    answers = await kept_answers(path, environ)
    kept = _Kept(path, answers, environ, task_file)
    before = kept.loaded()
    again = await kept.again(overrides)
    offline, failure = again.offline, again.offline.failure
    if failure is not None and offline.missed is None and failure.code not in _DECIDED:
        raise PortError(failure.code, *named_as_settings(failure.fields))
    recorded = answers.run
    if recorded is None and overrides:  # the folder was made from a recording, which holds no decisions
        recorded = (await kept.again(())).offline.run
    changes = _changes(before, again.loaded)
    return Redecision(
        run_id=answers.run_id,
        changes=changes,
        steps=_paired(recorded, offline),
        unknown=await _unknown(kept, again, failure, overrides, changes),
        code=None if failure is None or offline.missed is not None else failure.code.value,
        recorded=None if recorded is None else _outcome(recorded, GateMetric(before.settings.evaluation.gate_metric)),
        redecided=None if offline.run is None else _outcome(offline.run, again.metric, missed=offline.missed),
    )


def _changes(before: LoadedTask, after: LoadedTask) -> tuple[Change, ...]:
    """The identity settings that are not the same; others decide nothing."""
    found: list[Change] = []
    for path, key in KEYS.items():
        was, now = canonical(value_at(before.settings, path)), canonical(value_at(after.settings, path))
        if key.kind is Kind.IDENTITY and was != now:
            found.append(Change(key=path, recorded=was, now=now))
    return tuple(found)


async def _unknown(
    kept: _Kept, again: _Again, failure: Failure | None, overrides: Sequence[str], changes: Sequence[Change]
) -> UnknownCall | None:
    missed = again.offline.missed
    if missed is None or failure is None:
        return None
    settings: tuple[str, ...] = ()
    if again.missed_first:
        keys = tuple(change.key for change in changes)
        settings = tuple([key for key in keys if len(keys) == 1 or await _is_to_blame(kept, key, overrides)]) or keys
    return UnknownCall(
        place=place_of(missed, again.offline.events),
        about=failure.fields,
        is_first=again.missed_first,
        settings=settings,
    )


async def _is_to_blame(kept: _Kept, key: str, overrides: Sequence[str]) -> bool:
    """Whether this setting alone makes the first calls other ones."""
    try:
        return (
            await kept.again([option for option in overrides if option.partition("=")[0].strip() == key])
        ).missed_first
    except (SettingsError, DataError):  # it makes sense with the others only
        return False


def _paired(recorded: TrainingRun | None, offline: OfflineRun) -> tuple[StepPair, ...]:
    """The records of both runs side by side: of each step its own, that of its notes, that of a slow update after it."""
    was, now = _by_place(recorded), _by_place(offline.run)
    was_ended = recorded is not None and recorded.stop_reason not in _UNFINISHED
    is_ended = offline.missed is None or place_of(offline.missed, offline.events).stage in _AFTER_THE_LOOP
    pairs: list[StepPair] = []
    for place in sorted(was | now):
        one, other = was.get(place), now.get(place)
        if one is not None and other is not None:
            parts = _decision(one) != _decision(other)
        elif other is None:
            parts = is_ended or place < max(now, default=(0, 0))
        else:
            parts = was_ended or place < max(was, default=(0, 0))
        pairs.append(StepPair(recorded=one, redecided=other, parts=parts))
    return tuple(pairs)


def _by_place(run: TrainingRun | None) -> dict[tuple[int, int], StepRecord]:
    """A run's records by step and place in it: its own, its notes, a slow update."""
    found: dict[tuple[int, int], StepRecord] = {}
    for record in () if run is None else run.steps:
        place = 0 if (record.step, 0) not in found else 1 if record.is_of_notes else 2
        found[record.step, place] = record
    return found


def _decision(record: StepRecord) -> tuple[object, ...]:
    """What makes two decisions the same: scores may be projected in another way."""
    return record.action, record.reason, record.code, record.learning_rate, record.skill_hash


def _outcome(run: TrainingRun, metric: GateMetric, *, missed: str | None = None) -> Outcome:
    return Outcome(
        ended=None if missed is not None or run.stop_reason is None else run.stop_reason.value,
        metric=metric,
        baseline_score=run.baseline_score,
        selected_score=run.selected_score,
        best_step=run.best_step,
        skill_hash=skill_hash(run.best_skill),
    )
