"""Drivers of a simulated run: they read candidates, hand them out to workers and store results.

As in `mergemill/pipeline/pipeline.py` and `backends/cluster/local.py`, a driver does one thing at a
time, and has twice as many changes handed out as it has workers.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from backends.cluster.local import RECORDS_PER_WORKER
from benchmarks.scale.events import Action, EventLoop, Process, Resume, Usage
from benchmarks.scale.nodes import Node
from benchmarks.scale.plan import REPOSITORY
from benchmarks.scale.population import SimulatedChange


@dataclass(eq=False, slots=True)
class Rollout:
    """One attempt of an agent at a certified task."""

    change: SimulatedChange
    grade_seconds: float


Job = SimulatedChange | Rollout
CHANGE_DONE: tuple[str, ...] = ()
ROLLOUT_DONE = ("rollout",)


class Workshop(Protocol):
    """What a driver needs of the run."""

    def start_job(self, driver: Driver, node: Node, job: Job) -> None:
        """Let a worker of a node begin a job."""

    def store_results(self, stages: Sequence[str]) -> Process:
        """Store some results, one transaction each."""

    def end_driver(self) -> None:
        """Take note that a driver has ended."""


class Driver:
    """One `mergemill run`."""

    def __init__(
        self,
        loop: EventLoop,
        workshop: Workshop,
        placement: str,
        candidates: Generator[Action | SimulatedChange | None, None, None],
    ) -> None:
        """Set up a driver without workers.

        Args:
            loop: the clock.
            workshop: the run.
            placement: which change a worker takes, as in the plan.
            candidates: yields changes, the actions that must end before the next one is known, and None where `wake`
                will announce it.
        """
        self._loop, self._workshop, self._placement, self._candidates = loop, workshop, placement, candidates
        self._idle: OrderedDict[Node, int] = OrderedDict()
        """Node -> workers without work; there is none while any job waits."""
        self._queue: deque[Job] = deque()
        self._owned: dict[Node, deque[Job]] = {}
        """Node -> jobs that wait, of repositories that it has."""
        self._owners: dict[int, Node] = {}
        self._rollouts: deque[Job] = deque()
        self._messages: deque[Sequence[str]] = deque()
        """Stages of the results that wait to be stored."""
        self._n_workers = self._handed_out = self._n_sampling = 0
        self._wake: Resume | None = None
        self._has_more = True
        self.usage = Usage(loop, 1)

    def add_worker(self, node: Node) -> None:
        """Count one more worker of a node."""
        self._n_workers += 1
        self._idle[node] = self._idle.get(node, 0) + 1

    @property
    def has_waiting(self) -> bool:
        """Whether jobs are to come or wait for a worker."""
        return self._has_more or bool(self._queue or self._owned or self._rollouts)

    # ------------------------------------------------------------------------------------------------- the loop

    def run(self) -> Process:
        """Hand out all candidates and store all results."""
        self.usage.change(1)
        limit = RECORDS_PER_WORKER * self._n_workers
        while self._has_more or self._handed_out or self._n_sampling:
            while self._has_more and self._handed_out < limit:
                change = yield from self._read_next()
                if change is not None:
                    self._handed_out += 1
                    self._put(change)
                while self._messages:
                    yield from self._store(self._messages.popleft())
                if change is None:
                    break
            if not self._messages and (self._has_more or self._handed_out or self._n_sampling):
                self.usage.change(-1)
                yield self._sleep
                self.usage.change(1)
            if self._messages:
                yield from self._store(self._messages.popleft())
        self.usage.change(-1)
        self._workshop.end_driver()

    def _read_next(self) -> Generator[Action, None, SimulatedChange | None]:
        """Return the next candidate, or None where there is none now; what it needs before, the driver waits for."""
        for candidate in self._candidates:
            if candidate is None or isinstance(candidate, SimulatedChange):
                return candidate
            yield candidate
        self._has_more = False
        return None

    def _sleep(self, resume: Resume) -> None:
        self._wake = resume

    def send(self, stages: Sequence[str]) -> None:
        """Put a message into the driver's queue: stages with a result, CHANGE_DONE or ROLLOUT_DONE."""
        self._messages.append(stages)
        self.wake()

    def wake(self) -> None:
        """End the sleep of a driver that waits for messages or candidates."""
        if self._wake is not None:
            resume, self._wake = self._wake, None
            self._loop.call_at(self._loop.now, resume)

    def _store(self, stages: Sequence[str]) -> Process:
        if stages == CHANGE_DONE:
            self._handed_out -= 1
        else:
            self._n_sampling -= stages == ROLLOUT_DONE
            yield from self._workshop.store_results(stages)

    # ------------------------------------------------------------------------------------------------- the jobs

    def add_rollouts(self, rollouts: Iterable[Rollout]) -> None:
        """Queue rollouts; workers take them when no change waits."""
        for rollout in rollouts:
            self._n_sampling += 1
            self._put(rollout)

    def requeue(self, job: Job) -> None:
        """Queue a job again whose node failed."""
        self._put(job)

    def _put(self, job: Job) -> None:
        """Give a job to an idle worker, of the node with its repository if that has one; or let it wait."""
        owner = self._find_owner(job)
        if self._idle:
            node = owner if owner in self._idle and owner is not None else next(iter(self._idle))
            self._idle[node] -= 1
            if self._idle[node]:
                self._idle.move_to_end(node)
            else:
                del self._idle[node]
            self._own(job, node)
            self._workshop.start_job(self, node, job)
        elif isinstance(job, Rollout):
            self._rollouts.append(job)
        elif owner is not None:
            self._owned.setdefault(owner, deque()).append(job)
        else:
            self._queue.append(job)

    def _own(self, job: Job, node: Node) -> None:
        """Let a node have the repository of a job, unless another has it: a worker that helps out takes none over."""
        if self._placement == REPOSITORY and isinstance(job, SimulatedChange) and self._find_owner(job) is None:
            self._owners[job.repository.number] = node

    def take(self, node: Node) -> Job | None:
        """Return the next job for a worker that has none, or None, which makes it idle."""
        job = self._pop_owned(node) if node in self._owned else self._pop_free(node)
        if job is None and self._owned:
            job = self._pop_owned(next(iter(self._owned)))
        if job is None and self._rollouts:
            job = self._rollouts.popleft()
        if job is None:
            self._idle[node] = self._idle.get(node, 0) + 1
        else:
            self._own(job, node)
        return job

    def _pop_free(self, node: Node) -> Job | None:
        """Return the next job whose repository no other node has; the others will wait for theirs."""
        while self._queue:
            job = self._queue.popleft()
            owner = self._find_owner(job)
            if owner is None or owner is node:
                return job
            self._owned.setdefault(owner, deque()).append(job)
        return None

    def _find_owner(self, job: Job) -> Node | None:
        """Return the node that has a job's repository, if it runs."""
        repository = job.change.repository if isinstance(job, Rollout) else job.repository
        owner = self._owners.get(repository.number)
        return None if owner is None or owner.is_down else owner

    def _pop_owned(self, node: Node) -> Job:
        job = self._owned[node].popleft()
        if not self._owned[node]:
            del self._owned[node]
        return job

    def remove_idle(self, node: Node) -> int:
        """Remove the idle workers of a node that failed, and return their number."""
        return self._idle.pop(node, 0)
