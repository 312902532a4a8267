"""Run the loop, or what is left of it, and print what the models do before and after, and what its stages did."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.loop.report import SolvedShare, render_stages
from benchmarks.loop.workspace import Workspace
from benchmarks.page_table import write_table
from benchmarks.simulated_loop.loop import MODELS, SimulatedLoop
from benchmarks.simulated_loop.plan import FULL, SMALL


def main() -> None:
    """Run the loop in the folder of `--out`; stages that are done there are not done again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulated_loop", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--small", action="store_true", help="few conversations, one step")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables between the marks of this page")
    options = parser.parse_args()
    reports = SimulatedLoop(SMALL if options.small else FULL, Workspace(options.out)).run()
    lines = ["| model | episodes with reward 1 | valid calls | without a reward |", "|---|---|---|---|"]
    for description, stage in zip(MODELS.values(), ("play-before", "play-after"), strict=True):
        facts = reports[stage].facts
        rewarded = SolvedShare(solved=facts["rewarded"], graded=facts["episodes"] - facts["unscored"])
        valid = SolvedShare(solved=facts["valid"], graded=facts["calls"])
        lines.append(f"| {description} | {rewarded.render()} | {valid.render()} | {facts['unscored']} |")
    tables = "\n" + "\n".join(lines) + f"\n\n{render_stages(reports)}\n"
    print(tables)
    if options.page:
        write_table(options.page, "benchmarks.simulated_loop", tables)


if __name__ == "__main__":
    main()
