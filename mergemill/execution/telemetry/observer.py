"""Progress that passes on the events that it is given, for classes that count or record it besides."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from mergemill.execution.progress import Progress
from taskdb.records import Stage
from taskdb.records.work import StageResult


class ProgressObserver:
    """Progress that only passes every call to `shown`, which it enters and leaves; subclasses add to some calls."""

    def __init__(self, shown: Progress) -> None:
        self.shown = shown
        self.work = shown.work
        """Work that is running, and how much is left: that of `shown`."""

    def __enter__(self) -> Self:
        self.shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shown.__exit__(kind, error, trace)

    def report_result(self, result: StageResult) -> None:
        """Pass a result on."""
        self.shown.report_result(result)

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Pass a failure on."""
        self.shown.report_failure(stage, name, error)

    def print_message(self, text: str) -> None:
        """Pass a message on."""
        self.shown.print_message(text)
