"""The data path, as a table, and what runs it.

A row of `stages()` says which stage makes which record of what, and who makes it. The miner fills the queue in the
driver; a change then goes through all its stages in one worker, and each result is written by the driver, the one
writer, as it arrives. Nothing waits for a whole stage to end. `docs/pipeline.md` tells what is resumed, and how.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from backends.cluster.base import Cluster
from backends.services import Services
from mergemill.duplicates import Duplicates
from mergemill.errors import InputError, MachineError, MergemillError, Transient, disk_full
from mergemill.progress import Progress
from taskdb.chains import Finished, Scope
from taskdb.kinds import INSTEAD, ready
from taskdb.lineage import Lineage
from taskdb.records import Candidate, Kind, PullRequest, Record, Rejection, Stage, Task
from taskdb.store import Store
from taskdb.tags import Tags

log = logging.getLogger(__name__)

BATCH = 200
"""Verdicts of the miner written in one transaction, at most."""
BATCH_SECONDS = 0.5
"""How long a verdict of a slow miner may wait to be written."""
DEAD = 4
"""So many records in a row, beyond the number of workers, that failed for the engine or the network: it is gone."""
PATIENCE = Retrying(
    retry=retry_if_exception_type(Transient),
    stop=stop_after_attempt(3),
    wait=wait_exponential(multiplier=2, max=30),
    reraise=True,
)
"""How often a stage is tried when the engine or the network fails, and how long one waits in between."""


class Mined(Protocol):
    """What the miner says of one change."""

    @property
    def pull_request(self) -> PullRequest:
        """The change."""

    @property
    def result(self) -> Candidate | Rejection:
        """What the rules made of it."""

    @property
    def tags(self) -> Tags:
        """What kinds of change it is."""


Miner = Callable[[str, Services], Iterator[Mined | InputError | str]]
"""What it says of one source; a `str` is a line for people."""


@dataclass(frozen=True)
class Step:
    """A row of the table: `by(lineage, services)` makes the lineage's next record, or says why not.

    One change has many tasks. `derive` is asked once for each of its kinds, by `lineage.kinds`, and makes any number
    of them; `certify` is asked once for each task, by `lineage.task`.
    """

    stage: Stage
    makes: str
    by: Callable[[Lineage, Services], Record | Sequence[Record]]


def stages() -> tuple[Step, ...]:
    """The stages after the miner, in order."""
    from builders.build import build  # noqa: PLC0415 - reading commands need none of them
    from derivers import derive  # noqa: PLC0415
    from verifiers import certify, verify  # noqa: PLC0415
    from verifiers.judge import judge  # noqa: PLC0415

    return (
        Step(Stage.BUILD, "environment", lambda it, services: build(it.candidate, services)),
        Step(Stage.VERIFY, "verification", verify),
        Step(Stage.JUDGE, "verdict", judge),
        Step(Stage.DERIVE, "task", derive),
        Step(Stage.CERTIFY, "certificate", certify),
    )


@dataclass(frozen=True)
class Attempt:
    """What came of one stage for one change: a record, a rejection, or what was raised."""

    stage: Stage
    lineage: Lineage
    result: Record | Exception
    seconds: float
    kind: Kind | None = None
    """The kind of task, where one is made or certified."""


@dataclass
class Advance:
    """One change on its way through those of the steps that it has still before it; in a worker."""

    steps: Sequence[Step]
    services: Services
    patience: Retrying
    lineage: Lineage

    def attempts(self) -> Iterator[Attempt]:
        """All that is tried, as it comes; an error ends it, for the change is tried again later."""
        with self.services.sandbox.holding():  # images made for it stay until its last stage is done
            for step in self.steps:
                attempts = {Stage.DERIVE: self._derived, Stage.CERTIFY: self._certified}.get(step.stage, self._next)
                for attempt in attempts(step):
                    yield attempt
                    if isinstance(attempt.result, MergemillError) or (
                        isinstance(attempt.result, Exception) and attempt.kind is None
                    ):
                        return

    def _next(self, step: Step) -> Iterator[Attempt]:
        """One record more of the change itself, where it has not got it or must get it anew, and was not rejected."""
        it = self.lineage
        if it.stopped is not None or (getattr(it, step.makes) is not None and it.due is not step.stage):
            return
        (attempt,) = self._tried(step, self.lineage)
        yield attempt
        if isinstance(attempt.result, Rejection):
            self.lineage = replace(self.lineage, stopped=step.stage)
        elif isinstance(attempt.result, Record):
            self.lineage = self.lineage.then(attempt.result)

    def _derived(self, step: Step) -> Iterator[Attempt]:
        """Tasks of every kind that it has come far enough for, and that are not made in another one's place."""
        it, made = self.lineage, set[Kind]()
        for kind in it.kinds:
            far = ready(kind, judged=it.verdict is not None, paired=bool(it.others), stopped=it.stopped)
            if not far or INSTEAD.get(kind) in made:
                continue
            for attempt in self._tried(step, replace(it, kinds=(kind,)), kind):
                yield attempt
                if isinstance(attempt.result, Task):
                    made.add(kind)
                    self.lineage = replace(self.lineage, derived=(*self.lineage.derived, attempt.result))

    def _certified(self, step: Step) -> Iterator[Attempt]:
        for task in self.lineage.derived:
            yield from self._tried(step, replace(self.lineage, task=task), task.kind)

    def _tried(self, step: Step, lineage: Lineage, kind: Kind | None = None) -> list[Attempt]:
        """What comes of a step, with its time; several records share it evenly."""
        started = time.perf_counter()
        results: Sequence[Record | Exception]
        try:
            found = self.patience.copy()(step.by, lineage, self.services)
            results = [found] if isinstance(found, Record) else list(found)
        except Exception as error:  # noqa: BLE001 - the driver tells the kinds of failure apart
            results = [disk_full(error) or error]
        seconds = (time.perf_counter() - started) / max(1, len(results))
        return [Attempt(step.stage, lineage, result, seconds, kind) for result in results]


