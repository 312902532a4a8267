"""Results, failures and messages of a run as log records."""

from __future__ import annotations

import logging
import sys

from mergemill.execution.progress import format_event, name_failure
from mergemill.execution.telemetry.logs import RUN_LOGGER, LogStream
from mergemill.execution.telemetry.observer import ProgressObserver
from taskdb.records import Stage
from taskdb.records.work import StageResult

log = logging.getLogger(RUN_LOGGER)


class RunLog(ProgressObserver):
    """Progress that logs the events that it passes on."""

    def report_result(self, result: StageResult) -> None:
        """Log a result, with the id of its record."""
        event = format_event(result)
        verdict = result.reason or "ok"
        fields = {key: event[key] for key in ("stage", "ok", "reason", "seconds")}
        fields |= {"change": result.name, "source": result.source, "record": result.result.id}
        log.info("%s %s: %s", result.stage.value, result.name, verdict, extra={"fields": fields})
        super().report_result(result)

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Log a failure."""
        fields = {"stage": stage.value, "change": name, "problem": name_failure(error)}
        log.warning("%s %s failed: %s", stage.value, name, error, extra={"fields": fields})
        super().report_failure(stage, name, error)

    def print_message(self, text: str) -> None:
        """Log a message, unless all that is shown is logged."""
        if not isinstance(sys.stderr, LogStream):
            log.info(text)
        super().print_message(text)
