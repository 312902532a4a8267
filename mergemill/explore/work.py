"""Parts that the steps share: request, counts, and work on threads whose results are stored as they come."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from backends.llm.meter import UsageMeter
from backends.llm.parallel import ParallelCalls, UsageTotals
from core.errors import MergemillError
from explorers.model_requests import RequestFailedError
from taskdb.records.questions import ExploreStep, QuestionRejection

if TYPE_CHECKING:
    from core.config import Settings
    from explorers.corpora.corpus import CorpusReader
    from explorers.model_requests import ExplorerModels
    from mergemill.execution.reporter import Reporter
    from mergemill.explore.models import ExplorerPool
    from taskdb.artifacts import Artifacts
    from taskdb.records import Record
    from taskdb.records.questions import Corpus
    from taskdb.store import Store

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ExploreRequest:
    """Options of a run besides settings. `seeds`: file, or `sample:N`; empty without walks.

    `only`: names or beginnings of names of the walks and questions that are processed, empty for all; `retry`: reasons
    of rejections that do not count.
    """

    corpus: str
    steps: tuple[ExploreStep, ...]
    seeds: str = ""
    only: tuple[str, ...] = ()
    retry: tuple[str, ...] = ()

    def includes(self, *names: str) -> bool:
        """Return whether something of these names and ids is processed."""
        return not self.only or any(name.startswith(word) for name in names for word in self.only)


@dataclass
class ExploreCount:
    """Counts of a step: `found` = `kept` + all of `rejected` + `left`."""

    step: ExploreStep
    found: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the count as the summary has it."""
        return {
            "step": self.step.value,
            "found": self.found,
            "kept": self.kept,
            "rejected": dict(sorted(self.rejected.items())),
            "left": self.found - self.kept - self.rejected.total(),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, kw_only=True)
class ExploreItem:
    """Names of an item, of which a rejection of it is made: id of its `parent` and `walk`, name, round."""

    parent: str
    walk: str
    name: str
    round: int = 0


@dataclass(kw_only=True)
class ExploreWork:
    """Tools of a run and its counts. Used by the driver; `process` runs work on threads."""

    request: ExploreRequest
    settings: Settings
    store: Store
    artifacts: Artifacts
    corpus: Corpus
    reader: CorpusReader
    models: ExplorerModels
    pool: ExplorerPool
    reporter: Reporter
    totals: UsageTotals = field(default_factory=UsageTotals)
    failures: list[MergemillError] = field(default_factory=list)
    counts: dict[ExploreStep, ExploreCount] = field(default_factory=dict)

    def process(
        self,
        step: ExploreStep,
        items: Sequence[T],
        *,
        name: Callable[[T], ExploreItem],
        work: Callable[[T, UsageMeter], Record],
    ) -> None:
        """Run work on items and store each result as it comes.

        Args:
            step: the step.
            items: items to work on.
            name: function that returns the names of an item.
            work: function that runs on a thread and returns a record, which may be a rejection; a RequestFailedError
                becomes a rejection.

        Raises:
            InputError: the endpoint refuses the first call (a wrong key or name), or a file failed.
            Transient: the database cannot be written.
            KeyboardInterrupt: Ctrl-C; each reply that was answered is in the ledger.
        """
        count = self.counts.setdefault(step, ExploreCount(step))
        count.found += len(items)
        if not items:
            return

        def run(item: T) -> tuple[Record, UsageMeter, float]:
            started, meter = time.monotonic(), UsageMeter()
            try:
                record = work(item, meter)
            except RequestFailedError as error:
                record = self.make_rejection(step, name(item), error.reason.value, str(error))
            return record, meter, time.monotonic() - started

        with self.reporter.open_progress(step.value, len(items)) as progress:

            def report(item: T, outcome: tuple[Record, UsageMeter, float] | MergemillError) -> None:
                progress.advance()
                if isinstance(outcome, MergemillError):
                    self.failures.append(outcome)
                    self._report_problem(step, name(item), outcome)
                    return
                record, meter, seconds = outcome
                self.totals.add(meter)
                self.store.add(record)
                self._count(count, record)
                self._report(step, name(item), record, seconds)

            calls = ParallelCalls(
                work=run,
                workers=self.settings.cluster.workers,
                report=report,
                stop=self.stop,
                is_known=lambda: len(self.models.ledger) > 0,
            )
            started = time.monotonic()
            calls.run(items)
            count.seconds += time.monotonic() - started

    def make_rejection(self, step: ExploreStep, item: ExploreItem, reason: str, detail: str, **fields: Any) -> Record:
        """Return the rejection of an item; `fields` are those that only the gates have."""
        return QuestionRejection(
            parent=item.parent,
            walk=item.walk,
            name=item.name,
            corpus=self.corpus.id,
            step=step,
            round=item.round,
            reason=reason,
            detail=" ".join(detail.split())[:500],
            **fields,
        )

    def _count(self, count: ExploreCount, record: Record) -> None:
        if isinstance(record, QuestionRejection):
            count.rejected[record.reason] += 1
        else:
            count.kept += 1

    def _report(self, step: ExploreStep, item: ExploreItem, record: Record, seconds: float) -> None:
        reason = record.reason if isinstance(record, QuestionRejection) else None
        event = {"event": "record", "stage": "explore", "step": step.value, "name": item.name, "ok": reason is None}
        self.reporter.event({**event, "reason": reason, "seconds": round(seconds, 3)})

    def _report_problem(self, step: ExploreStep, item: ExploreItem, error: MergemillError) -> None:
        event = {"event": "problem", "stage": "explore", "step": step.value, "name": item.name}
        self.reporter.event({**event, "problem": type(error).__name__, "detail": str(error)})

    def stop(self) -> None:
        """Cancel all current and future calls."""
        self.models.pacer.stop()
        self.pool.stop()
