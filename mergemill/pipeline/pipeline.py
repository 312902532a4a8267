"""The pipeline as a table of steps, and the run that takes changes through them.

A row of `list_steps()` names a stage, the record it makes and the function that makes it. The miner fills the queue in
the driver; a change then goes through all its stages in a single worker, and the driver, the only writer, stores each
result as it arrives. No stage waits for another stage to finish all changes. The work that is
resumed: docs/guide/operate/pipeline.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Protocol, Self

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from backends.cluster.base import Cluster, Notice, RecordKeeper
from backends.services import Services
from core.errors import CancelledRunError, InputError, MachineError, MergemillError, Transient, as_disk_error
from core.log_fields import log_fields
from mergemill.execution.progress import Progress, WorkState
from mergemill.execution.quotas import RepositoryQuotas
from mergemill.pipeline.search_folder import SearchFolder
from taskdb.queries.repository_history import HistoryReader
from taskdb.records import Candidate, Certificate, ExploitReference, Kind, PullRequest, Record, Rejection, Stage, Task
from taskdb.records.images import ImageCopy
from taskdb.records.lineage import GoldGradings, Lineage, RepositoryHistory, StepTasks
from taskdb.records.tags import Tags
from taskdb.records.work import Scope, StageResult
from taskdb.store import Store

log = logging.getLogger(__name__)

BATCH_SIZE = 200
"""Maximum number of mined changes stored in a single transaction."""
BATCH_SECONDS = 0.5
"""Maximum time that a mined change waits to be stored."""
MAX_CONSECUTIVE_FAILURES = 4
"""Consecutive failures of engine or network, beyond the number of workers, after which the run ends."""
STAGES_WITH_HISTORY = (Stage.VERIFY, Stage.CERTIFY)
"""Stages whose number of runs depends on facts about the repository."""
RETRY_POLICY = Retrying(
    retry=retry_if_exception_type(Transient),
    stop=stop_after_attempt(3),
    wait=wait_exponential(multiplier=2, max=30),
    reraise=True,
)
"""Attempts at a stage whose engine or network fails, and the pause between them."""


class MiningOutcome(Protocol):
    """Result of the miner for a change."""

    @property
    def pull_request(self) -> PullRequest:
        """The change."""

    @property
    def result(self) -> Candidate | Rejection:
        """Candidate, or the rejection by a rule."""

    @property
    def tags(self) -> Tags:
        """Kinds of the change."""

    @property
    def similarity_keys(self) -> tuple[int, ...]:
        """Keys by which near duplicates of a candidate are found; empty for others."""


Miner = Callable[[str, Services], Iterator[MiningOutcome | InputError | str]]
"""Function that yields the outcomes of a source; a `str` is a message for people."""


@dataclass(frozen=True)
class PipelineStep:
    """A row of the table: `function(lineage, services)` returns the lineage's next record or a rejection.

    A change gives many tasks. `derive` is called once per kind, with `lineage.kinds`, and returns any number of
    tasks; `certify` is called once per task, with `lineage.task`.
    """

    stage: Stage
    output: str
    function: Callable[[Lineage, Services], Record | Sequence[Record]]
    find_family: Callable[[Lineage, Services], str] = lambda *_: ""
    """Returns the environment family of the lineage's task if one task of it is to be certified before the others."""


def list_steps() -> tuple[PipelineStep, ...]:
    """Return the stages after the miner, in order."""
    # Loaded in the function, as queries need none of the stages.
    from builders.build import build  # noqa: PLC0415
    from mergemill.pipeline.certification import certify, find_family  # noqa: PLC0415
    from mergemill.pipeline.kinds import derive  # noqa: PLC0415
    from verifiers import verify  # noqa: PLC0415
    from verifiers.judge import judge  # noqa: PLC0415

    return (
        PipelineStep(Stage.BUILD, "environment", lambda lineage, services: build(lineage.candidate, services)),
        PipelineStep(Stage.VERIFY, "verification", verify),
        PipelineStep(Stage.JUDGE, "verdict", judge),
        PipelineStep(Stage.DERIVE, "task", derive),
        PipelineStep(Stage.CERTIFY, "certificate", certify, find_family),
    )


