"""Spans and numbers of a run's stages; the OpenTelemetry API only, a host's own providers decide what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry.metrics import Meter
from opentelemetry.trace import Tracer

from burnish.application.events import Stage
from burnish.application.passes import Pass
from burnish.domain.runs import StepRecord


class StageTelemetry:
    """A span and a duration for each stage, counts of steps and rollouts; no texts, no ids of items."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._durations = meter.create_histogram("burnish.stage.duration", unit="s", description="Time a stage took.")
        self._steps = meter.create_counter("burnish.steps", description="Steps, by reason and decision.")
        self._rollouts = meter.create_counter("burnish.rollouts", description="Rollouts, by stage and outcome.")

    @contextmanager
    def stage(self, stage: Stage) -> Generator[None]:
        """Measure one stage; what it raises is marked by its type only."""
        started = time.perf_counter()
        with self._tracer.start_as_current_span(
            f"stage {stage.value}", record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                raise
            finally:
                self._durations.record(time.perf_counter() - started, {"stage": stage.value})

    def count_pass(self, stage: Stage, done: Pass) -> None:
        """Count a pass's rollouts."""
        score = done.score
        self._rollouts.add(score.scored, {"stage": stage.value, "outcome": "answered"})
        if score.missing:
            self._rollouts.add(score.missing, {"stage": stage.value, "outcome": "missing"})

    def count_step(self, record: StepRecord) -> None:
        """Count a decided step."""
        decision = "none" if record.action is None else record.action.value
        self._steps.add(1, {"reason": record.reason.value, "decision": decision})
