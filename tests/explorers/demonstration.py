"""Run a command with a scripted model on a planted corpus: python -m tests.explorers.demonstration COMMAND...

Writes `planted.jsonl` with 300 pages and `seeds.txt` with three seeds, starts the model, and names it to the command by
MERGEMILL_LLM and MERGEMILL_MODEL. Other settings make a run short.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.explorers.planted import CHAINS, make_pages
from tests.explorers.scripted import open_scripted_explorer
from tests.forked_command import ForkedCommand

SHORT = {"MERGEMILL_EXPLORE_SAMPLES": "1", "MERGEMILL_EXPLORE_CLOSED_SAMPLES": "1", "MERGEMILL_EXPLORE_EASY_TURNS": "2"}
SEEDS = (0, 2, 3)
"""A chain in English, a chain in Chinese, and a chain with two answers."""


def main() -> int:
    command = ForkedCommand(sys.argv[1:])
    Path("planted.jsonl").write_text("".join(json.dumps(page.to_json()) + "\n" for page in make_pages()))
    Path("seeds.txt").write_text("".join(f"{CHAINS[number].seed}\n" for number in SEEDS))
    with open_scripted_explorer() as model:
        return command.run(MERGEMILL_LLM=model.url, MERGEMILL_MODEL="scripted", **SHORT)


if __name__ == "__main__":
    sys.exit(main())
