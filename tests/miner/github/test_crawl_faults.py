"""The records are byte-identical whatever faults occur."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import Transient
from miner.changes import Change
from tests.cli import make_command_environment, run_mergemill
from tests.github import FAULTS, FaultPlan, GitHub, World
from tests.github.answers import ApiRequest
from tests.github.faults import PASSING
from tests.github.generate import make_world
from tests.miner.github.emulator_miner import EmulatorMiner, dump_changes

PULLS = 120
KILLS = 6


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One world for all tests: none of them changes it."""
    return make_world(tmp_path_factory.mktemp("world"), seed=9, pull_requests=PULLS)


@pytest.fixture(scope="module")
def faultless(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    with GitHub(world) as hub:
        changes = dump_changes(EmulatorMiner(hub, tmp_path_factory.mktemp("faultless")).read_changes())
    assert len(changes) > PULLS / 2
    return changes


@pytest.mark.parametrize("name", PASSING)
def test_each_fault_leaves_the_records_as_they_are(
    name: str, world: World, faultless: list[str], tmp_path: Path
) -> None:
    faults = FaultPlan()
    for after in (0, 1, 2):  # the first page, one in the middle, and the discussions; then the clone
        faults.add_once(name, after=after, kinds=FAULTS[name].strikes)
    with GitHub(world, faults=faults) as hub:
        assert dump_changes(EmulatorMiner(hub, tmp_path).read_changes()) == faultless
        assert hub.faults.counts[name]
        assert hub.violations == []


@pytest.mark.parametrize("seed", range(3))
def test_all_faults_at_once_leave_the_records_as_they_are(
    seed: int, world: World, faultless: list[str], tmp_path: Path
) -> None:
    with GitHub(world, faults=FaultPlan.from_seed(seed, rate=0.9)) as hub:
        miner, changes = EmulatorMiner(hub, tmp_path), list[Change]()
        while not changes:  # exit code 75 asks for the same command again
            with suppress(Transient):
                changes = miner.read_changes()
        assert dump_changes(changes) == faultless
        assert sum(hub.faults.counts.values()) > 3
        assert hub.violations == []


def page_above(most: int) -> Callable[[ApiRequest], bool]:
    def asks_for_more(ask: ApiRequest) -> bool:
        return ask.kind == "graphql" and json.loads(ask.body)["variables"].get("size", 0) > most

    return asks_for_more


def test_pages_that_are_too_large_become_smaller_and_stay_so(
    world: World, faultless: list[str], tmp_path: Path
) -> None:
    with GitHub(world, faults=FaultPlan().add_always("http-502", when=page_above(12))) as hub:
        miner = EmulatorMiner(hub, tmp_path)
        assert dump_changes(miner.read_changes()) == faultless
        assert hub.faults.counts["http-502"] >= 2
        hub.faults.counts.clear()
        assert dump_changes(miner.read_changes()) == faultless
        assert not hub.faults.counts


def test_a_rename_during_a_crawl_changes_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path, seed=9, pull_requests=PULLS)
    with GitHub(world) as hub:
        before = dump_changes(EmulatorMiner(hub, tmp_path / "before").read_changes())
    with GitHub(
        world, faults=FaultPlan().schedule_event(2, lambda hub: hub.world.rename("ada/lib", "ada/core"))
    ) as hub:
        assert dump_changes(EmulatorMiner(hub, tmp_path / "meanwhile").read_changes()) == before


def mined(folder: Path) -> list[dict[str, object]]:
    rows = run_mergemill("sql", "SELECT * FROM changes ORDER BY name", "--json", cwd=folder).lines
    return [{key: value for key, value in row.items() if not key.endswith(("_at", "seconds"))} for row in rows]


@pytest.mark.slow
def test_kills_at_random_moments_leave_the_records_as_they_are(world: World, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    with GitHub(world, latency=0.05) as hub:
        env = make_command_environment() | {"GITHUB_TOKEN": "ghp_reader", "MERGEMILL_GITHUB_API": hub.url}
        command = ["mergemill", "mine", "github:ada/lib"]
        subprocess.run(command, cwd=tmp_path / "undisturbed", env=env, check=True, capture_output=True)
        for _ in range(KILLS):
            with subprocess.Popen(
                command, cwd=tmp_path / "killed", env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as driver:
                try:
                    driver.wait(moments.uniform(0.8, 5))
                except subprocess.TimeoutExpired:
                    driver.send_signal(signal.SIGKILL)
        last = subprocess.run(command, cwd=tmp_path / "killed", env=env, check=False, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert mined(tmp_path / "killed") == mined(tmp_path / "undisturbed") != [], f"seed {seed}"