@dataclass(frozen=True)
class ChangeName:
    """Fields that messages have of a change, whose records the driver has itself. `id` is that of the candidate."""

    id: str
    name: str
    source: str
    repo: str

    @classmethod
    def from_candidate(cls, candidate: Candidate) -> Self:
        """Return the name of a candidate's change."""
        return cls(candidate.id, candidate.name, candidate.source, candidate.repo)


@dataclass(frozen=True)
class StageOutcome:
    """Outcome of a stage for a change: a record, a rejection, or the exception that was raised."""

    stage: Stage
    change: ChangeName
    result: Record | Exception
    seconds: float
    kind: Kind | None = None
    """Kind of the task that is derived or certified."""


@dataclass(frozen=True)
class StepStarted(Notice):
    """Message that a stage of a change begins. `name` is that of the change or task."""

    change: str
    """Id of the candidate."""
    stage: Stage
    name: str


@dataclass(frozen=True)
class ImagePushed:
    """Message that a registry has an image of a change."""

    copy: ImageCopy


@dataclass(frozen=True)
class ChangeDrained:
    """Message that a change ends before its last step, as the run is drained."""

    change: str
    """Id of the candidate."""


@dataclass(frozen=True)
class SearchStep:
    """Results of a step of the search for tasks of an environment, which are stored together."""

    outcomes: tuple[StageOutcome, ...]
    environment: str
    """Id of the environment."""
    before: tuple[str, ...]
    """Ids of the tasks of the kind that it had before."""
    progress: bytes
    """Results of the search so far, for its next step; empty where none follows."""


@dataclass(frozen=True)
class ChangeRenewed:
    """Results of a change that was verified again, which replace those of before and are stored together."""

    outcomes: tuple[StageOutcome, ...]


@dataclass
class ExploitClaims:
    """Environment families whose exploits are graded just now, so that workers do not grade the same ones at once."""

    exploited: dict[str, ExploitReference] = field(default_factory=dict)
    """Family -> the first certified task whose exploits earned what they must."""
    gold: dict[str, GoldGradings] = field(default_factory=dict)
    """Key of a gold tree -> the gradings of gold of its first certified task."""
    locks: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    @contextmanager
    def hold(self, family: str) -> Iterator[None]:
        """Wait until no other worker grades the exploits of a family; an empty one is free, and one that is known."""
        if not family:
            yield
            return
        with self.locks[family]:
            is_first = family not in self.exploited
            if is_first:
                yield
        if not is_first:
            yield


FindHistory = Callable[[str], RepositoryHistory]
"""Function of a repository that returns what the database has of it at this moment."""
ChangeEvent = StepStarted | StageOutcome | ImagePushed | ChangeDrained | ChangeRenewed | SearchStep


