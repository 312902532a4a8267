"""The simulated run: drivers, miners, nodes with workers and images, and the services around them."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import ceil

from benchmarks.scale.drivers import CHANGE_DONE, ROLLOUT_DONE, Driver, Job, Rollout
from benchmarks.scale.events import (
    Action,
    EventLoop,
    Process,
    RateLimit,
    Resume,
    RunningProcess,
    Servers,
    SharedCores,
    Usage,
)
from benchmarks.scale.nodes import GIGA, Node
from benchmarks.scale.plan import SQLITE, Plan
from benchmarks.scale.population import SimulatedChange, SimulatedRepository
from benchmarks.scale.profile import MeasuredStep, Profile

POINTS_PER_HOUR = 5000
"""Of one token of the forge."""
GRADES_PER_CERTIFICATE = 4
"""Evaluations of a certification: three of the gold patch and one of an empty one. A rollout's grade is one."""
BITS = 8
SHORT_STAGES = frozenset({"judge", "derive"})
"""Stages that take milliseconds: their results reach the driver together with the one before."""


@dataclass(eq=False)
class Totals:
    """What a run adds up."""

    repositories: int = 0
    mined: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    """How a candidate ends -> number; `certified` where one task or more was."""
    tasks: int = 0
    rollouts: int = 0
    results: int = 0
    """Stored by the drivers, without those of mining."""
    judge_requests: int = 0
    lost_jobs: int = 0
    """Jobs that were begun again because their node failed."""
    layers_made: int = 0
    layers_found: int = 0
    layer_bytes: float = 0
    """Of dependency layers with a certified task, each once."""
    image_bytes: float = 0
    """Own bytes of images with a certified task."""
    transferred_bytes: float = 0


