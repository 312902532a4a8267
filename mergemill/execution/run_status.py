"""Status files of runs, `runs/ID.json` in the store: written by a run, read by `mergemill status` and the web page.

A run writes its file twice a second at most and at least every HEARTBEAT_SECONDS; a file that is older than
SILENT_SECONDS and not finished is of a run that was killed. Only the newest MAX_FILES files are kept.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from core.errors import MergemillError
from mergemill.execution.progress import Progress, WorkState, format_event, name_failure
from taskdb.artifacts import write_atomically
from taskdb.records import Stage
from taskdb.records.work import StageResult

HEARTBEAT_SECONDS = 2.0
SILENT_SECONDS = 20.0
MAX_FILES = 50
LAST_EVENTS = 30
ACTIVE_STATES = ("running", "draining")
"""States of a run whose process works."""
RUN_STATES = (*ACTIVE_STATES, "finished", "stopped", "failed", "lost")
"""All states of a run."""


@dataclass
class RunStatusFile:
    """Progress of a run that is shown by another progress, and written to a file as well.

    Attributes:
        shown: function that receives every call, too.
        folder: folder where the file is written.
        command: the stage, or `run`.
        sources: sources of the run.
    """

    shown: Progress
    folder: Path
    command: str
    sources: Sequence[str]
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Stage -> numbers of results of this run: passed, rejected, failed."""
    rejections: dict[str, Counter[str]] = field(default_factory=dict)
    """Stage -> reason -> number of rejections of this run."""
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    """Stage -> kind of exception, or `bug` -> number of failures of this run."""
    work: WorkState = field(init=False)
    """Work that is running, and how much is left: that of `shown`."""

    def __post_init__(self) -> None:
        self.work = self.shown.work
        started = datetime.now(UTC)
        self.id = f"{started:%Y%m%dT%H%M%S%f}-{os.getpid()}"
        self._started_at = started.isoformat(timespec="seconds")
        self._events: deque[dict[str, object]] = deque(maxlen=LAST_EVENTS)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heartbeat = threading.Thread(target=self._write_regularly, name="run-status", daemon=True)

    def __enter__(self) -> Self:
        self.shown.__enter__()
        self._write_active()
        self._heartbeat.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._heartbeat.join(timeout=HEARTBEAT_SECONDS)
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt | SystemExit)
        self._write("stopped" if stopped or self.work.is_draining else "failed" if kind else "finished")
        _remove_old_files(self.folder)
        self.shown.__exit__(kind, error, trace)

    def report_result(self, result: StageResult) -> None:
        """Count a result and pass it on."""
        with self._lock:
            self._count(result.stage, "passed" if result.ok else "rejected")
            if result.reason:
                self.rejections.setdefault(result.stage.value, Counter())[result.reason] += 1
            if result.stage is not Stage.MINE:
                self._events.append(format_event(result) | {"at": _format_now()})
        self.shown.report_result(result)

    def report_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Count a failure and pass it on."""
        kind = name_failure(error)
        with self._lock:
            self._count(stage, "failed")
            self.failures.setdefault(stage.value, Counter())[kind] += 1
            self._events.append({"stage": stage.value, "name": name, "ok": False, "reason": kind, "at": _format_now()})
        self.shown.report_failure(stage, name, error)

    def print_message(self, text: str) -> None:
        """Pass a message on."""
        self.shown.print_message(text)

    def _count(self, stage: Stage, result: str) -> None:
        of_stage = self.counts.setdefault(stage.value, {"passed": 0, "rejected": 0, "failed": 0})
        of_stage[result] += 1

    def _write_regularly(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            self._write_active()

    def _write_active(self) -> None:
        self._write("draining" if self.work.is_draining else "running")

    def _write(self, state: str) -> None:
        """Write the file; a full disk must not end the run for it."""
        with self._lock:
            status = {
                "id": self.id,
                "command": self.command,
                "sources": list(self.sources),
                "state": state,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "started_at": self._started_at,
                "updated_at": _format_now(),
                "stages": self.counts,
                "rejections": self.rejections,
                "failures": self.failures,
                "earlier": self.work.n_earlier,
                "done": self.work.n_finished,
                "total": self.work.n_total,
                "seconds_left": self.work.estimate_seconds_left(),
                "running": [
                    {
                        "stage": step.stage.value,
                        "name": step.name,
                        "seconds": round(self.work.clock() - step.started),
                        "place": step.place or socket.gethostname(),
                    }
                    for step in self.work.list_running()
                ],
                "events": list(self._events),
            }
            content = json.dumps(status).encode()
        try:
            write_atomically(self.folder / f"{self.id}.json", content, self.folder)
        except MergemillError as error:
            if state not in ACTIVE_STATES:
                self.shown.print_message(f"the status of this run is not written: {error}")


def list_runs(folder: Path, now: Callable[[], float] = time.time) -> list[dict[str, Any]]:
    """Return the status of each run, newest first, with `seconds` and `rate` (changes an hour).

    The `state` of a run that writes no more is `lost`.
    """
    runs = []
    for path in sorted(folder.glob("*.json"), reverse=True)[:MAX_FILES]:
        try:
            status = json.loads(path.read_bytes())
            runs.append(_add_rates(status, now()))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a file of another program, or removed by the run that has just ended
    return runs


def _add_rates(status: dict[str, Any], now: float) -> dict[str, Any]:
    started, updated = (datetime.fromisoformat(status[name]).timestamp() for name in ("started_at", "updated_at"))
    if status["state"] in ACTIVE_STATES and now - updated > SILENT_SECONDS:
        status["state"] = "lost"
    running = status["state"] in ACTIVE_STATES
    seconds = max(0.0, (now if running else updated) - started)
    rate = status["done"] / seconds * 3600 if seconds else 0.0
    left = status["seconds_left"] if running else None
    earlier: dict[str, Any] = {"rejections": {}, "failures": {}}  # a file of an earlier version lacks them
    return earlier | status | {"seconds": round(seconds), "rate": round(rate), "seconds_left": left}


def _remove_old_files(folder: Path) -> None:
    for path in sorted(folder.glob("*.json"), reverse=True)[MAX_FILES:]:
        path.unlink(missing_ok=True)


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
