"""Kill drivers, workers, nodes, engines and the database at random: `python -m benchmarks.kills [--page FILE]`.

Two nodes with engines of their own (network, disk, images, store), a registry between them and a PostgreSQL server make
tasks of three small repositories. First one machine makes them, undisturbed. Then runs on the nodes begin from nothing,
again and again, while something is killed with SIGKILL every few seconds, until there were `--kills` kills; a killed
driver is started again by the same command, and what else was killed comes back after some seconds. After every third
kill or so something fails without dying: a node stops for some seconds or is slow, its disk is full, the registry is
down. A run ends when a driver ends with exit code 0. Its database must then have the records of the undisturbed one:
the same ids, each as often. Needs root on Linux, `docker.io`, `docker-registry`, PostgreSQL and Ray.

With `--check` the exit code is 1 when the records of a run differ.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.isolated_engine import IsolatedEngine, remove_built_images, start_engine
from benchmarks.page_table import write_table
from benchmarks.scaling import open_server
from benchmarks.small_disk import fill_disk, mount_disk
from tests.cli import make_command_environment
from tests.ray_nodes import QUICK, RayNodes, list_session, read_title, start_ray_nodes
from tests.registry import LocalRegistry, find_bridge_address
from tests.sample import ALIKE, make_sample
from tests.taskdb.conftest import PostgresServer
from tests.taskdb.content import read_records

NAMES = ("greet", "salute", "hail")
NODES = ("node-a", "node-b")
BASES = ("python3.11-*",)
LEAST_PAUSE, MOST_PAUSE = 1.0, 6.0
"""Seconds between two kills."""
DOWN_SECONDS = 2.0
"""Time that an engine or the database is away."""
FAULT_SECONDS = 6.0
"""Time that a node stops or is slow, its disk is full, or the registry is away."""
FAULT_SHARE = 0.3
"""Share of kills after which something fails without dying."""
DISK_BYTES = 8 << 30
KILLS = ("driver", "worker", "node", "engine", "database")
FAULTS = ("stopped node", "slow node", "full disk", "registry")
RUN_SECONDS = 1200.0
"""Time after which a run counts as hanging."""
WORKER = "ray::WorkerActor"


@dataclass
class Factory:
    """Nodes, engines, stores and database on which the runs are made."""

    folder: Path
    nodes: RayNodes
    engines: Mapping[str, IsolatedEngine]
    server: PostgresServer
    registry: LocalRegistry

    def get_disk(self, name: str) -> Path:
        """Return the file system of a node, with its engine and its store."""
        return self.folder / "disks" / name

    def add_node(self, name: str) -> None:
        """Start a node, or start it again."""
        store = self.get_disk(name) / "store"
        store.mkdir(exist_ok=True)
        self.nodes.add(name, env={"DOCKER_HOST": self.engines[name].host, "MERGEMILL_NODE_STORE": str(store)})

    def empty(self) -> None:
        """Remove what earlier runs left on the nodes."""
        for name in NODES:
            self.nodes.nodes[name].kill()
        for engine in self.engines.values():
            remove_built_images(engine)
        for name in NODES:
            shutil.rmtree(self.get_disk(name) / "store")
            self.add_node(name)

    def revive_nodes(self) -> None:
        """Start the nodes again that ended by themselves, as one does that the head took for lost."""
        for name in NODES:
            if self.nodes.nodes[name].process.poll() is not None:
                self.add_node(name)

    def list_workers(self) -> list[int]:
        """Return the processes of workers on the nodes."""
        pids = [pid for name in NODES for pid in list_session(self.nodes.nodes[name].process.pid)]
        return [pid for pid in pids if read_title(pid).startswith(WORKER)]


@dataclass
class Run:
    """One run, from an empty database to the end."""

    factory: Factory
    random: random.Random
    url: str
    driver: subprocess.Popen[bytes] = field(init=False)
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    seconds: float = 0.0
    is_equal: bool = False

    def start_driver(self) -> None:
        """Start the driver, or start it again."""
        sources = [f"git:ada__{name}" for name in NAMES]
        options = ["--db", self.url, "--cluster", self.factory.nodes.url, "--json"]
        options += ["--node-registry", f"{self.factory.registry.host}/mergemill"]
        log = self.factory.folder / "driver.log"
        with log.open("ab") as output:
            self.driver = subprocess.Popen(
                ["mergemill", "run", *sources, *options],
                cwd=self.factory.folder,
                env=make_command_environment(**QUICK, **ALIKE),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.starts += 1

    def finish(self, most_kills: int) -> None:
        """Run to the end, with at most so many kills.

        Raises:
            SystemExit: it does not end.
        """
        started = time.monotonic()
        self.start_driver()
        while not self._has_ended(self.random.uniform(LEAST_PAUSE, MOST_PAUSE)):
            if time.monotonic() - started > RUN_SECONDS:
                raise SystemExit(f"a run hangs: see {self.factory.folder}/driver.log")
            self.factory.revive_nodes()
            if self.kills.total() < most_kills:
                self._disturb()
        self.seconds = time.monotonic() - started

    def _disturb(self) -> None:
        kills = (self._kill_driver, self._kill_worker, self._kill_node, self._kill_engine, self._kill_database)
        faults = (self._stop_node, self._slow_node, self._fill_disk, self._stop_registry)
        name, kill = self.random.choice(list(zip(KILLS, kills, strict=True)))
        self.kills[name] += kill()
        if self.random.random() < FAULT_SHARE:
            name, fail = self.random.choice(list(zip(FAULTS, faults, strict=True)))
            fail()
            self.faults[name] += 1

    def _has_ended(self, seconds: float) -> bool:
        """Wait; return whether a driver has ended with exit code 0. One that ended otherwise is started again."""
        try:
            code = self.driver.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        if code == 0:
            return True
        self.start_driver()
        return False

    def _kill_driver(self) -> bool:
        if self.driver.poll() is not None:
            return False
        self.driver.kill()
        self.driver.wait()
        self.start_driver()
        return True

    def _kill_worker(self) -> bool:
        workers = self.factory.list_workers()
        with suppress(ProcessLookupError):
            if workers:
                os.kill(self.random.choice(workers), signal.SIGKILL)
                return True
        return False

    def _kill_node(self) -> bool:
        name = self.random.choice(NODES)
        self.factory.nodes.nodes[name].kill()
        time.sleep(DOWN_SECONDS)
        self.factory.add_node(name)
        return True

    def _kill_engine(self) -> bool:
        engine = self.factory.engines[self.random.choice(NODES)]
        engine.kill()
        time.sleep(DOWN_SECONDS)
        engine.start().close()
        return True

    def _kill_database(self) -> bool:
        self.factory.server.run("pg_ctl", "-m", "immediate", "stop")
        time.sleep(DOWN_SECONDS)
        self.factory.server.start_again()
        return True

    def _stop_node(self) -> None:
        node = self.factory.nodes.nodes[self.random.choice(NODES)]
        node.signal(signal.SIGSTOP)
        time.sleep(FAULT_SECONDS)
        node.signal(signal.SIGCONT)

    def _slow_node(self) -> None:
        self.factory.nodes.nodes[self.random.choice(NODES)].slow_down(FAULT_SECONDS)

    def _fill_disk(self) -> None:
        with fill_disk(self.factory.get_disk(self.random.choice(NODES))):
            time.sleep(FAULT_SECONDS)

    def _stop_registry(self) -> None:
        self.factory.registry.stop()
        time.sleep(FAULT_SECONDS)
        self.factory.registry.start()


@contextmanager
def open_factory() -> Iterator[Factory]:
    """Open nodes, engines, stores and database until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="mm-kills-", dir="/var/tmp"))  # overlay needs a real file system
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for name in NAMES:
            make_sample(folder / f"ada__{name}")
        server = open_server(stack)
        registry = LocalRegistry(folder / "registry", address=find_bridge_address())
        registry.start()
        stack.callback(registry.stop)
        nodes = stack.enter_context(start_ray_nodes())
        engines = {}
        for name in NODES:
            disk = stack.enter_context(mount_disk(folder / "disks" / name, DISK_BYTES))
            engines[name] = stack.enter_context(start_engine(disk / "engine", BASES, registries=[registry.host]))
        factory = Factory(folder, nodes, engines, server, registry)
        for name in NODES:
            factory.add_node(name)
        yield factory


