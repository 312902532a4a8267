"""Progress of sampling: a live table on a terminal, a JSON line per event elsewhere."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from core.errors import MergemillError, Transient
from core.text import escape_line
from mergemill.execution.progress import estimate_seconds_left, format_seconds
from samplers.gateway.process import GatewayUsage
from taskdb.records.rollouts import Rollout, RolloutPlan, RolloutStatus

SHOWN = 12
"""Running rollouts in the live table."""


@dataclass
class SamplingTotals:
    """Sums of the finished rollouts of an invocation."""

    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    leaks: Counter[str] = field(default_factory=Counter)
    resolved: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    bugs: int = 0
    transient: int = 0

    def add(self, rollout: Rollout) -> None:
        """Add a finished rollout."""
        self.statuses[rollout.status.value] += 1
        if rollout.reason:
            self.reasons[rollout.reason] += 1
        self.leaks.update({leak.name for leak in rollout.leaks})
        self.resolved += rollout.resolved
        self.requests += rollout.requests
        self.prompt_tokens += rollout.prompt_tokens
        self.completion_tokens += rollout.completion_tokens
        self.cost += rollout.cost


@dataclass
class SamplingProgress:
    """Receiver of the events of sampling; this class shows messages alone. Thread-safe."""

    totals: SamplingTotals = field(default_factory=SamplingTotals)
    n_planned: int = 0
    n_pending: int = 0
    read_usage: Callable[[str], GatewayUsage] | None = None
    """Returns the usage that a running plan (its key) has used."""
    count_simulated: Callable[[], Mapping[str, int]] | None = None
    """Returns how the calls of simulated programs were answered; None where no simulated task is sampled here."""
    simulated_answers: Counter[str] = field(default_factory=Counter)
    """The same, of the workers of a cluster."""
    running: dict[str, tuple[RolloutPlan, float]] = field(default_factory=dict)
    """Key of a plan -> the plan and the time of its start (monotonic)."""
    last_failure: str = ""
    """Why the last rollout that failed by infrastructure did."""
    started: float = field(default_factory=time.monotonic)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def set_work(self, *, n_planned: int, n_pending: int) -> None:
        """Set how many rollouts the request has, and how many are pending.

        The rollout that is finished stays counted.
        """
        finished = self.totals.statuses["done"] + self.totals.statuses["failed"]
        self.n_planned, self.n_pending = n_planned, n_pending + finished

    def begin(self, plan: RolloutPlan) -> None:
        """Show a rollout as running."""
        with self._lock:
            self.running[plan.key] = (plan, time.monotonic())

    def stop_showing(self, plan: RolloutPlan) -> None:
        """Show a rollout as running no more."""
        with self._lock:
            self.running.pop(plan.key, None)

    def report_result(self, rollout: Rollout) -> None:
        """Show a stored rollout."""
        with self._lock:
            self.totals.add(rollout)
            if rollout.status is RolloutStatus.INFRASTRUCTURE:
                self.last_failure = f"{rollout.reason} ({escape_line(rollout.detail)})"
            self.show(describe_rollout(rollout))

    def report_failure(self, plan: RolloutPlan, error: Exception) -> None:
        """Show a rollout without a record: an error of the machine, or a bug."""
        with self._lock:
            self.last_failure = "an error named above"
            if isinstance(error, MergemillError):
                self.totals.transient += isinstance(error, Transient)
                self.print_message(f"{plan.name} ({plan.scaffold}): {error.format_line()}")
            else:
                self.totals.bugs += 1
                self.print_message(f"{plan.name} ({plan.scaffold}) failed through a bug: {error!r}")

    def report_outage(self, n_failed: int) -> None:
        """Show that sampling stops because rollouts fail in a row."""
        with self._lock:
            self.print_message(
                f"{n_failed} rollouts in a row failed, the last by {self.last_failure}; no more are begun. "
                "To fix it: repair that, and run the same command again"
            )

    def end(self) -> int:
        """Show the summary and return the exit code."""
        with self._lock:
            self.show(self.build_summary())
        if self.totals.bugs:
            return 1
        left = self.n_pending - self.totals.statuses["done"] - self.totals.statuses["failed"]
        return Transient.exit_code if left > 0 else 0

    def build_summary(self) -> dict[str, Any]:
        """Return the summary event."""
        t = self.totals
        finished = t.statuses["done"] + t.statuses["failed"]
        return {
            "event": "summary",
            "planned": self.n_planned,
            "earlier": self.n_planned - self.n_pending,
            "new": finished,
            "left": self.n_pending - finished,
            "statuses": dict(t.statuses),
            "reasons": dict(t.reasons),
            "resolved": t.resolved,
            "leaks": dict(t.leaks),
            "requests": t.requests,
            "prompt_tokens": t.prompt_tokens,
            "completion_tokens": t.completion_tokens,
            "cost": round(t.cost, 6),
            "seconds": round(time.monotonic() - self.started, 3),
            **({"simulated_calls": counts} if (counts := self._count_answers()) else {}),
        }

    def _count_answers(self) -> dict[str, int]:
        return dict(self.count_simulated() if self.count_simulated else self.simulated_answers)

    def show(self, event: dict[str, Any]) -> None:
        """Show an event: nothing here."""
        del event

    def print_message(self, text: str) -> None:
        """Show a line for people."""
        sys.stderr.write(f"mergemill: {escape_line(text)}\n")

    def __enter__(self) -> SamplingProgress:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@dataclass
class JsonSamplingProgress(SamplingProgress):
    """Writes each event as a line of JSON."""

    out: IO[str] = field(default_factory=lambda: sys.stderr)

    def show(self, event: dict[str, Any]) -> None:
        """Write an event."""
        self.out.write(json.dumps(event) + "\n")
        self.out.flush()


@dataclass
class LiveSamplingProgress(SamplingProgress):
    """Table of the rollouts that run and of the sums, on a terminal."""

    console: Console = field(default_factory=lambda: Console(stderr=True))
    _live: Live | None = None

    def __enter__(self) -> LiveSamplingProgress:
        self._live = Live(get_renderable=self.render, console=self.console, refresh_per_second=2, transient=False)
        self._live.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*details)

    def print_message(self, text: str) -> None:
        """Show a line above the table."""
        self.console.print(Text(escape_line(text)))

    def render(self) -> Group:
        """Return the table."""
        with self._lock:
            running = sorted(self.running.values(), key=lambda entry: entry[1])
            totals, now = self.totals, time.monotonic()
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("task", "scaffold", "attempt", "elapsed", "requests", "tokens", "cost"):
            table.add_column(name, justify="left" if name in ("task", "scaffold") else "right", no_wrap=True)
        for plan, began in running[:SHOWN]:
            usage = self._read_usage(plan.key)
            tokens = usage.prompt_tokens + usage.completion_tokens
            cells = (plan.name, plan.scaffold, str(plan.attempt), format_seconds(now - began))
            table.add_row(*cells, str(usage.requests), f"{tokens:,}", f"{usage.cost:.4f}")
        finished = totals.statuses["done"] + totals.statuses["failed"]
        left = estimate_seconds_left(now - self.started, finished, self.n_pending)
        line = (
            f"{format_seconds(now - self.started)}   {self.n_planned - self.n_pending + finished} of {self.n_planned} "
            f"rollouts ({self.n_planned - self.n_pending} by earlier runs), {len(running)} running, "
            f"{totals.resolved} resolved, {totals.statuses['infrastructure']} infrastructure failures; "
            f"{totals.prompt_tokens + totals.completion_tokens:,} tokens, cost {totals.cost:.4f}"
            + (f"; about {format_seconds(left)} left" if left is not None else "")
        )
        return Group(table, Text(line))

    def _read_usage(self, key: str) -> GatewayUsage:
        if self.read_usage is None:
            return GatewayUsage()
        try:
            return self.read_usage(key)
        except MergemillError:
            # The rollout has not begun, or the gateway is being started again.
            return GatewayUsage()


def describe_rollout(rollout: Rollout) -> dict[str, Any]:
    """Return the event of a stored rollout."""
    return {
        "event": "rollout",
        "id": rollout.id,
        "task": rollout.name,
        "scaffold": rollout.scaffold,
        "model": rollout.model,
        "attempt": rollout.attempt,
        "environment": rollout.environment,
        "simulated_calls": rollout.simulated_calls,
        "status": rollout.status.value,
        "reason": rollout.reason,
        "detail": rollout.detail,
        "value": rollout.value,
        "requests": rollout.requests,
        "prompt_tokens": rollout.prompt_tokens,
        "completion_tokens": rollout.completion_tokens,
        "cost": rollout.cost,
        "seconds": rollout.seconds,
        "leaks": sorted({leak.name for leak in rollout.leaks}),
        "retry": rollout.retry,
    }
