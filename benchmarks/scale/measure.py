"""Read a profile from the databases of real runs.

Steps, outcomes and sizes come from the databases; CPU seconds of the stages from `usage.json` of `benchmarks.cost`.
What the driver takes to store a result is measured by storing the same results again in a new database.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sqlalchemy import text

from benchmarks.isolated_engine import measure_bytes
from benchmarks.scale.profile import (
    EnvironmentShare,
    MeasuredChange,
    MeasuredRepository,
    MeasuredStep,
    MinedHistory,
    StoreTimes,
)
from mergemill.cli import run_command_line
from taskdb.records import (
    Candidate,
    Certificate,
    Environment,
    Kind,
    PullRequest,
    Record,
    Rejection,
    Stage,
    Task,
    Verification,
)
from taskdb.records.tags import Tags
from taskdb.records.verdicts import Verdict
from taskdb.records.work import StageResult
from taskdb.store import Store

ROUNDS = 3
"""Times that results are stored again; of each result the shortest time is used."""
BATCH_SIZE = 200
"""Mined changes of one transaction, as in the pipeline."""
_RECORDS = (Candidate, Environment, Verification, Verdict, Task, Certificate, Rejection)


def read_repositories(cold: Store, warm: Store | None = None) -> tuple[MeasuredRepository, ...]:
    """Return the candidates of a run with their steps.

    Args:
        cold: database of a run that made every layer.
        warm: database of a second run over the same sources, on the engine that then had all layers. Its seconds are
            used for every step, and the difference of the builds is what a dependency layer takes. Without it, that is
            the difference to builds of the same repository whose layer existed.
    """
    candidates = list_candidates(cold)
    events = _read_events(cold)
    warm_events = _read_events(warm) if warm else {}
    environments = {environment.name: environment for environment in cold.load_all(Environment)}
    repositories = []
    for repo in dict.fromkeys(row[1] for row in candidates):
        names = [name for name, of, _ in candidates if of == repo]
        layers = _number_layers(names, environments, events)
        builds = {name: _get_build_seconds(events.get(name, ())) for name in names}
        warm_builds = {name: _get_build_seconds(warm_events.get(name, ())) for name in names} if warm else {}
        extra = _compute_dependency_seconds(layers, builds, warm_builds)
        changes = []
        for name in names:
            number, is_first = layers.get(name, (None, False))
            steps = warm_events.get(name) or events.get(name, ())
            if is_first and number is not None and name not in warm_events:
                steps = tuple(_shorten_build(step, extra[number]) for step in steps)
            own = environments[name].image_bytes if name in environments else 0
            changes.append(MeasuredChange(steps, number, 0.0 if number is None else extra[number], own))
        language = next(language for _, of, language in candidates if of == repo)
        repositories.append(MeasuredRepository(language, tuple(changes)))
    return tuple(repositories)


def list_candidates(store: Store) -> list[tuple[str, ...]]:
    """Return name, repository and language of all candidates in the order in which they were mined."""
    return _read(
        store,
        """SELECT c.name, c.repo, c.language FROM candidates c
           JOIN events e ON e.name = c.name AND e.source = c.source AND e.stage = 'mine' AND e.ok ORDER BY e.seq""",
    )


def _read(store: Store, query: str) -> list[tuple[str, ...]]:
    with store.read_transaction() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def _read_events(store: Store) -> dict[str, tuple[MeasuredStep, ...]]:
    """Return the steps of each change after mining, in the order in which they ended."""
    query = "SELECT name, stage, ok, reason, kind, seconds FROM events WHERE stage <> 'mine' ORDER BY seq"
    steps: dict[str, list[MeasuredStep]] = defaultdict(list)
    for name, stage, ok, reason, kind, seconds in _read(store, query):
        steps[name].append(MeasuredStep(stage, "ok" if ok else reason, kind or "", round(float(seconds), 4)))
    return {name: tuple(of) for name, of in steps.items()}


def _get_build_seconds(steps: Sequence[MeasuredStep]) -> float | None:
    return next((step.seconds for step in steps if step.stage == Stage.BUILD), None)


def _number_layers(
    names: Sequence[str], environments: Mapping[str, Environment], events: Mapping[str, Sequence[MeasuredStep]]
) -> dict[str, tuple[int, bool]]:
    """Return the number of each change's dependency layer, and whether it was the first of the run to need it."""
    numbers: dict[str, int] = {}
    result = {}
    for name in [name for name in events if name in environments and name in set(names)]:
        image = environments[name].plan.dependency_image
        is_first = image not in numbers
        result[name] = numbers.setdefault(image, len(numbers)), is_first
    return result


