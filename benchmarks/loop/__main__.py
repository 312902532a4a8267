"""Run the loop, or what is left of it, and print the rewards of its models and the seconds of its stages."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.loop.loop import MODELS, Loop
from benchmarks.loop.plan import FULL, SMALL
from benchmarks.loop.report import render_rewards
from benchmarks.loop.workspace import Workspace


def main() -> None:
    """Run the loop in the folder of `--out`; stages that are done there are not done again."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--small", action="store_true", help="four tasks, a model of 1 M parameters, one step")
    options = parser.parse_args()
    loop = Loop(plan=SMALL if options.small else FULL, space=Workspace(options.out))
    seconds = loop.run()
    rollouts = loop.space.run_mergemill("sql", "select name, model, value from rollouts")
    train, held_out = loop.list_tasks(held_out=False), loop.list_tasks(held_out=True)
    print(render_rewards(rollouts, MODELS, train, held_out))
    print("| stage | seconds |\n|---|---|")
    for name, spent in seconds.items():
        print(f"| {name} | {spent:.0f} |")
    print(f"| all | {sum(seconds.values()):.0f} |\n\nload average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
