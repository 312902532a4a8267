"""Run the loop, or what is left of it, and print the rewards before and after, and what its stages did."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.loop.report import count_solved, render_stages
from benchmarks.loop.workspace import Workspace
from benchmarks.page_table import write_table
from benchmarks.world_loop.loop import MODELS, WorldLoop
from benchmarks.world_loop.plan import FULL, SMALL
from benchmarks.world_loop.scenarios import MEASURED, REINFORCED


def main() -> None:
    """Run the loop in the folder of `--out`; stages that are done there are not done again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.world_loop", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--small", action="store_true", help="scenarios of one kind, one step of RL")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    options = parser.parse_args()
    loop = WorldLoop(SMALL if options.small else FULL, Workspace(options.out))
    reports = loop.run()
    rollouts = loop.space.run_mergemill("sql", "select name, model, value from rollouts")
    lines = ["| model | states of RL | states in which nothing was learned |", "|---|---|---|"]
    for model, description in MODELS.items():
        shares = [count_solved(rollouts, model, loop.list_names(purpose)) for purpose in (REINFORCED, MEASURED)]
        lines.append(f"| {description} | {' | '.join(share.render() for share in shares)} |")
    tables = "\n" + "\n".join(lines) + f"\n\n{render_stages(reports)}\n"
    print(tables)
    if options.page:
        write_table(options.page, "benchmarks.world_loop", tables)


if __name__ == "__main__":
    main()
