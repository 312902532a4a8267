"""Compare predictions of the simulator with real runs on this machine.

Candidates of some sources are divided into two halves, by every second one. Each half is run with one worker, stage by
stage, which gives its stage times and CPU seconds: the calibration. The second half is run for real, all stages at
once, with each number of workers. Packages come slowly when a network sees them for the first time, so all changes are
built once before, and this is not counted. As machine and network are faster at one time than at another, both halves
are calibrated before the real runs and again after them, and a prediction is the mean of both. Every run begins with a
new database and an engine that has base images alone. Two predictions are compared with each real run:

- from the calibrations of the same changes: this is what the simulator knows of contention, of layers that changes
  share, of drivers and of the order of work;
- from the calibrations of the other half: also whether changes of the same repositories are alike. Changes are drawn
  from it again and again; the mean is the prediction.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from unittest import mock

from benchmarks.isolated_engine import IsolatedEngine, remove_built_images, start_engine
from benchmarks.scale.factory import Factory
from benchmarks.scale.measure import compute_cores, list_candidates, read_repositories, sum_step_seconds, time_storing
from benchmarks.scale.plan import SQLITE, Plan
from benchmarks.scale.population import SimulatedChange, SimulatedRepository
from benchmarks.scale.profile import MeasuredChange, MeasuredRepository, Profile
from mergemill.cli import run_command_line
from taskdb.store import Store

ALLOWED_ERROR = 0.15
STAGES = ("build", "verify", "judge", "derive", "certify")
SLICE_SECONDS = 2.0
DRAWS = 200
BURN_SECONDS = 2.0
BURN_ROUNDS = 3
SAME, OTHERS = "runs of the same changes, stage by stage", "other changes of the same repositories"


@dataclass(frozen=True)
class Calibration:
    """What a run with one worker, stage by stage, gave."""

    profile: Profile
    fixed_seconds: float
    """Of a `run` that finds nothing to do: start, mining, reading the database."""
    efficiency: tuple[float, ...]


@dataclass(frozen=True)
class RealRun:
    """A run with some workers: wall and CPU seconds, and the load of the machine in the minute before it."""

    workers: int
    seconds: float
    cpu: float
    load: float


@dataclass(frozen=True)
class Comparison:
    """A prediction and the run that it is about."""

    basis: str
    changes: int
    predicted: float
    low: float
    high: float
    """5 and 95 % of the draws from both calibrations."""
    run: RealRun

    @property
    def error(self) -> float:
        """Share by which the prediction is too long."""
        return self.predicted / self.run.seconds - 1

    @property
    def holds(self) -> bool:
        """Whether the prediction is within the goal."""
        return abs(self.error) <= ALLOWED_ERROR


def check(
    sources: Sequence[str], out: Path, *, limit: int, workers: Sequence[int], until: str | None, bases: Sequence[str]
) -> list[Comparison]:
    """Build all once, calibrate, run and compare; `out` is given all databases, and `check.json` with the numbers.

    Args:
        sources: whose changes are run.
        out: a folder that does not exist, or is empty.
        limit: candidates of each source, of both halves together.
        workers: numbers of workers of the real runs.
        until: newest day of a change.
        bases: patterns of the base images that the engine begins with.

    Raises:
        SystemExit: a stage fails.
        MachineError: an engine of its own cannot be started.
    """
    out.mkdir(parents=True, exist_ok=True)
    scope = [*sources, "--limit", str(limit), *(["--until", until] if until else [])]
    efficiency = measure_efficiency(os.cpu_count() or 1)
    with start_engine(out / "engine", bases) as engine, mock.patch.dict(os.environ, DOCKER_HOST=engine.host):
        others, predicted = divide(find_candidates(scope, out / "mined"))
        halves = ((SAME, predicted, "same"), (OTHERS, others, "others"))
        calibrations: dict[str, list[Calibration]] = {basis: [] for basis, _, _ in halves}

        def calibrate_halves(when: str) -> None:
            for basis, names, folder in halves:
                calibration = calibrate(scope, names, out / f"{folder}-{when}", engine, efficiency)
                calibrations[basis].append(calibration)

        run_stage(["build", *scope, "--workers", str(os.cpu_count() or 1)], out / "mined")
        calibrate_halves("before")
        runs = [run_for_real(scope, predicted, n, out / f"workers-{n}", engine) for n in workers]
        calibrate_halves("after")
    comparisons = compare(calibrations, runs)
    _write_numbers(out / "check.json", comparisons, calibrations)
    return comparisons


def compare(calibrations: Mapping[str, Sequence[Calibration]], runs: Sequence[RealRun]) -> list[Comparison]:
    """Compare runs of the changes of `calibrations[SAME]` with what each basis predicts."""
    comparisons = []
    counts = count_of(calibrations[SAME][0])
    for basis, group in calibrations.items():
        for run in runs:
            times = [
                time
                for calibration in group
                for time in predict(calibration, run.workers, None if basis == SAME else counts)
            ]
            bounds, mean = statistics.quantiles(times, n=20), statistics.mean(times)
            comparisons.append(Comparison(basis, sum(counts), mean, bounds[0], bounds[-1], run))
    return comparisons


def count_of(calibration: Calibration) -> list[int]:
    """Return the number of changes of each repository."""
    return [len(repository.changes) for repository in calibration.profile.repositories]


def _write_numbers(
    path: Path, comparisons: Sequence[Comparison], calibrations: Mapping[str, Sequence[Calibration]]
) -> None:
    numbers = {
        "comparisons": [
            asdict(comparison) | {"error": comparison.error, "holds": comparison.holds} for comparison in comparisons
        ],
        "calibrations": {
            basis: [
                {
                    "cores": dict(calibration.profile.cores),
                    "fixed_seconds": calibration.fixed_seconds,
                    "efficiency": calibration.efficiency,
                    "seconds": {
                        str(k): v
                        for k, v in sum_step_seconds(calibration.profile.repositories, with_layers=True).items()
                    },
                }
                for calibration in group
            ]
            for basis, group in calibrations.items()
        },
    }
    path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------------------ real runs


def run_stage(arguments: Sequence[str], folder: Path) -> float:
    """Run a command of mergemill on a folder's database; return its wall seconds.

    Raises:
        SystemExit: the command fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    if code := run_command_line(["--quiet", *arguments, "--db", f"sqlite:///{folder.absolute()}/scale.db"]):
        raise SystemExit(code)
    return time.perf_counter() - started