@dataclass
class ChangeProcessor:
    """A change on its way through the steps that are pending for it; runs in a worker."""

    steps: Sequence[PipelineStep]
    services: Services
    retry_policy: Retrying
    lineage: Lineage
    is_draining: Callable[[], bool] = lambda: False
    """Returns whether the change is to end after the step that runs."""
    find_history: FindHistory = lambda _: RepositoryHistory()
    """Returns the facts about a repository on which numbers of runs depend."""
    claims: ExploitClaims = field(default_factory=ExploitClaims)
    """Families whose exploits are graded by a worker of this process; their certificates may not be stored yet."""

    def process(self) -> Generator[ChangeEvent, None, None]:
        """Yield each beginning of a step and each outcome as it comes.

        An error ends the change, which stays pending for the next run.
        """
        if self.is_draining():
            yield ChangeDrained(self.lineage.candidate.id)
            return
        # The images of a change must exist until its last stage is finished.
        with self.services.images.hold():
            for step in self.steps:
                for event in self._run_stage(step):
                    yield event
                    if isinstance(event, StageOutcome) and _ends_change(event):
                        return
                    # A drained run finishes the step that runs, so a change ends only between two steps.
                    if not isinstance(event, StepStarted) and self.is_draining():
                        yield ChangeDrained(self.lineage.candidate.id)
                        return

    def _run_stage(self, step: PipelineStep) -> Iterator[ChangeEvent]:
        if step.stage is Stage.DERIVE:
            return self._derive_tasks(step)
        if step.stage is Stage.CERTIFY:
            return self._certify_tasks(step)
        return self._run_change_step(step)

    def _run_change_step(self, step: PipelineStep) -> Iterator[ChangeEvent]:
        """Make one more record of the change itself, unless it exists already or the change was rejected."""
        lineage = self.lineage
        # A stage can be pending although its record exists: `--retry` repeats it.
        is_done = getattr(lineage, step.output) is not None and lineage.next_stage is not step.stage
        if lineage.rejected_by is not None or is_done:
            return
        for event in self._run_step(step, lineage):
            yield event
            if not isinstance(event, StageOutcome):
                continue
            if isinstance(event.result, Rejection):
                self.lineage = replace(lineage, rejected_by=step.stage)
            elif isinstance(event.result, Record):
                self.lineage = lineage.with_record(event.result)

    def _derive_tasks(self, step: PipelineStep) -> Iterator[ChangeEvent]:
        """Yield the tasks of every open kind whose prerequisites are met and that no other kind replaces."""
        # Queries need no deriver.
        from mergemill.pipeline.kinds import get_prerequisites  # noqa: PLC0415

        lineage, derived_kinds = self.lineage, set[Kind]()
        if lineage.wanted == 0:
            return
        for kind, prerequisites in get_prerequisites(lineage.kinds).items():
            # The prerequisites are those of the queue, so that a change is not loaded for kinds that would not be
            # derived.
            # An environment that is to give tasks has all that they need.
            if lineage.wanted is None and not prerequisites.are_met(
                built=lineage.environment is not None,
                judged=lineage.verdict is not None,
                paired=bool(lineage.neighbours),
                rejected_by=lineage.rejected_by,
            ):
                continue
            # A variant of a task that was derived just now would be the same task once more.
            if prerequisites.replaced_by in derived_kinds:
                continue
            for event in self._run_step(step, replace(lineage, kinds=(kind,)), kind):
                yield event
                new = [outcome.result for outcome in list_outcomes([event]) if isinstance(outcome, StageOutcome)]
                if tasks := [result for result in new if isinstance(result, Task)]:
                    derived_kinds.add(kind)
                    self.lineage = replace(self.lineage, tasks=(*self.lineage.tasks, *tasks))

    def _certify_tasks(self, step: PipelineStep) -> Iterator[ChangeEvent]:
        for task in self.lineage.tasks:
            lineage = replace(self.lineage, task=task)
            with self.claims.hold(self._find_new_family(step, lineage)):
                for event in self._run_step(step, lineage, task.kind):
                    yield event
                    result = event.result if isinstance(event, StageOutcome) else None
                    if isinstance(result, Certificate) and result.exploits:
                        reference = ExploitReference(task=task.id, name=task.name)
                        self.claims.exploited.setdefault(result.environment_family, reference)
                    if isinstance(result, Certificate) and result.gold_tree and result.gold_of is None:
                        self.claims.gold.setdefault(result.gold_tree, GoldGradings.read(result))

    def _find_new_family(self, step: PipelineStep, lineage: Lineage) -> str:
        """Return the family of a task if it is to be the first with exploits; empty for any other."""
        family = step.find_family(lineage, self.services)
        return "" if not family or family in self._add_history(lineage).history.exploited_families else family

    def _add_history(self, lineage: Lineage) -> Lineage:
        """Return the lineage with the facts about its repository at this moment."""
        history = self.find_history(lineage.candidate.repo)
        families = {**self.claims.exploited, **history.exploited_families}
        gold = {**self.claims.gold, **history.gold_gradings}
        return replace(lineage, history=replace(history, exploited_families=families, gold_gradings=gold))

    def _run_step(self, step: PipelineStep, lineage: Lineage, kind: Kind | None = None) -> Iterator[ChangeEvent]:
        """Yield the beginning of a step and its outcomes; several records share its time evenly."""
        name = lineage.task.name if lineage.task else lineage.candidate.name
        yield StepStarted(lineage.candidate.id, step.stage, name)
        started = time.perf_counter()
        results: Sequence[Record | Exception]
        progress = b""
        try:
            # The policy holds the state of its attempts, and several threads share this object.
            with log_fields(change=lineage.candidate.name, stage=step.stage.value):
                if step.stage in STAGES_WITH_HISTORY:
                    lineage = self._add_history(lineage)
                output = self.retry_policy.copy()(step.function, lineage, self.services)
            results = [output] if isinstance(output, Record) else list(output)
            progress = output.progress if isinstance(output, StepTasks) else b""
        except Exception as error:  # noqa: BLE001
            # The driver distinguishes the kinds of failure.
            results = [as_disk_error(error) or error]
        # The results of a step are made together; equal shares keep the sum of all seconds true.
        seconds = (time.perf_counter() - started) / max(1, len(results))
        change = ChangeName.from_candidate(lineage.candidate)
        outcomes = tuple(StageOutcome(step.stage, change, result, seconds, kind) for result in results)
        if step.stage is Stage.DERIVE and lineage.wanted is not None and all(map(_is_result, outcomes)):
            before = tuple(task.id for task in lineage.existing)
            yield SearchStep(outcomes, lineage.require_environment().id, before, progress)
        else:
            yield from outcomes


