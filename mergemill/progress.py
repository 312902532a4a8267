"""What a run shows while it goes: a live table on a terminal, one JSON line per event elsewhere."""

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

from mergemill.errors import MergemillError
from taskdb.chains import Finished
from taskdb.records import Stage


class Progress(AbstractContextManager["Progress"], Protocol):
    """Who is told what happens. Called from the driver's thread only."""

    def record(self, finished: Finished) -> None:
        """A stage has ended for a record, with a new result."""

    def failed(self, stage: Stage, name: str, error: Exception) -> None:
        """A stage failed without a verdict."""

    def message(self, text: str) -> None:
        """A line for people."""


def event(finished: Finished) -> dict[str, object]:
    """The line that a stage prints for a finished record (docs/cli.md)."""
    return {
        "event": "record",
        "stage": finished.stage.value,
        "name": finished.name,
        "ok": finished.ok,
        "reason": finished.reason,
        "seconds": round(finished.seconds, 3),
    }


@dataclass
class Quiet:
    """Messages only."""

    err: IO[str] = field(default_factory=lambda: sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def record(self, finished: Finished) -> None:
        """Nothing is shown."""

    def failed(self, stage: Stage, name: str, error: Exception) -> None:
        """Nothing is shown; the message or the log has told it."""

    def message(self, text: str) -> None:
        """The line, after the program's name."""
        self.err.write(f"mergemill: {text}\n")
        self.err.flush()


@dataclass
class Lines(Quiet):
    """One JSON line per event, to standard output with `--json`, else to standard error."""

    out: IO[str] = field(default_factory=lambda: sys.stderr)

    def record(self, finished: Finished) -> None:
        """One line."""
        self._write(event(finished))

    def failed(self, stage: Stage, name: str, error: Exception) -> None:
        """One line, whose `problem` is the kind of failure: it is no verdict."""
        kind = type(error).__name__ if isinstance(error, MergemillError) else "bug"
        self._write({"event": "problem", "stage": stage.value, "name": name, "problem": kind, "detail": str(error)})

    def _write(self, line: dict[str, object]) -> None:
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()


class LiveTable(Quiet):
    """A table of stages that counts up, with the last results under it."""

    def __init__(self, console: Console, rows: int = 6) -> None:
        super().__init__(console.file)
        self.console = console
        self.passed: Counter[Stage] = Counter()
        self.rejected: Counter[Stage] = Counter()
        self.broken: Counter[Stage] = Counter()
        self.last: deque[str] = deque(maxlen=rows)
        self.live = Live(console=console, refresh_per_second=4, get_renderable=self._render, transient=True)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.stop()

    def record(self, finished: Finished) -> None:
        """Count it and show it among the last."""
        (self.passed if finished.ok else self.rejected)[finished.stage] += 1
        if finished.stage is not Stage.MINE:
            verdict = finished.reason or "ok"
            kind = f" {finished.kind.value}" if finished.kind else ""
            self.last.append(f"{finished.stage.value:8} {finished.name}{kind}  {verdict}  {finished.seconds:.1f} s")

    def failed(self, stage: Stage, name: str, error: Exception) -> None:
        """Count it."""
        del name, error
        self.broken[stage] += 1

    def message(self, text: str) -> None:
        """The line, above the table."""
        self.console.print(Text(f"mergemill: {text}"))

    def _render(self) -> Group:
        table = Table("stage", "passed", "rejected", "failed", box=None, header_style="bold")
        for stage in Stage:
            counts = (self.passed[stage], self.rejected[stage], self.broken[stage])
            table.add_row(stage.value, *(str(n) if n else "" for n in counts))
        last = list(self.last)  # at once: rich draws in a thread of its own
        return Group(table, *(Text(line, overflow="ellipsis", no_wrap=True, style="dim") for line in last))