def open_store(folder: Path) -> Store:
    """Open the database of a folder."""
    return Store.open(f"sqlite:///{folder.absolute()}/scale.db", create=False)


def find_candidates(scope: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """Mine the sources; return the names of each repository's candidates, newest first."""
    run_stage(["mine", *scope], folder)
    names: dict[str, list[str]] = {}
    with open_store(folder) as store:
        for name, repo, _ in list_candidates(store):
            names.setdefault(repo, []).append(name)
    return names


def divide(candidates: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """Divide each repository's candidates, every second one to each half."""
    halves = [[name for names in candidates.values() for name in names[first::2]] for first in (0, 1)]
    return halves[0], halves[1]


def calibrate(
    scope: Sequence[str], names: Sequence[str], folder: Path, engine: IsolatedEngine, efficiency: tuple[float, ...]
) -> Calibration:
    """Run changes with one worker, stage by stage, on an engine with base images alone."""
    remove_built_images(engine)
    chosen = [*scope, "--only", ",".join(names), "--workers", "1"]
    run_stage(["mine", *scope], folder)
    cpu = {}
    for stage in STAGES:
        before = engine.group.read_cpu_seconds()
        run_stage([stage, *chosen], folder)
        cpu[stage] = engine.group.read_cpu_seconds() - before
    fixed = run_stage(["run", *chosen], folder)
    numbers = count()
    with open_store(folder) as store:
        store_times = time_storing(store, lambda: Store.open(f"sqlite:///{folder.absolute()}/{next(numbers)}.db"), 1)
        repositories = _select(read_repositories(store), store, names)
    profile = Profile(
        sources=(),
        repositories=repositories,
        cores=compute_cores(cpu, sum_step_seconds(repositories, with_layers=True)),
        store={SQLITE: store_times},
        artifact_bytes=0,
        database_bytes=0,
    )
    return Calibration(profile, fixed, efficiency)


def _select(
    repositories: Sequence[MeasuredRepository], store: Store, names: Sequence[str]
) -> tuple[MeasuredRepository, ...]:
    """Return the repositories with the named candidates alone; the others were mined and not processed."""
    chosen = set(names)
    by_repository: dict[str, list[str]] = {}
    for name, repo, _ in list_candidates(store):
        by_repository.setdefault(repo, []).append(name)
    ordered = iter([name in chosen for of in by_repository.values() for name in of])
    return tuple(
        replace(repository, changes=tuple(change for change in repository.changes if next(ordered)))
        for repository in repositories
    )


def run_for_real(
    scope: Sequence[str], names: Sequence[str], workers: int, folder: Path, engine: IsolatedEngine
) -> RealRun:
    """Run changes through all stages in a new database."""
    remove_built_images(engine)
    load = os.getloadavg()[0]
    before = engine.group.read_cpu_seconds()
    seconds = run_stage(["run", *scope, "--only", ",".join(names), "--workers", str(workers)], folder)
    return RealRun(workers, seconds, engine.group.read_cpu_seconds() - before, load)


# ---------------------------------------------------------------------------------------------------- predictions


def predict(
    calibration: Calibration, workers: int, drawn: Sequence[int] | None = None, *, draws: int = DRAWS, seed: int = 0
) -> list[float]:
    """Return the predicted wall seconds of a run, once for each draw.

    Args:
        calibration: what is known.
        workers: of the run.
        drawn: number of changes of each repository, which are drawn from those of the calibration; None: the
            calibration's own changes in their order.
        draws: number of draws, also of the moments at which workers wait.
        seed: of the draws.
    """
    times = []
    counts = drawn or count_of(calibration)
    for number in range(draws):
        rng = random.Random(seed + number)  # noqa: S311 - no secret
        repositories = [
            _Listed(index, repository, rng.choices(repository.changes, k=n) if drawn else repository.changes)
            for index, (repository, n) in enumerate(zip(calibration.profile.repositories, counts, strict=True))
            if repository.changes
        ]
        plan = Plan(
            repositories=len(repositories),
            nodes=1,
            sandboxes_per_node=workers,
            cores=len(calibration.efficiency),
            sandbox_memory_gb=0,
            node_failures_per_1000_hours=0,
            judge_requests=0,
            slice_seconds=SLICE_SECONDS,
            efficiency=calibration.efficiency,
        )
        factory = Factory(plan, calibration.profile, repositories, rng, is_local=True)
        factory.run()
        times.append(factory.loop.now + calibration.fixed_seconds)
    return times


class _Listed(SimulatedRepository):
    """A repository with given candidates."""

    def __init__(self, number: int, of: MeasuredRepository, changes: Sequence[MeasuredChange]) -> None:
        super().__init__(number, of.language, 0, 0.0, 0.0, 0.0, changes, len(changes))

    def list_changes(self, rng: random.Random) -> list[SimulatedChange]:
        """Return the candidates in their order."""
        del rng
        return [
            SimulatedChange(
                self, number, change, None if change.dependency is None else (self.number, change.dependency, 0)
            )
            for number, change in enumerate(self.measured)
        ]


def measure_efficiency(cores: int) -> tuple[float, ...]:
    """Return the speed of a core when 1, 2, ... cores compute, as a share of that of one alone."""
    best = []
    for busy in range(1, cores + 1):
        with multiprocessing.get_context("spawn").Pool(busy) as pool:
            rounds = [statistics.mean(pool.map(_burn, [BURN_SECONDS] * busy, 1)) for _ in range(BURN_ROUNDS)]
        best.append(max(rounds))
    return tuple(round(min(1.0, speed / best[0]), 3) for speed in best)


def _burn(seconds: float) -> float:
    """Compute for some seconds; return the loops per CPU second, so that waiting for a core does not count."""
    n, total, end = 0, 0, time.perf_counter() + seconds
    used = time.process_time()
    while time.perf_counter() < end:
        total += sum(range(1000))
        n += 1
    return n / (time.process_time() - used)


def render_check(comparisons: Sequence[Comparison]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| predicted from | workers | predicted s | 5 to 95 % | real s | CPU s | load before | error | within 15 % |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in comparisons:
        run, draws = row.run, f"{row.low:.0f}-{row.high:.0f}" if row.low != row.high else ""
        lines.append(
            f"| {row.basis} | {run.workers} | {row.predicted:.0f} | {draws} | {run.seconds:.0f} | {run.cpu:.0f} "
            f"| {run.load:.1f} | {row.error:+.1%} | {'yes' if row.holds else '**no**'} |"
        )
    return "\n".join(lines) + "\n"