def _ends_change(outcome: StageOutcome) -> bool:
    """Whether a change ends with an outcome: an error, but for a bug in a kind of tasks."""
    is_bug = isinstance(outcome.result, Exception) and outcome.kind is None
    return is_bug or isinstance(outcome.result, MergemillError)


def list_outcomes(events: Iterable[ChangeEvent]) -> Iterator[StepStarted | StageOutcome | ImagePushed | ChangeDrained]:
    """Yield events; those of a renewed change or of a step follow each other, to be stored in a single transaction."""
    for event in events:
        if isinstance(event, ChangeRenewed | SearchStep):
            yield from event.outcomes
        else:
            yield event


def _is_result(event: ChangeEvent) -> bool:
    """Whether an event is a record, which is stored."""
    return isinstance(event, StageOutcome) and isinstance(event.result, Record)


def process_change(
    steps: Sequence[PipelineStep],
    services: Services,
    retry_policy: Retrying,
    is_draining: Callable[[], bool],
    lineage: Lineage,
    *,
    find_history: FindHistory = lambda _: RepositoryHistory(),
    processor: type[ChangeProcessor] = ChangeProcessor,
    claims: ExploitClaims | None = None,
) -> Iterator[ChangeEvent]:
    """Take a change through the steps that are pending for it. `claims`: those of the other workers."""
    claims = claims or ExploitClaims()
    return processor(steps, services, retry_policy, lineage, is_draining, find_history, claims).process()


def make_failure(lineage: Lineage, error: Exception) -> StageOutcome:
    """Return an error as the outcome of the stage that is pending for a change."""
    stage = lineage.next_stage or (Stage.CERTIFY if lineage.tasks else Stage.DERIVE)
    return StageOutcome(stage, ChangeName.from_candidate(lineage.candidate), error, 0.0)


ProcessChange = Callable[[Lineage], Iterator[ChangeEvent]]
MakeFunction = Callable[[Sequence[PipelineStep]], ProcessChange]


