"""Progress of a run: a live table on a terminal, a JSON line per event elsewhere."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from core.errors import MergemillError
from core.text import escape_controls, escape_line, format_count
from taskdb.records import Stage
from taskdb.records.work import StageResult


class Progress(AbstractContextManager["Progress"], Protocol):
    """Receiver of results and messages. Called from the driver's thread only, but for `work`."""

    work: WorkState
    """Work that is running, and how much is left."""

    def report_result(self, result: StageResult) -> None:
        """Show a new result of a stage."""

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Show a failure of a stage, which is not a verdict."""

    def print_message(self, text: str) -> None:
        """Show a line for people."""


@dataclass(frozen=True)
class RunningStep:
    """A stage of a change that a worker is running.

    `started`: reading of the clock, in seconds; `place`: name of the machine, empty for this machine.
    """

    stage: Stage
    name: str
    started: float
    place: str = ""


@dataclass
class WorkState:
    """Work that is running, the work that is finished and how much is left. Thread-safe."""

    clock: Callable[[], float] = time.monotonic
    earlier: Mapping[Stage, int] = field(default_factory=dict)
    """Stage -> changes that passed it in earlier runs."""
    n_earlier: int = 0
    """Candidates that nothing was left to do for when the run began."""
    n_expected: int = 0
    """Changes with pending work when the run began."""
    n_read: int = 0
    """Changes handed to the workers so far."""
    all_read: bool = False
    """Whether no further change will be handed to them."""
    n_finished: int = 0
    is_draining: bool = False
    """Whether no further change is begun and each change ends after the step that runs."""

    def __post_init__(self) -> None:
        self.started = self.clock()
        self._running: dict[str, RunningStep] = {}
        self._lock = threading.Lock()

    def start_step(self, key: str, stage: Stage, name: str, place: str = "") -> None:
        """Note that a stage of a change is running from now on, in place of the change's stage before.

        Args:
            key: id of the change, or of a source that is mined.
            stage: the stage.
            name: name of the change, task or source.
            place: name of the machine, empty for this machine.
        """
        with self._lock:
            self._running[key] = RunningStep(stage, name, self.clock(), place)

    def end_step(self, key: str) -> None:
        """Note that nothing runs for a change or source."""
        with self._lock:
            self._running.pop(key, None)

    def end_change(self, key: str) -> None:
        """Count a change as finished."""
        with self._lock:
            self.n_finished += 1
            self._running.pop(key, None)

    def list_running(self) -> list[RunningStep]:
        """Return the changes that are running, longest first."""
        with self._lock:
            return sorted(self._running.values(), key=lambda step: step.started)

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.started

    @property
    def n_total(self) -> int:
        """Changes of this run that are known so far, those of earlier runs excluded."""
        return self.n_read if self.all_read else max(self.n_expected, self.n_read)

    def estimate_seconds_left(self) -> float | None:
        """Return the seconds until all known changes are finished, or None before the first is.

        The changes that are left take as long as those of this run did, with the same number of workers.
        """
        return estimate_seconds_left(self.elapsed, self.n_finished, self.n_total)

    def format_state(self) -> str:
        """Return a line: elapsed time, changes done of all, and the time that is left."""
        total = f"{self.n_earlier + self.n_total}{'' if self.all_read else '+'}"
        done = f"{self.n_earlier + self.n_finished} of {total} changes"
        earlier = f" ({self.n_earlier} by earlier runs)" if self.n_earlier else ""
        left = self.estimate_seconds_left()
        remaining = f"about {format_seconds(left)} left" if left is not None else ""
        return "   ".join(part for part in (format_seconds(self.elapsed), done + earlier, remaining) if part)


def estimate_seconds_left(elapsed: float, n_finished: int, n_total: int) -> float | None:
    """Return the seconds until all is finished at the speed so far, or None before anything is."""
    return elapsed / n_finished * max(0, n_total - n_finished) if n_finished else None


def format_seconds(seconds: float) -> str:
    """Return a duration for people: `42 s`, `7 min 3 s`, `2 h 5 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def name_failure(error: Exception) -> str:
    """Return the kind of a failure: the name of a known error, or `bug`."""
    return type(error).__name__ if isinstance(error, MergemillError) else "bug"


def format_event(result: StageResult) -> dict[str, object]:
    """Return the fields that a stage prints for a result record (docs/guide/query/json.md)."""
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
    """Progress that shows messages only, and the work that was done when the run is interrupted."""

    err: IO[str] = field(default_factory=lambda: sys.stderr)
    work: WorkState = field(default_factory=WorkState)
    results: Counter[tuple[Stage, bool]] = field(default_factory=Counter)
    """(stage, passed) -> results of this run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.print_message(self.format_interruption())

    def report_result(self, result: StageResult) -> None:
        """Count the result."""
        self.results[result.stage, result.ok] += 1

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Show nothing: the message or the log has the failure."""

    def print_message(self, text: str) -> None:
        """Write the line after the program's name."""
        self.err.write(f"mergemill: {escape_controls(text)}\n")
        self.err.flush()

    def format_interruption(self) -> str:
        """Return the work that an interrupted run did and the work that it leaves."""
        work = self.work
        n_results = sum(count for (stage, _), count in self.results.items() if stage is not Stage.MINE)
        n_left = max(0, work.n_total - work.n_finished)
        left = f"{format_count(n_left, 'change')}{'' if work.all_read else ' or more'} left"
        return (
            f"{format_count(work.n_finished, 'change')} finished in {format_seconds(work.elapsed)}, "
            f"{format_count(n_results, 'result')} stored, {left}"
        )


@dataclass
class JsonLinesProgress(MessageProgress):
    """Progress as a JSON line per event, on standard output with `--json`, else on standard error."""

    out: IO[str] = field(default_factory=lambda: sys.stderr)

    def report_result(self, result: StageResult) -> None:
        """Write a line."""
        super().report_result(result)
        self._write(format_event(result))

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Write a line, whose `problem` is the kind of failure."""
        problem = name_failure(error)
        self._write({"event": "problem", "stage": stage.value, "name": name, "problem": problem, "detail": str(error)})

    def _write(self, line: dict[str, object]) -> None:
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()


class LiveTableProgress(MessageProgress):
    """Progress as a live table.

    Counts per stage, the changes that are running for how long, the last results, the time left.
    """

    def __init__(self, console: Console, rows: int = 6) -> None:
        super().__init__(console.file)
        self.console = console
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
        if isinstance(error, KeyboardInterrupt):
            # The live table is removed at the end, and the counts of an interrupted run are still wanted.
            self.console.print(self._render_counts())
        super().__exit__(kind, error, trace)

    def report_result(self, result: StageResult) -> None:
        """Count the result and show it among the last results."""
        super().report_result(result)
        if result.stage is not Stage.MINE:
            verdict = result.reason or "ok"
            kind = f" {result.kind.value}" if result.kind else ""
            self.last.append(
                f"{result.stage.value:8} {escape_line(result.name)}{kind}  {verdict}  {result.seconds:.1f} s"
            )

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Count the failure."""
        del name, error
        self.failed[stage] += 1

    def print_message(self, text: str) -> None:
        """Print the line above the table."""
        self.console.print(Text(f"mergemill: {escape_controls(text)}"))

    def _render_counts(self) -> Table:
        earlier = self.work.earlier
        columns = ["stage", *(["earlier"] if earlier else []), "passed", "rejected", "failed"]
        table = Table(box=None, header_style="bold", pad_edge=False)
        for name in columns:
            # In a narrow terminal the columns are folded and not cut off.
            table.add_column(name, overflow="fold")
        for stage in Stage:
            counts = [self.results[stage, True], self.results[stage, False], self.failed[stage]]
            counts = [earlier.get(stage, 0), *counts] if earlier else counts
            table.add_row(stage.value, *(str(n) if n else "" for n in counts))
        return table

    def _render(self) -> Group:
        now = self.work.clock()
        running = [
            f"{step.stage.value:8} {escape_line(step.name)}  {format_seconds(now - step.started)}"
            f"{f'  on {escape_line(step.place)}' if step.place else ''}"
            for step in self.work.list_running()
        ]
        # A copy, since rich renders in a thread of its own.
        last = list(self.last)
        return Group(
            Text(self.work.format_state(), style="bold"),
            self._render_counts(),
            *(Text(f"running  {line}", overflow="fold") for line in running),
            *(Text(f"ended    {line}", overflow="fold", style="dim") for line in last),
        )


class CountProgress:
    """Context manager that counts the items that a long command has finished of a known number, and shows nothing."""

    def __init__(self, noun: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.noun, self.total, self.n_finished = noun, total, 0
        self.note = ""
        """Kinds kinds of them there are."""
        self.clock, self.started = clock, clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Show nothing more."""

    def advance(self, number: int = 1) -> None:
        """Count some more as finished."""
        self.n_finished += number

    def format_state(self) -> str:
        """Return a line: elapsed time, finished of all, and the time that is left."""
        elapsed = self.clock() - self.started
        left = estimate_seconds_left(elapsed, self.n_finished, self.total)
        remaining = f"about {format_seconds(left)} left" if left else "finishing" if self.n_finished else ""
        done = f"{self.n_finished} of {format_count(self.total, self.noun)}{f' ({self.note})' if self.note else ''}"
        return "   ".join(part for part in (format_seconds(elapsed), done, remaining) if part)

    def estimate_seconds_left(self) -> float | None:
        """Return the seconds until all are finished, or None before the first is."""
        return estimate_seconds_left(self.clock() - self.started, self.n_finished, self.total)


class LiveCountProgress(CountProgress):
    """Progress as a line on a terminal, which is removed at the end."""

    def __init__(self, noun: str, total: int, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(noun, total, clock)
        self._live = Live(
            console=console, refresh_per_second=4, get_renderable=lambda: Text(self.format_state()), transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


class MessageCountProgress(CountProgress):
    """Progress as a message every INTERVAL seconds, for logs; short commands write none."""

    INTERVAL = 30.0

    def __init__(self, noun: str, total: int, err: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(noun, total, clock)
        self._err, self._shown = err, self.started

    def advance(self, number: int = 1) -> None:
        """Count some more as finished, and write a message when it is time for a message."""
        super().advance(number)
        if self.clock() - self._shown >= self.INTERVAL:
            self._shown = self.clock()
            self._err.write(f"mergemill: {self.format_state()}\n")
            self._err.flush()


def make_count_progress(noun: str, total: int) -> CountProgress:
    """Return the progress that suits standard error; none with `--quiet`."""
    if not logging.getLogger().isEnabledFor(logging.WARNING):
        return CountProgress(noun, total)
    if sys.stderr.isatty():
        return LiveCountProgress(noun, total, Console(stderr=True))
    return MessageCountProgress(noun, total, sys.stderr)