def _compute_dependency_seconds(
    layers: Mapping[str, tuple[int, bool]], builds: Mapping[str, float | None], warm_builds: Mapping[str, float | None]
) -> dict[int, float]:
    """Return what each dependency layer took to make."""
    later = [builds[name] for name, (_, is_first) in layers.items() if not is_first]
    usual = statistics.median([seconds for seconds in later if seconds is not None] or [0.0])
    extra = {}
    for name, (number, is_first) in layers.items():
        build, warm = builds[name], warm_builds.get(name)
        if is_first and build is not None:
            same = [builds[other] for other, (of, first) in layers.items() if of == number and not first]
            known = [seconds for seconds in same if seconds is not None]
            without = warm if warm is not None else statistics.median(known) if known else usual or build
            extra[number] = round(max(0.0, build - without), 4)
    return extra


def _shorten_build(step: MeasuredStep, seconds: float) -> MeasuredStep:
    if step.stage != Stage.BUILD:
        return step
    return MeasuredStep(step.stage, step.outcome, step.kind, round(step.seconds - seconds, 4))


def sum_step_seconds(repositories: Sequence[MeasuredRepository], *, with_layers: bool = False) -> dict[str, float]:
    """Return the wall seconds of each stage, in all workers together.

    `with_layers`: each dependency layer is made once, as in a run on one engine.
    """
    seconds: dict[str, float] = defaultdict(float)
    for repository in repositories:
        layers = {change.dependency: change.dependency_seconds for change in repository.changes}
        seconds[Stage.BUILD] += sum(layers.values()) if with_layers else 0.0
        for change in repository.changes:
            for step in change.steps:
                seconds[step.stage] += step.seconds
    return seconds


