"""The simulator of large runs: closed-form cases, what is conserved, and the profile of a real database."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scale import check, tables
from benchmarks.scale.__main__ import main
from benchmarks.scale.check import Calibration, Comparison, RealRun, divide, predict, render_check
from benchmarks.scale.events import EventLoop, Process, RateLimit, Servers, SharedCores
from benchmarks.scale.factory import Factory
from benchmarks.scale.measure import (
    compute_cores,
    measure_sizes,
    mine_histories,
    read_cpu_seconds,
    read_draws,
    read_repositories,
    sum_step_seconds,
    time_storing,
)
from benchmarks.scale.nodes import ImageCache
from benchmarks.scale.plan import POSTGRESQL, REPOSITORY, Plan
from benchmarks.scale.population import SimulatedRepository, draw_repositories
from benchmarks.scale.profile import (
    PROFILE,
    EnvironmentShare,
    MeasuredChange,
    MeasuredRepository,
    MeasuredStep,
    MinedHistory,
    Profile,
    StoreTimes,
    load_profile,
)
from benchmarks.scale.search import find_nodes
from benchmarks.scale.simulate import LONGEST, simulate
from core.errors import InputError
from taskdb.records import Kind, Rejection, Stage
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests.records import (
    PLAN,
    make_candidate,
    make_certificate,
    make_environment,
    make_pull_request,
    make_tags,
    make_task,
    make_verdict,
    make_verification,
)
from tests.sample import make_sample

FREE: dict[str, Any] = {
    "node_failures_per_1000_hours": 0,
    "request_seconds": 0.0,
    "clone_gbit": 1e9,
    "judge_requests": 0,
    "base_bytes": 0.0,
    "registry_gbit": 1e9,
    "node_gbit": 1e9,
}
"""Parts of a plan in which services take no time."""


def make_step(stage: str, seconds: float, outcome: str = "ok") -> MeasuredStep:
    return MeasuredStep(stage, outcome, "", seconds)


def make_change(*seconds: float, layer: int | None = 0, layer_seconds: float = 0.0) -> MeasuredChange:
    stages = ("build", "verify", "certify")
    steps = tuple(make_step(stage, second) for stage, second in zip(stages, seconds, strict=False))
    return MeasuredChange(steps, layer, layer_seconds, image_bytes=1_000_000)


def make_profile(
    *changes: MeasuredChange,
    store: float = 0.0,
    candidates: int = 10,
    mining: float = 0.0,
    accepted: int = 100,
    changes_per_history: int = 0,
) -> Profile:
    """Return a profile of one repository; `store`: seconds of the driver for each result."""
    stages = ("mine", "build", "verify", "judge", "derive", "certify")
    return Profile(
        sources=("a test",),
        repositories=(MeasuredRepository("python", changes),),
        cores={},
        store={
            "sqlite": StoreTimes(dict.fromkeys(stages, ((store, 0.0),))),
            "postgresql": StoreTimes(dict.fromkeys(stages, ((store / 2, store / 2),))),
        },
        artifact_bytes=1e6,
        database_bytes=1e3,
        mined_limit=100,
        histories=(MinedHistory(changes_per_history, candidates, mining, 0),),
        environments=EnvironmentShare(100, accepted, (7.0,), (100_000_000,)),
    )


def use_each(*actions: Any) -> Process:
    yield from actions


# -------------------------------------------------------------------------------------------------- resources


def test_one_server_serves_one_after_the_other() -> None:
    loop = EventLoop()
    server, ends = Servers(loop), list[float]()

    def arrive(at: float) -> Process:
        yield loop.wait(at)
        yield server.use(2)
        ends.append(loop.now)

    for at in (0, 0.5, 1, 10):
        loop.start(arrive(at))
    loop.run()
    assert ends == [2, 4, 6, 12]
    assert server.usage.read() == 8


def test_calls_of_the_same_moment_keep_their_order() -> None:
    loop, called = EventLoop(), list[int]()
    for number in range(5):
        loop.call_at(1.0, lambda number=number: called.append(number))  # type: ignore[misc]
    loop.run()
    assert called == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("servers", "seconds"), [(1, 12), (2, 6), (3, 4), (4, 4), (6, 2), (100, 2)])
def test_equal_servers_divide_the_work(servers: int, seconds: float) -> None:
    loop = EventLoop()
    pool = Servers(loop, servers)
    for _ in range(6):
        loop.start(use_each(pool.use(2)))
    loop.run()
    assert loop.now == seconds


@pytest.mark.parametrize(
    ("workers", "cores", "seconds"),
    [(1, 2, 10), (2, 2, 10), (4, 2, 20), (3, 2, 15), (5, 4, 12.5)],
)
def test_cores_are_shared_evenly(workers: int, cores: int, seconds: float) -> None:
    loop = EventLoop()
    shared = SharedCores(loop, cores)
    for _ in range(workers):
        loop.start(use_each(shared.compute(10)))
    loop.run()
    assert loop.now == pytest.approx(seconds)
    assert shared.usage.read() == pytest.approx(10 * workers)


def test_work_that_comes_later_slows_down_what_runs() -> None:
    loop = EventLoop()
    shared, ends = SharedCores(loop, 1), dict[str, float]()

    def compute(name: str, at: float, seconds: float) -> Process:
        yield loop.wait(at)
        yield shared.compute(seconds)
        ends[name] = loop.now

    loop.start(compute("long", 0, 10))
    loop.start(compute("short", 4, 2))
    loop.run()
    assert ends == {"short": pytest.approx(8), "long": pytest.approx(12)}


def test_busy_cores_may_be_slower_each() -> None:
    loop = EventLoop()
    shared = SharedCores(loop, 2, (1.0, 0.8))
    for _ in range(2):
        loop.start(use_each(shared.compute(8)))
    loop.run()
    assert loop.now == pytest.approx(10)


def test_a_budget_pays_what_is_saved_and_then_its_rate() -> None:
    loop = EventLoop()
    budget, ends = RateLimit(loop, rate=2, burst=10), list[float]()

    def spend() -> Process:
        yield budget.spend(5)
        ends.append(loop.now)

    for _ in range(4):
        loop.start(spend())
    loop.run()
    assert ends == [0, 0, 2.5, 5]
    assert budget.usage.read() == 5


# ------------------------------------------------------------------------------------------------------ images


def hold_briefly(loop: EventLoop, cache: ImageCache, image: str, size: float, made: list[str]) -> Process:
    def make() -> Process:
        made.append(image)
        yield loop.wait(1)

    yield from cache.hold(image, size, make)
    cache.release(image)


def test_a_full_disk_loses_the_images_that_were_used_least_recently() -> None:
    loop, made = EventLoop(), list[str]()
    cache = ImageCache(loop, capacity=10)

    def work() -> Process:
        for image in ("a", "b", "a", "c", "a", "b"):
            yield from hold_briefly(loop, cache, image, 4, made)

    loop.start(work())
    loop.run()
    assert made == ["a", "b", "c", "b"]
    assert (cache.bytes, cache.n_evicted) == (8, 2)


def test_an_image_in_use_is_kept_whatever_the_disk_has() -> None:
    loop, made = EventLoop(), list[str]()
    cache = ImageCache(loop, capacity=5)

    def hold_long() -> Process:
        yield from cache.hold("a", 4, lambda: use_each(loop.wait(1)))
        yield loop.wait(100)
        cache.release("a")

    def work() -> Process:
        yield loop.wait(2)
        yield from hold_briefly(loop, cache, "b", 4, made)
        yield from cache.hold("a", 4, lambda: use_each(loop.wait(1000)))

    loop.start(hold_long())
    loop.start(work())
    loop.run()
    assert loop.now == 101


def test_one_makes_an_image_while_others_wait() -> None:
    loop, made = EventLoop(), list[str]()
    cache = ImageCache(loop, capacity=100)
    for _ in range(3):
        loop.start(hold_briefly(loop, cache, "a", 1, made))
    loop.run()
    assert (made, loop.now) == (["a"], 1)


# ------------------------------------------------------------------------------------------------- whole runs


def make_plan(**changes: Any) -> Plan:
    fields: dict[str, Any] = {"repositories": 4, "limit": 10, "nodes": 1, "sandboxes_per_node": 1, "cores": 64}
    return Plan(**FREE | fields | changes)


def test_one_worker_needs_the_sum_of_all_seconds() -> None:
    outcome = simulate(make_plan(), make_profile(make_change(1, 5, 4)))
    assert outcome.hours * 3600 == pytest.approx(4 * 10 * 10)
    assert outcome.totals.tasks == 40
    assert outcome.bottleneck == "sandboxes"
    assert outcome.usage["sandboxes"] == pytest.approx(1)


@pytest.mark.parametrize(("workers", "rounds"), [(2, 20), (8, 5), (40, 1), (60, 1)])
def test_workers_with_cores_of_their_own_divide_the_time(workers: int, rounds: int) -> None:
    outcome = simulate(make_plan(sandboxes_per_node=workers), make_profile(make_change(1, 5, 4)))
    assert outcome.hours * 3600 == pytest.approx(rounds * 10)


@pytest.mark.parametrize("slice_seconds", [None, 1.0])
def test_four_workers_on_two_cores_are_as_fast_as_two(slice_seconds: float | None) -> None:
    plan = make_plan(sandboxes_per_node=4, cores=2, slice_seconds=slice_seconds)
    outcome = simulate(plan, make_profile(make_change(1, 5, 4)))
    assert outcome.hours * 3600 == pytest.approx(4 * 10 * 10 / 2, rel=0.01)
    assert outcome.bottleneck == "cores"


@pytest.mark.parametrize(("workers", "seconds"), [(1, 400), (2, 200), (4, 100), (8, 100)])
def test_workers_that_wait_half_of_the_time_leave_room_for_others(workers: int, seconds: float) -> None:
    profile = replace(make_profile(make_change(1, 5, 4)), cores={"build": 0.5, "verify": 0.5, "certify": 0.5})
    outcome = simulate(make_plan(sandboxes_per_node=workers, cores=2), profile)
    assert outcome.hours * 3600 == pytest.approx(seconds)


def test_a_slow_driver_stores_one_result_after_the_other() -> None:
    outcome = simulate(make_plan(sandboxes_per_node=40), make_profile(make_change(1, 1, 1), store=2.0))
    assert outcome.hours * 3600 == pytest.approx(4 * 10 * 3 * 2, rel=0.02)
    assert outcome.bottleneck == "database"  # of SQLite, which has one writer


def test_drivers_share_results_and_postgresql_its_cores() -> None:
    profile = make_profile(make_change(1, 1, 1), store=2.0)
    simulated = simulate(make_plan(sandboxes_per_node=40, database=POSTGRESQL), profile)
    four = simulate(make_plan(sandboxes_per_node=40, database=POSTGRESQL, drivers=4), profile)
    narrow = simulate(make_plan(sandboxes_per_node=40, database=POSTGRESQL, drivers=4, database_cores=1), profile)
    assert simulated.bottleneck == "driver"
    assert simulated.hours / four.hours == pytest.approx(4, rel=0.1)
    assert narrow.hours * 3600 == pytest.approx(4 * 10 * 3 * 1, rel=0.05)
    assert narrow.bottleneck == "database"


def test_mining_waits_for_the_budget_of_the_forge() -> None:
    profile = make_profile(make_change(1, 1, 1), changes_per_history=30_000)
    points = 3 + 990
    plan = make_plan(repositories=60, sandboxes_per_node=64)
    first, two = simulate(plan, profile), simulate(replace(plan, tokens=2), profile)
    assert first.hours == pytest.approx((60 * points - 5000) / 5000, rel=0.02)
    assert two.hours == pytest.approx((60 * points - 10_000) / 10_000, rel=0.02)
    assert first.bottleneck == "forge"


def test_a_driver_that_mines_is_slower_than_miners() -> None:
    profile = make_profile(make_change(0.1, 0.1, 0.1), mining=100.0)
    plan = make_plan(repositories=20, sandboxes_per_node=64)
    alone, miners = simulate(plan, profile), simulate(replace(plan, miners=10), profile)
    assert alone.hours * 3600 == pytest.approx(2000, rel=0.01)
    assert miners.hours * 3600 == pytest.approx(200, rel=0.02)
    assert alone.bottleneck == "mining"


def test_a_judge_answers_at_its_rate() -> None:
    plan = make_plan(sandboxes_per_node=40, judge_requests=2, judge_per_minute=10, judge_seconds=3)
    outcome = simulate(plan, make_profile(make_change(0, 0, 0)))
    assert outcome.hours * 3600 == pytest.approx(40 * 2 * 6 + 3, abs=3)
    assert outcome.totals.judge_requests == 80
    assert outcome.bottleneck == "judge"


def test_a_node_makes_a_layer_once_and_every_node_makes_it() -> None:
    profile = make_profile(make_change(1, 1, 1, layer_seconds=50))
    simulated = simulate(make_plan(repositories=1), profile)
    assert (simulated.totals.layers_made, simulated.totals.layers_found) == (10, 0)  # ten rounds of one measured change
    profile = make_profile(*[make_change(1, 1, 1, layer_seconds=50) for _ in range(10)])
    simulated = simulate(make_plan(repositories=1), profile)
    assert (simulated.totals.layers_made, simulated.totals.layers_found) == (1, 9)
    assert simulated.hours * 3600 == pytest.approx(50 + 10 * 3)
    spread = simulate(make_plan(repositories=1, nodes=10), profile)
    assert spread.totals.layers_made == 10
    assert spread.hours * 3600 == pytest.approx(53)


def test_changes_of_a_repository_on_one_node_share_its_layer() -> None:
    profile = make_profile(*[make_change(1, n, 1, layer_seconds=5) for n in range(10)])
    plan = make_plan(repositories=200, nodes=4, sandboxes_per_node=20)
    anywhere, together = simulate(plan, profile), simulate(replace(plan, placement=REPOSITORY), profile)
    assert anywhere.totals.layers_made > 2 * 200
    assert together.totals.layers_made < 1.5 * 200
    assert together.hours < anywhere.hours
    assert together.totals.tasks == anywhere.totals.tasks == 2000


def test_a_small_disk_makes_layers_again() -> None:
    profile = make_profile(*[make_change(1, 1, 1, layer=n % 2, layer_seconds=5) for n in range(10)])
    large, small = (simulate(make_plan(disk_gb=disk), profile) for disk in (2000, 0.05))
    assert large.totals.layers_made == 4 * 2
    assert small.totals.layers_made > 4 * 3
    assert (small.hours - large.hours) * 3600 == pytest.approx(
        5 * (small.totals.layers_made - large.totals.layers_made)
    )


def test_the_registry_sends_one_base_image_after_another() -> None:
    plan = make_plan(repositories=1, nodes=10, base_bytes=1e9, compression=0.5, registry_gbit=1.0, node_gbit=1.0)
    outcome = simulate(plan, make_profile(make_change(1, 1, 0, layer=0)))
    seconds = 10 * 4.0  # half a gigabyte at 1 Gbit/s for each node
    assert outcome.hours * 3600 == pytest.approx(seconds + 2, rel=0.1)


def test_a_failed_node_loses_time_and_no_change() -> None:
    profile = make_profile(make_change(10, 50, 40))
    plan = make_plan(repositories=40, nodes=4, sandboxes_per_node=4)
    calm, rough = simulate(plan, profile), simulate(replace(plan, node_failures_per_1000_hours=2000), profile)
    assert rough.totals.lost_jobs > 0
    assert rough.hours > calm.hours
    assert sum(rough.totals.changes.values()) == sum(calm.totals.changes.values()) == 400
    assert rough.totals.tasks == calm.totals.tasks


@pytest.mark.parametrize("placement", ["any", REPOSITORY])
@pytest.mark.parametrize("drivers", [1, 3])
@pytest.mark.parametrize("miners", [0, 2])
def test_every_change_ends_once(placement: str, drivers: int, miners: int) -> None:
    changes = [
        make_change(1, 5, 4),
        MeasuredChange((make_step("build", 3, "no-plan"),), None, 0.0, 0),
        MeasuredChange((make_step("build", 3), make_step("verify", 2, "no-fail-to-pass")), 1, 2.0, 5),
        MeasuredChange((), None, 0.0, 0),
    ]
    profile = make_profile(*changes, accepted=50, changes_per_history=5)
    settings: dict[str, Any] = {"placement": placement, "drivers": drivers, "miners": miners, "rollouts": 2}
    plan = make_plan(repositories=50, nodes=3, sandboxes_per_node=5, node_failures_per_1000_hours=5000, **settings)
    outcome = simulate(plan, profile)
    ends = outcome.totals.changes
    assert outcome.totals.repositories == 50
    assert sum(ends.values()) == 500
    assert set(ends) == {"certified", "build no-plan", "build rejected", "verify no-fail-to-pass", "failed"}
    assert outcome.totals.tasks == ends["certified"]
    assert outcome.totals.rollouts >= 2 * ends["certified"]  # a failed node's change queues its rollouts again


def test_rollouts_hold_sandboxes_and_share_the_model() -> None:
    settings: dict[str, Any] = {"turns": 10, "model_seconds": 5, "tool_seconds": 1, "rollouts": 3}
    plan = make_plan(repositories=1, sandboxes_per_node=64, **settings)
    profile = make_profile(make_change(1, 1, 4))
    free, narrow = simulate(plan, profile), simulate(replace(plan, model_concurrency=3), profile)
    assert free.totals.rollouts == 30
    assert free.hours * 3600 == pytest.approx(6 + 50 + 10 + 1)
    assert narrow.hours * 3600 == pytest.approx(30 * 50 / 3, rel=0.05)
    assert narrow.bottleneck == "model"


def make_varied_profile() -> Profile:
    rng = random.Random(3)
    changes = [
        make_change(*(rng.expovariate(0.1) for _ in range(3)), layer=n // 2, layer_seconds=rng.expovariate(0.1))
        for n in range(10)
    ]
    return make_profile(*changes, store=0.01, mining=0.5, accepted=63, changes_per_history=100)


def test_the_seed_decides_everything() -> None:
    plan = make_plan(repositories=30, nodes=2, sandboxes_per_node=4, node_failures_per_1000_hours=500)
    profile = make_varied_profile()
    first, again, other = (simulate(plan, profile, seed) for seed in (1, 1, 2))
    assert (first.hours, vars(first.totals), first.usage) == (again.hours, vars(again.totals), again.usage)
    assert first.hours != other.hours


def test_more_nodes_are_never_much_slower_and_make_the_same() -> None:
    profile, base = make_varied_profile(), make_plan(repositories=60, sandboxes_per_node=2)
    outcomes = [simulate(replace(base, nodes=nodes), profile) for nodes in (1, 2, 4, 8, 16)]
    hours = [outcome.hours for outcome in outcomes]
    assert all(later < earlier * 1.02 for earlier, later in pairwise(hours))
    assert hours[0] / hours[1] == pytest.approx(2, rel=0.1)
    assert all(outcome.hours >= outcome.tail_hours >= 0 for outcome in outcomes)


def test_a_hundred_thousand_sandboxes_end() -> None:
    plan = make_plan(repositories=1000, nodes=1563, sandboxes_per_node=64, miners=100, tokens=100, drivers=64, limit=30)
    outcome = simulate(plan, make_profile(*make_varied_profile().repositories[0].changes, candidates=30))
    assert plan.sandboxes == 100_032
    assert sum(outcome.totals.changes.values()) == 30_000
    assert outcome.bottleneck == LONGEST


def test_sums_of_dollars_and_bytes() -> None:
    profile = make_profile(make_change(1, 5, 4), changes_per_history=1000)
    plan = make_plan(nodes=2, sandboxes_per_node=4, cores=10, core_hour_dollars=0.5, rollouts=0)
    outcome = simulate(plan, profile)
    assert outcome.node_hours == 2 * outcome.hours
    assert outcome.dollars["nodes"] == pytest.approx(outcome.hours * 2 * 5)
    assert outcome.terabytes["artifacts"] == pytest.approx(40 * 1e6 / 1e12)
    assert outcome.terabytes["database"] == pytest.approx(4 * 1000 * 1e3 / 1e12)
    layers = 40 * 100e6  # one measured change: each of 40 candidates is a round of its own
    assert outcome.terabytes["images"] == pytest.approx((layers + 40 * 1e6) * 0.354 / 1e12)


def test_the_number_of_nodes_for_a_goal_is_the_smallest() -> None:
    profile, plan = make_profile(make_change(100, 500, 400)), make_plan(repositories=40, sandboxes_per_node=2, cores=2)
    outcome = find_nodes(plan, profile, goal_hours=10)
    assert outcome.hours <= 10
    assert simulate(replace(plan, nodes=outcome.plan.nodes - 1), profile).hours > 10
    slow = make_profile(make_change(1, 1, 1), mining=3600)
    with pytest.raises(InputError, match="more nodes do not take 2 hours: 2 take") as raised:
        find_nodes(plan, slow, goal_hours=2)
    assert "mining" in raised.value.format_line()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": 0}, "tokens must be more than 0"),
        ({"judge_seconds": -1.0}, "judge_seconds must not be negative"),
        ({"sandboxes_per_node": 65}, "at most 64 sandboxes a node"),
        ({"drivers": 2}, "at most 1 drivers"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        make_plan(**changes)
    assert message in raised.value.format_line()


def test_repositories_without_environment_cost_their_builds() -> None:
    profile = make_profile(make_change(1, 5, 4), accepted=0)
    outcome = simulate(make_plan(), profile)
    assert outcome.totals.changes == {"build rejected": 40}
    assert outcome.hours * 3600 == pytest.approx(40 * 7)


def test_a_limit_ends_the_crawl_early() -> None:
    profile = make_profile(make_change(1, 1, 1), candidates=100, mining=50.0, changes_per_history=1000)
    (repository,) = draw_repositories(make_plan(repositories=1, limit=10), profile, random.Random(0))
    assert (repository.n_changes, repository.mining_seconds, repository.n_candidates) == (100, 5.0, 10)


# ------------------------------------------------------------------------------------------- the profile


def make_database(path: Path) -> Store:
    """Return a database of four candidates: certified, rejected by verification, rejected by the build, failed."""
    store = Store.open(f"sqlite:///{path}")
    for number in (1, 2, 3, 4):
        pull = make_pull_request(number)
        candidate = make_candidate(pull)
        store.add_mined_changes((pull, candidate, 0.25), tags=[make_tags(pull)])
        results: Sequence[tuple[Stage, Any, float, Kind | None]] = ()
        plan = PLAN.model_copy(update={"dependency_steps": ("pip install six",)}) if number == 4 else PLAN
        environment = make_environment(candidate, image_bytes=number, plan=plan)
        if number == 1:
            verification = make_verification(environment)
            task = make_task(verification, candidate)
            results = (
                (Stage.BUILD, environment, 30.0, None),
                (Stage.VERIFY, verification, 20.0, None),
                (Stage.JUDGE, make_verdict(verification), 0.5, None),
                (Stage.DERIVE, task, 0.1, Kind.BUGFIX),
                (Stage.CERTIFY, make_certificate(task), 10.0, Kind.BUGFIX),
            )
        elif number == 2:
            rejection = Rejection(
                parent=environment.id,
                name=pull.name,
                source=pull.source,
                stage=Stage.VERIFY,
                reason="no-fail-to-pass",
                detail="",
            )
            results = ((Stage.BUILD, environment, 8.0, None), (Stage.VERIFY, rejection, 5.0, None))
        elif number == 3:
            rejection = Rejection(
                parent=candidate.id, name=pull.name, source=pull.source, stage=Stage.BUILD, reason="no-plan", detail=""
            )
            results = ((Stage.BUILD, rejection, 2.0, None),)
        for stage, result, seconds, kind in results:
            store.add_stage_results(
                StageResult(stage=stage, result=result, source=pull.source, name=pull.name, seconds=seconds, kind=kind)
            )
    return store


def test_steps_outcomes_and_layers_of_a_database(tmp_path: Path) -> None:
    with make_database(tmp_path / "one.db") as store:
        (repository,) = read_repositories(store)
        certified, rejected, unbuilt, failed = repository.changes
        assert [(step.stage, step.outcome, step.kind, step.seconds) for step in certified.steps] == [
            ("build", "ok", "", 8.0),  # without what the layer took
            ("verify", "ok", "", 20.0),
            ("judge", "ok", "", 0.5),
            ("derive", "ok", "bugfix", 0.1),
            ("certify", "ok", "bugfix", 10.0),
        ]
        assert (certified.dependency, certified.dependency_seconds, certified.image_bytes) == (0, 22.0, 1)
        assert (rejected.dependency, rejected.dependency_seconds, rejected.image_bytes) == (0, 22.0, 2)
        assert rejected.steps[-1] == MeasuredStep("verify", "no-fail-to-pass", "", 5.0)
        assert unbuilt == MeasuredChange((MeasuredStep("build", "no-plan", "", 2.0),), None, 0.0, 0)
        assert failed == MeasuredChange((), None, 0.0, 0)
        seconds = sum_step_seconds([repository], with_layers=True)
        assert seconds["build"] == 8 + 8 + 2 + 22
        assert compute_cores({"build": 20.0, "verify": 50.0}, seconds) == {"build": 0.5, "verify": 2.0}
        assert measure_sizes(tmp_path / "one.db", store)[1] == (tmp_path / "one.db").stat().st_size / 4


def test_a_warm_run_gives_the_seconds_and_the_difference_is_the_layer(tmp_path: Path) -> None:
    with make_database(tmp_path / "cold.db") as cold, make_database(tmp_path / "warm.db") as warm:
        with warm.write_transaction() as connection:
            connection.exec_driver_sql("UPDATE event SET seconds = seconds / 2")
        (repository,) = read_repositories(cold, warm)
        assert repository.changes[0].steps[0].seconds == 15.0
        assert repository.changes[0].dependency_seconds == repository.changes[1].dependency_seconds == 15.0


def test_every_result_is_stored_again_to_time_the_driver(tmp_path: Path) -> None:
    numbers = count()
    with make_database(tmp_path / "one.db") as store:
        times = time_storing(store, lambda: Store.open(f"sqlite:///{tmp_path}/again{next(numbers)}.db"), rounds=2)
    assert {stage: len(pairs) for stage, pairs in times.stages.items()} == {
        "mine": 4,
        "build": 3,
        "verify": 2,
        "judge": 1,
        "derive": 1,
        "certify": 1,
    }
    assert all(own > 0 and database >= 0 for pairs in times.stages.values() for own, database in pairs)
    with Store.open(f"sqlite:///{tmp_path}/again1.db", create=False) as again:
        assert read_repositories(again)[0].changes[0].steps[1].seconds == 20.0


def test_rows_of_draws_and_usage_are_read(tmp_path: Path) -> None:
    rows = [
        {"repo": "a/b", "commit": "1", "step": "accepted", "seconds": 5.0, "shared_mb": 2.0},
        {"repo": "a/c", "commit": "2", "step": "built", "seconds": 9.0, "shared_mb": 0},
        {"repo": "a/c", "commit": "2", "step": "built", "seconds": 8.0, "shared_mb": 0},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_draws([tmp_path / "rows.jsonl"]) == EnvironmentShare(2, 1, (8.0,), (2_000_000,))
    stages = {"cold build": {"cpu_seconds": 7.0}, "warm build": {"cpu_seconds": 3.0}}
    (tmp_path / "usage.json").write_text(json.dumps({"stages": stages}))
    assert read_cpu_seconds(tmp_path / "usage.json", "warm") == {"build": 3.0}


def test_histories_are_mined_up_to_a_limit(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    (whole,) = mine_histories([tmp_path / "ada__greet", tmp_path / "none"], tmp_path, limit=10)
    assert (whole.changes, whole.candidates) == (4, 2)
    assert whole.seconds > 0
    assert whole.clone_bytes > 1000
    (tmp_path / "again").mkdir()
    (short,) = mine_histories([tmp_path / "ada__greet"], tmp_path / "again", limit=1)
    assert (short.changes, short.candidates) == (1, 1)
    with pytest.raises(InputError, match="mined up to 100 candidates, fewer than 101"):
        simulate(make_plan(limit=101), make_profile(make_change(1, 1, 1)))


def test_a_profile_is_measured_written_and_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_database(tmp_path / "one.db").close()
    make_sample(tmp_path / "ada__greet")
    row = {"repo": "a/b", "commit": "1", "step": "accepted", "seconds": 5.0, "shared_mb": 2.0}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    arguments = ["--db", str(tmp_path / "one.db"), "--mine", str(tmp_path / "ada__greet")]
    arguments += ["--draws", str(tmp_path / "rows.jsonl"), "--source", "a test", "--out", str(tmp_path / "p.json")]
    assert main(["measure", *arguments]) == 0
    profile = load_profile(tmp_path / "p.json")
    assert profile.sources == ("a test",)
    profile.save(tmp_path / "again.json")
    assert load_profile(tmp_path / "again.json") == profile
    arguments = ["--profile", str(tmp_path / "p.json"), "--repositories", "20", "--nodes", "2"]
    assert main(["simulate", *arguments, "--workers-per-node", "4"]) == 0
    shown = capsys.readouterr().out
    assert "2 nodes with 8 sandboxes" in shown
    assert "20 repositories, 80 changes, 40 candidates" in shown
    assert main(["simulate", *arguments, "--goal-hours", "1e-9"]) == InputError.exit_code
    assert "more nodes do not take" in capsys.readouterr().err


def test_other_files_are_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text('{"format": 2}')
    assert main(["simulate", "--profile", str(tmp_path / "other.json")]) == InputError.exit_code
    assert main(["simulate", "--profile", str(tmp_path / "none.json")]) == InputError.exit_code
    shown = capsys.readouterr().err
    assert "is no profile of format 1" in shown
    assert "cannot read the profile" in shown


def test_the_committed_profile_has_numbers_alone() -> None:
    profile = load_profile(PROFILE)
    assert sum(len(repository.changes) for repository in profile.repositories) >= 50
    assert set(profile.store) == {"sqlite", "postgresql"}
    assert len(profile.histories) >= 20
    assert "/" not in "".join(
        step.outcome for repository in profile.repositories for c in repository.changes for step in c.steps
    )


def test_the_answers_have_a_row_for_each_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SANDBOXES", (1, 128))
    monkeypatch.setattr(tables, "LEAST_WIDE", 100)
    monkeypatch.setattr(tables, "GOALS", ((24, "a day"),))
    shown: list[str] = []
    table = tables.render_answers(make_varied_profile(), 20, 0, shown.append)
    assert len(shown) == 2 + 1 + 5 + 2
    assert all(row in table for row in shown)
    assert table.count("| bottleneck |") == 4
    assert {line.count("|") for line in table.splitlines() if line.startswith("|")} == {12}


# ---------------------------------------------------------------------------------------------- comparison


def make_calibration(*changes: MeasuredChange, cores: float = 1.0) -> Calibration:
    profile = make_profile(*changes)
    return Calibration(replace(profile, cores=dict.fromkeys(("build", "verify", "certify"), cores)), 3.0, (1.0, 1.0))


def test_the_same_changes_are_predicted_by_contention_and_shared_layers() -> None:
    calibration = make_calibration(*[make_change(10, 20, 30, layer_seconds=40) for _ in range(4)])
    for workers, seconds in ((1, 4 * 60), (2, 2 * 60), (4, 2 * 60)):
        for time in predict(calibration, workers, draws=5):
            assert time == pytest.approx(3 + 40 + seconds, rel=0.01)
    idle = make_calibration(*[make_change(10, 20, 30) for _ in range(4)], cores=0.5)
    assert predict(idle, 1, draws=1) == [pytest.approx(3 + 4 * 60)]
    for time in predict(idle, 4, draws=20):  # between no two at once, and all waiting and computing in step
        assert 3 + 60 + 1 < time < 3 + 90


def test_other_changes_are_drawn_again_and_again() -> None:
    calibration = make_calibration(make_change(1, 1, 1), make_change(10, 10, 10))
    times = predict(calibration, 1, [3], draws=50)
    assert {round(time) for time in times} == {3 + 9, 3 + 36, 3 + 63, 3 + 90}
    assert times == predict(calibration, 1, [3], draws=50)


def test_every_second_candidate_of_each_repository_is_predicted() -> None:
    assert divide({"a": ["a1", "a2", "a3"], "b": ["b1", "b2"]}) == (["a1", "a3", "b1"], ["a2", "b2"])


def test_a_prediction_is_the_mean_of_those_from_before_and_after_the_run() -> None:
    fast, slow = (make_calibration(make_change(seconds, 0, 0)) for seconds in (10, 30))
    comparisons = check.compare({check.SAME: [fast, slow], check.OTHERS: [slow, slow]}, [RealRun(1, 23, 20, 0.1)])
    assert [
        (comparison.basis, comparison.changes, round(comparison.predicted, 3), comparison.holds)
        for comparison in comparisons
    ] == [
        (check.SAME, 1, 3 + 20, True),
        (check.OTHERS, 1, 3 + 30, False),
    ]
    assert (round(comparisons[0].low, 3), round(comparisons[0].high, 3)) == (13, 33)


def test_a_prediction_that_misses_the_goal_is_reported() -> None:
    good = Comparison(check.SAME, 6, 112, 112, 112, RealRun(2, seconds=100, cpu=190, load=0.1))
    bad = replace(good, basis=check.OTHERS, predicted=80, low=60, high=100)
    assert (good.holds, bad.holds, replace(good, predicted=116).holds) == (True, False, False)
    rows = render_check([good, bad]).splitlines()[2:]
    assert rows == [
        f"| {check.SAME} | 2 | 112 |  | 100 | 190 | 0.1 | +12.0% | yes |",
        f"| {check.OTHERS} | 2 | 80 | 60-100 | 100 | 190 | 0.1 | -20.0% | **no** |",
    ]


@pytest.mark.docker
@pytest.mark.slow
def test_real_runs_are_compared_with_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_sample(tmp_path / "ada__greet")
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- table: written by benchmarks.scale check -->\n<!-- end of table -->\n")
    options = ["--base", "python3.11-*", "--workers", "2", "--out", str(tmp_path / "out"), "--page", str(page)]
    code = main(["check", "git:ada__greet", *options])
    numbers = json.loads((tmp_path / "out" / "check.json").read_text())
    assert [comparison["run"]["workers"] for comparison in numbers["comparisons"]] == [2, 2]
    for comparison in numbers["comparisons"]:
        assert comparison["changes"] == 1
        assert comparison["run"]["seconds"] > 1
        assert comparison["predicted"] > 1
        assert comparison["holds"] == (abs(comparison["predicted"] / comparison["run"]["seconds"] - 1) <= 0.15)
    assert code == int(not all(comparison["holds"] for comparison in numbers["comparisons"]))
    for calibrations in numbers["calibrations"].values():
        assert len(calibrations) == 2
        assert all(0.1 < calibration["cores"]["verify"] < 2 for calibration in calibrations)
    assert page.read_text().count("| 2 |") == 2


def test_a_simulated_run_uses_only_listed_changes() -> None:
    repository = SimulatedRepository(0, "python", 0, 0.0, 0.0, 0.0, [make_change(1, 1, 1)], 3)
    factory = Factory(make_plan(), make_profile(), [repository], random.Random(0), is_local=True)
    factory.run()
    assert factory.loop.now == pytest.approx(9)
    assert factory.totals.transferred_bytes == 0
