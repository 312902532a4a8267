"""Measure resets, steps and checks of worlds in a container: `python -m benchmarks.worlds [--page FILE]`.

The three example worlds run in one container: episodes one after the other, then 64 at once. Seconds are those of the
caller, with the way through the engine. Goals: a reset takes at most 50 ms and a step at most 10 ms at the median,
with one episode and with 64 on 2 processors; `--check` makes a missed goal an exit code. Needs Docker.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from backends.clones import CloneStore
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from benchmarks.page_table import write_table
from builders.bases import ensure_base
from core.config import Settings
from taskdb.artifacts import Artifacts
from worlds.definitions import ScenarioDefinition
from worlds.examples.loading import list_example_worlds, load_example_scenarios, load_example_world
from worlds.server.service import ServedWorld, open_world_server

AT_ONCE = 64
MOST_RESET_MS, MOST_STEP_MS = 50.0, 10.0
RESET, STEP, CHECKS = "reset", "step", "all checks"
Samples = dict[tuple[str, int], list[float]]
T = TypeVar("T")


def play(world: ServedWorld, scenario: ScenarioDefinition, at_once: int, samples: Samples) -> None:
    """Run the calls of a scenario's solution, queries and checks once, and add the seconds to the samples."""

    def measure(what: str, run: Callable[[], T]) -> T:
        started = time.perf_counter()
        result = run()
        samples[what, at_once].append(time.perf_counter() - started)
        return result

    with measure(RESET, lambda: world.open_episode(scenario.state)) as episode:
        for call in scenario.solution or ():
            measure(STEP, lambda call=call: episode.call(call.tool, call.arguments))  # type: ignore[misc]
        measure(CHECKS, lambda: episode.run_checks(scenario.checks))


def measure_worlds(image: str, sandbox: DockerSandbox, episodes: int) -> tuple[float, Samples]:
    """Return seconds until the server answers, and (what, episodes at once) -> seconds."""
    samples: Samples = defaultdict(list)
    with ExitStack() as opened:
        started = time.perf_counter()
        server = opened.enter_context(open_world_server(sandbox, image))
        worlds = {name: opened.enter_context(server.load(load_example_world(name))) for name in list_example_worlds()}
        seconds = time.perf_counter() - started
        plan = [(worlds[name], scenario) for name in worlds for scenario in load_example_scenarios(name)]
        for number in range(episodes):
            play(*plan[number % len(plan)], at_once=1, samples=samples)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for future in [threads.submit(play, *plan[n % len(plan)], AT_ONCE, samples) for n in range(4 * AT_ONCE)]:
                future.result()
    return seconds, samples


def render_table(seconds: float, samples: Samples) -> str:
    """Return the table in Markdown."""
    lines = ["| | episodes at once | number | median, ms | 99th percentile, ms |", "|---|---:|---:|---:|---:|"]
    for (what, at_once), values in sorted(samples.items(), key=lambda item: (item[0][1], item[0][0])):
        median, high = 1000 * statistics.median(values), 1000 * statistics.quantiles(values, n=100)[98]
        lines.append(f"| {what} | {at_once} | {len(values):,} | {median:.1f} | {high:.1f} |")
    load = os.getloadavg()[0]
    after = f"The container is ready after {seconds:.1f} s. {os.cpu_count()} processors, load {load:.1f} at the end."
    return "\n".join([*lines, "", after, ""])


def list_missed_goals(samples: Samples) -> list[str]:
    """Return the goals that were missed."""
    goals = {RESET: MOST_RESET_MS, STEP: MOST_STEP_MS}
    medians = {key: 1000 * statistics.median(values) for key, values in samples.items()}
    return [
        f"{what} with {at_once} at once: {median:.1f} ms, goal {goals[what]:.0f} ms"
        for (what, at_once), median in sorted(medians.items())
        if median > goals.get(what, median)
    ]


def main() -> int:
    """Print the table, and write it into a page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=60, help="episodes one after the other")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("--page", type=Path, help="a page whose table is replaced")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store, sandbox = Path(folder), DockerSandbox()
        services = Services(
            settings=Settings(store=store), sandbox=sandbox, clones=CloneStore(store), artifacts=Artifacts(store)
        )
        seconds, samples = measure_worlds(ensure_base("python", "3.11", services).name, sandbox, arguments.episodes)
    table = render_table(seconds, samples)
    print(table)
    if arguments.page:
        write_table(arguments.page, "benchmarks.worlds", table)
    missed = list_missed_goals(samples)
    print("\n".join(f"missed: {line}" for line in missed) or "all goals are reached", file=sys.stderr)
    return int(arguments.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
