"""What gradings give whose containers are killed or removed at random.

    python -m benchmarks.losses --db DATABASE --task NAME [--gradings N] [--share S] [--pods] [--check] [--page PAGE]

Submissions to one task (its gold patch, nothing, and a test of its own) are graded once undisturbed, then again and
again while a share of the containers is ended from outside at random moments, from their start on. `--pods` grades
and deletes pods, in the cluster of the usual settings. A grading must have the value that it has undisturbed, or none;
one without a value is graded again, up to ATTEMPTS times. `--check` exits with 1 where a value differs.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import docker

from backends.sandbox.container_names import make_container_name
from benchmarks.page_table import write_table
from core.config import Settings
from core.errors import Transient
from mergemill.grading.grading import Submission, TaskGrader
from taskdb.records import Score
from taskdb.store import Store

ATTEMPTS = 5
LONGEST_LIFE = 3.0
"""Seconds after its start at which a container is ended, at most."""
POLL_SECONDS = 0.2
KILL_METHODS = (("docker", "kill"), ("docker", "rm", "-f"))
POD_KILL_METHODS = (("kubectl", "delete", "pod", "--grace-period=0", "--force", "--wait=false"),)
EMPTY_TESTS = b"""diff --git a/tests/test_added.py b/tests/test_added.py
new file mode 100644
--- /dev/null
+++ b/tests/test_added.py
@@ -0,0 +1 @@
+assert True
"""


@dataclass
class ContainerKiller:
    """Ends a share of the containers of this process, each within `seconds` of its start."""

    share: float
    seconds: float = LONGEST_LIFE
    seed: int = 0
    pods: bool = False
    n_seen: int = 0
    n_killed: int = 0
    _timers: list[threading.Timer] = field(default_factory=list)

    @contextmanager
    def run(self) -> Iterator[None]:
        """End containers until the block is left, and wait for the last."""
        stopping = threading.Event()
        thread = threading.Thread(target=self._watch, args=(stopping,))
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
            for timer in self._timers:
                timer.join()
            _open_client().close()

    def _watch(self, stopping: threading.Event) -> None:
        draw, seen = random.Random(self.seed), set(self._list_names())  # noqa: S311 - no secret
        while not stopping.wait(POLL_SECONDS):
            for name in sorted(set(self._list_names()) - seen):
                seen.add(name)
                self.n_seen += 1
                if draw.random() < self.share:
                    methods = POD_KILL_METHODS if self.pods else KILL_METHODS
                    timer = threading.Timer(draw.uniform(0, self.seconds), self._end, ([*draw.choice(methods), name],))
                    timer.start()
                    self._timers.append(timer)

    def _list_names(self) -> list[str]:
        prefix = make_container_name().rpartition("-")[0]
        if self.pods:
            command = ["kubectl", "get", "pods", "-o", "custom-columns=:.metadata.name"]
            listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        else:  # a process for each look would take a fifth of a processor
            containers = _open_client().containers(filters={"name": prefix})
            listed = [name.removeprefix("/") for container in containers for name in container["Names"]]
        return [name for name in listed if name.startswith(prefix)]

    def _end(self, command: Sequence[str]) -> None:
        # A container that has ended by itself cannot be killed, and does not count.
        self.n_killed += subprocess.run(command, capture_output=True, check=False).returncode == 0


@cache
def _open_client() -> docker.APIClient:
    """Return a client, which connects when it is used."""
    return docker.APIClient(base_url=os.environ.get("DOCKER_HOST"))


@dataclass
class LossCount:
    """Gradings of one submission under losses."""

    name: str
    calm: float | None
    values: Counter[float | None] = field(default_factory=Counter)
    retried: int = 0
    """Gradings that were begun again, as they had no value."""

    @property
    def n_wrong(self) -> int:
        """Gradings with another value than undisturbed."""
        return sum(count for value, count in self.values.items() if value not in (self.calm, None))


def count_losses(
    grade: Callable[[bytes], Score], submissions: Mapping[str, bytes], killer: ContainerKiller, gradings: int
) -> list[LossCount]:
    """Grade submissions in turn, undisturbed and then with containers killed.

    Args:
        grade: function that grades a submission once.
        submissions: name -> submission.
        killer: what ends the containers.
        gradings: number of disturbed gradings, of all submissions together.
    """
    counts = [LossCount(name, grade(content).value) for name, content in submissions.items()]
    with killer.run():
        for number in range(gradings):
            count = counts[number % len(counts)]
            for _ in range(ATTEMPTS):
                value = _grade_once(grade, submissions[count.name])
                count.values[value] += 1
                if value is not None:
                    break
                count.retried += 1
    return counts


def _grade_once(grade: Callable[[bytes], Score], submission: bytes) -> float | None:
    try:
        return grade(submission).value
    except Transient:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.losses")
    parser.add_argument("--db", required=True)
    parser.add_argument("--store", type=Path, help="folder of the artifacts; by default in the folder of the database")
    parser.add_argument("--task", required=True)
    parser.add_argument("--gradings", type=int, default=200)
    parser.add_argument("--share", type=float, default=0.15, help="of the containers, 0..1")
    parser.add_argument("--pods", action="store_true", help="grade in pods")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    store_option = {"store": options.store} if options.store else {}
    settings = Settings(db=options.db, **store_option, **({"sandbox": "kubernetes"} if options.pods else {}))
    killer = ContainerKiller(options.share, pods=options.pods)
    started = time.perf_counter()
    with Store.open(settings.storage.db, create=False) as store:
        grader = TaskGrader(store, settings, is_writer=False)
        task = grader.find_task(options.task, "patch")
        submissions = {
            "gold": grader.make_gold(task).content,
            "nothing": b"",
            "a test of its own": EMPTY_TESTS,
        }
        counts = count_losses(
            lambda content: grader.grade(Submission(task=task, content=content)), submissions, killer, options.gradings
        )
    table = render_table(counts, killer)
    sys.stdout.write(f"{table}{time.perf_counter() - started:.0f} s\n")
    if options.page:
        write_table(options.page, "benchmarks.losses", table)
    return int(options.check and any(count.n_wrong for count in counts))


def render_table(counts: Sequence[LossCount], killer: ContainerKiller) -> str:
    """Return the table in Markdown."""
    lines = [
        "| submission | undisturbed | gradings | same value | another value | no value, graded again |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for count in counts:
        same, total = count.values[count.calm], sum(count.values.values())
        lines.append(f"| {count.name} | {count.calm} | {total} | {same} | {count.n_wrong} | {count.retried} |")
    lines += ["", f"{killer.n_killed} of {killer.n_seen} containers were ended from outside."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
