"""Traces of changes, exported by OTLP over HTTP. The only file that imports OpenTelemetry.

A change is a span, and each of its stages a child. They are made in the driver from the data that workers return,
wherever these run. OpenTelemetry's own variables (`OTEL_...`) configure the export.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from types import TracebackType

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context
from opentelemetry.util.types import AttributeValue

from mergemill import __version__
from mergemill.execution.progress import Progress, name_failure
from mergemill.execution.telemetry.observer import ProgressObserver
from taskdb.records import Stage
from taskdb.records.work import StageResult

Attributes = dict[str, AttributeValue]
NANOSECONDS = 1_000_000_000
IDLE_SECONDS = 5.0
"""Seconds without a result and without a step that runs, after which a change has ended."""


@dataclass
class ChangeTrace:
    """Open span of a change. `end`: when its last stage ended, in nanoseconds since 1970."""

    span: Span
    end: int


class RunTraces(ProgressObserver):
    """Progress that exports a span for each change that has a stage after the miner.

    Progress reports no end of a change: its span ends when the change is idle for IDLE_SECONDS, or with the run.
    """

    def __init__(self, shown: Progress, command: str) -> None:
        super().__init__(shown)
        names = {SERVICE_VERSION: __version__, "mergemill.command": command}
        if "OTEL_SERVICE_NAME" not in os.environ:
            names[SERVICE_NAME] = "mergemill"
        self._provider = TracerProvider(resource=Resource.create(names), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("mergemill", __version__)
        self._open: dict[str, ChangeTrace] = {}
        self._mined: dict[str, tuple[int, StageResult]] = {}
        """Candidates of this run that no later stage has: when they were stored, and the result."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for change in list(self._open):
            self._end(change)
        self._provider.shutdown()

    def report_result(self, result: StageResult) -> None:
        """Add the span of a stage; that of the miner once the change has another."""
        now = time.time_ns()
        if result.stage is not Stage.MINE:
            if earlier := self._mined.pop(result.name, None):
                self._add_result(*earlier)
            self._add_result(now, result)
        elif result.ok:
            self._mined[result.name] = (now, result)
        super().report_result(result)

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Add the span of a stage that failed; it begins where the stage before it ended."""
        now = time.time_ns()
        if stage is not Stage.MINE:
            if earlier := self._mined.pop(name, None):
                self._add_result(*earlier)
            start = self._open[name].end if name in self._open else now
            attributes: Attributes = {"mergemill.verdict": "failed", "mergemill.reason": name_failure(error)}
            self._add(stage, name, (start, now), attributes, str(error))
        super().report_failure(stage, name, error)

    def _add_result(self, end: int, result: StageResult) -> None:
        attributes: Attributes = {
            "mergemill.source": result.source,
            "mergemill.verdict": "passed" if result.ok else "rejected",
            "mergemill.record": result.result.id,
        }
        if result.reason:
            attributes["mergemill.reason"] = result.reason
        if result.kind:
            attributes["mergemill.kind"] = result.kind.value
        self._add(result.stage, result.name, (end - int(result.seconds * NANOSECONDS), end), attributes)

    def _add(self, stage: Stage, name: str, period: tuple[int, int], attributes: Attributes, problem: str = "") -> None:
        """Add the span of a stage to that of its change; `period`: start and end in nanoseconds since 1970."""
        start, end = period
        names: Attributes = {"mergemill.change": name}
        if name not in self._open:
            root = self._tracer.start_span(name, start_time=start, attributes=names)
            self._open[name] = ChangeTrace(root, end)
        change = self._open[name]
        span = self._tracer.start_span(
            stage.value,
            context=set_span_in_context(change.span),
            start_time=start,
            attributes={**names, "mergemill.stage": stage.value, **attributes},
        )
        if problem:
            span.set_status(Status(StatusCode.ERROR, problem))
            change.span.set_status(Status(StatusCode.ERROR, problem))
        span.end(end)
        change.end = max(change.end, end)
        self._end_idle(end)

    def _end_idle(self, now: int) -> None:
        """End the spans of the changes that are idle, for a time in nanoseconds since 1970."""
        running = {step.name for step in self.work.list_running()}
        running |= {name.rpartition(".")[0] for name in running}  # a task is named after its change
        latest = now - IDLE_SECONDS * NANOSECONDS
        for name in [name for name, trace in self._open.items() if trace.end < latest and name not in running]:
            self._end(name)

    def _end(self, name: str) -> None:
        change = self._open.pop(name)
        change.span.end(change.end)
