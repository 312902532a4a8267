"""Run the loop, or what is left of it, and print the rewards of its models and what its stages did."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.loop.loop import MODELS, Loop
from benchmarks.loop.plan import FULL, SMALL
from benchmarks.loop.report import render_rewards, render_stages
from benchmarks.loop.workspace import Workspace
from benchmarks.page_table import write_table


def main() -> None:
    """Run the loop in the folder of `--out`; stages that are done there are not done again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--small", action="store_true", help="four tasks, a model of 1 M parameters, one step of RL")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    options = parser.parse_args()
    loop = Loop(plan=SMALL if options.small else FULL, space=Workspace(options.out))
    reports = loop.run()
    rollouts = loop.space.run_mergemill("sql", "select name, model, value from rollouts")
    train, held_out = loop.list_tasks(held_out=False), loop.list_tasks(held_out=True)
    tables = f"\n{render_rewards(rollouts, MODELS, train, held_out)}\n{render_stages(reports)}\n"
    print(tables)
    if options.page:
        write_table(options.page, "benchmarks.loop", tables)


if __name__ == "__main__":
    main()
