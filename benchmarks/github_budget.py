"""Measure the cost of mining GitHub: requests and points per 1,000 merged pull requests, second crawl, time, memory.

It runs against the emulator of the tests, whose costs follow GitHub's documented formula:
`python -m benchmarks.github_budget [N]`. The figures of other tools were measured on a listing or counted in their code
(docs/guide/mine/mine.md).
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from tests.github import GitHub
from tests.github.generate import make_world
from tests.miner.github.emulator_miner import EmulatorMiner

PEERS = (
    ("SWE-bench collection", "~3,110, and 200 unauthenticated diffs"),
    ("SWE-gen", "2,300-2,900"),
    ("multi-swe-bench", "~2,230"),
    ("Repo2RLEnv", "~2,200"),
    ("PyGithub, naively", "~7,000"),
)


def main(pull_requests: int) -> None:
    """Print the figures for a generated repository with so many pull requests, about four fifths of them merged."""
    with tempfile.TemporaryDirectory(prefix="mergemill-budget-") as folder:
        world = make_world(Path(folder) / "world", seed=7, pull_requests=pull_requests)
        with GitHub(world) as hub:
            miner = EmulatorMiner(hub, Path(folder))
            began = time.perf_counter()
            count, seconds = len(miner.read_changes()), time.perf_counter() - began
            cost = miner.count_requests()
            miner.read_changes()
            again = miner.count_requests()
    requests, per = cost["graphql"] + cost["rest"], 1000 / count
    print(f"{count} merged pull requests, comments of linked issues and review threads included")
    print(f"per 1,000: {requests * per:.0f} requests, {cost['points'] * per:.0f} points, {seconds * per:.0f} s")
    print(f"a second crawl with nothing new: {again['graphql'] + again['rest']} requests, {again['points']} points")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB at most, the emulator included")
    for name, figure in PEERS:
        print(f"  {name}: {figure} requests per 1,000")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1200)
