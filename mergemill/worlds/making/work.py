"""Parts that the steps share: request, reporter, counts, and work on threads whose results are stored as they come."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from backends.llm.meter import UsageMeter
from backends.llm.parallel import ParallelCalls, UsageTotals
from core.errors import MergemillError
from taskdb.records.worlds import WorldRejection, WorldStep
from worlds.model_requests import StepFailedError
from worlds.reasons import Reason

if TYPE_CHECKING:
    from backends.services import Services
    from core.settings.worlds import WorldsSettings
    from mergemill.execution.reporter import Reporter
    from mergemill.worlds.making.models import ModelPool
    from taskdb.artifacts import Artifacts
    from taskdb.records import Record
    from taskdb.store import Store
    from worlds.model_requests import RoleModels

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True)
class MakingRequest:
    """Options that a run is given, besides settings. `tasks`: file of seed tasks, or `swe`; empty without discovery.

    `only`: names or beginnings of ids of the items that are processed, empty for all; `retry`: reasons of rejections
    that do not count.
    """

    steps: tuple[WorldStep, ...]
    tasks: str = ""
    only: tuple[str, ...] = ()
    retry: tuple[str, ...] = ()

    def includes(self, *names: str) -> bool:
        """Return whether something of these names and ids is processed."""
        return not self.only or any(name == word or name.startswith(word) for name in names for word in self.only)


@dataclass
class MakingCount:
    """Results that a step did: `found` = `kept` + all of `rejected` + `left`."""

    step: WorldStep
    found: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def left(self) -> int:
        """Items that failed or were not begun, and are pending."""
        return self.found - self.kept - self.rejected.total()

    def to_json(self) -> dict[str, Any]:
        """Return the count as the summary has it."""
        return {
            "step": self.step.value,
            "found": self.found,
            "kept": self.kept,
            "rejected": dict(sorted(self.rejected.items())),
            "left": self.left,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Why something is rejected. `log`: artifact with more about it."""

    reason: Reason
    detail: str
    log: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Timed(Generic[V]):
    """Outcome of an item on a thread."""

    value: V | Rejected
    meter: UsageMeter
    seconds: float


@dataclass(kw_only=True)
class WorkBench:
    """Tools of a run and the counts that it counts. Used by the driver; `process` runs work on threads."""

    request: MakingRequest
    options: WorldsSettings
    workers: int
    store: Store
    services: Services
    models: RoleModels
    pool: ModelPool
    reporter: Reporter
    totals: UsageTotals = field(default_factory=UsageTotals)
    failures: list[MergemillError] = field(default_factory=list)

    @property
    def artifacts(self) -> Artifacts:
        """Artifacts beside the database."""
        return self.services.artifacts

    def process(
        self,
        step: WorldStep,
        noun: str,
        items: Sequence[T],
        *,
        name: Callable[[T], str],
        work: Callable[[T, UsageMeter], V | Rejected],
        keep: Callable[[T, V | Rejected], bool],
    ) -> list[V | Rejected | None]:
        """Return the outcome of each item, in their order; None for those that failed or were left by an outage.

        Args:
            step: step for events.
            noun: noun of an item, for the progress.
            items: what to work on.
            name: function that returns the name of an item.
            work: function that runs on a thread; a StepFailedError is a rejection.
            keep: function that stores an outcome, in the driver's thread and as soon as it comes; returns whether the
                item has ended, so that an event is due.

        Raises:
            InputError: the endpoint refuses the first call (a wrong key or name), or a file failed.
            Transient: the database cannot be written.
            KeyboardInterrupt: Ctrl-C; what was answered is in the ledger.
        """
        if not items:
            return []

        def run(item: T) -> _Timed[V]:
            started, meter = time.monotonic(), UsageMeter()
            try:
                value = work(item, meter)
            except StepFailedError as error:
                value = Rejected(reason=error.reason, detail=str(error))
            return _Timed(value=value, meter=meter, seconds=time.monotonic() - started)

        with self.reporter.open_progress(noun, len(items)) as progress:

            def report(item: T, outcome: _Timed[V] | MergemillError) -> None:
                progress.advance()
                if isinstance(outcome, MergemillError):
                    self.failures.append(outcome)
                    self.report_problem(step, name(item), outcome)
                    return
                self.totals.add(outcome.meter)
                if keep(item, outcome.value):
                    self.report(step, name(item), outcome.value, outcome.seconds)

            ledger = self.models.ledger
            calls = ParallelCalls(
                work=run, workers=self.workers, report=report, stop=self.stop, is_known=lambda: len(ledger) > 0
            )
            outcomes = calls.run(items)
        return [outcome.value if isinstance(outcome, _Timed) else None for outcome in outcomes]

    def report(self, step: WorldStep, name: str, value: object, seconds: float = 0.0) -> None:
        """Emit the event of something that was kept or rejected."""
        reason = value.reason.value if isinstance(value, Rejected) else None
        event = {"event": "record", "stage": "worlds", "step": step.value, "name": name, "ok": reason is None}
        self.reporter.event({**event, "reason": reason, "seconds": round(seconds, 3)})

    def report_problem(self, step: WorldStep, name: str, error: MergemillError) -> None:
        """Emit the event of a failure, which is not a verdict."""
        event = {"event": "problem", "stage": "worlds", "step": step.value, "name": name}
        self.reporter.event({**event, "problem": type(error).__name__, "detail": str(error)})

    def reject(self, step: WorldStep, parent: str, name: str, source: str, rejected: Rejected) -> None:
        """Store a rejection."""
        self.store.add(
            WorldRejection(
                parent=parent,
                name=name,
                source=source,
                step=step,
                reason=rejected.reason.value,
                detail=" ".join(rejected.detail.split())[:500],
                log=rejected.log,
            )
        )

    def add(self, record: Record) -> None:
        """Store a record."""
        self.store.add(record)

    def stop(self) -> None:
        """Cancel all current and future calls."""
        self.models.pacer.stop()
        self.pool.stop()