@dataclass(frozen=True)
class ChangeKeeper(RecordKeeper[Lineage, ChangeEvent]):
    """Facts that the driver knows of the changes on their way. `reload` returns a change as it is stored."""

    work: WorkState
    reload: Callable[[Lineage], Lineage | None]
    cut_short: set[str] = field(default_factory=set)
    """Ids of candidates that ended before their last step, as the run was stopped or drained."""

    def observe(self, result: ChangeEvent, place: str) -> None:
        """Take note of the beginning of a step, or that the change ends early."""
        if isinstance(result, StepStarted):
            self.work.start_step(result.change, result.stage, result.name, place)
        elif isinstance(result, ChangeDrained):
            self.cut_short.add(result.change)
        elif isinstance(result, StageOutcome) and isinstance(result.result, CancelledRunError):
            self.cut_short.add(result.change.id)

    def end_record(self, record: Lineage, *, is_finished: bool) -> None:
        """Count a change as finished, or forget its step."""
        key = record.candidate.id
        end = self.work.end_change if is_finished and key not in self.cut_short else self.work.end_step
        end(key)

    def is_node_failure(self, result: ChangeEvent) -> bool:
        """Return whether engine, disk or network failed, or the machine lacks a requirement."""
        return isinstance(result, StageOutcome) and isinstance(result.result, Transient | MachineError)

    def resume(self, record: Lineage) -> Lineage | None:
        """Return the change as it is stored."""
        return self.reload(record)

    def make_loss(self, record: Lineage, detail: str) -> ChangeEvent:
        """Return the failure of a change whose workers were lost each time; it stays pending for the next run."""
        return make_failure(record, Transient(detail))

    def get_locality(self, record: Lineage) -> str:
        """Return the repository, whose environments share layers."""
        return record.candidate.repo


