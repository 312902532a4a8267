"""How much longer a grading takes next to a container that misuses what it is given.

    python -m benchmarks.neighbours --db DATABASE --task NAME [--gradings N] [--only NAME,..] [--check] [--page PAGE]

The gold patch of one task is graded again and again: alone, next to a container that computes, and next to one that
forks without end, takes all memory, fills the disk with large or small files, or prints without end. A neighbour has
the limits of a test run and begins again when it is ended. `--check` exits with 1 where the median next to one of these
is more than GOAL times the median alone. Nothing else may run.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.page_table import write_table
from core.config import Settings
from core.errors import CancelledRunError, Transient
from mergemill.execution.services import make_services
from mergemill.grading.grading import TaskGrader
from taskdb.store import Store

GOAL = 1.5
NEIGHBOUR_SECONDS = 60.0
"""Time limit of a neighbour, after which it begins again."""
HEAD_START = 2.0
"""Seconds that a neighbour runs before the first grading."""
NEIGHBOURS = {
    "computes": "while :; do :; done",
    "forks": "exec python3 -c '\nimport os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n'",
    "takes memory": "exec python3 -c '\nx = []\nwhile True: x.append(b\"x\" * 10**7)\n'",
    "fills the disk": "i=0; while :; do i=$((i+1)); head -c 20000000 /dev/zero > /tmp/f$i; done",
    "makes files": 'exec python3 -c \'\nn = 0\nwhile True:\n    n += 1\n    open(f"/tmp/{n}", "w").close()\n\'',
    "prints": "exec yes",
}
"""Name -> what it runs. The first is what any other grading would do."""


@dataclass(frozen=True)
class Case:
    """Seconds of the gradings next to one neighbour."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return median(self.seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neighbours")
    parser.add_argument("--db", required=True)
    parser.add_argument("--store", type=Path, help="folder of the artifacts; by default in the folder of the database")
    parser.add_argument("--task", required=True)
    parser.add_argument("--gradings", type=int, default=7, help="for each neighbour")
    parser.add_argument("--only", default=",".join(NEIGHBOURS))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    settings = Settings(db=options.db, **({"store": options.store} if options.store else {}))
    with Store.open(settings.storage.db, create=False) as store:
        grader = TaskGrader(store, settings)
        submission = grader.make_gold(grader.find_task(options.task, "patch"))

        def grade(name: str) -> Case:
            seconds = []
            for _ in range(options.gradings):
                started = time.perf_counter()
                score = grader.grade(submission)
                seconds.append(time.perf_counter() - started)
                if score.value != 1.0:
                    raise SystemExit(f"next to one that {name} the gold patch earns {score.value}")
            case = Case(name, tuple(seconds))
            print(
                f"{name}: {', '.join(f'{value:.2f}' for value in seconds)} s, load {os.getloadavg()[0]:.1f}", flush=True
            )
            return case

        grade("warm-up")
        alone = grade("alone")
        cases = []
        for name in options.only.split(","):
            with run_neighbour(NEIGHBOURS[name], submission.task.image or "", settings):
                cases.append(grade(name))
    table = render_table(alone, cases)
    sys.stdout.write(table)
    if options.page:
        write_table(options.page, "benchmarks.neighbours", table)
    return int(options.check and misses_goal(alone, cases))


@contextmanager
def run_neighbour(script: str, image: str, settings: Settings) -> Iterator[None]:
    """Run a script in containers with the limits of a test run, one after the other, until the block is left."""
    services = make_services(settings, engine=True)
    limits = replace(services.test_limits(), seconds=NEIGHBOUR_SECONDS)

    def run() -> None:
        while True:
            try:
                services.sandbox.run(image, ["bash", "-c", script], limits=limits, user="mergemill")
            except CancelledRunError:
                return
            except Transient as error:
                print(f"neighbour: {error}", file=sys.stderr)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(HEAD_START)
    try:
        yield
    finally:
        services.sandbox.stop()
        thread.join()


def misses_goal(alone: Case, cases: Sequence[Case]) -> bool:
    """Return whether gradings next to one of the neighbours take too long."""
    return any(case.median > GOAL * alone.median for case in cases)


def render_table(alone: Case, cases: Sequence[Case]) -> str:
    """Return the table in Markdown."""
    lines = ["| neighbour | median s | slowest s | times as long as alone |", "|---|---:|---:|---:|"]
    lines += [
        f"| {case.name} | {case.median:.2f} | {max(case.seconds):.2f} | {case.median / alone.median:.2f} |"
        for case in (Case("none", alone.seconds), *cases)
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