def run_calmly(factory: Factory) -> tuple[dict[str, list[str]], float]:
    """Run on this machine and its engine; return the records. Then run on the nodes; return the seconds of that.

    Raises:
        SystemExit: a run fails, or its records differ.
    """
    url = factory.server.create_database()
    sources = [f"git:ada__{name}" for name in NAMES]
    environment = make_command_environment(**ALIKE)
    subprocess.run(
        ["mergemill", "--quiet", "run", *sources, "--db", url], cwd=factory.folder, env=environment, check=True
    )
    expected = read_records(url)
    calm = Run(factory, random.Random(0), factory.server.create_database())  # noqa: S311 - no secret
    calm.finish(most_kills=0)
    if read_records(calm.url) != expected:
        raise SystemExit("the records of the undisturbed runs differ")
    return expected, calm.seconds


def kill_at_random(factory: Factory, expected: Mapping[str, list[str]], kills: int, seed: int) -> Iterator[Run]:
    """Yield runs until there were so many kills."""
    left = kills
    while left > 0:
        factory.empty()
        run = Run(factory, random.Random(seed), factory.server.create_database())  # noqa: S311 - no secret
        run.finish(most_kills=left)
        run.is_equal = read_records(run.url) == expected
        left -= run.kills.total()
        seed += 1
        yield run