def compute_cores(cpu_seconds: Mapping[str, float], step_seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the cores that a worker keeps busy in each stage. Arguments: stage -> seconds."""
    return {
        stage: round(cpu_seconds[stage] / seconds, 3)
        for stage, seconds in step_seconds.items()
        if stage in cpu_seconds and seconds > 0
    }


def read_cpu_seconds(usage: Path, phase: str) -> dict[str, float]:
    """Return the CPU seconds of each stage in a phase of `benchmarks.cost`."""
    stages = json.loads(usage.read_text(encoding="utf-8"))["stages"]
    return {
        name.removeprefix(f"{phase} "): used["cpu_seconds"]
        for name, used in stages.items()
        if name.startswith(f"{phase} ")
    }


def mine_histories(clones: Sequence[Path], folder: Path, limit: int) -> tuple[MinedHistory, ...]:
    """Mine clones, one after another, into a new database.

    Their seconds are CPU seconds of this process and of git, which other work of the machine changes little; one after
    the other, they are the wall seconds of an idle machine.

    Args:
        clones: clones whose histories are read. One that cannot be read, for lack of objects, is left out.
        folder: is given the database.
        limit: candidates of a history after which its mining ends.
    """
    db, histories = f"sqlite:///{folder.absolute()}/mined.db", []
    for clone in clones:
        before = sum(os.times()[:4])
        if run_command_line(["--quiet", "mine", f"git:{clone.absolute()}", "--limit", str(limit), "--db", db]):
            continue
        seconds = sum(os.times()[:4]) - before
        with Store.open(db, create=False) as store:
            query = "SELECT source, count(*), coalesce(sum(ok), 0) FROM events WHERE stage = 'mine' GROUP BY source"
            counts = {source: (int(n), int(ok)) for source, n, ok in _read(store, query)}
        changes, candidates = counts.get(f"git:{clone.absolute()}", (0, 0))
        histories.append(MinedHistory(changes, candidates, round(seconds, 3), measure_bytes(clone.resolve())))
    return tuple(histories)


def read_draws(paths: Sequence[Path]) -> EnvironmentShare:
    """Return the share of environments in rows of `benchmarks.environments`; a repository that recurs is one."""
    rows = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows[row["repo"], row["commit"]] = row
    accepted = [row for row in rows.values() if row["step"] == "accepted"]
    rejected = [row for row in rows.values() if row["step"] != "accepted"]
    return EnvironmentShare(
        n=len(rows),
        accepted=len(accepted),
        rejected_seconds=tuple(sorted(row["seconds"] for row in rejected)),
        dependency_bytes=tuple(sorted(round(row["shared_mb"] * 1e6) for row in accepted)),
    )


def measure_sizes(database: Path, store: Store) -> tuple[float, float]:
    """Return the bytes of artifacts for each candidate, and those of the database for each mined change, on disk."""
    ((candidates, changes),) = _read(store, "SELECT (SELECT count(*) FROM candidates), (SELECT count(*) FROM changes)")
    artifacts = database.parent / "mergemill-store" / "artifacts"
    return (
        measure_bytes(artifacts) / max(1, int(candidates)) if artifacts.is_dir() else 0.0,
        database.stat().st_size / max(1, int(changes)),
    )


def time_storing(source: Store, open_target: Callable[[], Store], rounds: int = ROUNDS) -> StoreTimes:
    """Store the results of a database again, one after another, and return what each takes.

    The process's CPU seconds count as the driver's own, the rest of the time as the database's.

    Args:
        source: is read.
        open_target: opens another new database each time.
        rounds: the shortest of so many times is used.
    """
    best: list[tuple[str, float, float]] = []
    for _ in range(rounds):
        with open_target() as target:
            times = _store_results(source, target)
        best = [min(pair, key=lambda row: row[1] + row[2]) for pair in zip(best, times, strict=True)] if best else times
    stages: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for stage, own, database in best:
        stages[stage].append((round(own, 6), round(database, 6)))
    return StoreTimes({stage: tuple(pairs) for stage, pairs in stages.items()})


def _store_results(source: Store, target: Store) -> list[tuple[str, float, float]]:
    records: dict[str, Record] = {record.id: record for kind in _RECORDS for record in source.load_all(kind)}
    pulls = {pull.id: pull for pull in source.load_all(PullRequest)}
    tags = {record.parent: record for record in source.load_all(Tags)}
    query = "SELECT stage, name, source, record, parent, seconds, kind FROM events ORDER BY seq"
    times: list[tuple[str, float, float]] = []
    mined = []
    for stage, name, of, record, parent, seconds, kind in _read(source, query):
        if stage == Stage.MINE:
            mined.append((pulls[parent], records[record], float(seconds)))
            continue
        if mined:
            times += _store_mined(target, mined, tags)
            mined = []
        result = StageResult(
            stage=Stage(stage),
            result=records[record],
            source=of,
            name=name,
            seconds=float(seconds),
            kind=Kind(kind) if kind else None,
        )
        times.append((stage, *_measure(lambda result=result: target.add_stage_results(result))))  # type: ignore[misc]
    return times + _store_mined(target, mined, tags)


def _store_mined(
    target: Store, mined: Sequence[tuple[PullRequest, Record, float]], tags: Mapping[str, Tags]
) -> list[tuple[str, float, float]]:
    times = []
    for start in range(0, len(mined), BATCH_SIZE):
        batch = mined[start : start + BATCH_SIZE]
        of = [tags[pull.id] for pull, _, _ in batch if pull.id in tags]
        own, database = _measure(lambda batch=batch, of=of: target.add_mined_changes(*batch, tags=of))  # type: ignore[misc]
        times += [(Stage.MINE.value, own / len(batch), database / len(batch))] * len(batch)
    return times


def _measure(function: Callable[[], object]) -> tuple[float, float]:
    wall, own = time.perf_counter(), time.process_time()
    function()
    own, wall = time.process_time() - own, time.perf_counter() - wall
    return min(own, wall), max(0.0, wall - own)
