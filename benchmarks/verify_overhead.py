"""Measure the cost of verification beyond the tests, and of one more task of the same repository.

    python -m benchmarks.verify_overhead [--suite-seconds 10] [--changes 3] [--repo git:PATH --limit N]

Without `--repo`, a repository is generated whose suite computes for about `--suite-seconds`. There is one worker, so
seconds inside the test process and wall seconds are comparable. Printed per task:

- overhead: (wall time of verification - time inside the test process) / time inside the test process;
- marginal seconds: wall time of build, verification and certification without the time inside the test process;
- marginal megabytes: the image layer that only this task needs, and its artifacts beside the database.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from core.config import Settings
from mergemill.cli import run_command_line
from taskdb.records import Certificate, Environment, Task, Verification
from taskdb.store import Store

ACCEPTANCE_RUNS = 2
"""Number of suite runs per build; `Environment.test_seconds` is the longer of the two."""

MODULE = (
    "def burn(rounds):\n    total = {start}\n    for i in range(rounds):\n        total += i % 7\n    return total\n"
)
TEST = """\
import time

from burn import burn


def test_burns():
    end = time.perf_counter() + {seconds}
    while time.perf_counter() < end:
        burn(10_000)


def test_starts_at_{start}():
    assert burn(0) == {start}


def test_adds_the_days_of_weeks():
    assert burn(7) == {week}
    assert burn(21) == {weeks}


def test_adds_the_days_of_a_month():
    assert burn(31) == {month}


def test_adds_the_days_of_a_year():
    assert burn(365) == {year}
"""
SPANS = {"week": 7, "weeks": 21, "month": 31, "year": 365}
"""Name of a number in the tests -> rounds that it is the result of."""


@dataclass(frozen=True)
class VerificationCost:
    """Cost of one task in seconds of wall time and bytes on disk."""

    name: str
    test_process_seconds: float
    verification_seconds: float
    other_seconds: float
    image_bytes: int

    @property
    def overhead(self) -> float:
        """Wall time of verification beyond the test process, relative to the test process."""
        return (self.verification_seconds - self.test_process_seconds) / self.test_process_seconds


def make_repository(path: Path, suite_seconds: float, changes: int) -> None:
    """Create a repository with `changes` squash-merged bug fixes and a suite of `suite_seconds`."""
    from tests.helpers import TinyRepo  # noqa: PLC0415 - only this default needs the tests' helper

    def files(start: int) -> dict[str, str]:
        sums = {name: start + sum(day % 7 for day in range(days)) for name, days in SPANS.items()}
        return {
            "burn.py": MODULE.format(start=start),
            "tests/test_burn.py": TEST.format(seconds=suite_seconds, start=start, **sums),
        }

    repo = TinyRepo(path)
    setup = "from setuptools import setup\nsetup(name='burn', version='1', py_modules=['burn'])\n"
    repo.commit("Begin", files(0) | {"setup.py": setup, "LICENSE": "MIT License\n"})
    for number in range(1, changes + 1):
        repo.commit(f"Start burning at {number} (#{number})\n\nburn(0) has to be {number}, it is not.", files(number))


def compute_costs(store: Store) -> list[VerificationCost]:
    """Return the cost of each certified task of the database in build order."""
    costs = []
    for certificate in store.load_all(Certificate):
        task = store.get(Task, certificate.parent)
        verification = store.get(Verification, task.parent)
        environment = store.get(Environment, verification.parent)
        inside = sum(run.test_seconds for run in verification.runs)
        around = (
            environment.seconds
            - ACCEPTANCE_RUNS * environment.test_seconds
            + verification.seconds
            - inside
            + certificate.seconds
            - certificate.evaluations * compute_gold_seconds(verification)
        )
        costs.append(
            VerificationCost(
                name=task.name,
                test_process_seconds=inside,
                verification_seconds=verification.seconds,
                other_seconds=around,
                image_bytes=environment.image_bytes,
            )
        )
    return sorted(costs, key=lambda cost: -cost.other_seconds)


def compute_gold_seconds(verification: Verification) -> float:
    """Return the mean seconds inside the test process of a run with the gold patch."""
    return mean(verification.list_gold_seconds())


def render_table(costs: Sequence[VerificationCost]) -> Table:
    """Render the figures. The first task is the most expensive one: it includes the layers that the others share."""
    result = Table("task", "in tests s", "verification s", "overhead", "around the tests s", "own layer MB")
    for c in costs:
        result.add_row(
            c.name,
            f"{c.test_process_seconds:.1f}",
            f"{c.verification_seconds:.1f}",
            f"{c.overhead:.2f}",
            f"{c.other_seconds:.2f}",
            f"{c.image_bytes / 1e6:.2f}",
        )
    return result


def main() -> None:
    """Run the pipeline in a database of its own and print the table and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite-seconds", type=float, default=10)
    parser.add_argument("--changes", type=int, default=3)
    parser.add_argument("--repo")
    parser.add_argument("--limit", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = options.repo
        if source is None:
            make_repository(Path(folder) / "bench__burn", options.suite_seconds, options.changes)
            source = f"git:{folder}/bench__burn"
        settings = Settings(db=f"sqlite:///{folder}/bench.db", workers=1, limit=options.limit)
        limit = ["--limit", str(options.limit)] if options.limit else []
        run_command_line(["run", source, "--db", settings.storage.db, "--workers", "1", *limit])
        artifacts = sum(p.stat().st_size for p in (settings.storage.store_dir / "artifacts").rglob("*") if p.is_file())
        with Store.open(settings.storage.db) as store:
            costs = compute_costs(store)
    console = Console()
    console.print(render_table(costs))
    rest = costs[1:] or costs
    console.print(
        f"overhead, median of all tasks: {median(c.overhead for c in costs):.2f} (goal: at most 0.3 from 10 s)"
    )
    console.print(f"one more task: {median(c.other_seconds for c in rest):.2f} s around its tests (goal: at most 3 s)")
    megabytes = median(c.image_bytes for c in rest) / 1e6
    console.print(f"one more task: {megabytes:.2f} MB of image (goal: at most 5 MB); ", end="")
    console.print(f"artifacts {artifacts / 1e6 / max(1, len(costs)):.2f} MB a task")


if __name__ == "__main__":
    main()