@dataclass
class PipelineRun:
    """A run over a store. Afterwards `n_new` is the number of stored results and `exit_code` the exit code."""

    store: Store
    services: Services
    cluster: Cluster
    progress: Progress
    workers: int
    retry_policy: Retrying = RETRY_POLICY
    resolve_source: Callable[[str], str] = str
    """Returns a source as records spell it."""
    make_function: MakeFunction | None = None
    """Returns the function for the workers of other processes; None for workers that share the services."""
    make_room: Callable[[], None] = lambda: None
    """Called after each build, and when a disk is full."""
    max_tasks: int | None = None
    """No further change is begun once the sources have this many certified tasks."""
    n_certified: int = 0
    """Certified tasks of the sources."""
    quotas: RepositoryQuotas = field(default_factory=RepositoryQuotas)
    """Quotas of repositories; changes beyond them are left for a run with larger limits."""
    processor: type[ChangeProcessor] = ChangeProcessor
    """Class that takes a change through its steps in a worker of this process."""
    prepare: Callable[[Lineage], Lineage] = lambda lineage: lineage
    """Adds facts of the database to a change, as workers read none; called when a worker needs the change."""
    n_new: int = 0
    n_derived: int = 0
    """Tasks among these that were derived."""
    failures: dict[int, int] = field(default_factory=dict)
    """Exit code -> number of records, lines or sources that failed with it."""
    consecutive_failures: int = 0
    """Failures of engine or network since the last result."""
    is_cut_off: bool = False
    """Whether the run was ended because engine or network is gone."""
    is_interrupted: bool = False
    """Whether the miner failed in the source that is being mined."""
    batch: list[tuple[MiningOutcome, float]] = field(default_factory=list)
    """Outcomes of the miner, with seconds, that are not stored yet."""
    new_candidates: list[Candidate] = field(default_factory=list)
    """Stored candidates that no worker has yet."""

    @property
    def exit_code(self) -> int:
        """0, or the failure of highest priority: 75 (run again), 1 (report a bug), 3 (correct an input)."""
        return next((code for code in (Transient.exit_code, 1, InputError.exit_code) if code in self.failures), 0)

    def process(
        self,
        steps: Sequence[PipelineStep],
        lineages: Iterable[Lineage],
        reload: Callable[[Lineage], Lineage | None] = lambda lineage: lineage,
    ) -> None:
        """Take changes through steps and store each result as it arrives.

        Args:
            steps: the steps.
            lineages: the changes, read when a worker needs a change.
            reload: function that returns a change with the records that were stored since it was read, None where
                nothing is left to do.

        Raises:
            MachineError: the machine lacks a requirement of a stage.
            Transient: the database cannot be written.
        """
        work = self.progress.work
        make_function = self.make_function or self._make_shared_function
        work.all_read = False

        def resume(lineage: Lineage) -> Lineage | None:
            reloaded = reload(lineage)
            return None if reloaded is None else self.prepare(reloaded)

        keeper = ChangeKeeper(work, resume)
        # Closing the generator is what ends the workers, also when this loop is left by an exception.
        with closing(self.cluster.map_batches(make_function(steps), self._count_lineages(lineages), keeper)) as batches:
            for events in batches:
                self._store_events(events)
                # Each worker may have one failure on its way when the network goes; only more of them show that it
                # stays away.
                if self.consecutive_failures >= self.workers + MAX_CONSECUTIVE_FAILURES:
                    self.is_cut_off = True
                    self.progress.print_message("stopped: engine or network is gone; run the same command again later")
                    return

    def _make_shared_function(self, steps: Sequence[PipelineStep]) -> ProcessChange:
        work = self.progress.work
        return partial(
            process_change,
            steps,
            self.services,
            self.retry_policy,
            lambda: work.is_draining,
            find_history=HistoryReader(self.store).find,
            processor=self.processor,
            claims=ExploitClaims(),
        )

    def _count_lineages(self, lineages: Iterable[Lineage]) -> Iterator[Lineage]:
        """Yield the changes until there are tasks enough."""
        work = self.progress.work
        for lineage in lineages:
            if self.has_enough_tasks or work.is_draining:
                break
            # Left out here and not in the query: certificates of this run count against the quota, too.
            if not self.quotas.admit(lineage):
                continue
            work.n_read += 1
            yield self.prepare(lineage)
        work.all_read = True

    @property
    def has_enough_tasks(self) -> bool:
        """Whether the sources have as many certified tasks as were requested."""
        return self.max_tasks is not None and self.n_certified >= self.max_tasks

    def _store_events(self, events: Sequence[ChangeEvent]) -> None:
        """Store the results of some events, in a single transaction where none of the events is a failure."""
        # The progress of a search fits the database before and after its tasks are stored.
        for event in events:
            if isinstance(event, SearchStep) and event.progress:
                self._save_progress(event)
        stored = [event for event in list_outcomes(events) if not isinstance(event, StepStarted | ChangeDrained)]
        # Neighbouring results share a transaction, but a failure between them is reported at its place in the order.
        for is_result, group in groupby(stored, key=_is_result):
            if is_result:
                self._store_results([event for event in group if isinstance(event, StageOutcome)])
                continue
            for event in group:
                if isinstance(event, ImagePushed):
                    self.store.add(event.copy)
                elif isinstance(event.result, Exception):
                    self._record_failure(event.stage, event.change.name, event.result)

    def _save_progress(self, step: SearchStep) -> None:
        tasks = [outcome.result for outcome in step.outcomes if isinstance(outcome.result, Task)]
        folder = SearchFolder.below(self.services.settings.storage.store_dir)
        folder.save(step.environment, tasks[0].kind, step.before, [task.id for task in tasks], step.progress)

    def _store_results(self, outcomes: Sequence[StageOutcome]) -> None:
        self.consecutive_failures = 0
        results = [
            StageResult(
                stage=outcome.stage,
                result=outcome.result,
                source=outcome.change.source,
                name=outcome.change.name,
                seconds=outcome.seconds,
                kind=outcome.kind,
            )
            for outcome in outcomes
            if isinstance(outcome.result, Record)
        ]
        self._report_results(self.store.add_stage_results(*results))
        for outcome in outcomes:
            self.quotas.certified[outcome.change.repo] += isinstance(outcome.result, Certificate)
            # Builds add images; the other stages leave nothing on the disk of the engine.
            if outcome.stage is Stage.BUILD:
                self.make_room()

    def _report_results(self, results: Iterable[StageResult]) -> None:
        for result in results:
            self.n_new += 1
            self.n_derived += isinstance(result.result, Task)
            self.n_certified += isinstance(result.result, Certificate)
            self.progress.report_result(result)

    def _record_failure(self, stage: Stage, name: str, error: Exception) -> None:
        """Count and report a failure, which is not a verdict: the run continues with the next change."""
        # Every further change would fail in the same way.
        if isinstance(error, MachineError):
            raise error
        code = error.exit_code if isinstance(error, MergemillError) else 1
        self.failures[code] = self.failures.get(code, 0) + 1
        self.consecutive_failures = self.consecutive_failures + 1 if isinstance(error, Transient) else 0
        # Images that no pending change needs can be made again, so they go before the next attempt.
        if "disk is full" in str(error):
            self.make_room()
        if isinstance(error, MergemillError):
            self.progress.print_message(f"{name}: {error.format_line()}")
        else:
            log.error("%s: %s failed through a bug", name, stage.value, exc_info=error)
        self.progress.report_failure(stage, name, error)

    # -------------------------------------------------------------------------------------------------- mining

    def mine(self, miner: Miner, scope: Scope) -> Iterator[Lineage]:
        """Mine the sources, store the outcomes and yield each candidate for which a stage is pending.

        Where the miner fails (no network, for instance), the candidates of earlier runs are yielded, too.
        """
        for source in scope.sources:
            if self.progress.work.is_draining:
                return
            # Candidates of a miner that failed half way must not be yielded again with those of earlier runs.
            yielded: set[str] = set()
            self.is_interrupted = False
            for candidates in self._store_batches(self._read_miner(miner, source)):
                yielded.update(candidate.id for candidate in candidates)
                chosen = [c for c in candidates if scope.includes(c.name, c.id, c.created_at, c.language)]
                yield from self.store.find_open_lineages_of(chosen, scope)
            if self.is_interrupted:
                earlier = self.store.find_open_lineages(replace(scope, sources=[self.resolve_source(source)]))
                yield from (lineage for lineage in earlier if lineage.candidate.id not in yielded)

    def _read_miner(self, miner: Miner, source: str) -> Iterator[MiningOutcome]:
        """Yield the outcomes of a source; a failure of the miner is reported and ends the source."""
        try:
            self.progress.work.start_step(source, Stage.MINE, source)
            for outcome in miner(source, self.services):
                if self.progress.work.is_draining:
                    break
                if isinstance(outcome, InputError):
                    self._record_failure(Stage.MINE, source, outcome)
                elif isinstance(outcome, str):
                    self.progress.print_message(outcome)
                else:
                    yield outcome
        except Exception as error:  # noqa: BLE001
            # The kind of failure is recorded, and the other sources continue.
            self.is_interrupted = True
            self._record_failure(Stage.MINE, source, as_disk_error(error) or error)
        finally:
            self.progress.work.end_step(source)

    def _store_batches(self, outcomes: Iterable[MiningOutcome]) -> Iterator[list[Candidate]]:
        """Store the outcomes in batches and yield the candidates of each stored batch."""
        batch_started = outcome_started = time.perf_counter()
        for outcome in outcomes:
            now = time.perf_counter()
            self.batch.append((outcome, now - outcome_started))
            # A slow source stores what it has after BATCH_SECONDS, so that workers do not wait for a full batch.
            if len(self.batch) == BATCH_SIZE or now - batch_started > BATCH_SECONDS:
                self._flush()
                yield self._pop_new_candidates()
                batch_started = time.perf_counter()
            outcome_started = time.perf_counter()
        self._flush()
        yield self._pop_new_candidates()

    def find_similar(self, pull: PullRequest, keys: Sequence[int]) -> list[Candidate]:
        """Return stored candidates that share a similarity key with a change; pending candidates are written first."""
        self._flush()
        return self.store.find_similar(pull, keys)

    def _flush(self) -> None:
        batch, self.batch = self.batch, []
        verdicts = [(outcome.pull_request, outcome.result, seconds) for outcome, seconds in batch]
        tags = [outcome.tags for outcome, _ in batch]
        sketches = {outcome.result.id: outcome.similarity_keys for outcome, _ in batch if outcome.similarity_keys}
        self._report_results(self.store.add_mined_changes(*verdicts, tags=tags, sketches=sketches))
        self.new_candidates += [result for _, result, _ in verdicts if isinstance(result, Candidate)]

    def _pop_new_candidates(self) -> list[Candidate]:
        candidates, self.new_candidates = self.new_candidates, []
        return candidates