def format_table(runs: list[Run], expected: Mapping[str, list[str]], calm_seconds: float, seed: int) -> str:
    """Return the tables in Markdown."""
    total = sum((run.kills + run.faults for run in runs), Counter[str]())
    kinds = (*KILLS, *FAULTS)
    lines = [
        f"| run | {' | '.join(kinds)} | starts of the driver | seconds | records as undisturbed |",
        f"|---|{'---:|' * len(kinds)}---:|---:|---|",
    ]
    for number, run in enumerate(runs):
        counts = " | ".join(str((run.kills + run.faults)[kind]) for kind in kinds)
        answer = "yes" if run.is_equal else "**no**"
        lines.append(f"| {seed + number} | {counts} | {run.starts} | {run.seconds:.0f} | {answer} |")
    counts = " | ".join(str(total[kind]) for kind in kinds)
    killed = sum(total[kind] for kind in KILLS)
    equal = sum(run.is_equal for run in runs)
    starts, seconds = sum(run.starts for run in runs), sum(run.seconds for run in runs)
    lines.append(f"| all | {counts} | {starts} | {seconds:.0f} | {equal} of {len(runs)} |")
    lost = (seconds - len(runs) * calm_seconds) / max(1, total.total())
    made = f"{len(expected['tasks'])} tasks, {sum(map(len, expected.values()))} rows in all"
    took = f"undisturbed it takes {calm_seconds:.0f} s on the two nodes. A kill or fault costs {lost:.0f} s on average."
    lines += ["", f"{killed} kills, {total.total() - killed} faults. A run makes {made}; {took}"]
    return "\n" + "\n".join(lines) + "\n\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=main.__doc__)
    parser.add_argument("--kills", type=int, default=100, help="kills of all runs together")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; each further one has the next")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    parser.add_argument("--check", action="store_true", help="exit with 1 when the records of a run differ")
    options = parser.parse_args()
    runs: list[Run] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is stopped, as after Ctrl-C
    with open_factory() as factory:
        expected, calm_seconds = run_calmly(factory)
        print(f"undisturbed: {calm_seconds:.0f} s", file=sys.stderr)
        for run in kill_at_random(factory, expected, options.kills, options.seed):
            runs.append(run)
            done = sum(killed_run.kills.total() for killed_run in runs)
            outcome = f"{dict(run.kills + run.faults)}, {run.seconds:.0f} s, equal: {run.is_equal}"
            print(f"{done} of {options.kills} kills: {outcome}", file=sys.stderr)
        table = format_table(runs, expected, calm_seconds, options.seed)
        print(table)
        if options.page:
            write_table(options.page, "benchmarks.kills", table)
    sys.exit(1 if options.check and not all(run.is_equal for run in runs) else 0)


if __name__ == "__main__":
    main()
