"""Measure which flaky tests are caught by 3, 5 and 10 repeats, and which slip into certificates.

    python -m benchmarks.flaky [--projects 8] [--copies 5] [--simulated 4000] [--seed 0]
        [--page docs/evidence/measured.md]

Two tables are printed, in percent with Wilson's 95 % intervals: tests verified in containers, and simulated outcomes
that the same code compares. Both take the first 3 and 5 of 10 repeats. Names, order of files and simulated outcomes
depend on the seed; in containers tests draw their failures themselves. Needs Docker unless `--projects 0`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.flaky.measure import measure
from benchmarks.flaky.simulate import REPEATS, simulate
from benchmarks.flaky.tables import render_table
from benchmarks.page_table import write_table


def main() -> None:
    """Print the tables, and write them into a page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=8, help="projects that are verified in containers")
    parser.add_argument("--copies", type=int, default=5, help="tests of each case in a project")
    parser.add_argument("--simulated", type=int, default=4000, help="simulated tests of each failure rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="a page whose tables are replaced")
    arguments = parser.parse_args()
    tables = []
    if arguments.projects:
        from tests.containers import make_services  # noqa: PLC0415 - the small environments of the tests

        with tempfile.TemporaryDirectory() as folder:
            services = make_services(Path(folder), repeats=max(REPEATS), budget_seconds=3600)
            seeds = range(arguments.seed, arguments.seed + arguments.projects)
            results = list(measure(services, Path(folder), seeds, arguments.copies))
        tables.append(render_table("in containers", results))
    tables.append(render_table("simulated", list(simulate(arguments.simulated, arguments.seed))))
    print("\n".join(tables))
    if arguments.page:
        write_table(arguments.page, "benchmarks.flaky", "\n".join(tables))


if __name__ == "__main__":
    main()
