"""Progress of a run: a live table on a terminal, one JSON line per event elsewhere."""

from __future__ import annotations

import json
import sys
from collections import Counter, deque
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from core.errors import MergemillError
from taskdb.chains import StageResult
from taskdb.records import Stage


class Progress(AbstractContextManager["Progress"], Protocol):
    """Receiver of results and messages. Called from the driver's thread only."""

    def report_result(self, result: StageResult) -> None:
        """Show a new result of a stage."""

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Show a failure of a stage, which is no verdict."""

    def print_message(self, text: str) -> None:
        """Show a line for people."""


def format_event(result: StageResult) -> dict[str, object]:
    """Return the fields that a stage prints for a result record (docs/cli.md)."""
    return {
        "event": "record",
        "stage": result.stage.value,
        "name": result.name,
        "ok": result.ok,
        "reason": result.reason,
        "seconds": round(result.seconds, 3),
    }


@dataclass
class MessageProgress:
    """Progress that shows messages only."""

    err: IO[str] = field(default_factory=lambda: sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def report_result(self, result: StageResult) -> None:
        """Show nothing."""

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Show nothing: the message or the log has the failure."""

    def print_message(self, text: str) -> None:
        """Write the line after the program's name."""
        self.err.write(f"mergemill: {text}\n")
        self.err.flush()


@dataclass
class JsonLinesProgress(MessageProgress):
    """Progress as one JSON line per event, on standard output with `--json`, else on standard error."""

    out: IO[str] = field(default_factory=lambda: sys.stderr)

    def report_result(self, result: StageResult) -> None:
        """Write one line."""
        self._write(format_event(result))

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Write one line, whose `problem` is the kind of failure."""
        kind = type(error).__name__ if isinstance(error, MergemillError) else "bug"
        self._write({"event": "problem", "stage": stage.value, "name": name, "problem": kind, "detail": str(error)})

    def _write(self, line: dict[str, object]) -> None:
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()


class LiveTableProgress(MessageProgress):
    """Progress as a live table of counts per stage, with the last results below it."""

    def __init__(self, console: Console, rows: int = 6) -> None:
        super().__init__(console.file)
        self.console = console
        self.passed: Counter[Stage] = Counter()
        self.rejected: Counter[Stage] = Counter()
        self.failed: Counter[Stage] = Counter()
        self.last: deque[str] = deque(maxlen=rows)
        self.live = Live(console=console, refresh_per_second=4, get_renderable=self._render, transient=True)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.stop()

    def report_result(self, result: StageResult) -> None:
        """Count the result and show it among the last ones."""
        (self.passed if result.ok else self.rejected)[result.stage] += 1
        if result.stage is not Stage.MINE:
            verdict = result.reason or "ok"
            kind = f" {result.kind.value}" if result.kind else ""
            self.last.append(f"{result.stage.value:8} {result.name}{kind}  {verdict}  {result.seconds:.1f} s")

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Count the failure."""
        del name, error
        self.failed[stage] += 1

    def print_message(self, text: str) -> None:
        """Print the line above the table."""
        self.console.print(Text(f"mergemill: {text}"))

    def _render(self) -> Group:
        table = Table("stage", "passed", "rejected", "failed", box=None, header_style="bold")
        for stage in Stage:
            counts = (self.passed[stage], self.rejected[stage], self.failed[stage])
            table.add_row(stage.value, *(str(n) if n else "" for n in counts))
        last = list(self.last)  # a copy: rich renders in a thread of its own
        return Group(table, *(Text(line, overflow="ellipsis", no_wrap=True, style="dim") for line in last))
