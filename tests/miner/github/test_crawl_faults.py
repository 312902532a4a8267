"""Whatever goes wrong on the way, the records are the same to the byte."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from mergemill.errors import Transient
from miner.changes import Change
from tests.cli import environment, mergemill
from tests.github import FAULTS, Faults, GitHub, World
from tests.github.answers import Ask
from tests.github.faults import PASSING
from tests.github.generate import make_world
from tests.miner.github.crawling import Miner, dumped

PULLS = 120
KILLS = 6


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One world for all: nothing here changes it."""
    return make_world(tmp_path_factory.mktemp("world"), seed=9, pull_requests=PULLS)


@pytest.fixture(scope="module")
def faultless(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    with GitHub(world) as hub:
        found = dumped(Miner(hub, tmp_path_factory.mktemp("faultless")).changes())
    assert len(found) > PULLS / 2
    return found


@pytest.mark.parametrize("name", PASSING)
def test_each_fault_leaves_the_records_as_they_are(
    name: str, world: World, faultless: list[str], tmp_path: Path
) -> None:
    faults = Faults()
    for after in (0, 1, 2):  # the first page, one in the middle, and what people said; then the clone
        faults.once(name, after=after, kinds=FAULTS[name].strikes)
    with GitHub(world, faults=faults) as hub:
        assert dumped(Miner(hub, tmp_path).changes()) == faultless
        assert hub.faults.struck[name]
        assert hub.violations == []


@pytest.mark.parametrize("seed", range(3))
def test_all_faults_at_once_leave_the_records_as_they_are(
    seed: int, world: World, faultless: list[str], tmp_path: Path
) -> None:
    with GitHub(world, faults=Faults.seeded(seed, rate=0.9)) as hub:
        miner, found = Miner(hub, tmp_path), list[Change]()
        while not found:  # exit code 75 asks for the same command again
            with suppress(Transient):
                found = miner.changes()
        assert dumped(found) == faultless
        assert sum(hub.faults.struck.values()) > 3
        assert hub.violations == []


def page_above(most: int) -> Callable[[Ask], bool]:
    def asks_for_more(ask: Ask) -> bool:
        return ask.kind == "graphql" and json.loads(ask.body)["variables"].get("size", 0) > most

    return asks_for_more


def test_pages_that_are_too_much_become_smaller_and_that_is_remembered(
    world: World, faultless: list[str], tmp_path: Path
) -> None:
    with GitHub(world, faults=Faults().always("http-502", when=page_above(12))) as hub:
        miner = Miner(hub, tmp_path)
        assert dumped(miner.changes()) == faultless
        assert hub.faults.struck["http-502"] >= 2
        hub.faults.struck.clear()
        assert dumped(miner.changes()) == faultless
        assert not hub.faults.struck


def test_a_rename_in_mid_crawl_changes_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path, seed=9, pull_requests=PULLS)
    with GitHub(world) as hub:
        before = dumped(Miner(hub, tmp_path / "before").changes())
    with GitHub(world, faults=Faults().at(2, lambda hub: hub.world.rename("ada/lib", "ada/core"))) as hub:
        assert dumped(Miner(hub, tmp_path / "meanwhile").changes()) == before


def mined(folder: Path) -> list[dict[str, object]]:
    rows = mergemill("sql", "SELECT * FROM changes ORDER BY name", "--json", cwd=folder).lines
    return [{key: value for key, value in row.items() if not key.endswith(("_at", "seconds"))} for row in rows]


@pytest.mark.slow
def test_kills_at_random_moments_leave_the_records_as_they_are(world: World, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    with GitHub(world, latency=0.05) as hub:
        env = environment() | {"GITHUB_TOKEN": "ghp_reader", "MERGEMILL_GITHUB_API": hub.url}
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