def advance(steps: Sequence[Step], services: Services, patience: Retrying, lineage: Lineage) -> Iterator[Attempt]:
    """Take one change through those of the steps that it has still before it."""
    return Advance(steps, services, patience, lineage).attempts()


@dataclass
class Run:
    """One run over one store. Afterwards `new` says what was written and `exit_code` how it went."""

    store: Store
    services: Services
    cluster: Cluster
    progress: Progress
    workers: int
    patience: Retrying = PATIENCE
    canonical: Callable[[str], str] = str
    """The source word that records bear, of one that was given."""
    make_room: Callable[[], None] = lambda: None
    """Is called after each build, and where a stage met a full disk."""
    new: int = 0
    failures: dict[int, int] = field(default_factory=dict)
    """Exit code -> how many records, lines or sources failed that way."""
    in_a_row: int = 0
    """Failures of engine or network since the last verdict."""
    cut_short: bool = False
    """Whether the miner broke off in the source that is being mined."""
    batch: list[tuple[Mined, float]] = field(default_factory=list)
    """What the miner said and is not written yet."""
    fresh: list[Candidate] = field(default_factory=list)
    """Candidates that are written and were not handed on yet."""
    duplicates: Duplicates = field(init=False)

    def __post_init__(self) -> None:
        self.duplicates = Duplicates(self.store, self.services)

    @property
    def exit_code(self) -> int:
        """0, or the failure that matters most: 75 asks for the same command again, 1 for a bug report, 3 for you."""
        return next((code for code in (Transient.exit_code, 1, InputError.exit_code) if code in self.failures), 0)

    def work(self, steps: Sequence[Step], chains: Iterable[Lineage]) -> None:
        """Take chains through steps, writing each result as it arrives.

        Raises:
            MachineError: the machine lacks what a stage needs.
            Transient: the database cannot be written.
        """
        with closing(self.cluster.map(partial(advance, steps, self.services, self.patience), chains)) as attempts:
            for attempt in attempts:
                self._write(attempt)
                if self.in_a_row >= self.workers + DEAD:
                    self.progress.message("stopped: nothing answers any more; run the same command again later")
                    return

    def _write(self, attempt: Attempt) -> None:
        candidate, result = attempt.lineage.candidate, attempt.result
        if isinstance(result, Exception):
            self._failed(attempt.stage, candidate.name, result)
            return
        self.in_a_row = 0
        done = Finished(
            stage=attempt.stage, result=result, source=candidate.source, name=candidate.name, seconds=attempt.seconds,
            kind=attempt.kind,
        )  # fmt: skip
        self._tell(self.store.finish(done))
        if attempt.stage is Stage.BUILD:
            self.make_room()

    def _tell(self, finished: Iterable[Finished]) -> None:
        for one in finished:
            self.new += 1
            self.progress.record(one)

    def _failed(self, stage: Stage, name: str, error: Exception) -> None:
        """Tell the kinds of failure apart: none of them is a verdict, and the run goes on."""
        if isinstance(error, MachineError):
            raise error
        code = error.exit_code if isinstance(error, MergemillError) else 1
        self.failures[code] = self.failures.get(code, 0) + 1
        self.in_a_row = self.in_a_row + 1 if isinstance(error, Transient) else 0
        if "disk is full" in str(error):
            self.make_room()
        if isinstance(error, MergemillError):
            self.progress.message(f"{name}: {error.line()}")
        else:
            log.error("%s: %s failed through a bug", name, stage.value, exc_info=error)
        self.progress.failed(stage, name, error)

    # -------------------------------------------------------------------------------------------------- mining

    def mine(self, miner: Miner, scope: Scope) -> Iterator[Lineage]:
        """Mine the sources, write what the miner says, and yield each candidate that has a stage before it.

        Where the miner breaks off (no network, say), the candidates that it found in earlier runs are yielded too.
        """
        for source in scope.sources:
            seen: set[str] = set()
            self.cut_short = False
            for candidates in self._written(self._said(miner, source)):
                seen.update(candidate.id for candidate in candidates)
                meant = [c for c in candidates if scope.admits(c.name, c.id, c.created_at, c.language)]
                yield from self.store.open_chains_of(meant, scope)
            if self.cut_short:
                mined_before = self.store.open_chains(replace(scope, sources=[self.canonical(source)]))
                yield from (chain for chain in mined_before if chain.candidate.id not in seen)

    def _said(self, miner: Miner, source: str) -> Iterator[Mined]:
        """What the miner says of the changes of one source; its failures are told, and end the source."""
        try:
            for mined in miner(source, self.services):
                if isinstance(mined, InputError):
                    self._failed(Stage.MINE, source, mined)
                elif isinstance(mined, str):
                    self.progress.message(mined)
                else:
                    yield mined
        except Exception as error:  # noqa: BLE001 - told apart by kind; the other sources go on
            self.cut_short = True
            self._failed(Stage.MINE, source, disk_full(error) or error)

    def _written(self, said: Iterable[Mined]) -> Iterator[list[Candidate]]:
        """The candidates among what was said, some at a time, when they and all before them were written."""
        began = started = time.perf_counter()
        for mined in said:
            now = time.perf_counter()
            self.batch.append((mined, now - started))
            if len(self.batch) == BATCH or now - began > BATCH_SECONDS:
                self._flush()
                yield self._handed_on()
                began = time.perf_counter()
            started = time.perf_counter()
        self._flush()
        yield self._handed_on()

    def last_word(self, pull: PullRequest, candidate: Candidate) -> Candidate | Rejection:
        """What the database says of a candidate that the miner found, when it knows all that was said before."""
        self._flush()
        return self.duplicates.last_word(pull, candidate)

    def _flush(self) -> None:
        batch, self.batch = self.batch, []
        verdicts = [(mined.pull_request, mined.result, seconds) for mined, seconds in batch]
        tags = [mined.tags for mined, _ in batch]
        self._tell(self.store.mined(*verdicts, tags=tags, sketches=self.duplicates.take()))
        self.fresh += [result for _, result, _ in verdicts if isinstance(result, Candidate)]

    def _handed_on(self) -> list[Candidate]:
        fresh, self.fresh = self.fresh, []
        return fresh
