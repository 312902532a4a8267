"""Measure how many batches objectives need until a policy has learned a token that is unlikely at first.

    python -m benchmarks.objectives [--seeds 10] [--learning-rates 0.003 0.01 ...]
        [--page docs/guide/agents/objectives.md]

Each objective runs with each learning rate of Adam, as none is known to be best for all of them; and with and without
rewards by luck. Needs torch (on PYTHONPATH: `client`), no GPU; some minutes with the defaults.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from benchmarks.page_table import write_table

LUCKS = (0.0, 0.1)
LEARNING_RATES = (0.003, 0.01, 0.03, 0.1, 0.3)


def main() -> None:
    """Print the table, and write it into a page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="runs of each objective and learning rate")
    parser.add_argument("--learning-rates", type=float, nargs="+", default=LEARNING_RATES)
    parser.add_argument("--page", type=Path, help="a page whose table is replaced")
    arguments = parser.parse_args()
    if find_spec("torch") is None:
        raise SystemExit("this benchmark needs torch: pip install torch")
    from benchmarks.objectives.tables import render_table  # noqa: PLC0415 - after the check
    from benchmarks.objectives.toy import ToyTask, measure  # noqa: PLC0415

    tasks = [ToyTask(luck=luck) for luck in LUCKS]
    results = [result for task in tasks for result in measure(task, arguments.learning_rates, arguments.seeds)]
    table = render_table(tasks[0], results)
    print(table)
    if arguments.page:
        write_table(arguments.page, "benchmarks.objectives", table)


if __name__ == "__main__":
    main()
