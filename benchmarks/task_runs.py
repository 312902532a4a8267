"""List the runs of the tests that each certified task of a database took, with median and maximum.

    python -m benchmarks.task_runs [--db URL] [--json]

Runs of the verification are counted for each task of their change. A certificate with exploits of its own takes more
runs than one that relies on those of another task.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from core.config import Settings
from taskdb.queries.runs import iter_certified_runs
from taskdb.store import Store


def summarize(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return number of tasks, median and maximum of their runs, and how many have exploits of their own or rely."""
    totals = [task["total"] for task in runs]
    return {
        "tasks": len(runs),
        "median": median(totals) if totals else None,
        "maximum": max(totals, default=None),
        "with_exploits": sum(task["exploits"] > 0 for task in runs),
        "relying": sum(task["exploits_of"] is not None for task in runs),
    }


def render_table(runs: Sequence[Mapping[str, Any]]) -> Table:
    """Render a row for each task."""
    result = Table("task", "verification", "certificate", "exploits", "total")
    for task in runs:
        kinds = ", ".join(f"{number} {kind}" for kind, number in task["verification"].items())
        made = f"{task['exploits']} in {task['submissions']}" if task["exploits"] else "0"
        exploits = f"of {task['exploits_of']}" if task["exploits_of"] else made
        result.add_row(task["name"], kinds, str(task["certificate"]), exploits, str(task["total"]))
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the runs of the certified tasks and their summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", default=Settings().storage.db)
    parser.add_argument("--json", action="store_true", help="print a JSON line for each task, and the summary")
    options = parser.parse_args(arguments)
    console = Console(soft_wrap=True)
    with Store.open(options.db, create=False) as store:
        runs = list(iter_certified_runs(store))
    if options.json:
        for row in (*runs, summarize(runs)):
            console.print_json(json.dumps(row), indent=None)
        return
    summary = summarize(runs)
    console.print(render_table(runs))
    console.print(
        f"{summary['tasks']} certified tasks: median {summary['median']}, maximum {summary['maximum']} runs; "
        f"{summary['with_exploits']} with exploits of their own, {summary['relying']} rely on those of another task"
    )


if __name__ == "__main__":
    main()