class Factory:
    """A run of a plan."""

    def __init__(
        self,
        plan: Plan,
        profile: Profile,
        repositories: Iterable[SimulatedRepository],
        rng: random.Random,
        *,
        is_local: bool = False,
    ) -> None:
        """Set up.

        Args:
            plan: cluster and services.
            profile: measured times.
            repositories: what the run goes through.
            rng: source of all chance.
            is_local: clones and base images are there, and no registry or forge is used.
        """
        self.plan, self._profile, self._rng, self._is_local = plan, profile, rng, is_local
        self.loop, self.totals = EventLoop(), Totals()
        self._repositories = iter(repositories)
        self.nodes = [Node(self.loop, plan, number) for number in range(plan.nodes)]
        self.drivers = [Driver(self.loop, self, plan.placement, self._read_candidates()) for _ in range(plan.drivers)]
        self._running: dict[Node, dict[int, tuple[RunningProcess, Driver, Job]]] = {node: {} for node in self.nodes}
        self._numbers = count()
        self._n_drivers, self._n_miners = plan.drivers, plan.miners
        self._mined: deque[SimulatedChange] = deque()
        miners = plan.miners or plan.drivers
        self._most_crawled = self._n_crawlers = 0 if is_local else miners * plan.crawl_ahead
        self._crawled: deque[SimulatedRepository] = deque()
        self._full: list[Resume] = []
        """Crawlers that wait for room."""
        self._empty: list[Resume] = []
        """Those who wait for a repository."""
        self._mining = Usage(self.loop, miners)
        self._pushed_layers: set[Hashable] = set()
        self.database = Servers(self.loop, 1 if plan.database == SQLITE else plan.database_cores)
        self.forge = RateLimit(self.loop, POINTS_PER_HOUR * plan.tokens / 3600, POINTS_PER_HOUR * plan.tokens)
        self.clones, self.registry, self.judge = Servers(self.loop), Servers(self.loop), Servers(self.loop)
        self.model = SharedCores(self.loop, plan.model_concurrency)
        times = profile.store.get(plan.database) or next(iter(profile.store.values()))
        self._store_times: Mapping[str, Sequence[tuple[float, float]]] = times.stages
        self.fed_at = 0.0
        """When nothing waited for a worker any more."""
        self.fed_usage: dict[str, float] = {}

    # ------------------------------------------------------------------------------------------------- running

    def run(self) -> None:
        """Run until every change has ended."""
        for number in range(self.plan.sandboxes):
            self.drivers[number % self.plan.drivers].add_worker(self.nodes[number % self.plan.nodes])
        for _ in range(self._n_crawlers):
            self.loop.start(self._crawl())
        for _ in range(self.plan.miners):
            self.loop.start(self._mine_all())
        if self.plan.node_failures_per_1000_hours:
            for node in self.nodes:
                self.loop.start(self._fail_repeatedly(node))
        for driver in self.drivers:
            self.loop.start(driver.run())
        self.loop.run()

    def end_driver(self) -> None:
        """End the run with its last driver."""
        self._n_drivers -= 1
        if not self._n_drivers:
            self.loop.stop()

    def _fail_repeatedly(self, node: Node) -> Process:
        rate = self.plan.node_failures_per_1000_hours / 1000 / 3600
        while True:
            yield self.loop.wait(self._rng.expovariate(rate))
            node.is_down = True
            lost, self._running[node] = self._running[node], {}
            workers = [driver for driver in self.drivers for _ in range(driver.remove_idle(node))]
            for process, driver, _ in lost.values():
                process.stop()
                workers.append(driver)
            node.cores.clear()
            node.images.clear()
            node.workers.change(-node.workers.level)
            self.totals.lost_jobs += len(lost)
            for _, driver, job in lost.values():
                driver.requeue(job)
            yield self.loop.wait(self.plan.node_restart_seconds)
            node.is_down = False
            for driver in workers:
                self._continue_worker(driver, node)

    # -------------------------------------------------------------------------------------------------- mining

    def _crawl(self) -> Process:
        """Fetch repositories ahead of those who mine them, a bounded number."""
        for repository in self._repositories:
            yield self.forge.spend(repository.points)
            yield self.loop.wait(repository.requests * self.plan.request_seconds)
            yield self.clones.use(repository.clone_bytes * BITS / (self.plan.clone_gbit * GIGA))
            while len(self._crawled) >= self._most_crawled:
                yield self._full.append
            self._crawled.append(repository)
            self._continue_all(self._empty)
        self._n_crawlers -= 1
        self._continue_all(self._empty)

    def _continue_all(self, waiting: list[Resume]) -> None:
        for resume in waiting:
            self.loop.call_at(self.loop.now, resume)
        waiting.clear()

    def _take_repository(self) -> Generator[Action, None, SimulatedRepository | None]:
        """Return the next repository, or None after the last."""
        if self._is_local:
            return next(self._repositories, None)
        while not self._crawled:
            if not self._n_crawlers:
                return None
            yield self._empty.append
        self._continue_all(self._full)
        return self._crawled.popleft()

    def _read_candidates(self) -> Generator[Action | SimulatedChange | None, None, None]:
        """Yield candidates for a driver, the actions that it waits for, and None while the miners have none ready."""
        if not self.plan.miners:
            while (repository := (yield from self._take_repository())) is not None:
                yield from self._mine(repository)
                yield from repository.list_changes(self._rng)
            return
        while self._mined or self._n_miners:
            if self._mined:
                change = self._mined.popleft()
                yield self.loop.wait(self.plan.read_seconds)
                yield change
            else:
                yield None

    def _mine_all(self) -> Process:
        while (repository := (yield from self._take_repository())) is not None:
            yield from self._mine(repository)
            self._mined.extend(repository.list_changes(self._rng))
            self._wake_drivers()
        self._n_miners -= 1
        self._wake_drivers()

    def _wake_drivers(self) -> None:
        for driver in self.drivers:
            driver.wake()

    def _mine(self, repository: SimulatedRepository) -> Process:
        self.totals.repositories += 1
        self.totals.mined += repository.n_changes
        self._mining.change(1)
        yield self.loop.wait(repository.mining_seconds)
        if times := self._store_times.get("mine"):
            own, base = self._rng.choice(times)
            yield from self._write(own * repository.n_changes, base * repository.n_changes)
        self._mining.change(-1)

    # ------------------------------------------------------------------------------------------------- storing

    def store_results(self, stages: Sequence[str]) -> Process:
        """Store some results, one transaction each."""
        own = base = 0.0
        for stage in stages:
            if times := self._store_times.get("certify" if stage == "rollout" else stage):
                pair = self._rng.choice(times)
                own, base = own + pair[0], base + pair[1]
        self.totals.results += len(stages)
        yield from self._write(own, base)

    def _write(self, own: float, base: float) -> Process:
        if self.plan.database == SQLITE:  # its file is locked for the whole transaction
            yield self.database.use(own + base)
        else:
            yield self.loop.wait(own)
            yield self.database.use(base)

    # ------------------------------------------------------------------------------------------------- workers

    def start_job(self, driver: Driver, node: Node, job: Job) -> None:
        """Let a worker of a node begin a job."""
        number = next(self._numbers)
        process = RunningProcess(self._run_job(number, driver, node, job))
        self._running[node][number] = process, driver, job
        node.workers.change(1)
        self.loop.call_at(self.loop.now, process.advance)

    def _run_job(self, number: int, driver: Driver, node: Node, job: Job) -> Process:
        run = self._sample if isinstance(job, Rollout) else self._process_change
        held: list[Hashable] = []
        try:
            yield from run(driver, node, job, held)  # type: ignore[arg-type]
        finally:
            for image in held:
                node.images.release(image)
        del self._running[node][number]
        node.workers.change(-1)
        self._continue_worker(driver, node)

    def _continue_worker(self, driver: Driver, node: Node) -> None:
        job = driver.take(node)
        if job is not None:
            self.start_job(driver, node, job)
        elif not self.fed_usage and not any(worker_driver.has_waiting for worker_driver in self.drivers):
            self.fed_at, self.fed_usage = self.loop.now, self.read_usage()

    def _process_change(self, driver: Driver, node: Node, change: SimulatedChange, held: list[Hashable]) -> Process:
        steps, certified = change.measured.steps, 0
        if not self._is_local and change.layer is not None:
            yield from self._hold_base(node, change, held)
        results: list[str] = []
        for step in steps:
            if results and step.stage not in SHORT_STAGES:
                driver.send(results)
                results = []
            if step.stage == "build" and change.layer is not None:
                yield from self._hold_layer(node, change, held)
            yield from self._compute(node, step.seconds, self._get_cores(step.stage))
            results.append(step.stage)
            if step.outcome == "ok":
                certified += step.stage == "certify"
                yield from self._follow_up(driver, node, change, step, held)
        if results:
            driver.send(results)
        if certified:
            yield from self._push(change)
        self.totals.tasks += certified
        self.totals.changes[_describe_end(steps, certified)] += 1
        driver.send(CHANGE_DONE)

    def _follow_up(
        self, driver: Driver, node: Node, change: SimulatedChange, step: MeasuredStep, held: list[Hashable]
    ) -> Process:
        """Do what follows a stage that was passed, beyond its own work."""
        if step.stage == "build":
            image = ("env", change.repository.number, change.number)
            yield from node.images.hold(image, change.measured.image_bytes, _make_nothing)
            held.append(image)
        elif step.stage == "verify":
            for _ in range(self.plan.judge_requests):
                self.totals.judge_requests += 1
                yield self.judge.use(60 / self.plan.judge_per_minute)
                yield self.loop.wait(self.plan.judge_seconds)
        elif step.stage == "certify" and self.plan.rollouts:
            grade = step.seconds / GRADES_PER_CERTIFICATE
            driver.add_rollouts([Rollout(change, grade) for _ in range(self.plan.rollouts)])

    def _get_cores(self, stage: str) -> float:
        return self._profile.cores.get(stage, 1.0)

    def _compute(self, node: Node, seconds: float, cores: float) -> Process:
        """Use a node for some seconds, or longer where it is busy. `cores`: those kept busy on average."""
        pieces = ceil(seconds / self.plan.slice_seconds) if self.plan.slice_seconds else 0
        if not pieces:
            yield node.cores.compute(seconds, cores)
        share = min(1.0, cores)
        for waiting, computing in zip(self._divide(pieces), self._divide(pieces), strict=True):
            yield self.loop.wait((1 - share) * seconds * waiting)
            yield node.cores.compute(share * seconds * computing, max(1.0, cores))

    def _divide(self, pieces: int) -> list[float]:
        """Return random shares, so that workers do not wait and compute in step."""
        weights = [self._rng.expovariate(1) for _ in range(pieces)]
        return [weight / sum(weights) for weight in weights]

    # -------------------------------------------------------------------------------------------------- images

    def _hold_base(self, node: Node, change: SimulatedChange, held: list[Hashable]) -> Process:
        base, size = change.repository.language, self.plan.base_bytes
        yield from node.images.hold(base, size, lambda: self._transfer(size))
        held.append(base)

    def _hold_layer(self, node: Node, change: SimulatedChange, held: list[Hashable]) -> Process:
        seconds, cores = change.measured.dependency_seconds, self._get_cores("build")
        size = change.repository.layer_bytes
        is_made = yield from node.images.hold(change.layer, size, lambda: self._compute(node, seconds, cores))
        held.append(change.layer)
        self.totals.layers_made += is_made
        self.totals.layers_found += not is_made

    def _transfer(self, size: float) -> Process:
        """Send an image to or from the registry: in turn with all others, and no faster than the node's bandwidth."""
        bits = size * self.plan.compression * BITS
        self.totals.transferred_bytes += size * self.plan.compression
        started = self.loop.now
        yield self.registry.use(bits / (self.plan.registry_gbit * GIGA))
        yield self.loop.wait(max(0.0, bits / (self.plan.node_gbit * GIGA) - (self.loop.now - started)))

    def _push(self, change: SimulatedChange) -> Process:
        """Copy the image of a certified change to the registry, with its layer if that is not there."""
        size: float = change.measured.image_bytes
        self.totals.image_bytes += size
        if change.layer not in self._pushed_layers:
            self._pushed_layers.add(change.layer)
            self.totals.layer_bytes += change.repository.layer_bytes
            size += change.repository.layer_bytes
        if not self._is_local:
            yield from self._transfer(size)

    # ------------------------------------------------------------------------------------------------ sampling

    def _sample(self, driver: Driver, node: Node, rollout: Rollout, held: list[Hashable]) -> Process:
        change, plan = rollout.change, self.plan
        yield from self._hold_base(node, change, held)
        of = change.repository
        sizes = {change.layer: of.layer_bytes, ("env", of.number, change.number): change.measured.image_bytes}
        for image, size in sizes.items():
            yield from node.images.hold(image, size, lambda size=size: self._transfer(size))  # type: ignore[misc]
            held.append(image)
        yield self.model.compute(plan.turns * plan.model_seconds)
        yield from self._compute(node, plan.turns * plan.tool_seconds, plan.tool_cores)
        yield from self._compute(node, rollout.grade_seconds, self._get_cores("certify"))
        self.totals.rollouts += 1
        driver.send(ROLLOUT_DONE)

    # --------------------------------------------------------------------------------------------- utilisation

    def read_usage(self) -> dict[str, float]:
        """Return the share of each resource that has been busy so far."""
        usages = {
            "forge": [self.forge.usage],
            "clones": [self.clones.usage],
            "mining": [self._mining],
            "registry": [self.registry.usage],
            "database": [self.database.usage],
            "judge": [self.judge.usage],
            "model": [self.model.usage],
            "driver": [driver.usage for driver in self.drivers],
            "cores": [node.cores.usage for node in self.nodes],
            "sandboxes": [node.workers for node in self.nodes],
        }
        elapsed = max(self.loop.now, 1e-9)
        return {
            name: sum(usage.read() for usage in of) / sum(usage.capacity for usage in of) / elapsed
            for name, of in usages.items()
        }


def _make_nothing() -> Process:
    """Make an image that is there already."""
    yield from ()


def _describe_end(steps: Sequence[MeasuredStep], certified: int) -> str:
    """Return how a candidate ended: `certified`, `failed`, or the stage and reason that ended it."""
    if certified:
        return "certified"
    if not steps:
        return "failed"
    rejecting = next((step for step in reversed(steps) if step.outcome != "ok"), None)
    return f"{rejecting.stage} {rejecting.outcome}" if rejecting else f"{steps[-1].stage} without a task"
